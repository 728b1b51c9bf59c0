/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the server of this process. */
#ifndef KCAP_SERVICES_HTTP_SEND_H
#define KCAP_SERVICES_HTTP_SEND_H

#include "exchange.h"
#include "server.h"

/* As exchange_run, to what is behind the server's base. bearer may be NULL. */
int32_t send_request(const struct kcap_host *host, const struct http_server *server,
                     struct kcap_call *call, const struct kcap_http_request *request,
                     const char *path, const char *bearer, struct kcap_http_response **ret);

/* Makes a connection and sends nothing; an ANSWER with status 0 when one stood. */
int32_t send_nothing(const struct kcap_host *host, const struct http_server *server,
                     struct kcap_call *call, int64_t until_ns, struct kcap_http_response **ret);

#endif
