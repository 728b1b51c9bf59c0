/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/json.h"
#include "lib/paths.h"
#include "lib/text.h"
#include "spooldir.h"

#define MAX_ENTRY_LEN ((size_t)34 << 20) /* a body of 16 MiB, escaped once more */
#define NAME_LEN      (2 * SPOOL_HASH_LEN + 6)

void
spool_init(struct spool *spool, const struct kcap_host *host, const char *agent_id)
{
    *spool = (struct spool){.host = host, .agent_id = agent_id};
}

void
spool_fini(struct spool *spool)
{
    free(spool->dir);
    spool->dir = NULL;
}

/* Said once: it is a warning, and the reviewer's work goes on. */
static void
warn(struct spool *spool, const char *what, int error)
{
    if (!spool->has_warned)
        kcap_logf(
            spool->host, KCAP_LOG_WARN,
            "flow-result: results cannot be kept on disk (%s: %s); going on without, so a "
            "result is lost if this process dies before the server has it",
            what, strerror(-error));
    spool->has_warned = true;
}

const char *
spool_dir(struct spool *spool)
{
    AUTO_FREE char *state = NULL, *dir = NULL;
    const struct kcap_host *host = spool->host;
    int r;

    if (spool->dir || spool->is_given_up)
        return spool->dir;
    r = paths_state_dir(host->env(host, "KCAP_STATE_DIR"), host->env(host, "HOME"), &state);
    if (r == 0) {
        dir = paths_join(state, "spool");
        r = dir ? paths_make_dir(dir) : -ENOMEM;
    }
    if (r == 0 && access(dir, W_OK | X_OK) < 0)
        r = -errno;
    if (r == 0)
        return spool->dir = take_ptr(dir);
    warn(spool, dir ? dir : state ? state : "no state directory", r);
    spool->is_given_up = true;
    return NULL;
}

/* ---- an entry ---- */

static char *
entry_path(struct spool *spool, const char *round_token)
{
    char name[NAME_LEN + 1];

    spooldir_hash(spool->agent_id, name);
    name[SPOOL_HASH_LEN] = '-';
    spooldir_hash(round_token, name + SPOOL_HASH_LEN + 1);
    (void)memcpy(name + 2 * SPOOL_HASH_LEN + 1, ".json", 6);
    return paths_join(spool->dir, name);
}

static void
add_member(struct buf *to, const char *name, const char *value, size_t len)
{
    buf_addf(to, ",\"%s\":", name);
    text_add_json(to, value, len);
}

static int
write_entry(const struct spool *spool, const struct spool_entry *entry, bool may_be_there)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_ENTRY_LEN);

    buf_addf(&text, "{\"version\":1,\"may_be_there\":%s", may_be_there ? "true" : "false");
    add_member(&text, "agent_id", spool->agent_id, strlen(spool->agent_id));
    add_member(&text, "round_token", entry->round_token, strlen(entry->round_token));
    add_member(&text, "server", entry->server, strlen(entry->server));
    add_member(&text, "source", entry->source, strlen(entry->source));
    add_member(&text, "body", entry->body, entry->body_len);
    buf_adds(&text, "}\n");
    if (!buf_ok(&text))
        return -EFBIG;
    return atomic_write(entry->path, text.data, text.len, 0600);
}

/* Takes the lock of the file that has the path now. 0 when another process holds it. */
static int
lock_entry(const char *path, int *ret_fd)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat ours, there;

    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? 0 : -errno;
    /* who held it before may have removed or replaced the file */
    if (fstat(fd, &ours) < 0 || stat(path, &there) < 0 || ours.st_ino != there.st_ino)
        return -ENOENT;
    *ret_fd = take_fd(&fd);
    return 1;
}

void
spool_entry_fini(struct spool_entry *entry)
{
    if (entry->path && entry->fd >= 0)
        (void)close(entry->fd);
    free(entry->path);
    free(entry->round_token);
    free(entry->server);
    free(entry->source);
    free(entry->body);
    *entry = (struct spool_entry){.fd = -1};
}

static bool
take_members(const struct spool *spool, const cJSON *json, struct spool_entry *entry)
{
    const char *agent = json_str(json, "agent_id"), *token = json_str(json, "round_token");
    const char *server = json_str(json, "server"), *source = json_str(json, "source");
    const char *body = json_str(json, "body");
    int64_t version;

    if (!json_int(json, "version", &version) || version != 1 || !agent ||
        strcmp(agent, spool->agent_id) != 0 || !token || !server || !source || !body)
        return false;
    entry->round_token = strdup(token);
    entry->server = strdup(server);
    entry->source = strdup(source);
    entry->body = strdup(body);
    entry->body_len = strlen(body);
    entry->may_be_there = json_bool(json, "may_be_there", true);
    return entry->round_token && entry->server && entry->source && entry->body;
}

static bool
read_entry(const struct spool *spool, struct spool_entry *entry)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_ENTRY_LEN);
    AUTO_JSON cJSON *json = NULL;

    if (atomic_read(entry->path, &text) < 0)
        return false;
    json = json_parse(buf_str(&text), text.len, NULL);
    return take_members(spool, json, entry);
}

/* ---- keeping ---- */

/* Whether the same round was tried before and may have its result; what cannot be read may say
 * so, too. */
static bool
earlier_try(const struct spool *spool, const char *path)
{
    struct spool_entry earlier = {.path = strdup(path), .fd = -1};
    bool may_be_there = spool->has_lost_one;

    if (earlier.path && access(path, F_OK) == 0)
        may_be_there = !read_entry(spool, &earlier) || earlier.may_be_there || may_be_there;
    spool_entry_fini(&earlier);
    return may_be_there;
}

static bool
fill_entry(struct spool *spool, const char *round_token, const char *server, const char *source,
           const char *body, size_t body_len, struct spool_entry *ret)
{
    *ret = (struct spool_entry){
        .path = entry_path(spool, round_token),
        .fd = -1,
        .round_token = strdup(round_token),
        .server = strdup(server),
        .source = strdup(source),
        .body = strndup(body, body_len),
        .body_len = body_len,
    };
    return ret->path && ret->round_token && ret->server && ret->source && ret->body;
}

void
spool_put(struct spool *spool, const char *round_token, const char *server, const char *source,
          const char *body, size_t body_len, struct spool_entry *ret)
{
    int r;

    *ret = (struct spool_entry){.fd = -1};
    if (!spool_dir(spool))
        return;
    if (!fill_entry(spool, round_token, server, source, body, body_len, ret)) {
        spool_entry_fini(ret);
        warn(spool, spool->dir, -ENOMEM);
        return;
    }
    ret->may_be_there = earlier_try(spool, ret->path);
    r = spooldir_make_room(spool->host, spool->dir, spool->agent_id, body_len);
    if (r == 0)
        r = write_entry(spool, ret, true);
    if (r == 0)
        r = lock_entry(ret->path, &ret->fd);
    if (r == 0) /* somebody else is sending what he found there a moment ago */
        ret->may_be_there = true;
    else if (r < 0)
        warn(spool, spool->dir, r);
}

void
spool_list(struct spool *spool, struct buf *ret_names)
{
    const char *dir = spool_dir(spool);

    if (dir)
        spooldir_list(dir, spool->agent_id, ret_names);
}

size_t
spool_count(struct spool *spool)
{
    AUTO_BUF struct buf names = BUF_INIT((size_t)SPOOL_MAX_FILES * (NAME_LEN + 1));
    size_t n = 0;

    spool_list(spool, &names);
    for (size_t i = 0; i < names.len; i++)
        n += names.data[i] == '\n';
    return n;
}

bool
spool_open(struct spool *spool, const char *name, struct spool_entry *ret)
{
    *ret = (struct spool_entry){.path = paths_join(spool->dir, name), .fd = -1};
    if (!ret->path || lock_entry(ret->path, &ret->fd) <= 0) {
        spool_entry_fini(ret);
        return false;
    }
    if (read_entry(spool, ret))
        return true;
    kcap_logf(
        spool->host, KCAP_LOG_ERROR,
        "flow-result: the kept result %s is damaged and cannot be delivered; it is removed",
        ret->path);
    spool_remove(ret);
    spool_entry_fini(ret);
    spool->has_lost_one = true;
    return false;
}

bool
spool_is_for(const struct spool_entry *entry, const char *round_token)
{
    return entry->round_token && strcmp(entry->round_token, round_token) == 0;
}

void
spool_remove(struct spool_entry *entry)
{
    if (entry->path)
        (void)unlink(entry->path);
}

void
spool_set_state(struct spool *spool, struct spool_entry *entry, bool may_be_there)
{
    int fd = -1;

    if (!entry->path || write_entry(spool, entry, may_be_there) < 0)
        return;
    /* the path has another file now, and the lock has to go with it */
    if (lock_entry(entry->path, &fd) > 0) {
        if (entry->fd >= 0)
            (void)close(entry->fd);
        entry->fd = fd;
    }
}
