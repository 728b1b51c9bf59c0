/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of a checkout in the making: by a child, within a limit of time. */
#ifndef KCAP_SERVER_COPY_H
#define KCAP_SERVER_COPY_H

#include <stdint.h>
#include <sys/types.h>

#include "lib/buf.h"

enum copy_state { COPY_NONE, COPY_RUNS, COPY_READY, COPY_FAILED };

struct copy {
    enum copy_state state;
    pid_t pid;
    int errors_fd; /* its standard error, -1 for none */
    int64_t until_ns;
    struct buf fault; /* for people, once it has failed */
};

void copy_init(struct copy *copy);
/* Kills the child that is still at it. */
void copy_fini(struct copy *copy);

/* Returns 0 or -errno. */
int copy_start(struct copy *copy, const char *source, const char *dir);
/* The child has ended. */
void copy_ended(struct copy *copy, int status);
/* Kills a child that takes too long; its end is then seen like any other. */
void copy_tick(struct copy *copy, int64_t now_ns);

#endif
