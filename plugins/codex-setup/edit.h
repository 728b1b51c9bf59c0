/* SPDX-License-Identifier: Apache-2.0 */
/* What to insert and where: the one change that gives a config our entry, or its missing key.
 */
#ifndef KCAP_CODEX_SETUP_EDIT_H
#define KCAP_CODEX_SETUP_EDIT_H

#include "entry.h"
#include "lib/buf.h"

struct edit {
    size_t at;       /* insert here */
    struct buf text; /* these bytes */
};

/* What the entry says. Strings are borrowed. */
struct registration {
    const char *command;          /* absolute path of kcap-host */
    const char *const *variables; /* names for env_vars, ended by NULL; may be empty */
};

/* Inserts the whole entry into a config that has none. */
void edit_add_entry(const char *text, size_t len, const struct entry *entry,
                    const struct registration *registration, struct edit *ret);

/* Inserts tool_timeout_sec into the entry that is there. */
void edit_add_timeout(const char *text, size_t len, const struct entry *entry,
                      struct edit *ret);

/* The lines that say the same as a table of their own, to be shown to people. */
void edit_show_entry(const struct registration *registration, struct buf *to);

#endif
