/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "holder.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/buf.h"

#define MAX_STAT_LEN     4096
#define START_TIME_FIELD 22 /* of proc(5)'s stat, counted from 1 */

/* A pid comes again; with its start time it does not. False when there is no such process. */
static bool
describe(long pid, char *to, size_t size)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_STAT_LEN);
    const char *at;
    char path[32];

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    if (atomic_read(path, &text) < 0)
        return false;
    at = strrchr(buf_str(&text), ')'); /* the name before it may hold anything */
    for (int field = 2; at && field < START_TIME_FIELD; field++)
        at = strchr(at + 1, ' ');
    if (!at)
        return false;
    (void)snprintf(to, size, "%ld-%.*s", pid, (int)strcspn(at + 1, " "), at + 1);
    return true;
}

static char self[64];

static void
describe_self(void)
{
    (void)describe((long)getpid(), self, sizeof self);
}

const char *
holder_self(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, describe_self);
    return self;
}

bool
holder_is_elsewhere(const char *holder)
{
    char now[64];
    long pid;

    if (!holder || strcmp(holder, holder_self()) == 0)
        return false;
    pid = strtol(holder, NULL, 10);
    return pid > 0 && describe(pid, now, sizeof now) && strcmp(now, holder) == 0;
}
