/* SPDX-License-Identifier: Apache-2.0 */
/* Which flows a session has: from the ledger and from the server. */
#ifndef KCAP_FLOWS_LOOKUP_H
#define KCAP_FLOWS_LOOKUP_H

#include "api.h"
#include "flows.h"

struct lookup {
    struct runs runs;   /* candidates, all with an id, newest first */
    struct runs starts; /* starts nobody knows the outcome of */
    bool server_answered;
    bool is_cut;        /* the server listed more than are kept here */
    char *server_fault; /* one line on why it did not; NULL when it did */
};

/* Returns 0 with *ret filled, else what ended the call. Free it with lookup_fini either way. */
int32_t lookup_session(struct flows *flows, struct kcap_call *call,
                       const struct session *session, struct lookup *ret);
void lookup_fini(struct lookup *lookup);
#define AUTO_LOOKUP __attribute__((cleanup(lookup_fini)))

#endif
