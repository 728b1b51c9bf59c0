/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill-at N PROGRAM [ARG...]: runs the program and kills it, with all its threads, when it
 * begins its Nth system call. Exits 0 when it was killed, 1 when it ended before, which prints
 * how many calls it made.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPTIONS (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL)

static pid_t
start(char **argv)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        (void)raise(SIGSTOP);
        (void)execv(argv[0], argv);
        _exit(127);
    }
    return pid;
}

/* Lets a stopped thread go on to its next system call, with the signal it was given. */
static void
go_on(pid_t thread, int status)
{
    int signal_number = WSTOPSIG(status);
    bool is_own = signal_number == SIGTRAP || signal_number == (SIGTRAP | 0x80) ||
                  signal_number == SIGSTOP;

    (void)ptrace(PTRACE_SYSCALL, thread, NULL, (void *)(intptr_t)(is_own ? 0 : signal_number));
}

int
main(int argc, char **argv)
{
    long limit = argc > 2 ? strtol(argv[1], NULL, 10) : 0, stops = 0;
    pid_t pid = limit > 0 ? start(argv + 2) : -1, thread;
    int status;

    if (pid < 0 || waitpid(pid, &status, 0) < 0 ||
        ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(intptr_t)OPTIONS) < 0)
        return 2;
    go_on(pid, status);
    /* each call stops twice, when it begins and when it ends */
    while ((thread = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
        if (thread <= 0 || !WIFSTOPPED(status))
            continue;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80) && ++stops == 2 * limit - 1)
            (void)kill(pid, SIGKILL);
        else
            go_on(thread, status);
    }
    if (stops >= 2 * limit - 1)
        return 0;
    (void)printf("%ld\n", stops / 2);
    return 1;
}
