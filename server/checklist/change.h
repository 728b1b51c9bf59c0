/* SPDX-License-Identifier: Apache-2.0 */
/* The change to be looked at: which files, and which of their lines are new. */
#ifndef KCAP_CHECKLIST_CHANGE_H
#define KCAP_CHECKLIST_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/checklist/git.h"

struct range {
    size_t first, count; /* lines, from 1 */
};

/* One file as it is after the change. */
struct file {
    char *path;
    char status; /* of git: A (also untracked), M, R, C, T */
    unsigned old_mode, new_mode;
    char oid[72]; /* of the blob; "" when the content is in the working tree */
    struct range *added;
    size_t added_count;
    bool all_added;
    bool check_eol_blanks, check_eof_blanks, check_tab_blanks; /* what attributes leave on */

    int64_t size;     /* in bytes, also when the content was not loaded */
    const char *data; /* NUL after len; NULL when too large to be looked into */
    size_t len;
    bool binary;
};

struct change {
    struct git *git;
    char *label; /* what was looked at, one line */
    char *left;  /* the tree on the old side */
    char *right; /* the commit on the new side; NULL: the working tree */
    struct file *files;
    size_t count;
};

/* What to look at, the first that is not NULL; neither: the working tree against HEAD. */
struct target {
    const char *range;  /* A..B or A...B */
    const char *commit; /* against its first parent */
    /* of the working tree: a revision that must be the one checked out, or NULL */
    const char *against;
};

/* Returns 0, or negative with git->error saying why; a revision that does not exist is such a
 * failure. git->dir becomes the top of the work tree, if there is one. */
int change_load(struct change *change, struct git *git, const struct target *target);
void change_fini(struct change *change);

/* Hands each file with its content to visit. Returns 0 or negative with git->error. */
int change_visit(struct change *change, void (*visit)(void *arg, const struct file *file),
                 void *arg);

/* Sets data, len, size and binary from a content in memory. */
void file_set_content(struct file *file, const char *data, size_t len);
bool file_line_is_added(const struct file *file, size_t line);

#endif
