/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a tool's arguments against its input schema. The subset: type, required, properties,
 * enum, minLength, maxLength, minimum, maximum, oneOf of required, additionalProperties false.
 * Other keywords are passed on to clients and not checked here.
 */
#ifndef KCAP_HOST_SCHEMA_H
#define KCAP_HOST_SCHEMA_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "lib/buf.h"

/* Removes members that are null: many encoders write null for "not given". True when any was
 * there. */
bool schema_drop_nulls(cJSON *arguments);

/* Checks in the schema's order. False with one line in why that names the argument, what was
 * expected and what was found, and the schema's own description of it. */
bool schema_check(const cJSON *schema, const cJSON *arguments, struct buf *why);

/* Whether the schema itself makes sense, as far as the subset goes. False with one line in why.
 */
bool schema_is_sound(const cJSON *schema, struct buf *why);

#endif
