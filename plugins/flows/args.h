/* SPDX-License-Identifier: Apache-2.0 */
/* What a tool's schema cannot say about its arguments. */
#ifndef KCAP_FLOWS_ARGS_H
#define KCAP_FLOWS_ARGS_H

#include "lib/json.h"

/* The first of names (ended by NULL) whose value is absent, no text or blank, else NULL. */
const char *args_first_blank(const cJSON *args, const char *const *names);

/* A copy without the space around it, in lower case if wanted; NULL for NULL or no memory. */
char *args_trim(const char *text, bool lower);

/* Adds "name":"value" to an object under way; nothing when value is NULL. */
struct buf;
void args_add_member(struct buf *to, const char *name, const char *value);

#endif
