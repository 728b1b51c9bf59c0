/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of codex-setup.so share: one run over one config.toml, and what it reports. */
#ifndef KCAP_CODEX_SETUP_SETUP_H
#define KCAP_CODEX_SETUP_SETUP_H

#include <kcap/plugin.h>
#include <stdbool.h>

#include "entry.h"
#include "lib/buf.h"

/* Exit statuses of the commands. */
#define SETUP_OK      0
#define SETUP_FAILED  1 /* the system refused; nothing was changed */
#define SETUP_USAGE   2
#define SETUP_REFUSED 4 /* the file may not or cannot be edited; nothing was changed */

struct setup {
    const struct kcap_host *host;
    struct kcap_call *call;
    bool dry_run, project;
    struct buf report; /* for people and agents: what was found, done, refused */

    char *path;     /* of config.toml */
    struct buf old; /* its bytes; empty when it does not exist */
    bool exists;
    int lock_fd;             /* -1: none */
    struct toml_value *root; /* of old */
    struct entry entry;
};

/* Finds the file ($CODEX_HOME, else ~/.codex; with project, the repository's .codex), reads and
 * parses it. Returns SETUP_*; on a failure the report says why. */
int setup_open(struct setup *setup);
void setup_fini(struct setup *setup);

/* Replaces the file by text after checking that it parses, that nothing but our entry differs,
 * and that Codex, where it is installed, takes it. With dry_run prints a diff instead. Returns
 * SETUP_*, or -1 when somebody else changed the file meanwhile and all has to be read anew. */
int setup_write(struct setup *setup, const struct buf *text);

/* The three commands. Each opens, acts and reports. */
int setup_install(struct setup *setup);
int setup_remove(struct setup *setup);
int setup_status(struct setup *setup);

/* Adds one line to the report. */
void setup_say(struct setup *setup, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What was inserted into the file by us, so that it can be taken out again byte for byte. NULL
 * when nothing is known. The caller frees. */
char *record_read(struct setup *setup);
int record_write(struct setup *setup, const struct buf *inserted);
void record_remove(struct setup *setup);

/* Keeps other runs of ours away until setup_fini, where that can be had. */
void record_lock(struct setup *setup);

/* Appends a unified diff of two texts that differ in one place. */
void diff_add(struct buf *to, const char *path, const struct buf *old, const struct buf *text);

/* Whether the codex program takes this text as its config: 1 yes, 0 no (why is in the report),
 * -1 not asked: there is no codex, or it did not answer. */
int codex_check(struct setup *setup, const struct buf *text);

#endif
