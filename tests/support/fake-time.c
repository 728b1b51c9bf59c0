/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is, and waiting. */
#include "config.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fake-private.h"

#define MAX_FDS       64
#define REAL_LIMIT_MS 5000 /* a descriptor is waited for this long before fake time goes on */

static int64_t
real_now_ns(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t
fake_now_ns(const struct fake_host *fake)
{
    return fake->real ? real_now_ns() : fake->now_ns;
}

/* ---- whose turn it is ---- */

static bool
poll_fds(struct kcap_fd *fds, uint32_t n, int timeout_ms)
{
    struct pollfd polled[MAX_FDS];
    bool any = false;

    for (uint32_t i = 0; i < n; i++)
        polled[i] = (struct pollfd){
            .fd = fds[i].fd,
            .events = (short)((fds[i].events & KCAP_FD_READ ? POLLIN : 0) |
                              (fds[i].events & KCAP_FD_WRITE ? POLLOUT : 0)),
        };
    (void)poll(polled, n, timeout_ms);
    for (uint32_t i = 0; i < n; i++) {
        fds[i].revents =
            (uint16_t)((polled[i].revents & POLLIN ? KCAP_FD_READ : 0) |
                       (polled[i].revents & POLLOUT ? KCAP_FD_WRITE : 0) |
                       (polled[i].revents & (POLLERR | POLLHUP | POLLNVAL) ? KCAP_FD_ERROR
                                                                           : 0));
        any = any || fds[i].revents;
    }
    return any;
}

static bool
is_ready(struct fake_host *fake, struct sleeper *s)
{
    return fake->shutdown || (s->seen != KCAP_SEQ_NONE && s->seen != fake->seq) ||
           s->until_ns <= fake->now_ns || (s->n_fds > 0 && poll_fds(s->fds, s->n_fds, 0));
}

/* Wakes the one who runs next: whoever can, else whoever waits for the nearest moment. */
void
fake_pass_turn(struct fake_host *fake)
{
    struct sleeper *next = NULL;

    for (struct sleeper *s = fake->sleepers; s && !next; s = s->next) {
        if (is_ready(fake, s))
            next = s;
    }
    for (struct sleeper *s = fake->sleepers; s && !next; s = s->next) {
        if (s->n_fds > 0 && poll_fds(s->fds, s->n_fds, REAL_LIMIT_MS))
            next = s;
    }
    for (struct sleeper *s = fake->sleepers; s && !(next && is_ready(fake, next));
         s = s->next) {
        if (!next || s->until_ns < next->until_ns)
            next = s;
    }
    if (!next)
        return;
    if (!is_ready(fake, next)) {
        if (next->until_ns == FAKE_NEVER) {
            (void)fprintf(stderr, "fake host: everybody waits for ever\n");
            abort();
        }
        fake->now_ns = next->until_ns;
    }
    next->woken = true;
    (void)pthread_cond_broadcast(&fake->cond);
}

void
fake_enlist(struct fake_host *fake, struct sleeper *self)
{
    struct sleeper **place = &fake->sleepers;

    while (*place)
        place = &(*place)->next;
    *place = self;
}

void
fake_await_turn(struct fake_host *fake, struct sleeper *self)
{
    struct sleeper **place = &fake->sleepers;

    while (!self->woken)
        (void)pthread_cond_wait(&fake->cond, &fake->lock);
    while (*place != self)
        place = &(*place)->next;
    *place = self->next;
}

/* ---- waiting ---- */

int32_t
fake_call_end(struct kcap_call *call)
{
    struct fake_host *fake = call->fake;
    struct fake_call *outer = call->outer;
    int64_t now_ns = fake_now_ns(fake);

    if (call->ended)
        return call->ended;
    if (outer && outer->cancel_at_wait && outer->waits >= outer->cancel_at_wait)
        call->ended = KCAP_WAIT_CANCELLED;
    else if (now_ns >= call->cancel_ns)
        call->ended = KCAP_WAIT_CANCELLED;
    else if (fake->shutdown ||
             (outer && outer->shutdown_at_wait && outer->waits >= outer->shutdown_at_wait))
        call->ended = KCAP_WAIT_SHUTDOWN;
    else if (now_ns >= call->deadline_ns)
        call->ended = KCAP_WAIT_DEADLINE;
    return call->ended;
}

static int64_t
earliest(int64_t a, int64_t b, int64_t c)
{
    int64_t first = a < b ? a : b;

    return first < c ? first : c;
}

static int32_t
wait_fake(struct kcap_call *call, uint64_t seen, struct kcap_fd *fds, uint32_t n,
          int64_t until_ns)
{
    struct fake_host *fake = call->fake;

    for (;;) {
        struct sleeper self = {.seen = seen, .fds = fds, .n_fds = n};
        int32_t ended = fake_call_end(call);
        if (ended)
            return ended;
        if (seen != KCAP_SEQ_NONE && seen != fake->seq)
            return KCAP_WAIT_CHANGED;
        if (n > 0 && poll_fds(fds, n, 0))
            return KCAP_WAIT_FD;
        if (fake->now_ns >= until_ns)
            return KCAP_WAIT_TIMEOUT;
        self.until_ns = earliest(until_ns, call->deadline_ns, call->cancel_ns);
        fake_enlist(fake, &self);
        fake_pass_turn(fake);
        fake_await_turn(fake, &self);
    }
}

static int32_t
wait_real(struct kcap_call *call, struct kcap_fd *fds, uint32_t n, int64_t until_ns)
{
    for (;;) {
        int64_t now_ns = real_now_ns(), next_ns;
        int32_t ended = fake_call_end(call);
        if (ended)
            return ended;
        if (now_ns >= until_ns)
            return KCAP_WAIT_TIMEOUT;
        next_ns = earliest(until_ns, call->deadline_ns, call->cancel_ns);
        if (next_ns > now_ns + 1000 * FAKE_NS_PER_MS)
            next_ns = now_ns + 1000 * FAKE_NS_PER_MS;
        if (poll_fds(fds, n, (int)((next_ns - now_ns + FAKE_NS_PER_MS - 1) / FAKE_NS_PER_MS)))
            return KCAP_WAIT_FD;
    }
}

int32_t
fake_wait(struct kcap_call *call, uint64_t seen, struct kcap_fd *fds, uint32_t n,
          int64_t until_ns)
{
    assert(n <= MAX_FDS);
    if (call->outer)
        call->outer->waits++;
    return call->fake->real ? wait_real(call, fds, n, until_ns)
                            : wait_fake(call, seen, fds, n, until_ns);
}
