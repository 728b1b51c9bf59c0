/* SPDX-License-Identifier: Apache-2.0 */
/* Running git on a repository that may be anybody's: no shell, no pager, no configured program,
 * nothing of git in our environment. */
#ifndef KCAP_CHECKLIST_GIT_H
#define KCAP_CHECKLIST_GIT_H

#include <stddef.h>

#include "lib/buf.h"

struct git {
    char *dir;
    char **env;
    struct buf error; /* one line: why the last call failed */
};

/* Returns 0 or -ENOMEM. */
int git_init(struct git *git, const char *dir);
void git_fini(struct git *git);

/* Takes a piece of git's output; a negative return ends the run with it. */
typedef int (*git_sink)(void *arg, const char *data, size_t len);

/* Runs git with the arguments (NULL-ended) and input, which may be NULL. Returns git's exit
 * status, or a negative number with git->error set. */
int git_stream(struct git *git, const char *const *args, const struct buf *input, git_sink sink,
               void *arg);

/* The same into a buffer, whose cap holds. Any exit status but 0 is a failure here. */
int git_read(struct git *git, const char *const *args, const struct buf *input,
             struct buf *ret);

/* The same for one line, without its end; *ret is owned. *ret is NULL when git exits with 1 and
 * says nothing, which is how it answers "there is none". */
int git_read_line(struct git *git, const char *const *args, char **ret);

#endif
