/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/waits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/log.h"

#define MAX_FDS 64

int32_t
waits_end(struct kcap_call *call, int64_t now_ns)
{
    if (!call->ended) {
        if (call->host->shutdown || call->over)
            call->ended = KCAP_WAIT_SHUTDOWN;
        else if (call->cancelled)
            call->ended = KCAP_WAIT_CANCELLED;
        else if (now_ns >= call->deadline_ns)
            call->ended = KCAP_WAIT_DEADLINE;
    }
    return call->ended;
}

static void
raise_fd(int fd)
{
    if (fd >= 0)
        (void)eventfd_write(fd, 1);
}

void
waits_wake(struct kcap_call *call)
{
    raise_fd(call->wake_fd);
    if (call->polling)
        raise_fd(call->poll_fd);
    (void)pthread_cond_broadcast(&call->host->changed);
}

void
waits_notify(struct host *host)
{
    (void)pthread_mutex_lock(&host->lock);
    host->seq++;
    for (struct kcap_call *call = host->calls; call; call = call->next) {
        if (call->polling)
            raise_fd(call->poll_fd);
    }
    (void)pthread_cond_broadcast(&host->changed);
    (void)pthread_mutex_unlock(&host->lock);
}

static int32_t
state_of(struct kcap_call *call, uint64_t seen_seq, int64_t until_ns)
{
    int64_t now_ns = host_now_ns();
    int32_t end = waits_end(call, now_ns);

    if (end)
        return end;
    if (seen_seq != KCAP_SEQ_NONE && call->host->seq != seen_seq)
        return KCAP_WAIT_CHANGED;
    return now_ns >= until_ns ? KCAP_WAIT_TIMEOUT : 0;
}

static int32_t
wait_plain(struct kcap_call *call, uint64_t seen_seq, int64_t until_ns)
{
    struct host *host = call->host;
    int64_t first_ns = until_ns < call->deadline_ns ? until_ns : call->deadline_ns;
    int32_t r;

    (void)pthread_mutex_lock(&host->lock);
    while ((r = state_of(call, seen_seq, until_ns)) == 0)
        (void)clock_cond_wait_until(&host->changed, &host->lock, first_ns);
    (void)pthread_mutex_unlock(&host->lock);
    return r;
}

static bool
copy_events(const struct pollfd *polled, struct kcap_fd *fds, uint32_t n)
{
    bool any = false;

    for (uint32_t i = 0; i < n; i++) {
        short got = polled[i].revents;
        fds[i].revents =
            (uint16_t)((got & POLLIN ? KCAP_FD_READ : 0u) |
                       (got & POLLOUT ? KCAP_FD_WRITE : 0u) |
                       (got & (POLLERR | POLLHUP | POLLNVAL) ? KCAP_FD_ERROR : 0u));
        any = any || fds[i].revents;
    }
    return any;
}

static int32_t
wait_fds(struct kcap_call *call, uint64_t seen_seq, struct kcap_fd *fds, uint32_t n,
         int64_t until_ns)
{
    struct host *host = call->host;
    struct pollfd polled[MAX_FDS + 1];
    int64_t first_ns = until_ns < call->deadline_ns ? until_ns : call->deadline_ns;
    int32_t r = 0;

    for (uint32_t i = 0; i < n; i++)
        polled[i] =
            (struct pollfd){.fd = fds[i].fd,
                            .events = (short)((fds[i].events & KCAP_FD_READ ? POLLIN : 0) |
                                              (fds[i].events & KCAP_FD_WRITE ? POLLOUT : 0))};

    (void)pthread_mutex_lock(&host->lock);
    if (call->poll_fd < 0)
        call->poll_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (call->poll_fd < 0) {
        (void)pthread_mutex_unlock(&host->lock);
        return KCAP_E_IO; /* it could not be woken: better an error than a call nobody can
                             cancel */
    }
    polled[n] = (struct pollfd){.fd = call->poll_fd, .events = POLLIN};
    call->polling = true;
    for (bool ready = false, looked = false; r == 0; looked = true) {
        struct timespec space;
        eventfd_t count;

        r = state_of(call, seen_seq, until_ns);
        if (r == KCAP_WAIT_CHANGED || r == KCAP_WAIT_TIMEOUT) {
            /* what is ready already is worth more than a time that has come */
            if (looked)
                break;
        } else if (r != 0) {
            break;
        }
        (void)pthread_mutex_unlock(&host->lock);
        if (ppoll(polled, n + 1, clock_left(r ? 0 : first_ns, &space), NULL) > 0) {
            if (polled[n].revents)
                (void)eventfd_read(call->poll_fd, &count);
            ready = copy_events(polled, fds, n);
        }
        (void)pthread_mutex_lock(&host->lock);
        if (ready) {
            r = waits_end(call, host_now_ns());
            if (!r)
                r = KCAP_WAIT_FD;
        }
    }
    call->polling = false;
    (void)pthread_mutex_unlock(&host->lock);
    return r;
}

int32_t
waits_wait(struct kcap_call *call, uint64_t seen_seq, struct kcap_fd *fds, uint32_t n,
           int64_t until_ns)
{
    struct workers *workers = &call->host->workers;
    int32_t r;

    if (n > MAX_FDS || (n > 0 && !fds))
        return KCAP_E_INVALID;
    for (uint32_t i = 0; i < n; i++)
        fds[i].revents = 0;
    if (call->kind != CALL_COMMAND) /* that one runs on the main thread */
        atomic_fetch_add(&workers->blocked, 1);
    r = n == 0 ? wait_plain(call, seen_seq, until_ns)
               : wait_fds(call, seen_seq, fds, n, until_ns);
    if (call->kind != CALL_COMMAND)
        atomic_fetch_sub(&workers->blocked, 1);
    return r;
}

int32_t
waits_wake_fd(struct kcap_call *call)
{
    int32_t fd;

    (void)pthread_mutex_lock(&call->host->lock);
    if (call->wake_fd < 0 && !call->over) {
        call->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (call->wake_fd >= 0)
            call->given_wake_fd = fcntl(call->wake_fd, F_DUPFD_CLOEXEC, 3);
    }
    fd = KCAP_E_IO;
    if (!call->over && call->wake_fd >= 0 && call->given_wake_fd >= 0)
        fd = call->given_wake_fd;
    if (fd >= 0 && waits_end(call, host_now_ns()))
        raise_fd(call->wake_fd);
    (void)pthread_mutex_unlock(&call->host->lock);
    return fd;
}

void
waits_close(struct kcap_call *call)
{
    pid_t self = getpid();

    if (call->given_wake_fd >= 0) {
        /* A plugin that closed it, against the rules, may have left the number to somebody
         * else. */
        long differ =
            syscall(SYS_kcmp, self, self, KCMP_FILE, call->wake_fd, call->given_wake_fd);
        if (differ <= 0 && (differ == 0 || errno != EBADF))
            (void)close(call->given_wake_fd);
        else
            log_line(KCAP_LOG_WARN,
                     "the plugin closed its wake_fd, which is the host's to close");
    }
    if (call->wake_fd >= 0)
        (void)close(call->wake_fd);
    if (call->poll_fd >= 0)
        (void)close(call->poll_fd);
    call->wake_fd = call->given_wake_fd = call->poll_fd = -1;
}
