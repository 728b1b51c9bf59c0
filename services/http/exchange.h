/* SPDX-License-Identifier: Apache-2.0 */
/* One request and its answer over libcurl, waiting through the host. */
#ifndef KCAP_SERVICES_HTTP_EXCHANGE_H
#define KCAP_SERVICES_HTTP_EXCHANGE_H

#include <kcap/http.h>

#include "server.h"

/* What kcap_http.request promises, for a path that is allowed. path is what goes behind the
 * server's base. */
int32_t exchange_run(const struct kcap_host *host, const struct http_server *server,
                     struct kcap_call *call, const struct kcap_http_request *request,
                     const char *path, struct kcap_http_response **ret);

void exchange_response_free(struct kcap_http_response *response);

#endif
