/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claude Code. Its strict flag holds: of all servers only those of --mcp-config are started,
 * also for its subagents. There is no way to ask it beforehand, so what could still take ours
 * away is looked for in its settings, and the caller looks at system/init.
 *
 * Of the settings only the user's are loaded: those of an unknown repository could run its
 * hooks. The tools are a closed list; Agent and Workflow, which start further agents, are
 * denied besides.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "launch/claude-settings.h"
#include "launch/internal.h"
#include "lib/auto.h"
#include "lib/json.h"

void
compose_claude_begin(struct compose *compose)
{
    /* strict leaves no entry to be mixed up with, and a user's rule may name it */
    (void)snprintf(compose->server, sizeof compose->server, "%s", RESULT_SERVER);
    compose_check_claude_settings(compose);
    compose->stage = STAGE_SELFTEST;
}

/* The value of --mcp-config; NULL when out of memory. */
static char *
server_config(const struct compose *compose)
{
    AUTO_JSON cJSON *root = cJSON_CreateObject();
    cJSON *servers = cJSON_AddObjectToObject(root, "mcpServers"),
          *server = cJSON_AddObjectToObject(servers, compose->server), *args, *env;
    bool good = json_add_str(server, "type", "stdio") &&
                json_add_str(server, "command", compose->host_program);

    args = cJSON_AddArrayToObject(server, "args");
    env = cJSON_AddObjectToObject(server, "env");
    good = good && env && cJSON_AddItemToArray(args, cJSON_CreateString("--plugin")) &&
           cJSON_AddItemToArray(args, cJSON_CreateString("flow-result"));
    for (const char *const *each = words_list(&compose->server_env); good && *each; each++) {
        size_t len = strcspn(*each, "=");
        AUTO_FREE char *name = strndup(*each, len);

        good = name && json_add_str(env, name, *each + len + 1);
    }
    return good ? json_print(root) : NULL;
}

void
compose_claude_add_plan(struct compose *compose)
{
    static const char *const isolation[] = {
        "--setting-sources",
        "user",
        "--tools",
        "Bash,Glob,Grep,Read",
        "--disallowedTools",
        "Agent,Workflow",
        "--allowedTools",
        "mcp__" RESULT_SERVER "__" RESULT_TOOL ",mcp__" RESULT_SERVER "__" MESSAGE_TOOL,
        "--permission-mode",
        "dontAsk",
        NULL,
    };
    static const char *const print[] = {"-p", "--output-format", "stream-json", "--verbose",
                                        NULL};
    AUTO_FREE char *config = server_config(compose);
    AUTO_BUF struct buf model = BUF_INIT(MAX_MODEL + 16);

    if (!config)
        compose->argv.failed = true;
    words_add(&compose->argv, compose->program);
    if (compose->mode != COMPOSE_TUI)
        words_add_all(&compose->argv, print);
    if (compose->mode == COMPOSE_APP_SERVER) {
        words_add(&compose->argv, "--input-format");
        words_add(&compose->argv, "stream-json");
        words_add(&compose->argv,
                  "--include-partial-messages"); /* a long answer is no silence */
    }
    words_add(&compose->argv, "--strict-mcp-config");
    words_add(&compose->argv, "--mcp-config");
    words_add(&compose->argv, config ? config : "");
    words_add_all(&compose->argv, isolation);
    if (compose->model) {
        buf_addf(&model, "--model=%s", compose->model);
        words_add_buf(&compose->argv, &model);
    }
    if (compose->prompt) {
        words_add(&compose->argv, "--");
        words_add(&compose->argv, compose->prompt);
    }
}
