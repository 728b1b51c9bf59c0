/* SPDX-License-Identifier: Apache-2.0 */
/* The changes that give a config our entry, or its missing keys, and how each is taken back. */
#ifndef KCAP_CODEX_SETUP_EDIT_H
#define KCAP_CODEX_SETUP_EDIT_H

#include "entry.h"
#include "lib/buf.h"

enum edit_kind {
    EDIT_ENTRY,     /* the whole entry */
    EDIT_TIMEOUT,   /* its tool_timeout_sec */
    EDIT_VARIABLES, /* its env_vars */
    EDIT_SWITCH,    /* from kcap's command line to ours */
};

/* These bytes in the place of those. */
struct edit {
    enum edit_kind kind;
    size_t at, len;
    struct buf text;
};

/* What the entry says. Strings are borrowed. */
struct registration {
    const char *command;          /* absolute path of kcap-host */
    const char *const *variables; /* names for env_vars, ended by NULL; may be empty */
};

/* Inserts the whole entry into a config that has none. */
void edit_add_entry(const char *text, size_t len, const struct entry *entry,
                    const struct registration *registration, struct edit *ret);

/* Inserts tool_timeout_sec, or env_vars, into the entry that is there and lacks it. */
void edit_add_timeout(const char *text, size_t len, const struct entry *entry,
                      struct edit *ret);
void edit_add_variables(const char *text, size_t len, const struct entry *entry,
                        const struct registration *registration, struct edit *ret);

/* Replaces the values of kcap's entry: command and arguments. */
void edit_switch(const char *text, const struct entry *entry,
                 const struct registration *registration, struct edit *ret);

/* Finds what such an edit had put where it now stands in the entry, and fills ret with the edit
 * that brings back what was there. False when it is not there as it was put. */
bool edit_undo(const char *text, size_t len, const struct toml_value *root, enum edit_kind kind,
               const char *put, const char *was, struct edit *ret);

/* The same when it is there with the same values but no longer the same bytes: Codex writes the
 * tables of all servers anew whenever it changes one. Only for whole lines of their own in
 * which nobody has left a comment, so never for a switch. */
bool edit_undo_rewritten(const char *text, size_t len, const struct toml_value *root,
                         enum edit_kind kind, const char *put, struct edit *ret);

/* Whether the text is as it was before such an edit and differs from root in our entry alone.
 * Part of an entry must not stay: Codex refuses a whole file for one without a command. */
bool edit_is_undone(const struct buf *text, const struct toml_value *root, enum edit_kind kind);

/* The lines that say the same as a table of their own, to be shown to people. */
void edit_show_entry(const struct registration *registration, struct buf *to);

/* Appends old with the edit made. */
void edit_apply(const char *text, size_t len, const struct edit *edit, struct buf *to);

#endif
