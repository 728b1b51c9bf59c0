/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to an OAuth token endpoint. */
#ifndef KCAP_SERVICES_HTTP_FORM_H
#define KCAP_SERVICES_HTTP_FORM_H

#include "exchange.h"

/* KCAP_WORKOS_TOKEN_URL when it is set, else the given default. NULL when the variable names no
 * https address (or http on loopback): secrets go nowhere else. Borrowed. */
const char *form_endpoint(const struct kcap_host *host, const char *fallback);

/* Posts name and value pairs, ended by NULL. The values are secrets: none is in a message. */
int32_t form_post(const struct kcap_host *host, struct kcap_call *call, const char *endpoint,
                  const char *const *pairs, int64_t until_ns, struct kcap_http_response **ret);

#endif
