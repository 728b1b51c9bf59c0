/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a child: no shell, no inherited descriptors, an empty signal mask, default
 * dispositions. */
#ifndef KCAP_LIB_SPAWN_H
#define KCAP_LIB_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

struct spawn {
    const char *const *argv; /* argv[0] is an absolute path, or a name to be found in PATH */
    const char *const *envp; /* NULL: our own environment */
    const char *dir;         /* working directory; NULL: ours */
    int stdin_fd; /* descriptors of the child's 0, 1, 2; -1: /dev/null. The caller keeps his. */
    int stdout_fd;
    int stderr_fd;
    bool new_group; /* leader of its own process group */
};

/* Returns 0 and the child's pid and pidfd (close-on-exec, the caller's to close; none is made
 * when ret_pidfd is NULL), or -errno. The caller reaps the child. */
int spawn_start(const struct spawn *spawn, pid_t *ret_pid, int *ret_pidfd);

#endif
