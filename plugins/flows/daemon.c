/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/buf.h"
#include "lib/paths.h"
#include "lib/spawn.h"
#include "lib/text.h"

#define START_LIMIT_NS (INT64_C(10) * 1000000000)
#define MAX_COMPLAINT  2048
#define MAX_LINE       16384
#define CURE           "; name a server in KCAP_URL or with server-url="

static int32_t
give_error(char **ret_error, const char *what, const char *detail)
{
    struct buf line = BUF_INIT(MAX_LINE);

    buf_adds(&line, "the local flow server kcap-flowd could not be started: ");
    buf_adds(&line, what);
    if (detail && detail[0]) {
        buf_adds(&line, ": ");
        text_add_line(&line, detail, strlen(detail));
    }
    buf_adds(&line, CURE);
    *ret_error = buf_take(&line, NULL);
    return *ret_error ? 0 : KCAP_E_NOMEM;
}

static int32_t
give_errno(char **ret_error, const char *what, int error)
{
    return give_error(ret_error, what, strerror(error));
}

/* The last line of what it said on stderr, as far as it is there now. */
static void
read_complaint(int fd, char *text, size_t size)
{
    ssize_t n = read(fd, text, size - 1);
    char *last;

    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    text[n > 0 ? n : 0] = '\0';
    last = strrchr(text, '\n');
    if (last)
        memmove(text, last + 1, strlen(last + 1) + 1);
}

/* A starter whose call ended first. It goes on: another call may be waiting for its daemon. */
struct orphan {
    const struct kcap_host *host;
    int pidfd;
};

static void
drop_orphan(void *arg)
{
    struct orphan *orphan = arg;

    (void)close(orphan->pidfd);
    free(orphan);
}

static void
kill_starter(int pidfd)
{
    siginfo_t info;

    (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
    (void)waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED);
}

static void
reap_orphan(struct kcap_call *bg_call, void *arg)
{
    struct orphan *orphan = arg;
    const struct kcap_host *host = orphan->host;
    struct kcap_fd fd = {.fd = orphan->pidfd, .events = KCAP_FD_READ};
    siginfo_t info;
    int32_t r = host->wait(bg_call, KCAP_SEQ_NONE, &fd, 1, host->now_ns(host) + START_LIMIT_NS);

    if (r == KCAP_WAIT_FD)
        (void)waitid(P_PIDFD, (id_t)orphan->pidfd, &info, WEXITED);
    else if (r != KCAP_WAIT_SHUTDOWN) /* then we leave before it does */
        kill_starter(orphan->pidfd);
    drop_orphan(orphan);
}

/* Sees to it that an ended starter does not stay a zombie. Takes the descriptor. */
static void
leave_starter(const struct kcap_host *host, int pidfd)
{
    struct orphan *orphan = malloc(sizeof *orphan);

    if (orphan) {
        *orphan = (struct orphan){.host = host, .pidfd = pidfd};
        if (host->background(host, reap_orphan, drop_orphan, orphan) >= 0)
            return;
    }
    free(orphan);
    kill_starter(pidfd); /* the daemon itself is no child of it any more, or not yet there */
    (void)close(pidfd);
}

/* Its own exit is the sign: the starter returns when the daemon listens. Takes the pidfd. */
static int32_t
await_exit(const struct kcap_host *host, struct kcap_call *call, int starter, int stderr_fd,
           char **ret_error)
{
    AUTO_CLOSE int pidfd = starter;
    struct kcap_fd fd = {.fd = pidfd, .events = KCAP_FD_READ};
    char complaint[MAX_COMPLAINT];
    siginfo_t info = {.si_code = 0};
    int32_t r = host->wait(call, KCAP_SEQ_NONE, &fd, 1, host->now_ns(host) + START_LIMIT_NS);

    if (r == KCAP_WAIT_TIMEOUT) {
        kill_starter(pidfd);
        return give_error(ret_error, "it did not come up within 10 s", NULL);
    }
    if (r != KCAP_WAIT_FD) {
        leave_starter(host, take_fd(&pidfd));
        return r;
    }
    if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0)
        return give_errno(ret_error, "its end could not be seen", errno);
    if (info.si_code == CLD_EXITED && info.si_status == 0)
        return 0;
    read_complaint(stderr_fd, complaint, sizeof complaint);
    return give_error(ret_error, info.si_code == CLD_EXITED ? "it failed" : "it was killed",
                      complaint);
}

int32_t
daemon_start(const struct kcap_host *host, struct kcap_call *call, char **ret_error)
{
    AUTO_FREE char *path = paths_program("kcap-flowd");
    AUTO_CLOSE int read_fd = -1, write_fd = -1;
    const char *argv[] = {path, NULL};
    int pipe_fds[2], pidfd, r;
    pid_t pid;

    *ret_error = NULL;
    if (!path)
        return give_error(ret_error, "it is not installed beside kcap-host", NULL);
    if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return give_errno(ret_error, "no pipe", errno);
    read_fd = pipe_fds[0];
    write_fd = pipe_fds[1];
    r = spawn_start(
        &(struct spawn){.argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = write_fd},
        &pid, &pidfd);
    if (r < 0)
        return give_errno(ret_error, path, -r);
    (void)close(take_fd(&write_fd));
    return await_exit(host, call, pidfd, read_fd, ret_error);
}
