/* SPDX-License-Identifier: Apache-2.0 */
/* Who we are to the server: which token a request carries, and what a refusal means. */
#ifndef KCAP_SERVICES_HTTP_LOGIN_H
#define KCAP_SERVICES_HTTP_LOGIN_H

#include <pthread.h>

#include "exchange.h"
#include "server.h"

enum login_state {
    LOGIN_NONE,       /* the server wants none, or has none to give */
    LOGIN_USABLE,     /* a stored one that looks valid */
    LOGIN_MISSING,    /* nobody has logged in */
    LOGIN_DAMAGED,    /* there is a file, and it is no login */
    LOGIN_EXPIRED,    /* and could not be renewed: why says what came of it */
    LOGIN_ELSEWHERE,  /* of another server */
    LOGIN_MACHINE,    /* machine credentials were turned into a token */
    LOGIN_MACHINE_BAD /* or not: why */
};

/* What is known for one request. */
struct bearer {
    enum login_state state;
    char *token; /* to be sent, or NULL */
    char *user, *other, *why;
    int64_t expires_ms;
};

struct login {
    const struct kcap_host *host;
    const struct http_server *server;
    pthread_mutex_t lock; /* of what follows */
    bool asked;           /* discovery was done, or looked up, */
    bool wants_none;      /* and said this, */
    int64_t until_ns;     /* which is good until then */
    char *machine_token;
    int64_t machine_expires_ms;
};

void login_init(struct login *login, const struct kcap_host *host,
                const struct http_server *server);

/* The token for the next request. Returns 0, or what ended the call. */
int32_t login_get(struct login *login, struct kcap_call *call, int64_t until_ns,
                  struct bearer *ret);

/* After a 401 to *bearer: renews it, or finds what another process left. *ret_again tells
 * whether there is something worth sending again. */
int32_t login_renew(struct login *login, struct kcap_call *call, int64_t until_ns,
                    struct bearer *bearer, bool *ret_again);

/* One line: which of the things is true that a 401 can mean. NULL when out of memory. */
char *login_explain(const struct login *login, const struct bearer *bearer);

void bearer_fini(struct bearer *bearer);

#endif
