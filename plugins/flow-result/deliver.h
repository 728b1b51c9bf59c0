/* SPDX-License-Identifier: Apache-2.0 */
/* Getting one result to the server: which failures are tried again, and what came of it. */
#ifndef KCAP_FLOW_RESULT_DELIVER_H
#define KCAP_FLOW_RESULT_DELIVER_H

#include <kcap/http.h>
#include <stddef.h>

enum verdict {
    VERDICT_RECORDED,
    VERDICT_NO_OPEN_ROUND,
    VERDICT_STALE,
    VERDICT_CATCHING_UP,
    VERDICT_LOGIN,
    VERDICT_STATUS,
    VERDICT_NOT_AN_ANSWER,
    VERDICT_TRANSPORT,
    VERDICT_PROBABLY_RECORDED,
    VERDICT_WINDOW,
    VERDICT_UNUSABLE,
    VERDICT_INTERNAL,
    N_VERDICTS
};

struct delivery {
    enum verdict verdict;
    int attempts; /* requests made */
    int status;   /* of the last answer, 0 for none */
    char *detail; /* the server's message or our error line, owned; NULL for none */
};

/* Posts body, within what is left of the call. Returns 0 with *ret filled (free it with
 * delivery_fini), or what ended the call: KCAP_WAIT_CANCELLED or KCAP_WAIT_SHUTDOWN. */
int32_t deliver(const struct kcap_host *host, struct kcap_call *call,
                const struct kcap_http *http, const char *body, size_t body_len,
                struct delivery *ret);

void delivery_fini(struct delivery *delivery);

#endif
