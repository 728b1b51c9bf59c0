/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "origin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "args.h"
#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/json.h"
#include "lib/paths.h"
#include "services/http/repository.h"

#define ID_LEN       32
#define MAX_FILE_LEN 4096

/* ---- this machine ---- */

static char *
config_dir(const struct kcap_host *host)
{
    return paths_config_dir(host->env(host, "KCAP_CONFIG_DIR"), host->env(host, "HOME"));
}

static char *
read_id(const char *path)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_FILE_LEN);
    AUTO_JSON cJSON *json = NULL;
    const char *id;

    if (atomic_read(path, &text) < 0)
        return NULL;
    json = json_parse(buf_str(&text), text.len, NULL);
    id = json_str(json, "id");
    if (!id || strlen(id) != ID_LEN || strspn(id, "0123456789abcdef") != ID_LEN)
        return NULL;
    return strdup(id);
}

/* Complete before it has its name, and never in the place of another. Returns 0 or -errno. */
static int
make_id(const char *dir, const char *path)
{
    unsigned char bytes[ID_LEN / 2];
    char id[ID_LEN + 1], name[ID_LEN + 32], text[ID_LEN + 32];
    AUTO_FREE char *draft = NULL;
    int r, n;

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return -errno;
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(id + 2 * i, 3, "%02x", bytes[i]);
    (void)snprintf(name, sizeof name, ".machine.json.%s", id);
    n = snprintf(text, sizeof text, "{\"id\": \"%s\"}\n", id);
    draft = paths_join(dir, name);
    if (!draft)
        return -ENOMEM;
    r = paths_make_dir(dir);
    if (r == 0)
        r = atomic_write(draft, text, (size_t)n, 0600);
    if (r < 0)
        return r;
    r = link(draft, path) < 0 ? -errno : 0;
    (void)unlink(draft);
    return r;
}

void
origin_add_machine(struct buf *to, const struct kcap_host *host)
{
    AUTO_FREE char *dir = config_dir(host);
    AUTO_FREE char *path = dir ? paths_join(dir, "machine.json") : NULL;
    AUTO_FREE char *id = path ? read_id(path) : NULL;
    int r = 0;

    if (path && !id) {
        r = make_id(dir, path);
        id = read_id(path); /* ours, or that of who was faster */
    }
    if (path && !id)
        kcap_logf(host, KCAP_LOG_WARN, "flows: this machine has no id: %s: %s", path,
                  r < 0 && r != -EEXIST ? strerror(-r)
                                        : "not {\"id\": 32 hexadecimal digits}; remove it");
    args_add_member(to, "requester_machine_id", id);
}

char *
origin_machine(const struct kcap_host *host)
{
    AUTO_FREE char *dir = config_dir(host);
    AUTO_FREE char *path = dir ? paths_join(dir, "machine.json") : NULL;

    return path ? read_id(path) : NULL;
}

/* ---- the repository ---- */

int
origin_identity(const char *dir, char **ret)
{
    struct repository repository;
    int r = repository_find(dir, &repository);
    const char *owner = repository.origin ? strchr(repository.origin, '/') : NULL;
    const char *name = owner ? strrchr(owner, '/') : NULL;

    *ret = NULL;
    if (r == 0 && name && name > owner + 1 && name[1]) { /* host/owner/.../name */
        *ret = strdup(owner + 1);
        if (!*ret)
            r = KCAP_E_NOMEM;
    }
    repository_fini(&repository);
    return r;
}

int
origin_add_repository(struct buf *to, const char *dir)
{
    AUTO_FREE char *identity = NULL;
    int r = origin_identity(dir, &identity);
    char *name = identity ? strrchr(identity, '/') : NULL;

    if (name) {
        *name = '\0';
        args_add_member(to, "repo_owner", identity);
        args_add_member(to, "repo_name", name + 1);
    }
    return r;
}
