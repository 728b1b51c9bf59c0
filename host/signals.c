/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include "host/calls.h"

static const int ending[] = {SIGTERM, SIGINT, SIGHUP};
#define N_ENDING (sizeof ending / sizeof ending[0])

static void
exit_at_once(int signal_number)
{
    _exit(128 + signal_number);
}

/* A handler rather than the default action, which does nothing in a container's first process.
 */
void
signals_exit_at_once(void)
{
    struct sigaction action = {.sa_handler = exit_at_once};
    sigset_t mine;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a full disk is an error to be told, not a death */
    sigemptyset(&mine);
    for (size_t i = 0; i < N_ENDING; i++) {
        (void)sigaction(ending[i], &action, NULL);
        sigaddset(&mine, ending[i]);
    }
    (void)pthread_sigmask(SIG_UNBLOCK, &mine, NULL);
}

static _Atomic int caught; /* written by wait_for_interrupt only */

int
signals_caught(void)
{
    return atomic_load(&caught);
}

static void *
wait_for_interrupt(void *arg)
{
    const struct timespec patience = {.tv_nsec = 500000000};
    sigset_t set;
    int first;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (sigwait(&set, &first) != 0)
        return NULL;
    atomic_store(&caught, first);
    call_cancel(arg);
    (void)sigtimedwait(&set, NULL, &patience);
    _exit(128 + first);
}

int
signals_cancel_on_interrupt(struct kcap_call *call)
{
    pthread_t thread;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0 ||
        pthread_create(&thread, NULL, wait_for_interrupt, call) != 0)
        return -1;
    return pthread_detach(thread);
}
