/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/json.h"
#include "lib/paths.h"
#include "lib/text.h"
#include "setup.h"

#define MAX_RECORD    ((size_t)1 << 20)
#define LOCK_LIMIT_NS INT64_C(10000000000)
#define LOCK_RETRY_NS INT64_C(20000000)

static const char *const kinds[] = {
    [EDIT_ENTRY] = "entry",
    [EDIT_TIMEOUT] = "timeout",
    [EDIT_VARIABLES] = "variables",
    [EDIT_SWITCH] = "switch",
};

char *
record_state_file(struct setup *setup, const char *name, bool make)
{
    const struct kcap_host *host = setup->host;
    const char *override = host->env(host, "KCAP_STATE_DIR"), *home = host->env(host, "HOME");
    AUTO_FREE char *state = NULL, *dir = NULL;

    if (make && paths_state_dir(override, home, &state) < 0)
        return NULL;
    if (!make)
        state = paths_state_place(override, home);
    dir = state ? paths_join(state, "codex-setup") : NULL;
    if (!dir || (make && paths_make_dir(dir) < 0))
        return NULL;
    return paths_join(dir, name);
}

/* The config by the name that is left when all links are followed: another way to the same file
 * finds the same record. */
static char *
real_path(const struct setup *setup)
{
    const char *slash = strrchr(setup->path, '/');
    AUTO_FREE char *real = realpath(setup->path, NULL), *dir = NULL, *real_dir = NULL;

    if (real)
        return take_ptr(real);
    dir = strndup(setup->path, (size_t)(slash - setup->path)); /* it may not exist yet */
    real_dir = dir ? realpath(dir, NULL) : NULL;
    return real_dir ? paths_join(real_dir, slash + 1) : strdup(setup->path);
}

static char *
record_path(struct setup *setup, const char *config, bool make)
{
    char name[64];

    (void)snprintf(name, sizeof name, "%016llx.json", (unsigned long long)text_hash(config, 0));
    return record_state_file(setup, name, make);
}

/* Tries again until then: flock itself cannot be waited for with a limit. */
void
record_lock(struct setup *setup)
{
    AUTO_FREE char *path = setup->dry_run ? NULL : record_state_file(setup, "lock", true);
    AUTO_CLOSE int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    int64_t until_ns = setup->host->now_ns(setup->host) + LOCK_LIMIT_NS;

    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int64_t now_ns = setup->host->now_ns(setup->host);

        if (errno != EWOULDBLOCK || now_ns >= until_ns ||
            setup->host->wait(setup->call, KCAP_SEQ_NONE, NULL, 0, now_ns + LOCK_RETRY_NS) !=
                KCAP_WAIT_TIMEOUT)
            break; /* the comparison before the rename still guards the file */
    }
    setup->lock_fd = take_fd(&fd);
}

static void
forget(struct record *record, size_t i)
{
    free(record->changes[i].put);
    free(record->changes[i].was);
    record->n--;
    memmove(&record->changes[i], &record->changes[i + 1],
            (record->n - i) * sizeof record->changes[0]);
}

int
record_add(struct record *record, enum edit_kind kind, const char *put, const char *was)
{
    struct change change = {.kind = kind, .put = strdup(put), .was = strdup(was)};

    for (size_t i = record->n; i > 0; i--) {
        if (record->changes[i - 1].kind == kind)
            forget(record, i - 1);
    }
    if (record->n == RECORD_MAX_CHANGES || !change.put || !change.was) {
        free(change.put);
        free(change.was);
        return -1;
    }
    record->changes[record->n++] = change;
    return 0;
}

void
record_fini(struct record *record)
{
    for (size_t i = 0; i < record->n; i++) {
        free(record->changes[i].put);
        free(record->changes[i].was);
    }
    *record = (struct record){.n = 0};
}

static int
read_change(const cJSON *json, struct record *to)
{
    const char *kind = json_str(json, "kind"), *put = json_str(json, "put"),
               *was = json_str(json, "was");

    for (size_t i = 0; kind && put && was && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i], kind) == 0)
            return record_add(to, (enum edit_kind)i, put, was);
    }
    return -1;
}

/* The changes of one run are made at once, so the last one tells. */
static void
drop_unmade(const struct setup *setup, struct record *record)
{
    const struct change *last = record->n > 0 ? &record->changes[record->n - 1] : NULL;
    struct edit undo = {.text = BUF_INIT(SETUP_MAX_TEXT)};
    bool made = record->pending == 0 || !last || record->pending > record->n ||
                edit_undo(buf_str(&setup->old), setup->old.len, setup->root, last->kind,
                          last->put, last->was, &undo);

    for (; !made && record->pending > 0; record->pending--)
        forget(record, record->n - 1);
    record->pending = 0;
    buf_fini(&undo.text);
}

void
record_read(struct setup *setup, struct record *ret)
{
    AUTO_FREE char *config = real_path(setup), *path = NULL;
    AUTO_BUF struct buf text = BUF_INIT(MAX_RECORD);
    AUTO_JSON cJSON *json = NULL;
    const char *recorded;
    const cJSON *change;
    int64_t pending = 0;

    *ret = (struct record){.n = 0};
    path = config ? record_path(setup, config, false) : NULL;
    if (!path || atomic_read(path, &text) < 0)
        return;
    json = json_parse(buf_str(&text), text.len, NULL);
    recorded = json_str(json, "config");
    if (!recorded || strcmp(recorded, config) != 0)
        return; /* the name is a hash */
    ret->made = json_bool(json, "made", false);
    (void)json_int(json, "pending", &pending);
    cJSON_ArrayForEach(change, json_get(json, "changes"))
    {
        if (read_change(change, ret) < 0) {
            record_fini(ret);
            return;
        }
    }
    ret->pending = pending > 0 ? (size_t)pending : 0;
    drop_unmade(setup, ret);
}

static void
add_text(struct buf *to, const char *before, const char *text)
{
    buf_adds(to, before);
    text_add_json(to, text, strlen(text));
}

int
record_write(struct setup *setup, const struct record *record)
{
    AUTO_FREE char *config = real_path(setup), *path = NULL;
    AUTO_BUF struct buf text = BUF_INIT(MAX_RECORD);

    path = config ? record_path(setup, config, true) : NULL;
    if (!path)
        return -1;
    add_text(&text, "{\"config\":", config);
    buf_addf(&text, ",\"made\":%s,\"pending\":%zu,\"changes\":[",
             record->made ? "true" : "false", record->pending);
    for (size_t i = 0; i < record->n; i++) {
        add_text(&text, i ? ",{\"kind\":" : "{\"kind\":", kinds[record->changes[i].kind]);
        add_text(&text, ",\"put\":", record->changes[i].put);
        add_text(&text, ",\"was\":", record->changes[i].was);
        buf_addc(&text, '}');
    }
    buf_adds(&text, "]}\n");
    return buf_ok(&text) ? atomic_write(path, buf_str(&text), text.len, 0600) : -1;
}

void
record_remove(struct setup *setup)
{
    AUTO_FREE char *config = real_path(setup), *path = NULL;

    path = config ? record_path(setup, config, false) : NULL;
    if (path)
        (void)unlink(path);
}
