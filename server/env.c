/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/text.h"

#define MAX_ENTRIES 256
#define MAX_FILE    ((size_t)64 << 10)

extern char **environ;

/* KCAP_CONFIG_DIR is for ourselves: a reviewer finds no login there. */
static const char *const allowed[] = {"HOME",           "PATH",           "LANG",    "TZ",
                                      "TMPDIR",         "USER",           "LOGNAME", "SHELL",
                                      "KCAP_STATE_DIR", "KCAP_CONFIG_DIR"};
static const char *const not_for_reviewers[] = {"KCAP_CONFIG_DIR"};

static bool
is_named(const char *entry, size_t len, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) == len && strncmp(names[i], entry, len) == 0)
            return true;
    }
    return false;
}

static bool
is_allowed(const char *entry)
{
    size_t len = strcspn(entry, "=");

    return entry[len] == '=' &&
           (strncmp(entry, "LC_", 3) == 0 ||
            is_named(entry, len, allowed, sizeof allowed / sizeof *allowed));
}

void
env_scrub(void)
{
    size_t kept = 0;

    for (size_t i = 0; environ && environ[i]; i++) {
        if (is_allowed(environ[i]))
            environ[kept++] = environ[i];
        else
            explicit_bzero(environ[i], strlen(environ[i]));
    }
    if (environ)
        environ[kept] = NULL;
}

void
env_free(char **env)
{
    for (char **entry = env; entry && *entry; entry++) {
        explicit_bzero(*entry, strlen(*entry));
        free(*entry);
    }
    free(env);
}

/* ---- building one ---- */

struct builder {
    char **env;
    size_t count;
    struct buf *names;
    bool failed;
};

/* A name that is there already keeps its place and gets the new value. */
static void
add_entry(struct builder *to, const char *entry, size_t len)
{
    size_t name_len = strcspn(entry, "=");
    char *copy = strndup(entry, len);
    size_t at = 0;

    while (at < to->count &&
           (strncmp(to->env[at], entry, name_len) != 0 || to->env[at][name_len] != '='))
        at++;
    if (!copy || at == MAX_ENTRIES) {
        free(copy);
        to->failed = true;
        return;
    }
    if (at == to->count) {
        buf_addf(to->names, "%s%.*s", to->count > 0 ? ", " : "", (int)name_len, entry);
        to->count++;
    } else {
        free(to->env[at]);
    }
    to->env[at] = copy;
}

static void
add_value(struct builder *to, const char *name, const char *value)
{
    AUTO_FREE char *entry = NULL;

    if (asprintf(&entry, "%s=%s", name, value) < 0) {
        entry = NULL;
        to->failed = true;
        return;
    }
    add_entry(to, entry, strlen(entry));
}

/* "X_*" stands for all that begin with X_. */
static bool
fits(const char *pattern, const char *name, size_t len)
{
    size_t pattern_len = strlen(pattern);

    if (pattern_len > 0 && pattern[pattern_len - 1] == '*')
        return len >= pattern_len - 1 && strncmp(pattern, name, pattern_len - 1) == 0;
    return pattern_len == len && strncmp(pattern, name, len) == 0;
}

static bool
is_wished(const struct env_wish *wish, const char *name, size_t len)
{
    const cJSON *item;

    for (const char *const *pattern = wish->vendor_names; pattern && *pattern; pattern++) {
        if (fits(*pattern, name, len))
            return true;
    }
    cJSON_ArrayForEach(item, wish->more_names)
    {
        if (cJSON_IsString(item) && fits(item->valuestring, name, len))
            return true;
    }
    return false;
}

/* ---- flowd.env ---- */

static bool
is_name(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
              (c >= '0' && c <= '9' && i > 0)))
            return false;
    }
    return len > 0;
}

static int
read_private(const char *path, struct buf *text, struct buf *error)
{
    struct stat st;
    int r;

    if (stat(path, &st) < 0)
        return -errno;
    if (st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
        buf_addf(error, "%s holds secrets and must be yours alone: chmod 600 %s", path, path);
        return -EPERM;
    }
    r = atomic_read(path, text);
    if (r < 0)
        buf_addf(error, "%s cannot be read: %s", path, strerror(-r));
    return r;
}

static int
add_line(struct builder *to, const struct env_wish *wish, const char *line, size_t len,
         int number, struct buf *error)
{
    const char *equals = memchr(line, '=', len);
    size_t name_len = equals ? (size_t)(equals - line) : 0;

    if (len == 0 || line[0] == '#')
        return 0;
    if (!is_name(line, name_len) || memchr(line, '\0', len)) {
        buf_addf(error, "%s: line %d is not NAME=VALUE", wish->env_path, number);
        return -EINVAL;
    }
    if (strncmp(line, "KCAP_", 5) == 0) {
        buf_addf(error, "%s: line %d: names that begin with KCAP_ are not to be set there",
                 wish->env_path, number);
        return -EINVAL;
    }
    if (is_wished(wish, line, name_len))
        add_entry(to, line, len);
    return 0;
}

static int
add_file(struct builder *to, const struct env_wish *wish, struct buf *error)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_FILE);
    int r = read_private(wish->env_path, &text, error), number = 1;

    for (size_t at = 0; at < text.len && r == 0; number++) {
        const char *line = text.data + at;
        const char *end = memchr(line, '\n', text.len - at);
        size_t len = end ? (size_t)(end - line) : text.len - at;
        r = add_line(to, wish, line, len > 0 && line[len - 1] == '\r' ? len - 1 : len, number,
                     error);
        at += len + 1;
    }
    if (text.data)
        explicit_bzero(text.data, text.len);
    return r == -ENOENT || r == -ENOTDIR ? 0 : r;
}

int
env_for_reviewer(const struct env_wish *wish, char ***ret, struct buf *names, struct buf *error)
{
    struct builder to = {.names = names, .env = calloc(MAX_ENTRIES + 1, sizeof *to.env)};
    int r = to.env ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && environ && environ[i]; i++) {
        if (is_allowed(environ[i]) &&
            !is_named(environ[i], strcspn(environ[i], "="), not_for_reviewers,
                      sizeof not_for_reviewers / sizeof *not_for_reviewers))
            add_entry(&to, environ[i], strlen(environ[i]));
    }
    if (r == 0)
        r = add_file(&to, wish, error);
    for (char *const *entry = wish->more; r == 0 && entry && *entry; entry++)
        add_entry(&to, *entry, strlen(*entry));
    if (r == 0)
        add_value(&to, "KCAP_URL", wish->url);
    if (r == 0 && wish->agent_id)
        add_value(&to, "KCAP_FLOW_AGENT_ID", wish->agent_id);
    if (r == 0)
        add_value(&to, "KCAP_REVIEWER", wish->mark);
    if (r == 0 && (to.failed || !buf_ok(names)))
        r = -ENOMEM;
    if (r < 0)
        env_free(to.env);
    else
        *ret = to.env;
    return r;
}
