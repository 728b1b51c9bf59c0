/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/loop.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <sys/epoll.h>

#include "server/util.h"

#define EVENTS_PER_WAIT 64

int
loop_new(int *ret_epoll_fd)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);

    if (fd < 0)
        return -errno;
    *ret_epoll_fd = fd;
    return 0;
}

int
loop_add(int epoll_fd, struct source *source, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};

    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        return -errno;
    source->fd = fd;
    return 0;
}

int
loop_remove(int epoll_fd, struct source *source)
{
    int fd = source->fd;

    if (fd >= 0)
        (void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    source->fd = -1;
    return fd;
}

static int
timeout_ms(int64_t until_ns)
{
    int64_t left_ns;

    if (until_ns == UTIL_NEVER)
        return -1;
    left_ns = until_ns - util_now_ns();
    if (left_ns <= 0)
        return 0;
    if (left_ns > INT64_C(1000000) * INT_MAX)
        return INT_MAX;
    return (int)((left_ns + 999999) / 1000000); /* up, or the last millisecond is spun away */
}

void
loop_wait(int epoll_fd, int64_t until_ns)
{
    struct epoll_event events[EVENTS_PER_WAIT];
    int n = epoll_wait(epoll_fd, events, EVENTS_PER_WAIT, timeout_ms(until_ns));

    for (int i = 0; i < n; i++) {
        struct source *source = events[i].data.ptr;
        if (source->fd >= 0) /* else removed by an earlier one of this batch */
            source->ready(source, events[i].events);
    }
}
