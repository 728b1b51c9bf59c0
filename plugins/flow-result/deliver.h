/* SPDX-License-Identifier: Apache-2.0 */
/* Getting one text to the server: which failures are tried again, and what came of it. */
#ifndef KCAP_FLOW_RESULT_DELIVER_H
#define KCAP_FLOW_RESULT_DELIVER_H

#include <kcap/http.h>
#include <stdbool.h>
#include <stddef.h>

enum errand_kind { ERRAND_RESULT, ERRAND_MESSAGE, N_ERRANDS };

/* What is to be delivered. Every attempt sends the same bytes. */
struct errand {
    enum errand_kind kind;
    const char *body;
    size_t body_len;
    bool may_be_there; /* an earlier try, maybe of another process, is not known to have failed
                        */
    int max_attempts;
    int64_t attempt_limit_ns;
};

#define ERRAND_ATTEMPTS 5
#define ERRAND_LIMIT_NS INT64_C(30000000000)

enum verdict {
    VERDICT_RECORDED,
    VERDICT_NO_OPEN_ROUND, /* after all attempts; messages: no_active_flow, concurrent_update */
    VERDICT_STALE,
    VERDICT_CLOSED,
    VERDICT_CATCHING_UP,
    VERDICT_LOGIN,
    VERDICT_STATUS,       /* refused */
    VERDICT_SERVER_FAULT, /* 5xx without a word of the flow server's: it may have acted */
    VERDICT_NOT_AN_ANSWER,
    VERDICT_TRANSPORT,
    VERDICT_PROBABLY_RECORDED,
    VERDICT_WINDOW,
    VERDICT_UNUSABLE,
    VERDICT_INTERNAL,
    N_VERDICTS
};

/* The three things that can be true of a delivery. */
enum outcome { OUTCOME_DELIVERED, OUTCOME_NOT_DELIVERED, OUTCOME_UNKNOWN };

struct delivery {
    enum verdict verdict;
    enum outcome outcome;
    int attempts; /* requests made */
    int status;   /* of the last answer, 0 for none */
    char *detail; /* the server's message or our error line, owned; NULL for none */
    char *login;  /* what is wrong with the login, owned; NULL for nothing */
};

/* Posts the errand, within what is left of the call. Returns 0 with *ret filled (free it with
 * delivery_fini), or what ended the call: KCAP_WAIT_CANCELLED or KCAP_WAIT_SHUTDOWN. */
int32_t deliver(const struct kcap_host *host, struct kcap_call *call,
                const struct kcap_http *http, const struct errand *errand,
                struct delivery *ret);

/* Whether the server will never take it, however often it is asked. */
bool delivery_is_final(const struct delivery *delivery);

void delivery_fini(struct delivery *delivery);

#endif
