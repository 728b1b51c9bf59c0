/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that tools run on. A few serve the common case; more come when the queue stands
 * still, because tools block for minutes. Threads are never joined: the process ends by _exit.
 */
#ifndef KCAP_HOST_WORKERS_H
#define KCAP_HOST_WORKERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WORKERS_FIRST 4   /* started as soon as there is work for them */
#define WORKERS_MAX   256 /* calls in flight and background jobs */

struct job;

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct job *first, *last;
    unsigned queued, threads, idle;
    _Atomic unsigned
        blocked; /* threads that wait through the host; those will not take a job soon */
    int64_t last_taken_ns; /* when a job last left the queue, or came to an empty one */
};

void workers_init(struct workers *workers);

/* Queues run(arg). Returns 0, or a negative KCAP_E_* code and run will not be called. */
int workers_submit(struct workers *workers, void (*run)(void *arg), void *arg);

/* Called by the main thread each turn: adds threads when nothing was taken for a millisecond.
 * Returns the time to call again, KCAP_TIME_NEVER when there is nothing to watch. */
int64_t workers_tick(struct workers *workers, int64_t now_ns);

#endif
