/* SPDX-License-Identifier: Apache-2.0 */
/* A note of what we did to each config, so that it can be taken back byte for byte. It lies in
 * the state directory: not in the config, where Codex and its users would trip over it. */
#ifndef KCAP_CODEX_SETUP_RECORD_H
#define KCAP_CODEX_SETUP_RECORD_H

#include <stdbool.h>

#include "edit.h"

#define RECORD_MAX_CHANGES 4 /* one of each kind */

struct setup;

/* These bytes were put in the place of those, in this order. */
struct change {
    enum edit_kind kind;
    char *put, *was;
};

struct record {
    struct change changes[RECORD_MAX_CHANGES];
    size_t n;
    size_t pending; /* the last so many are noted, and perhaps not made */
    bool made;      /* there was no file before the first */
};

/* Empty when nothing is known. What was noted and then not made, as we were killed in between,
 * is left out: setup's config has been read. */
void record_read(struct setup *setup, struct record *ret);
void record_fini(struct record *record);

/* Notes a change. An earlier one of its kind is forgotten: it is no longer there, or this one
 * would not be made. Returns 0, or negative: full, or out of memory. */
int record_add(struct record *record, enum edit_kind kind, const char *put, const char *was);

int record_write(struct setup *setup, const struct record *record);
void record_remove(struct setup *setup);

/* Keeps other runs of ours away until setup_fini, where that can be had. */
void record_lock(struct setup *setup);

/* DIR/NAME in our part of the state directory, or NULL; make: the directories, too. */
char *record_state_file(struct setup *setup, const char *name, bool make);

#endif
