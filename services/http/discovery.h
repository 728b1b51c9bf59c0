/* SPDX-License-Identifier: Apache-2.0 */
/* How the server wants to be logged in to: GET /auth/config, remembered for a day. */
#ifndef KCAP_SERVICES_HTTP_DISCOVERY_H
#define KCAP_SERVICES_HTTP_DISCOVERY_H

#include "exchange.h"
#include "server.h"

/* Asks the server. Returns 0 with *ret_provider (the caller's to free; NULL: no usable answer)
 * and the answer itself, or as exchange_run. */
int32_t discovery_ask(const struct kcap_host *host, const struct http_server *server,
                      struct kcap_call *call, int64_t until_ns, char **ret_provider,
                      struct kcap_http_response **ret_answer);

/* The remembered answer when it is fresh, else NULL. The caller's to free. */
char *discovery_recall(const struct kcap_host *host, const struct http_server *server);

/* Remembers it, also for other processes; provider NULL forgets it. What cannot be written is
 * let be: it is asked for again. */
void discovery_remember(const struct kcap_host *host, const struct http_server *server,
                        const char *provider);

#endif
