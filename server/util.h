/* SPDX-License-Identifier: Apache-2.0 */
/* Ids, clocks, processes. */
#ifndef KCAP_SERVER_UTIL_H
#define KCAP_SERVER_UTIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define UTIL_ID_LEN 32
#define UTIL_SEC_NS INT64_C(1000000000)
#define UTIL_NEVER  INT64_MAX

/* 128 random bits in lower-case hexadecimal digits. Returns 0 or -errno. */
int util_new_id(char ret[UTIL_ID_LEN + 1]);

int64_t util_now_ns(void);  /* monotonic */
int64_t util_wall_ms(void); /* for showing only */

static inline int64_t
util_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* RFC 3339 in UTC, milliseconds: 24 characters. */
void util_format_time(int64_t wall_ms, char ret[32]);

/* Start time of a process in clock ticks since boot (field 22 of its stat), or -errno. */
int64_t util_start_ticks(pid_t pid);

/* The parent of a process, negative when there is no such process. */
pid_t util_parent(pid_t pid);

/* Whether there is such a process and it has not ended: a zombie has. */
bool util_is_running(pid_t pid);

/* Whether the version, dotted numbers, is later than the other; false when it is none. */
bool util_is_newer(const char *version, const char *other);

/* Identity of the running kernel, "" when it cannot be read: start times of another boot mean
 * nothing. */
void util_boot_id(char ret[40]);

#endif
