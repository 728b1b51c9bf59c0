/* SPDX-License-Identifier: Apache-2.0 */
/* Renewing a stored login, once at a time among all processes of the user. */
#ifndef KCAP_SERVICES_HTTP_REFRESH_H
#define KCAP_SERVICES_HTTP_REFRESH_H

#include "exchange.h"
#include "server.h"
#include "token.h"

/* Replaces *token, an existing login that is stale, by a valid one: another process's, or the
 * server's. Returns 0 with *ret_why NULL when that came about, else one line saying why not
 * (the caller's to free); or as exchange_run. */
int32_t refresh_run(const struct kcap_host *host, const struct http_server *server,
                    struct kcap_call *call, int64_t until_ns, struct token *token,
                    char **ret_why);

#endif
