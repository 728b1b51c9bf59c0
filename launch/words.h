/* SPDX-License-Identifier: Apache-2.0 */
/* A growing list of texts, ended by NULL: an argv, an environment. A failed append sticks. */
#ifndef KCAP_LAUNCH_WORDS_H
#define KCAP_LAUNCH_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/buf.h"

struct words {
    char **list; /* NULL until the first append */
    size_t n, room;
    bool failed;
};

void words_add(struct words *words, const char *text);
void words_add_buf(struct words *words, const struct buf *text); /* failed when text is */
void words_add_all(struct words *words, const char *const *list);
void words_fini(struct words *words);

/* Borrowed, never NULL. */
const char *const *words_list(const struct words *words);

#endif
