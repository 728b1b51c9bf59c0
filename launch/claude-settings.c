/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "launch/claude-settings.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <unistd.h>

#include "launch/environment.h"
#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/json.h"
#include "lib/paths.h"

#define MANAGED_DIR  "/etc/claude-code"
#define MAX_SETTINGS ((size_t)4 << 20)

static const char *const tools[] = {"mcp__" RESULT_SERVER "__" RESULT_TOOL,
                                    "mcp__" RESULT_SERVER "__" MESSAGE_TOOL};

/* ---- lists of servers ---- */

/* Whether an entry of a list is our command line. */
static bool
is_our_command(const struct compose *compose, const cJSON *entry)
{
    const char *const ours[] = {compose->host_program, "--plugin", "flow-result"};
    const cJSON *command = json_get(entry, "serverCommand"),
                *word = command ? command->child : NULL;

    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++, word = word->next) {
        if (!word || !cJSON_IsString(word) || strcmp(word->valuestring, ours[i]) != 0)
            return false;
    }
    return !word;
}

static bool
lists_ours(const struct compose *compose, const cJSON *list)
{
    const cJSON *entry;

    cJSON_ArrayForEach(entry, list)
    {
        const char *name = json_str(entry, "serverName");

        if ((name && strcmp(name, compose->server) == 0) || is_our_command(compose, entry))
            return true;
    }
    return false;
}

/* Once a list of what is allowed names one command, a local server has to be allowed by its
 * command; its name no longer counts. */
static bool
allows_ours(const struct compose *compose, const cJSON *list)
{
    bool names_commands = false;
    const cJSON *entry;

    cJSON_ArrayForEach(entry, list)
    {
        if (is_our_command(compose, entry))
            return true;
        names_commands = names_commands || json_get(entry, "serverCommand");
    }
    return !names_commands && lists_ours(compose, list);
}

/* ---- permission rules ---- */

/* A rule names a server, a tool, or several by *; what may stand in brackets behind it narrows
 * it to some uses, and one refused use is one too many. */
static bool
rule_hits(const char *rule, const char *tool)
{
    AUTO_FREE char *name = strndup(rule, strcspn(rule, "("));

    return !name || strcmp(name, "mcp__" RESULT_SERVER) == 0 || fnmatch(name, tool, 0) == 0;
}

static bool
rules_hit(const cJSON *rules, const char *tool)
{
    const cJSON *rule;

    cJSON_ArrayForEach(rule, rules)
    {
        if (cJSON_IsString(rule) && rule_hits(rule->valuestring, tool))
            return true;
    }
    return false;
}

static void
check_permissions(struct compose *compose, const char *path, const cJSON *settings)
{
    static const char *const kinds[] = {"deny", "ask"};
    const cJSON *permissions = json_get(settings, "permissions");

    for (size_t t = 0; t < sizeof tools / sizeof tools[0]; t++) {
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            if (rules_hit(json_get(permissions, kinds[k]), tools[t]))
                compose_refuse(compose, "%s: permissions.%s has a rule for %s", path, kinds[k],
                               tools[t]);
        }
    }
}

/* ---- files ---- */

/* The variables that settings give to Claude Code reach its servers as well. */
static void
check_env(struct compose *compose, const char *path, const cJSON *settings)
{
    const cJSON *variable;

    cJSON_ArrayForEach(variable, json_get(settings, "env"))
    {
        if (strncmp(variable->string, "KCAP_", 5) == 0)
            compose_refuse(compose, "%s: env sets %s, which would reach the result server",
                           path, variable->string);
    }
}

static void
check_file(struct compose *compose, const char *path)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_SETTINGS);
    AUTO_JSON cJSON *settings = NULL;
    const cJSON *allowed;
    const char *error = NULL;
    int r = atomic_read(path, &text);

    if (r == -ENOENT || r == -ENOTDIR)
        return;
    settings = r == 0 ? json_parse(buf_str(&text), text.len, &error) : NULL;
    if (!cJSON_IsObject(settings)) {
        compose_refuse(compose, "%s: it cannot be read as settings (%s)", path,
                       r < 0   ? strerror(-r)
                       : error ? error
                               : "no object");
        return;
    }
    if (lists_ours(compose, json_get(settings, "deniedMcpServers")))
        compose_refuse(compose, "%s: deniedMcpServers names the result server", path);
    allowed = json_get(settings, "allowedMcpServers");
    if (allowed && !allows_ours(compose, allowed))
        compose_refuse(compose,
                       "%s: allowedMcpServers lacks the result server; add {\"serverName\": "
                       "\"%s\"}, or its command where commands are listed",
                       path, compose->server);
    check_permissions(compose, path, settings);
    check_env(compose, path, settings);
}

static void
check_managed(struct compose *compose)
{
    DIR *parts = opendir(MANAGED_DIR "/managed-settings.d");
    struct dirent *entry;

    if (access(MANAGED_DIR "/managed-mcp.json", F_OK) == 0)
        compose_refuse(compose, MANAGED_DIR "/managed-mcp.json: with it Claude Code takes no "
                                            "other configuration of servers");
    check_file(compose, MANAGED_DIR "/managed-settings.json");
    while (parts && (entry = readdir(parts))) {
        AUTO_FREE char *path = NULL;
        const char *dot = strrchr(entry->d_name, '.');

        if (!dot || strcmp(dot, ".json") != 0 || entry->d_name[0] == '.')
            continue;
        path = paths_join(MANAGED_DIR "/managed-settings.d", entry->d_name);
        if (path)
            check_file(compose, path);
        else
            compose->reasons.failed = true;
    }
    if (parts)
        (void)closedir(parts);
}

void
compose_check_claude_settings(struct compose *compose)
{
    const char *const *env = words_list(&compose->env);
    const char *home = environment_get(env, "HOME"),
               *config = environment_get(env, "CLAUDE_CONFIG_DIR");
    AUTO_FREE char *dir = NULL, *path = NULL;

    check_managed(compose);
    if (config && config[0])
        dir = strdup(config);
    else if (home && home[0])
        dir = paths_join(home, ".claude");
    path = dir ? paths_join(dir, "settings.json") : NULL;
    if (path)
        check_file(compose, path);
    else
        compose_refuse(compose, "HOME: it is not set, so the user's settings have no place");
}
