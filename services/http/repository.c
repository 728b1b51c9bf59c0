/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "repository.h"

#include <kcap/plugin.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/buf.h"
#include "lib/paths.h"

#define MAX_CONFIG_LEN ((size_t)1 << 20)
#define MAX_LINK_LEN   8192

/* ---- where it is ---- */

static char *
find_root(const char *dir)
{
    AUTO_FREE char *at = strdup(dir);

    while (at && at[0] == '/') {
        AUTO_FREE char *git = paths_join(at, ".git");
        char *slash = strrchr(at, '/');
        if (!git)
            return NULL;
        if (access(git, F_OK) == 0)
            return take_ptr(at);
        if (slash == at)
            break;
        *slash = '\0';
    }
    return strdup(dir);
}

/* A one-line file that names a directory, relative to where the file is. */
static char *
follow(const char *base, const char *file, const char *prefix)
{
    AUTO_FREE char *path = paths_join(base, file);
    AUTO_BUF struct buf text = BUF_INIT(MAX_LINK_LEN);
    const char *named;

    if (!path || atomic_read(path, &text) < 0 || text.len == 0 ||
        strncmp(text.data, prefix, strlen(prefix)) != 0)
        return NULL;
    text.data[strcspn(text.data, "\r\n")] = '\0';
    named = text.data + strlen(prefix);
    return named[0] == '/' ? strdup(named) : paths_join(base, named);
}

/* The configuration is in .git, or, for a worktree, in the repository it belongs to. */
static char *
config_path(const char *root)
{
    AUTO_FREE char *git = paths_join(root, ".git");
    AUTO_FREE char *linked = follow(root, ".git", "gitdir: ");
    AUTO_FREE char *common = linked ? follow(linked, "commondir", "") : NULL;
    const char *dir = common ? common : linked ? linked : git;

    return dir ? paths_join(dir, "config") : NULL;
}

/* ---- remotes ---- */

static char *
name_of(const char *host, size_t host_len, const char *path)
{
    AUTO_BUF struct buf name = BUF_INIT(MAX_LINK_LEN);
    size_t len;

    path += strspn(path, "/");
    for (len = strlen(path); len > 0 && path[len - 1] == '/';)
        len--;
    if (len > 4 && strncasecmp(path + len - 4, ".git", 4) == 0)
        len -= 4;
    if (host_len == 0 || len == 0)
        return NULL;
    buf_add(&name, host, host_len);
    buf_addc(&name, '/');
    buf_add(&name, path, len);
    return buf_take(&name, NULL);
}

char *
repository_normalise(const char *url)
{
    const char *scheme = strstr(url, "://"), *host = scheme ? scheme + 3 : url;
    const char *slash = strchr(host, '/'), *colon, *at;
    size_t end;

    if (!scheme) { /* git@host:owner/repo; a path has no colon before its first slash */
        colon = strchr(url, ':');
        if (!colon || (slash && slash < colon))
            return NULL;
        at = memrchr(url, '@', (size_t)(colon - url));
        host = at ? at + 1 : url;
        return name_of(host, (size_t)(colon - host), colon + 1);
    }
    if (!slash || strncasecmp(url, "file:", 5) == 0)
        return NULL;
    at = memrchr(host, '@', (size_t)(slash - host));
    if (at)
        host = at + 1;
    end = (size_t)(slash - host);
    colon = memrchr(host, ':', end);
    if (colon && host[0] != '[')
        end = (size_t)(colon - host);
    return name_of(host, end, slash);
}

static void
add_remote(struct repository *to, const char *url)
{
    char *name = to->n_remotes < REPOSITORY_MAX_REMOTES ? repository_normalise(url) : NULL;

    if (name)
        to->remotes[to->n_remotes++] = name;
}

/* The value of "url = VALUE", unquoted in place; NULL when the line is another. */
static char *
url_value(char *line)
{
    char *to, *value;
    bool quoted = false;

    line += strspn(line, " \t");
    if (strncasecmp(line, "url", 3) != 0)
        return NULL;
    line += 3 + strspn(line + 3, " \t");
    if (*line != '=')
        return NULL;
    value = to = line + 1 + strspn(line + 1, " \t");
    for (const char *p = value; *p && (quoted || (*p != '#' && *p != ';')); p++) {
        if (*p == '"')
            quoted = !quoted;
        else
            *to++ = *p == '\\' && p[1] ? *++p : *p;
    }
    while (to > value && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r'))
        to--;
    *to = '\0';
    return value;
}

static void
read_remotes(struct repository *to, char *text)
{
    bool in_remote = false, in_origin = false;
    char *next;

    for (char *line = text; line; line = next) {
        char *url;
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (line[strspn(line, " \t")] == '[') {
            in_remote = strncasecmp(line + strspn(line, " \t"), "[remote \"", 9) == 0;
            in_origin =
                in_remote && strncmp(line + strspn(line, " \t") + 9, "origin\"]", 8) == 0;
        } else if (in_remote && (url = url_value(line)) != NULL) {
            add_remote(to, url);
            if (in_origin && !to->origin)
                to->origin = repository_normalise(url);
        }
    }
}

int
repository_find(const char *dir, struct repository *ret)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_CONFIG_LEN);
    AUTO_FREE char *path = NULL;

    *ret = (struct repository){.root = find_root(dir)};
    if (!ret->root)
        return KCAP_E_NOMEM;
    path = config_path(ret->root);
    if (path && atomic_read(path, &text) == 0 && text.data)
        read_remotes(ret, text.data);
    return 0;
}

void
repository_fini(struct repository *repository)
{
    free(repository->root);
    free(repository->origin);
    for (size_t i = 0; i < repository->n_remotes; i++)
        free(repository->remotes[i]);
    *repository = (struct repository){.root = NULL};
}
