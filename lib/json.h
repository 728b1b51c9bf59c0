/* SPDX-License-Identifier: Apache-2.0 */
/* cJSON behind the strict scan, with look-ups that mind case and type. */
#ifndef KCAP_LIB_JSON_H
#define KCAP_LIB_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One JSON value and nothing else, checked by jscan. NULL on any fault; *ret_error (may be
 * NULL) is then a constant line. \u0000 in a string is a fault too: cJSON would cut the text
 * there. */
cJSON *json_parse(const char *text, size_t len, const char **ret_error);

/* Member of exactly that name, or NULL; NULL too when object is no object. Borrowed. */
const cJSON *json_get(const cJSON *object, const char *name);

/* The member's text, or NULL when absent or not a string. Borrowed. */
const char *json_str(const cJSON *object, const char *name);

/* Whether the member is a whole number that a double holds exactly; *ret is written then only.
 */
bool json_int(const cJSON *object, const char *name, int64_t *ret);

/* The member when it is true or false, else fallback. */
bool json_bool(const cJSON *object, const char *name, bool fallback);

/* Adds a member when text is not NULL. False when out of memory. */
bool json_add_str(cJSON *object, const char *name, const char *text);

/* Compact text; NULL when out of memory. Free with free(). */
char *json_print(const cJSON *value);

static inline void
auto_json(cJSON **place)
{
    cJSON_Delete(*place);
}
#define AUTO_JSON __attribute__((cleanup(auto_json)))

#endif
