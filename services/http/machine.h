/* SPDX-License-Identifier: Apache-2.0 */
/* Logins of machines: KCAP_CLIENT_ID and KCAP_CLIENT_SECRET instead of a stored token. */
#ifndef KCAP_SERVICES_HTTP_MACHINE_H
#define KCAP_SERVICES_HTTP_MACHINE_H

#include "exchange.h"

/* Whether one of the variables is set: then stored logins do not count. */
bool machine_is_meant(const struct kcap_host *host);

/* Gets a token. Returns 0 with *ret_token and until when it is good, or with *ret_why, one line
 * (either is the caller's to free); or as exchange_run. */
int32_t machine_get(const struct kcap_host *host, struct kcap_call *call, int64_t until_ns,
                    char **ret_token, int64_t *ret_expires_ms, char **ret_why);

#endif
