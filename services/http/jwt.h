/* SPDX-License-Identifier: Apache-2.0 */
/* The one thing read from a token: until when it is good. */
#ifndef KCAP_SERVICES_HTTP_JWT_H
#define KCAP_SERVICES_HTTP_JWT_H

#include <stdbool.h>
#include <stdint.h>

/* The "exp" of a JWT in milliseconds since 1970; false when it has none that can be read. */
bool jwt_expiry(const char *token, int64_t *ret_ms);

#endif
