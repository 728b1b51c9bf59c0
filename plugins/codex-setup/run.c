/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/spawn.h"

#define NS_PER_MS INT64_C(1000000)

/* Reads what is there. Returns false at the end of the stream. */
static bool
drain(int fd, struct buf *to, bool cut)
{
    char space[16384];
    ssize_t n;

    while ((n = read(fd, space, sizeof space)) != 0) {
        size_t left = to->max - to->len;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        buf_add(to, space, cut && (size_t)n > left ? left : (size_t)n);
    }
    return false;
}

/* Waits for the end of the program, not for that of its pipes, which a child of its may hold.
 */
static enum run_end
listen_to(const struct kcap_host *host, struct kcap_call *call, int64_t until_ns,
          struct kcap_fd fds[3], struct buf *output, struct buf *errors)
{
    bool ended = false;

    while (!ended) {
        int32_t why = host->wait(call, KCAP_SEQ_NONE, fds, 3, until_ns);

        if (why != KCAP_WAIT_FD)
            return why == KCAP_WAIT_TIMEOUT ? RUN_TIMED_OUT : RUN_LEFT;
        ended = fds[2].revents != 0;
        /* a stream that has ended is always ready; it is not looked at again */
        if (!drain(fds[0].fd, output, false))
            fds[0].events = 0;
        if (!drain(fds[1].fd, errors, true))
            fds[1].events = 0;
        for (int i = 0; i < 2; i++) {
            if (fds[i].events == 0)
                fds[i].fd = fds[2].fd;
        }
        if (!buf_ok(output))
            return RUN_OVERFLOWED;
    }
    return RUN_EXITED;
}

enum run_end
run_program(const struct kcap_host *host, struct kcap_call *call, const struct run *run,
            struct buf *output, struct buf *errors, int *ret_status)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1}, status, r;
    AUTO_CLOSE int pidfd = -1;
    struct spawn spawn = {.argv = run->argv,
                          .envp = run->envp,
                          .dir = run->dir,
                          .stdin_fd = -1,
                          .new_group = true};
    enum run_end end = RUN_NOT_STARTED;
    pid_t pid;

    *ret_status = -1;
    r = pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0 ||
                fcntl(out[0], F_SETFL, O_NONBLOCK) < 0 || fcntl(err[0], F_SETFL, O_NONBLOCK) < 0
            ? -errno
            : 0;
    spawn.stdout_fd = out[1];
    spawn.stderr_fd = err[1];
    if (r == 0)
        r = spawn_start(&spawn, &pid, &pidfd);
    if (r == 0) {
        struct kcap_fd fds[] = {{.fd = out[0], .events = KCAP_FD_READ},
                                {.fd = err[0], .events = KCAP_FD_READ},
                                {.fd = pidfd, .events = KCAP_FD_READ}};

        end = listen_to(host, call, host->now_ns(host) + run->limit_ms * NS_PER_MS, fds, output,
                        errors);
        (void)kill(-pid, SIGKILL); /* also what it may have left behind */
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (end == RUN_EXITED && WIFEXITED(status))
            *ret_status = WEXITSTATUS(status);
        else if (end == RUN_EXITED)
            end = RUN_KILLED;
    } else {
        *ret_status = -r;
    }
    for (int i = 0; i < 2; i++) {
        if (out[i] >= 0)
            (void)close(out[i]);
        if (err[i] >= 0)
            (void)close(err[i]);
    }
    return end;
}
