/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies files between two trees, one by one. Neither side is ever left through a symbolic
 * link, and what would give an agent servers, settings or hooks of the repository's is left
 * out.
 */
#ifndef KCAP_SERVER_WORKSPACE_FILES_H
#define KCAP_SERVER_WORKSPACE_FILES_H

#include <stdbool.h>

struct files {
    int from, to;         /* the tops */
    char *dir;            /* of the file before, below them; NULL: none yet */
    int from_dir, to_dir; /* this directory; -1: it is not one of the source's any more */
};

/* Returns 0 or -errno. */
int files_open(struct files *files, const char *from, const char *to);
void files_close(struct files *files);

enum { FILES_DONE, FILES_DIRECTORY };

/* Whether something is at path in the source that files_copy leaves out by its name. */
bool files_leaves_out(struct files *files, const char *path);

/* Copies the file or link at path, relative to the tops. One that is gone, is left out, or is
 * something else is FILES_DONE too. FILES_DIRECTORY: it is a directory, and an empty one was
 * made.
 * Else -errno. */
int files_copy(struct files *files, const char *path);

/* All that is left of a file. Returns 0 or -errno. */
int files_copy_bytes(int from, int to);

#endif
