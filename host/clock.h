/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time and waiting until a point of it. */
#ifndef KCAP_HOST_CLOCK_H
#define KCAP_HOST_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_MS 1000000
#define NS_PER_S  1000000000

int64_t host_now_ns(void);

/* A condition that times by the monotonic clock. */
void clock_cond_init(pthread_cond_t *cond);

/* Waits until woken, or until_ns (KCAP_TIME_NEVER: only woken). False once until_ns has come.
 */
bool clock_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ns);

/* What is left until until_ns, for ppoll; NULL when that is never. */
const struct timespec *clock_left(int64_t until_ns, struct timespec *space);

#endif
