/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/clock.h"

#include <errno.h>
#include <kcap/plugin.h>

int64_t
host_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

void
clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;

    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

bool
clock_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ns)
{
    struct timespec until = {.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};

    if (until_ns == KCAP_TIME_NEVER)
        return pthread_cond_wait(cond, lock) == 0;
    return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}

const struct timespec *
clock_left(int64_t until_ns, struct timespec *space)
{
    int64_t left_ns;

    if (until_ns == KCAP_TIME_NEVER)
        return NULL;
    left_ns = until_ns - host_now_ns();
    if (left_ns < 0)
        left_ns = 0;
    *space = (struct timespec){.tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S};
    return space;
}
