/* SPDX-License-Identifier: Apache-2.0 */
/* Moments as RFC 3339 text, as login files hold them. */
#ifndef KCAP_SERVICES_HTTP_WHEN_H
#define KCAP_SERVICES_HTTP_WHEN_H

#include <stdbool.h>
#include <stdint.h>

#define WHEN_TEXT_LEN 32

/* Milliseconds since 1970 UTC; *ret is written on success only. NULL is no moment. */
bool when_parse(const char *text, int64_t *ret);

void when_format(int64_t unix_ms, char ret[WHEN_TEXT_LEN]);

#endif
