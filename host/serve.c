/* SPDX-License-Identifier: Apache-2.0 */
/* MCP on standard input and output: the reader's loop, from the first byte to the end of input.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "host/calls.h"
#include "host/log.h"
#include "host/protocol.h"
#include "host/reader.h"
#include "host/wire.h"

/* After the end of input, calls may finish for the first, and those told to leave until the
 * second. */
#define FINISH_NS (400 * (int64_t)NS_PER_MS)
#define DRAIN_NS  (500 * (int64_t)NS_PER_MS)

/*
 * The protocol moves to private descriptors: from here on a stray printf of a plugin, or of
 * a library it uses, lands on stderr, and a child cannot inherit the client's pipe.
 */
static int
take_stdio(int *ret_in, int *ret_out)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    *ret_in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    *ret_out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (null_fd < 0 || *ret_in < 0 || *ret_out < 0 || dup2(null_fd, STDIN_FILENO) < 0 ||
        dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return -1;
    (void)close(null_fd);
    return 0;
}

static void
handle_lines(struct protocol *protocol, struct reader *reader)
{
    int64_t arrived_ns = host_now_ns();
    enum reader_result result;
    const char *line;
    size_t len;

    wire_cork(protocol->host->wire);
    while ((result = reader_next(reader, &line, &len)) != READER_NONE) {
        if (result == READER_LINE)
            protocol_line(protocol, line, len, arrived_ns);
        else
            protocol_line_too_long(protocol);
    }
    wire_uncork(protocol->host->wire);
}

/* Waits until no call and no job is left, or until until_ns. */
static bool
wait_idle(struct host *host, int64_t until_ns)
{
    bool idle;

    (void)pthread_mutex_lock(&host->lock);
    while (host->calls && host_now_ns() < until_ns) {
        int64_t next_ns;

        (void)pthread_mutex_unlock(&host->lock);
        next_ns = host_tick(host);
        (void)pthread_mutex_lock(&host->lock);
        if (host->calls)
            (void)clock_cond_wait_until(&host->changed, &host->lock,
                                        next_ns < until_ns ? next_ns : until_ns);
    }
    idle = !host->calls && !host->settling;
    (void)pthread_mutex_unlock(&host->lock);
    return idle;
}

/*
 * The client is done asking. What it asked is finished as far as that takes no time; then
 * whoever still waits is told to leave, and a plugin that has left everything is told of the
 * end.
 */
static void
drain(struct host *host)
{
    int64_t begin_ns = host_now_ns();
    bool idle = wait_idle(host, begin_ns + FINISH_NS);

    if (!idle) {
        calls_shut_down(host);
        idle = wait_idle(host, begin_ns + DRAIN_NS);
    }
    (void)wire_drain(host->wire, begin_ns + DRAIN_NS);
    if (idle)
        host_end(host);
}

int
host_serve(struct host *host)
{
    static struct protocol
        protocol; /* one each, until exit: threads may outlive this function */
    static struct reader reader;
    int in, out;

    if (take_stdio(&in, &out) < 0) {
        log_line(KCAP_LOG_ERROR, "standard input and output cannot be taken over");
        return 1;
    }
    host->wire = wire_new(out);
    if (!host->wire || protocol_init(&protocol, host) < 0) {
        log_line(KCAP_LOG_ERROR, "out of memory");
        return 1;
    }
    host->wake_main_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (host->wake_main_fd < 0) {
        log_linef(KCAP_LOG_ERROR, "no eventfd: %s", strerror(errno));
        return 1;
    }
    reader_init(&reader, in);
    while (!reader.eof) {
        struct pollfd polled[] = {{.fd = in, .events = POLLIN},
                                  {.fd = host->wake_main_fd, .events = POLLIN}};
        eventfd_t count;
        struct timespec space;
        int64_t next_ns = host_tick(host);
        int n;

        if (wire_pending(host->wire) >=
            WIRE_READ_MAX) { /* who asks without listening is not read */
            wire_wait_below(host->wire, WIRE_READ_MAX, next_ns);
            continue;
        }
        n = ppoll(polled, 2, clock_left(next_ns, &space), NULL);
        if (n > 0 && polled[1].revents)
            (void)eventfd_read(host->wake_main_fd, &count);
        if ((n > 0 && polled[0].revents) || (n < 0 && errno != EINTR)) {
            reader_fill(&reader);
            handle_lines(&protocol, &reader);
        }
    }
    protocol_end(&protocol);
    drain(host);
    return 0;
}
