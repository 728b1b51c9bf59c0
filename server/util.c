/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "lib/auto.h"

int
util_new_id(char ret[UTIL_ID_LEN + 1])
{
    unsigned char bytes[UTIL_ID_LEN / 2];
    ssize_t n;

    do
        n = getrandom(bytes, sizeof bytes, 0);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof bytes)
        return n < 0 ? -errno : -EIO;
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

int64_t
util_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * UTIL_SEC_NS + now.tv_nsec;
}

int64_t
util_wall_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

void
util_format_time(int64_t wall_ms, char ret[32])
{
    time_t sec = (time_t)(wall_ms / 1000);
    struct tm tm;
    size_t len;

    (void)gmtime_r(&sec, &tm);
    len = strftime(ret, 32, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(ret + len, 32 - len, ".%03dZ", (int)(wall_ms % 1000));
}

static ssize_t
read_small(const char *path, char *space, size_t size)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return -errno;
    n = read(fd, space, size - 1);
    if (n < 0)
        return -errno;
    space[n] = '\0';
    return n;
}

/* What /proc says of a process after its name, which may hold anything. NULL: there is none. */
static const char *
read_stat(pid_t pid, char *space, size_t size)
{
    char path[48];

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    return read_small(path, space, size) < 0 ? NULL : strrchr(space, ')');
}

pid_t
util_parent(pid_t pid)
{
    char stat[1024];
    const char *p = read_stat(pid, stat, sizeof stat);

    return p && strlen(p) > 4 ? (pid_t)strtol(p + 4, NULL, 10) : -1; /* ") S PPID" */
}

bool
util_is_running(pid_t pid)
{
    char stat[1024];
    const char *p = read_stat(pid, stat, sizeof stat);

    return p && strncmp(p, ") Z", 3) != 0 && strncmp(p, ") X", 3) != 0;
}

int64_t
util_start_ticks(pid_t pid)
{
    char stat[1024];
    const char *p = read_stat(pid, stat, sizeof stat);

    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoll(p + 1, NULL, 10) : -EINVAL;
}

bool
util_is_newer(const char *version, const char *other)
{
    for (int part = 0; part < 3; part++) {
        char *end, *other_end;
        unsigned long a, b;
        if (*version < '0' || *version > '9' || *other < '0' || *other > '9')
            return false;
        a = strtoul(version, &end, 10);
        b = strtoul(other, &other_end, 10);
        if (a != b)
            return a > b;
        version = *end == '.' ? end + 1 : end;
        other = *other_end == '.' ? other_end + 1 : other_end;
    }
    return false;
}

void
util_boot_id(char ret[40])
{
    ssize_t n = read_small("/proc/sys/kernel/random/boot_id", ret, 40);

    if (n < 0)
        n = 0;
    ret[n] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
}
