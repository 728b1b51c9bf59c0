/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/workers.h"

#include <kcap/plugin.h>
#include <stdlib.h>

#include "host/clock.h"
#include "host/log.h"

/* The queue stood still this long: more threads. The longer time holds while a thread is at
 * work or was only kept from the processor, for then a new one would have to wait as well. */
#define STALL_NS         NS_PER_MS
#define STALL_WORKING_NS (20 * NS_PER_MS)
#define NEW_PER_TURN     16
#define BACKLOG          16 /* so many queued at once are worth another thread's waking */
#define STACK_SIZE       (512u << 10)

struct job {
    struct job *next;
    void (*run)(void *arg);
    void *arg;
};

void
workers_init(struct workers *workers)
{
    *workers = (struct workers){.last_taken_ns = 0};
    atomic_init(&workers->blocked, 0);
    (void)pthread_mutex_init(&workers->lock, NULL);
    (void)pthread_cond_init(&workers->work, NULL);
}

static void *
worker_main(void *arg)
{
    struct workers *workers = arg;

    (void)pthread_mutex_lock(&workers->lock);
    for (;;) {
        struct job *job = workers->first;
        if (!job) {
            workers->idle++;
            (void)pthread_cond_wait(&workers->work, &workers->lock);
            workers->idle--;
            continue;
        }
        workers->first = job->next;
        if (!workers->first)
            workers->last = NULL;
        workers->queued--;
        workers->last_taken_ns = host_now_ns();
        (void)pthread_mutex_unlock(&workers->lock);
        job->run(job->arg);
        free(job);
        (void)pthread_mutex_lock(&workers->lock);
    }
    return NULL;
}

/* Under lock. */
static bool
add_thread(struct workers *workers)
{
    pthread_attr_t attributes;
    pthread_t thread;
    bool started;

    if (workers->threads >= WORKERS_MAX || pthread_attr_init(&attributes) != 0)
        return false;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, STACK_SIZE);
    started = pthread_create(&thread, &attributes, worker_main, workers) == 0;
    (void)pthread_attr_destroy(&attributes);
    if (started)
        workers->threads++;
    else
        log_line(KCAP_LOG_WARN, "no more threads can be started: calls wait for one another");
    return started;
}

int
workers_submit(struct workers *workers, void (*run)(void *arg), void *arg)
{
    struct job *job = malloc(sizeof *job);
    bool wake = false;
    int r = KCAP_OK;

    if (!job)
        return KCAP_E_NOMEM;
    *job = (struct job){.run = run, .arg = arg};
    (void)pthread_mutex_lock(&workers->lock);
    if (workers->queued >= workers->idle &&
        (workers->threads < WORKERS_FIRST ||
         atomic_load(&workers->blocked) >= workers->threads))
        (void)add_thread(workers);
    if (workers->threads == 0) {
        r = KCAP_E_IO;
    } else {
        if (!workers->first)
            workers->last_taken_ns = host_now_ns();
        if (workers->last)
            workers->last->next = job;
        else
            workers->first = job;
        workers->last = job;
        workers->queued++;
        /* A burst is mostly done by the first thread before the next would have woken. If that
         * one blocks instead, the tick wakes the others. */
        wake = workers->queued == 1 || workers->queued % BACKLOG == 0;
    }
    (void)pthread_mutex_unlock(&workers->lock);
    if (wake) /* without the lock, which the woken thread wants at once */
        (void)pthread_cond_signal(&workers->work);
    if (r != KCAP_OK)
        free(job);
    return r;
}

int64_t
workers_tick(struct workers *workers, int64_t now_ns)
{
    int64_t next_ns = KCAP_TIME_NEVER;

    (void)pthread_mutex_lock(&workers->lock);
    if (workers->first) {
        unsigned busy = workers->threads - workers->idle;
        bool all_blocked = atomic_load(&workers->blocked) >= busy;
        int64_t stalled_ns = now_ns - workers->last_taken_ns;

        if (stalled_ns >= (all_blocked ? STALL_NS : STALL_WORKING_NS)) {
            unsigned wanted =
                workers->queued > workers->idle ? workers->queued - workers->idle : 0;
            (void)pthread_cond_broadcast(&workers->work);
            if (wanted > NEW_PER_TURN)
                wanted = NEW_PER_TURN;
            while (wanted-- > 0 && add_thread(workers))
                ;
            workers->last_taken_ns = now_ns;
        }
        next_ns = now_ns + STALL_NS; /* also to see whether the last one blocked meanwhile */
    }
    (void)pthread_mutex_unlock(&workers->lock);
    return next_ns;
}
