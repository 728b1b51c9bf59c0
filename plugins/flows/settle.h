/* SPDX-License-Identifier: Apache-2.0 */
/* Posts that a server asks to be sent again while it settles an earlier round. */
#ifndef KCAP_FLOWS_SETTLE_H
#define KCAP_FLOWS_SETTLE_H

#include "api.h"

/* As api_request, but a rejection that says "settling" is answered by sending again, with
 * growing pauses, until three minutes have brought no progress. is_round:
 * participant_unreachable counts too. *ret_attempts is how often it was sent. */
int32_t settle_post(struct flows *flows, struct kcap_call *call,
                    const struct api_request *request, bool is_round, struct api_answer *ret,
                    int *ret_attempts);

/* Whether the answer says that the server is still settling. */
bool settle_is_asked(const struct api_answer *answer);

#endif
