/* SPDX-License-Identifier: Apache-2.0 */
/* Posts that a server asks to be sent again while it settles an earlier round. */
#ifndef KCAP_FLOWS_SETTLE_H
#define KCAP_FLOWS_SETTLE_H

#include "api.h"

/* What has been spent on an order so far, whatever it was sent to; begins as zeros. */
struct settling {
    int refusals;                  /* answers that said "settling" */
    int64_t began_ns, progress_ns; /* the latter: when it was last seen to get on */
    int64_t mark;                  /* how far the server had come then, */
    bool has_mark;                 /* if it tells */
    bool gave_up;                  /* it was busy to the end */
};

/* As api_request, but a rejection that says "settling" is answered by sending again, with
 * growing pauses, until three minutes have brought no progress. is_round:
 * participant_unreachable counts too. */
int32_t settle_post(struct flows *flows, struct kcap_call *call,
                    const struct api_request *request, bool is_round, struct settling *settling,
                    struct api_answer *ret);

/* Whether the answer says that the server is still settling. */
bool settle_is_asked(const struct api_answer *answer);

#endif
