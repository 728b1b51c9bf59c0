/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "lib/atomic.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/auto.h"

#define SUFFIX     ".kcap-tmp-"
#define SUFFIX_LEN (sizeof SUFFIX - 1)
#define RANDOM_LEN 6

/* Where the bytes really go: the end of the links, when there are any. */
static int
resolve(const char *path, char **ret, struct stat *ret_old, bool *ret_exists)
{
    struct stat st;

    *ret_exists = lstat(path, &st) == 0;
    if (!*ret_exists) {
        if (errno != ENOENT)
            return -errno;
        *ret = strdup(path);
        return *ret ? 0 : -ENOMEM;
    }
    *ret = realpath(path, NULL);
    if (!*ret)
        return -errno;
    if (stat(*ret, ret_old) < 0) {
        free(*ret);
        return -errno;
    }
    return 0;
}

/* Those that people or their tools have set, and access lists, must come along; what the system
 * keeps for itself may be refused. */
static bool
must_come_along(const char *name)
{
    return strncmp(name, "user.", 5) == 0 || strcmp(name, "system.posix_acl_access") == 0;
}

static int
copy_attributes(const char *from, int fd)
{
    AUTO_FREE char *names = malloc(XATTR_LIST_MAX), *value = malloc(XATTR_SIZE_MAX);
    ssize_t len;

    if (!names || !value)
        return -ENOMEM;
    len = listxattr(from, names, XATTR_LIST_MAX);
    if (len < 0)
        return errno == ENOTSUP ? 0 : -errno;
    for (const char *name = names; name < names + len; name += strlen(name) + 1) {
        ssize_t size = getxattr(from, name, value, XATTR_SIZE_MAX);

        if ((size < 0 || fsetxattr(fd, name, value, (size_t)size, 0) < 0) &&
            must_come_along(name))
            return -errno;
    }
    return 0;
}

static int
write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

/* Mode and owner first: the content must never be in a file that more people can read. */
static int
fill(int fd, const char *target, const struct stat *old, mode_t mode, const void *bytes,
     size_t len)
{
    struct stat st;
    int r;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (old && (old->st_uid != st.st_uid || old->st_gid != st.st_gid) &&
        fchown(fd, old->st_uid, old->st_gid) < 0)
        return -errno;
    if (fchmod(fd, old ? old->st_mode & 07777 : mode) < 0)
        return -errno;
    r = old ? copy_attributes(target, fd) : 0;
    if (r == 0)
        r = write_all(fd, bytes, len);
    if (r < 0)
        return r;
    return fsync(fd) < 0 ? -errno : 0;
}

/* The rename itself must survive a power cut, too. */
static int
sync_directory_of(const char *path)
{
    AUTO_FREE char *dir = strdup(path);
    AUTO_CLOSE int fd = -1;
    char *slash = dir ? strrchr(dir, '/') : NULL;

    if (!dir)
        return -ENOMEM;
    if (slash)
        slash[slash == dir] = '\0';
    fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
}

static bool
is_still(const char *path, const struct buf *expected)
{
    AUTO_BUF struct buf now = BUF_INIT(expected->len + 1);
    int r = atomic_read(path, &now);

    if (r == -ENOENT)
        return expected->len == 0;
    return r == 0 && now.len == expected->len &&
           memcmp(buf_str(&now), buf_str(expected), now.len) == 0;
}

static int
replace(const char *path, const struct buf *expected, const void *bytes, size_t len,
        mode_t mode)
{
    AUTO_FREE char *target = NULL, *temporary = NULL;
    AUTO_CLOSE int fd = -1;
    struct stat old;
    size_t size;
    bool exists;
    int r = resolve(path, &target, &old, &exists);

    if (r < 0)
        return r;
    size = strlen(target) + SUFFIX_LEN + RANDOM_LEN + 1;
    temporary = malloc(size);
    if (!temporary)
        return -ENOMEM;
    (void)snprintf(temporary, size, "%s" SUFFIX "XXXXXX", target);
    fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = fill(fd, target, exists ? &old : NULL, mode, bytes, len);
    if (r == 0 && expected && !is_still(target, expected))
        r = -ESTALE;
    if (r == 0 && rename(temporary, target) < 0)
        r = -errno;
    if (r < 0) {
        (void)unlink(temporary);
        return r;
    }
    return sync_directory_of(target);
}

int
atomic_write(const char *path, const void *bytes, size_t len, mode_t mode)
{
    return replace(path, NULL, bytes, len, mode);
}

int
atomic_write_if(const char *path, const struct buf *expected, const void *bytes, size_t len,
                mode_t mode)
{
    return replace(path, expected, bytes, len, mode);
}

int
atomic_read(const char *path, struct buf *ret)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    for (;;) {
        char some[16384];
        ssize_t n = read(fd, some, sizeof some);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0)
            buf_add(ret, some, (size_t)n);
        if (!buf_ok(ret))
            return -EFBIG;
    }
}

bool
atomic_is_leftover(const char *name)
{
    size_t len = strlen(name);

    return len > SUFFIX_LEN + RANDOM_LEN &&
           memcmp(name + len - RANDOM_LEN - SUFFIX_LEN, SUFFIX, SUFFIX_LEN) == 0;
}
