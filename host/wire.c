/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/wire.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "host/calls.h"
#include "host/clock.h"

#define MAX_IOV 64

struct line {
    struct line *next;
    char *data;
    size_t len, done;
    struct kcap_call *call;
};

struct wire {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* CLOCK_MONOTONIC: work for the writer, or all is written */
    int fd;
    struct line *first, *last;
    size_t pending;
    bool corked;
    bool flushing;       /* a thread writes what was first, without the lock */
    bool no_nowait;      /* this descriptor cannot write without waiting */
    bool writer_started; /* the thread exists */
    bool writer_wanted;  /* the queue is the writer's until it is empty */
};

struct wire *
wire_new(int fd)
{
    struct wire *wire = calloc(1, sizeof *wire);

    if (wire) {
        wire->fd = fd;
        (void)pthread_mutex_init(&wire->lock, NULL);
        clock_cond_init(&wire->changed);
    }
    return wire;
}

bool
wire_queue(struct wire *wire, struct buf *text, struct kcap_call *call)
{
    struct line *line = malloc(sizeof *line);
    size_t len;
    char *data = buf_take(text, &len);

    if (!line || !data) {
        free(line);
        free(data);
        return false;
    }
    *line = (struct line){.data = data, .len = len, .call = call};
    (void)pthread_mutex_lock(&wire->lock);
    if (wire->last)
        wire->last->next = line;
    else
        wire->first = line;
    wire->last = line;
    wire->pending += len;
    (void)pthread_mutex_unlock(&wire->lock);
    return true;
}

static int
gather(const struct wire *wire, struct iovec iov[MAX_IOV])
{
    int n = 0;

    for (struct line *line = wire->first; line && n < MAX_IOV; line = line->next) {
        iov[n].iov_base = line->data + line->done;
        iov[n].iov_len = line->len - line->done;
        n++;
    }
    return n;
}

/* Takes written bytes off the queue; whole lines go to *done, in order. Under lock. */
static void
consume(struct wire *wire, size_t written, struct line ***done)
{
    wire->pending -= written;
    while (written > 0) {
        struct line *line = wire->first;
        size_t left = line->len - line->done;

        if (written < left) {
            line->done += written;
            return;
        }
        written -= left;
        wire->first = line->next;
        if (!wire->first)
            wire->last = NULL;
        line->next = NULL;
        **done = line;
        *done = &line->next;
    }
}

static void
report(struct line *done)
{
    while (done) {
        struct line *next = done->next;

        for (struct kcap_call *call = done->call, *behind; call; call = behind) {
            behind = call->next_in_line;
            call_written(call, true);
        }
        free(done->data);
        free(done);
        done = next;
    }
}

/* Nobody reads us any more, so there is nobody to work for. */
static void
client_gone(void)
{
    _exit(0);
}

static void *
writer_main(void *arg)
{
    struct wire *wire = arg;

    (void)pthread_mutex_lock(&wire->lock);
    for (;;) {
        struct iovec iov[MAX_IOV];
        struct line *done = NULL, **done_end = &done;
        ssize_t written;
        int n;

        if (!wire->writer_wanted) {
            (void)pthread_cond_wait(&wire->changed, &wire->lock);
            continue;
        }
        n = gather(wire, iov);
        (void)pthread_mutex_unlock(&wire->lock);
        written = writev(wire->fd, iov, n);
        if (written < 0 &&
            errno == EAGAIN) /* somebody made the shared descriptor non-blocking */
            (void)poll(&(struct pollfd){.fd = wire->fd, .events = POLLOUT}, 1, -1);
        else if (written < 0 && errno != EINTR)
            client_gone();
        (void)pthread_mutex_lock(&wire->lock);
        if (written > 0)
            consume(wire, (size_t)written, &done_end);
        if (!wire->first)
            wire->writer_wanted = false;
        (void)pthread_cond_broadcast(&wire->changed);
        (void)pthread_mutex_unlock(&wire->lock);
        report(done);
        (void)pthread_mutex_lock(&wire->lock);
    }
    return NULL;
}

/* Under lock. Without a thread the queue waits for the next flush to try again. */
static void
hand_to_writer(struct wire *wire)
{
    pthread_t thread;

    if (!wire->writer_started && pthread_create(&thread, NULL, writer_main, wire) == 0) {
        (void)pthread_detach(thread);
        wire->writer_started = true;
    }
    if (wire->writer_started) {
        wire->writer_wanted = true;
        (void)pthread_cond_broadcast(&wire->changed);
    }
}

/* One thread flushes at a time, and without the lock: what others queue meanwhile leaves with
 * its next write, so answers that are ready together go together. */
void
wire_flush(struct wire *wire)
{
    (void)pthread_mutex_lock(&wire->lock);
    while (wire->first && !wire->corked && !wire->writer_wanted && !wire->flushing) {
        struct line *done = NULL, **done_end = &done;
        struct iovec iov[MAX_IOV];
        int n = gather(wire, iov), error = EOPNOTSUPP;
        ssize_t written = -1;

        wire->flushing = true;
        (void)pthread_mutex_unlock(&wire->lock);
        if (!wire->no_nowait) {
            written = pwritev2(wire->fd, iov, n, -1, RWF_NOWAIT);
            error = errno;
        }
        if (written < 0 && error == EPIPE)
            client_gone();
        (void)pthread_mutex_lock(&wire->lock);
        wire->flushing = false;
        if (written > 0) {
            consume(wire, (size_t)written, &done_end);
        } else {
            if (error == EOPNOTSUPP || error == ENOSYS || error == EINVAL)
                wire->no_nowait = true;
            hand_to_writer(wire);
        }
        if (!wire->first)
            (void)pthread_cond_broadcast(&wire->changed);
        if (done) {
            (void)pthread_mutex_unlock(&wire->lock);
            report(done);
            (void)pthread_mutex_lock(&wire->lock);
        }
    }
    (void)pthread_mutex_unlock(&wire->lock);
}

void
wire_cork(struct wire *wire)
{
    (void)pthread_mutex_lock(&wire->lock);
    wire->corked = true;
    (void)pthread_mutex_unlock(&wire->lock);
}

void
wire_uncork(struct wire *wire)
{
    (void)pthread_mutex_lock(&wire->lock);
    wire->corked = false;
    (void)pthread_mutex_unlock(&wire->lock);
    wire_flush(wire);
}

size_t
wire_pending(struct wire *wire)
{
    size_t pending;

    (void)pthread_mutex_lock(&wire->lock);
    pending = wire->pending;
    (void)pthread_mutex_unlock(&wire->lock);
    return pending;
}

bool
wire_drain(struct wire *wire, int64_t until_ns)
{
    bool drained;

    wire_flush(wire);
    (void)pthread_mutex_lock(&wire->lock);
    while (wire->first && clock_cond_wait_until(&wire->changed, &wire->lock, until_ns))
        ;
    drained = !wire->first;
    (void)pthread_mutex_unlock(&wire->lock);
    return drained;
}

void
wire_wait_below(struct wire *wire, size_t bytes, int64_t until_ns)
{
    (void)pthread_mutex_lock(&wire->lock);
    while (wire->pending >= bytes &&
           clock_cond_wait_until(&wire->changed, &wire->lock, until_ns))
        ;
    (void)pthread_mutex_unlock(&wire->lock);
}
