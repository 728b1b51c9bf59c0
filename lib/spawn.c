/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "lib/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The child's descriptor target gets what ours is, also when the numbers are equal. */
static int
add_fd(posix_spawn_file_actions_t *actions, int fd, int target)
{
    if (fd < 0)
        return posix_spawn_file_actions_addopen(actions, target, "/dev/null",
                                                target == 0 ? O_RDONLY : O_WRONLY, 0);
    return posix_spawn_file_actions_adddup2(actions, fd, target);
}

static int
prepare_actions(const struct spawn *spawn, posix_spawn_file_actions_t *actions)
{
    int r = add_fd(actions, spawn->stdin_fd, 0);

    if (r == 0)
        r = add_fd(actions, spawn->stdout_fd, 1);
    if (r == 0)
        r = add_fd(actions, spawn->stderr_fd, 2);
    if (r == 0)
        r = posix_spawn_file_actions_addclosefrom_np(actions, 3);
    if (r == 0 && spawn->dir)
        r = posix_spawn_file_actions_addchdir_np(actions, spawn->dir);
    return r;
}

static int
prepare_attributes(const struct spawn *spawn, posix_spawnattr_t *attributes)
{
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    sigset_t none, all;
    int r;

    sigemptyset(&none);
    sigfillset(&all);
    if (spawn->new_group)
        flags = (short)(flags | POSIX_SPAWN_SETPGROUP);
    r = posix_spawnattr_setflags(attributes, flags);
    if (r == 0)
        r = posix_spawnattr_setsigmask(attributes, &none);
    if (r == 0)
        r = posix_spawnattr_setsigdefault(attributes, &all);
    if (r == 0)
        r = posix_spawnattr_setpgroup(attributes, 0);
    return r;
}

int
spawn_start(const struct spawn *spawn, pid_t *ret_pid, int *ret_pidfd)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    pid_t pid;
    int r, pidfd;

    r = posix_spawn_file_actions_init(&actions);
    if (r != 0)
        return -r;
    r = posix_spawnattr_init(&attributes);
    if (r != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return -r;
    }
    r = prepare_actions(spawn, &actions);
    if (r == 0)
        r = prepare_attributes(spawn, &attributes);
    if (r == 0) {
        /* posix_spawn promises not to change them; its prototype only cannot say so */
        char *const *argv = (char *const *)(uintptr_t)spawn->argv;
        char *const *envp = spawn->envp ? (char *const *)(uintptr_t)spawn->envp : environ;
        r = posix_spawnp(&pid, spawn->argv[0], &actions, &attributes, argv, envp);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    if (r != 0)
        return -r;

    pidfd = ret_pidfd ? pidfd_open(pid, 0) : -1;
    if (ret_pidfd && pidfd < 0) {
        int error = errno;
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        return -error;
    }
    *ret_pid = pid;
    if (ret_pidfd)
        *ret_pidfd = pidfd;
    return 0;
}
