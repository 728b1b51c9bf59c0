/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/buf.h"
#include "lib/json.h"
#include "lib/paths.h"
#include "lib/text.h"

#define REWRITE_OVER_LEN (1 << 20)
#define MAX_FILE_LEN     ((size_t)8 << 20)
#define MAX_LINE_LEN     65536u
#define MAX_KEPT_RUNS    400u
#define KEPT_SEC         (30 * 86400)

static const char *const event_names[N_EVENTS] = {
    [EVENT_START] = "start",   [EVENT_START_FAILED] = "start_failed", [EVENT_RUN] = "run",
    [EVENT_SUBMIT] = "submit", [EVENT_NOT_TAKEN] = "not_taken",       [EVENT_ROUND] = "round",
    [EVENT_SHOWN] = "shown",   [EVENT_UNSHOWN] = "unshown",           [EVENT_NAMED] = "named",
    [EVENT_CLOSED] = "closed",
};

/* 128 bits, as two passes with different starts: a name, not a secret. */
static char *
file_path(const char *dir, const char *session)
{
    char name[64];

    (void)snprintf(name, sizeof name, "%016llx%016llx.jsonl",
                   (unsigned long long)text_hash(session, UINT64_C(0xcbf29ce484222325)),
                   (unsigned long long)text_hash(session, UINT64_C(0x84222325cbf29ce4)));
    return paths_join(dir, name);
}

/* ---- lines ---- */

static void
add_text(struct buf *to, const char *name, const char *value)
{
    if (!value)
        return;
    buf_addf(to, ",\"%s\":", name);
    text_add_json(to, value, strlen(value));
}

static void
add_line(struct buf *to, const struct event *event)
{
    buf_addf(to, "{\"event\":\"%s\",\"at_ms\":%lld", event_names[event->kind],
             (long long)event->wall_ms);
    if (event->round > 0)
        buf_addf(to, ",\"round\":%lld", (long long)event->round);
    if (event->ended)
        buf_adds(to, ",\"ended\":true");
    if (event->unwanted)
        buf_adds(to, ",\"unwanted\":true");
    add_text(to, "start", event->start_id);
    add_text(to, "run", event->run_id);
    add_text(to, "server", event->server);
    add_text(to, "definition", event->definition);
    add_text(to, "target_kind", event->target_kind);
    add_text(to, "target_ref", event->target_ref);
    add_text(to, "target_title", event->target_title);
    add_text(to, "args_mark", event->args_mark);
    add_text(to, "target_mark", event->target_mark);
    add_text(to, "by", event->holder);
    buf_adds(to, "}\n");
}

static int
apply_line(struct runs *runs, const char *session, const char *line, size_t len)
{
    AUTO_JSON cJSON *json = json_parse(line, len, NULL);
    const char *name = json_str(json, "event");
    struct event event = {
        .session = session,
        .ended = json_bool(json, "ended", false),
        .unwanted = json_bool(json, "unwanted", false),
        .start_id = json_str(json, "start"),
        .run_id = json_str(json, "run"),
        .server = json_str(json, "server"),
        .definition = json_str(json, "definition"),
        .target_kind = json_str(json, "target_kind"),
        .target_ref = json_str(json, "target_ref"),
        .target_title = json_str(json, "target_title"),
        .args_mark = json_str(json, "args_mark"),
        .target_mark = json_str(json, "target_mark"),
        .holder = json_str(json, "by"),
    };

    if (!name || !json_int(json, "at_ms", &event.wall_ms))
        return 0; /* torn, or from a version that knows more */
    (void)json_int(json, "round", &event.round);
    for (int kind = 0; kind < N_EVENTS; kind++) {
        if (strcmp(name, event_names[kind]) == 0) {
            event.kind = (enum event_kind)kind;
            return runs_apply(runs, &event);
        }
    }
    return 0;
}

static int
apply_text(struct runs *runs, const char *session, const char *text, size_t len)
{
    const char *end = text + len;

    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        int r;
        if (!stop)
            return 0; /* torn */
        r = apply_line(runs, session, text, (size_t)(stop - text));
        if (r < 0)
            return r;
        text = stop + 1;
    }
    return 0;
}

/* ---- files ---- */

/* Opens and locks the file that is there once we hold the lock: a rewrite may have put another
 * in its place meanwhile. */
static int
open_locked(const char *path, int *ret_fd, off_t *ret_len)
{
    for (;;) {
        AUTO_CLOSE int fd =
            open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        struct stat ours, there;
        if (fd < 0)
            return -errno;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
            return -errno; /* waiting is the host's business */
        if (fstat(fd, &ours) < 0)
            return -errno;
        if (stat(path, &there) == 0 && ours.st_dev == there.st_dev &&
            ours.st_ino == there.st_ino) {
            *ret_len = ours.st_size;
            *ret_fd = take_fd(&fd);
            return 0;
        }
    }
}

static void
add_submission(struct buf *to, const struct run *run, const struct submission *submission)
{
    struct event event = {.kind = EVENT_SUBMIT,
                          .wall_ms = submission->at_ms,
                          .round = submission->base,
                          .run_id = run->run_id,
                          .holder = submission->holder,
                          .args_mark = submission->mark};

    add_line(to, &event);
    if (submission->round == 0)
        return;
    event.kind = EVENT_ROUND;
    event.round = submission->round;
    add_line(to, &event);
    event.kind = EVENT_SHOWN;
    event.wall_ms = submission->shown_ms;
    if (submission->shown_ms > 0)
        add_line(to, &event);
}

/* The fewest events that make this run again. */
static void
add_run(struct buf *to, const struct run *run)
{
    struct event event = {
        .kind = run->run_id ? EVENT_RUN : EVENT_START,
        .wall_ms = run->started_ms,
        .round = run->round,
        .unwanted = run->unwanted,
        .start_id = run->start_id,
        .run_id = run->run_id,
        .server = run->server,
        .definition = run->definition,
        .target_kind = run->target_kind,
        .target_ref = run->target_ref,
        .target_title = run->target_title,
        .args_mark = run->args_mark,
        .target_mark = run->target_mark,
        .holder = run->run_id ? NULL : run->holder,
    };

    if (!run->is_guess)
        add_line(to, &event);
    for (size_t i = 0; i < run->n_rounds; i++)
        add_submission(to, run, &run->rounds[i]);
    if (run->shown_ms > 0)
        add_line(to, &(struct event){.kind = EVENT_SHOWN,
                                     .wall_ms = run->shown_ms,
                                     .run_id = run->run_id,
                                     .ended = run->ended});
    if (run->named)
        add_line(to, &(struct event){
                         .kind = EVENT_NAMED, .wall_ms = run->shown_ms, .run_id = run->run_id});
}

/* Leaves out what has ended and was delivered, and what is older than many others. Called with
 * the lock held. */
static int
rewrite(const char *path, int64_t now_ms)
{
    AUTO_RUNS struct runs runs = {.items = NULL};
    AUTO_BUF struct buf text = BUF_INIT(MAX_FILE_LEN);
    int r = atomic_read(path, &text);

    if (r == 0)
        r = apply_text(&runs, "", buf_str(&text), text.len);
    if (r < 0)
        return r;
    buf_clear(&text);
    for (size_t i = runs.n > MAX_KEPT_RUNS ? runs.n - MAX_KEPT_RUNS : 0; i < runs.n; i++) {
        if (!runs.items[i].ended || !run_is_delivered(&runs.items[i], now_ms))
            add_run(&text, &runs.items[i]);
    }
    return buf_ok(&text) ? atomic_write(path, buf_str(&text), text.len, 0600) : -ENOMEM;
}

/* Whether the last line lacks its end: then ours must not be glued to it. */
static bool
is_torn(int fd, off_t len)
{
    char last;

    return len > 0 && pread(fd, &last, 1, len - 1) == 1 && last != '\n';
}

/* A line in one piece. What a full disk leaves of it is torn, and seen to be. */
static int
add_bytes(int fd, const struct buf *line)
{
    ssize_t n;

    do
        n = write(fd, line->data, line->len);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    return (size_t)n == line->len ? 0 : -ENOSPC;
}

/* Called with the lock held. */
static int
append(const char *path, int fd, off_t len, const struct event *event)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_LINE_LEN);
    int r;

    if (is_torn(fd, len))
        buf_addc(&line, '\n');
    add_line(&line, event);
    if (!buf_ok(&line))
        return -EMSGSIZE;
    r = add_bytes(fd, &line);
    if (r == 0 && len > REWRITE_OVER_LEN)
        r = rewrite(path, event->wall_ms);
    return r;
}

int
journal_append(const char *dir, const char *session, const struct event *event)
{
    AUTO_FREE char *path = file_path(dir, session);
    AUTO_CLOSE int fd = -1;
    off_t len = 0;
    int r;

    if (!path)
        return -ENOMEM;
    r = open_locked(path, &fd, &len);
    return r < 0 ? r : append(path, fd, len, event);
}

int
journal_claim(const char *dir, const struct event *order, const struct runs *passed,
              struct runs *ret_found)
{
    AUTO_FREE char *path = file_path(dir, order->session);
    AUTO_RUNS struct runs runs = {.items = NULL};
    AUTO_CLOSE int fd = -1;
    off_t len = 0;
    int r;

    if (!path)
        return -ENOMEM;
    r = open_locked(path, &fd, &len);
    if (r == 0)
        r = journal_load(dir, order->session, &runs);
    if (r == 0)
        r = runs_take_double(&runs, order, passed, ret_found);
    return r < 0 ? r : append(path, fd, len, order);
}

int
journal_load(const char *dir, const char *session, struct runs *runs)
{
    AUTO_FREE char *path = file_path(dir, session);
    AUTO_BUF struct buf text = BUF_INIT(MAX_FILE_LEN);
    int r;

    if (!path)
        return -ENOMEM;
    r = atomic_read(path, &text);
    if (r == -ENOENT)
        return 0;
    return r < 0 ? r : apply_text(runs, session, buf_str(&text), text.len);
}

/* A writer that has such a file open right now sees that it is gone and makes it anew. */
void
journal_prune(const char *dir, int64_t now_ms)
{
    DIR *stream = opendir(dir);
    struct dirent *entry;
    struct stat st;

    if (!stream)
        return;
    while ((entry = readdir(stream)) != NULL) {
        if (entry->d_name[0] != '.' &&
            fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode) && st.st_mtime < now_ms / 1000 - KEPT_SEC)
            (void)unlinkat(dirfd(stream), entry->d_name, 0);
    }
    (void)closedir(stream);
}
