/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/env.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/auto.h"

extern char **environ;

static const char *const allowed[] = {
    "HOME", "PATH", "LANG", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL", "KCAP_STATE_DIR"};

static bool
is_allowed(const char *entry)
{
    size_t len = strcspn(entry, "=");

    if (entry[len] != '=')
        return false;
    if (strncmp(entry, "LC_", 3) == 0)
        return true;
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        if (strlen(allowed[i]) == len && strncmp(allowed[i], entry, len) == 0)
            return true;
    }
    return false;
}

void
env_free(char **env)
{
    for (char **entry = env; entry && *entry; entry++)
        free(*entry);
    free(env);
}

/* The allowed part of the environment with room for more entries. */
static char **
copy_allowed(size_t more, size_t *ret_count)
{
    size_t count = 0, all = 0;
    char **env;

    while (environ && environ[all])
        all++;
    env = calloc(all + more + 1, sizeof *env);
    for (size_t i = 0; env && i < all; i++) {
        if (!is_allowed(environ[i]))
            continue;
        env[count] = strdup(environ[i]);
        if (!env[count]) {
            env_free(env);
            return NULL;
        }
        count++;
    }
    *ret_count = count;
    return env;
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

static char *
entry_new(const char *name, const char *value)
{
    size_t len = strlen(name) + 1 + strlen(value) + 1;
    char *entry = malloc(len);

    if (entry)
        (void)snprintf(entry, len, "%s=%s", name, value);
    return entry;
}

char **
env_for_reviewer(const char *server_url, const char *agent_id)
{
    size_t count;
    char **env = copy_allowed(3, &count);

    if (!env)
        return NULL;
    env[count] = entry_new("KCAP_URL", server_url);
    env[count + 1] = env[count] ? entry_new("KCAP_FLOW_AGENT_ID", agent_id) : NULL;
    env[count + 2] = env[count + 1] ? entry_new("KCAP_REVIEWER", "1") : NULL;
    if (!env[count + 2]) {
        env_free(env);
        return NULL;
    }
    return env;
}
