/* SPDX-License-Identifier: Apache-2.0 */
/* One epoll set. A source stays valid until the call of loop_wait that may name it is over. */
#ifndef KCAP_SERVER_LOOP_H
#define KCAP_SERVER_LOOP_H

#include <stdint.h>

struct source {
    int fd; /* -1: not watched */
    void (*ready)(struct source *source, uint32_t events);
};

/* The struct that has the source as its member. */
#define SOURCE_OWNER(source, type, member) \
    ((type *)(void *)((char *)(source)-offsetof(type, member)))

/* Return 0 or -errno. */
int loop_new(int *ret_epoll_fd);
int loop_add(int epoll_fd, struct source *source, int fd, uint32_t events);

/* Stops watching and returns the descriptor, which stays open; -1 when nothing was watched. */
int loop_remove(int epoll_fd, struct source *source);

/* Waits for events up to until_ns (UTIL_NEVER: for ever) and has them handled. */
void loop_wait(int epoll_fd, int64_t until_ns);

#endif
