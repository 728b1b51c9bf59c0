/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "spooldir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/text.h"
#include "spool.h"

#define MAX_TOTAL_LEN    ((uint64_t)64 << 20)
#define MAX_AGE_SEC      (30 * 86400)
#define LEFTOVER_AGE_SEC 3600

struct listing {
    const struct kcap_host *host;
    int fd;
    char agent[SPOOL_HASH_LEN + 1];
    size_t n_files;
    uint64_t total_len;
    char oldest[256]; /* of what may go; "" for none */
    int64_t oldest_sec;
};

void
spooldir_hash(const char *text, char *ret)
{
    char digits[SPOOL_HASH_LEN + 1];

    (void)snprintf(digits, sizeof digits, "%016llx%016llx",
                   (unsigned long long)text_hash(text, UINT64_C(0xcbf29ce484222325)),
                   (unsigned long long)text_hash(text, UINT64_C(0x84222325cbf29ce4)));
    memcpy(ret, digits, SPOOL_HASH_LEN);
}

void
spooldir_list(const char *dir, const char *agent_id, struct buf *ret_names)
{
    char agent[SPOOL_HASH_LEN];
    DIR *entries = opendir(dir);
    const struct dirent *entry;

    if (!entries)
        return;
    spooldir_hash(agent_id, agent);
    while ((entry = readdir(entries)) != NULL) {
        size_t len = strlen(entry->d_name);
        if (len == 2 * SPOOL_HASH_LEN + 6 && memcmp(entry->d_name, agent, sizeof agent) == 0 &&
            buf_reserve(ret_names, len + 1)) {
            buf_adds(ret_names, entry->d_name);
            buf_addc(ret_names, '\n');
        }
    }
    (void)closedir(entries);
}

/* Nobody is sending it at the moment. */
static bool
is_free(const struct listing *in, const char *name)
{
    AUTO_CLOSE int fd = openat(in->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    return fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static bool
remove_entry(const struct listing *in, const char *name, const char *why)
{
    if (!is_free(in, name) || unlinkat(in->fd, name, 0) < 0)
        return false;
    kcap_logf(in->host, KCAP_LOG_WARN,
              "flow-result: a result that was kept for another reviewer is removed (%s): %s",
              why, name);
    return true;
}

/* Age by the wall clock; what seems to come from the future counts as new. */
static void
look_at(struct listing *in, const char *name)
{
    int64_t now_sec = in->host->wall_ms(in->host) / 1000;
    struct stat st;

    if (fstatat(in->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return;
    if (atomic_is_leftover(name)) {
        if (now_sec - st.st_mtime > LEFTOVER_AGE_SEC)
            (void)unlinkat(in->fd, name, 0);
        return;
    }
    if (strncmp(name, in->agent, SPOOL_HASH_LEN) != 0) {
        if (now_sec - st.st_mtime > MAX_AGE_SEC && remove_entry(in, name, "a month old"))
            return;
        if ((!in->oldest[0] || st.st_mtime < in->oldest_sec) && is_free(in, name) &&
            strlen(name) < sizeof in->oldest) {
            (void)memccpy(in->oldest, name, '\0', sizeof in->oldest);
            in->oldest_sec = st.st_mtime;
        }
    }
    in->n_files++;
    in->total_len += (uint64_t)st.st_size;
}

static void
list(struct listing *in, DIR *entries)
{
    const struct dirent *entry;

    in->n_files = 0;
    in->total_len = 0;
    in->oldest[0] = '\0';
    rewinddir(entries);
    while ((entry = readdir(entries)) != NULL)
        look_at(in, entry->d_name);
}

static bool
is_full(const struct listing *in, size_t len)
{
    return in->n_files >= SPOOL_MAX_FILES || in->total_len + len > MAX_TOTAL_LEN;
}

int
spooldir_make_room(const struct kcap_host *host, const char *dir, const char *agent_id,
                   size_t len)
{
    DIR *entries = opendir(dir);
    struct listing in = {.host = host};

    if (!entries)
        return -errno;
    in.fd = dirfd(entries);
    spooldir_hash(agent_id, in.agent);
    for (list(&in, entries); in.oldest[0] && is_full(&in, len); list(&in, entries)) {
        if (!remove_entry(&in, in.oldest, "too many are kept"))
            break;
    }
    (void)closedir(entries);
    return is_full(&in, len) ? -EDQUOT : 0;
}
