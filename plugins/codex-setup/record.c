/* SPDX-License-Identifier: Apache-2.0 */
/* A note of what we inserted into each config, in the state directory: not in the config, where
 * Codex and its users would trip over it. */
#include "config.h"

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

/* DIR/NAME in the state directory; NULL when there is none. */
static char *
state_file(struct setup *setup, const char *name)
{
    const struct kcap_host *host = setup->host;
    AUTO_FREE char *state = NULL, *dir = NULL;

    if (paths_state_dir(host->env(host, "KCAP_STATE_DIR"), host->env(host, "HOME"), &state) < 0)
        return NULL;
    dir = paths_join(state, "codex-setup");
    if (!dir || paths_make_dir(dir) < 0)
        return NULL;
    return paths_join(dir, name);
}

static char *
record_path(struct setup *setup)
{
    char name[64];

    (void)snprintf(name, sizeof name, "%016llx.json",
                   (unsigned long long)text_hash(setup->path, 0));
    return state_file(setup, name);
}

/* Tries again until then: flock itself cannot be waited for with a limit. */
void
record_lock(struct setup *setup)
{
    AUTO_FREE char *path = state_file(setup, "lock");
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

void
record_read(struct setup *setup, struct record *ret)
{
    AUTO_FREE char *path = record_path(setup);
    AUTO_BUF struct buf text = BUF_INIT(MAX_RECORD);
    AUTO_JSON cJSON *json = NULL;
    const char *config, *inserted;

    *ret = (struct record){.inserted = NULL};
    if (!path || atomic_read(path, &text) < 0)
        return;
    json = json_parse(buf_str(&text), text.len, NULL);
    config = json_str(json, "config");
    inserted = json_str(json, "inserted");
    if (!config || !inserted || strcmp(config, setup->path) != 0)
        return;
    ret->inserted = strdup(inserted);
    ret->whole = json_bool(json, "whole", false);
    ret->made = json_bool(json, "made", false);
}

int
record_write(struct setup *setup, const struct buf *inserted, bool whole, bool made)
{
    AUTO_FREE char *path = record_path(setup);
    AUTO_BUF struct buf text = BUF_INIT(MAX_RECORD);

    buf_adds(&text, "{\"config\":");
    text_add_json(&text, setup->path, strlen(setup->path));
    buf_adds(&text, ",\"inserted\":");
    text_add_json(&text, buf_str(inserted), inserted->len);
    buf_addf(&text, ",\"whole\":%s,\"made\":%s}\n", whole ? "true" : "false",
             made ? "true" : "false");
    return path && buf_ok(&text) ? atomic_write(path, buf_str(&text), text.len, 0600) : -1;
}

void
record_remove(struct setup *setup)
{
    AUTO_FREE char *path = record_path(setup);

    if (path)
        (void)unlink(path);
}
