/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codex. No override empties its table of servers: "-c mcp_servers={}" is merged over the
 * user's files and removes nothing. So they are asked for by the real program, disabled by
 * name, ours is added under a name that no file can know (an entry of our name in some file
 * would be merged under ours, with its env and its filters), and the real program is asked
 * again, with the very flags of the launch, what is left.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "launch/internal.h"
#include "lib/auto.h"
#include "lib/json.h"
#include "lib/paths.h"
#include "lib/text.h"

#define MAX_FLAG 120000 /* the kernel takes 128 KiB in one argument */

static const char *const server_args[] = {"--plugin", "flow-result", NULL};

/* ---- flags ---- */

static void
add_override(struct compose *compose, const struct buf *override)
{
    words_add(&compose->flags, "-c");
    words_add_buf(&compose->flags, override);
}

/* Whether a repository's own config lies between its top and the reviewer's directory. */
static bool
has_own_config(const struct compose *compose)
{
    AUTO_FREE char *dir = strdup(compose->dir);
    size_t top_len = strlen(compose->top);

    while (dir && strlen(dir) >= top_len) {
        AUTO_FREE char *config = paths_join(dir, ".codex/config.toml");
        char *slash = strrchr(dir, '/');

        if (!config || access(config, F_OK) == 0)
            return true;
        if (!slash)
            break;
        *slash = '\0';
    }
    return !dir;
}

/*
 * A repository that the user trusts brings servers of its own, started outside the sandbox, and
 * so does a worktree of it; and a thread that may write makes Codex trust the repository by
 * itself, in the user's file. An override settles all three. The screen does not start
 * unattended in an untrusted one, so there it is trusted, and has to have nothing to bring.
 */
static void
add_trust(struct compose *compose)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_FLAG);
    const char *level = compose->mode == COMPOSE_TUI ? "trusted" : "untrusted";

    if (compose->mode == COMPOSE_TUI && has_own_config(compose))
        compose_refuse(compose,
                       "the repository's .codex/config.toml: on its screen Codex would trust "
                       "it; remove it, or use the mode exec or app-server");
    buf_adds(&text, "projects={");
    text_add_toml(&text, compose->top);
    buf_addf(&text, "={trust_level=\"%s\"}", level);
    if (strcmp(compose->top, compose->dir) != 0) {
        buf_addc(&text, ',');
        text_add_toml(&text, compose->dir);
        buf_addf(&text, "={trust_level=\"%s\"}", level);
    }
    buf_addc(&text, '}');
    add_override(compose, &text);
}

static void
name_server(struct compose *compose)
{
    unsigned char bytes[16];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        compose_refuse(compose, "the system gives no random bytes");
        return;
    }
    (void)snprintf(compose->server, sizeof compose->server, "%s-", RESULT_SERVER);
    for (size_t i = 0; i < sizeof bytes; i++) {
        size_t len = strlen(compose->server);
        (void)snprintf(compose->server + len, sizeof compose->server - len, "%02x", bytes[i]);
    }
}

void
compose_codex_begin(struct compose *compose)
{
    static const char *const fixed[] = {
        "--disable",
        "apps",
        "--disable",
        "plugins",
        /* sub-agents, and the servers that Codex itself brings; no names that each version has
           to know */
        "-c",
        "features.multi_agent=false",
        "-c",
        "features.tui_workspace=false",
        "-c",
        "features.browser_use=false",
        "-c",
        "features.computer_use=false",
        "-c",
        "approval_policy=\"never\"",
        "-c",
        "sandbox_mode=\"read-only\"",
        NULL,
    };

    name_server(compose);
    words_add_all(&compose->flags, fixed);
    add_trust(compose);
}

/* The screen brings a server of its own, which starts threads and is in no list. It gives way
 * to an entry of its name. */
static const char screen_server[] = "codex_tui";

/* One value for all of them: in the key of an override a name with a dot could not be written.
 * Without --disable plugins it would not do, as a plugin's server has no transport of its own
 * to be merged with. */
static void
disable_all(struct compose *compose, const cJSON *servers)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_FLAG);
    bool has_screen = compose->mode == COMPOSE_TUI;
    size_t n = 0;
    const cJSON *server;

    buf_adds(&text, "mcp_servers={");
    cJSON_ArrayForEach(server, servers)
    {
        const char *name = json_str(server, "name");

        buf_adds(&text, n++ > 0 ? "," : "");
        text_add_toml(&text, name);
        buf_adds(&text, "={enabled=false}");
        has_screen = has_screen && strcmp(name, screen_server) != 0;
    }
    if (has_screen)
        buf_addf(&text, "%s%s={enabled=false,command=\"/bin/false\"}", n++ > 0 ? "," : "",
                 screen_server);
    buf_addc(&text, '}');
    if (!buf_ok(&text))
        compose_refuse(compose, "codex mcp list: more servers than fit on a command line");
    else if (n > 0)
        add_override(compose, &text);
}

/* After the table that disables, which as a whole value would replace it. */
static void
add_server(struct compose *compose)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_FLAG);

    buf_addf(&text, "mcp_servers.%s={command=", compose->server);
    text_add_toml(&text, compose->host_program);
    buf_adds(&text, ",args=[");
    for (size_t i = 0; server_args[i]; i++) {
        buf_adds(&text, i ? "," : "");
        text_add_toml(&text, server_args[i]);
    }
    buf_adds(&text, "],env={");
    for (const char *const *each = words_list(&compose->server_env); *each; each++) {
        size_t name_len = strcspn(*each, "=");

        buf_addf(&text, "%s%.*s=", each == words_list(&compose->server_env) ? "" : ",",
                 (int)name_len, *each);
        text_add_toml(&text, *each + name_len + 1);
    }
    /* Without approval Codex refuses the call of an unattended agent; without required a turn
     * may begin before the server has started, or although it has failed. */
    buf_adds(&text, "},enabled=true,required=true,default_tools_approval_mode=\"approve\"}");
    add_override(compose, &text);
}

/* ---- what Codex says ---- */

static cJSON *
read_json(struct compose *compose, const char *what, const struct compose_answer *answer)
{
    const char *error = NULL;
    cJSON *json;

    if (!compose_check_step(compose, what, answer))
        return NULL;
    json = json_parse(answer->output, answer->output_len, &error);
    if (!json)
        compose_refuse(compose, "%s: its answer is not JSON (%s)", what, error ? error : "");
    return json;
}

/* The list, each entry with a name. */
static cJSON *
read_list(struct compose *compose, const struct compose_answer *answer)
{
    AUTO_JSON cJSON *list = read_json(compose, "codex mcp list", answer);
    const cJSON *server;

    if (!list)
        return NULL;
    if (!cJSON_IsArray(list)) {
        compose_refuse(compose, "codex mcp list: its answer is no list");
        return NULL;
    }
    cJSON_ArrayForEach(server, list)
    {
        if (!json_str(server, "name")) {
            compose_refuse(compose, "codex mcp list: a server without a name");
            return NULL;
        }
    }
    return take_ptr(list);
}

static bool
is_null(const cJSON *object, const char *name)
{
    const cJSON *member = json_get(object, name);

    return !member || cJSON_IsNull(member);
}

static bool
has_our_args(const cJSON *transport)
{
    const cJSON *args = json_get(transport, "args"), *arg = args ? args->child : NULL;

    for (size_t i = 0; server_args[i]; i++, arg = arg->next) {
        if (!arg || !cJSON_IsString(arg) || strcmp(arg->valuestring, server_args[i]) != 0)
            return false;
    }
    return cJSON_IsArray(args) && !arg;
}

static bool
has_our_env(const struct compose *compose, const cJSON *transport)
{
    const cJSON *env = json_get(transport, "env");

    if (!cJSON_IsObject(env) || (size_t)cJSON_GetArraySize(env) != compose->server_env.n)
        return false;
    for (const char *const *each = words_list(&compose->server_env); *each; each++) {
        size_t len = strcspn(*each, "=");
        AUTO_FREE char *name = strndup(*each, len);
        const char *value = name ? json_str(env, name) : NULL;

        if (!value || strcmp(value, *each + len + 1) != 0)
            return false;
    }
    return true;
}

/* Each fault of our own entry is a reason. */
static void
check_ours(struct compose *compose, const cJSON *server)
{
    const cJSON *transport = json_get(server, "transport"),
                *variables = json_get(transport, "env_vars");
    const char *type = json_str(transport, "type"), *command = json_str(transport, "command"),
               *why = json_str(server, "disabled_reason");

    if (!json_bool(server, "enabled", false))
        compose_refuse(compose, "our result server: Codex does not enable it%s%s",
                       why ? ": " : "", why ? why : "");
    if (!type || strcmp(type, "stdio") != 0 || !command ||
        strcmp(command, compose->host_program) != 0 || !has_our_args(transport))
        compose_refuse(compose, "our result server: something replaces its command");
    if (!has_our_env(compose, transport) || (variables && !cJSON_IsNull(variables) &&
                                             (!cJSON_IsArray(variables) || variables->child)))
        compose_refuse(compose, "our result server: something adds to its environment");
    if (!is_null(transport, "cwd"))
        compose_refuse(compose, "our result server: something moves it to another directory");
}

static void
check_list(struct compose *compose, const cJSON *list)
{
    const cJSON *server, *ours = NULL;

    cJSON_ArrayForEach(server, list)
    {
        const char *name = json_str(server, "name");
        const cJSON *enabled = json_get(server, "enabled");

        if (strcmp(name, compose->server) == 0)
            ours = server;
        else if (!cJSON_IsFalse(enabled))
            compose_refuse(compose,
                           "the server \"%s\": it stays enabled in spite of our overrides; "
                           "something outranks them, such as /etc/codex/managed_config.toml",
                           name);
    }
    if (ours)
        check_ours(compose, ours);
    else
        compose_refuse(compose, "our result server: Codex does not list it");
}

static void
check_filters(struct compose *compose, const cJSON *server)
{
    const char *name = json_str(server, "name");

    if (!name || strcmp(name, compose->server) != 0) {
        compose_refuse(compose, "codex mcp get: it answers for another server");
        return;
    }
    check_ours(compose, server);
    if (!is_null(server, "enabled_tools") || !is_null(server, "disabled_tools"))
        compose_refuse(compose, "our result server: something hides tools of it");
}

void
compose_codex_check(struct compose *compose, const struct compose_answer *answer)
{
    bool is_get = compose->stage == STAGE_GET;
    AUTO_JSON cJSON *json =
        is_get ? read_json(compose, "codex mcp get", answer) : read_list(compose, answer);

    if (!json)
        return;
    switch (compose->stage) {
    case STAGE_ENUMERATE:
        disable_all(compose, json);
        add_server(compose);
        compose->stage = STAGE_LIST;
        break;
    case STAGE_LIST:
        check_list(compose, json);
        compose->stage = STAGE_GET;
        break;
    case STAGE_GET:
        check_filters(compose, json);
        compose->stage = STAGE_SELFTEST;
        break;
    case STAGE_SELFTEST:
    case STAGE_READY:
        break;
    }
}

/* ---- argv ---- */

/* The flags always stand in front of the subcommand: what was verified is what is started. */
static void
add_program(struct compose *compose)
{
    words_add(&compose->argv, compose->program);
    words_add_all(&compose->argv, words_list(&compose->flags));
}

void
compose_codex_add_step(struct compose *compose)
{
    add_program(compose);
    words_add(&compose->argv, "mcp");
    words_add(&compose->argv, compose->stage == STAGE_GET ? "get" : "list");
    if (compose->stage == STAGE_GET)
        words_add(&compose->argv, compose->server);
    words_add(&compose->argv, "--json");
}

void
compose_codex_add_plan(struct compose *compose)
{
    static const char *const exec[] = {"exec", "--json", "--skip-git-repo-check", NULL};
    /* in no shared server, which would go on when we end the reviewer */
    static const char *const tui[] = {"--no-daemon", "--no-alt-screen", NULL};
    AUTO_BUF struct buf model = BUF_INIT(2 * MAX_MODEL + 16);

    add_program(compose);
    if (compose->model) {
        buf_adds(&model, "model=");
        text_add_toml(&model, compose->model);
        words_add(&compose->argv, "-c");
        words_add_buf(&compose->argv, &model);
    }
    if (compose->mode == COMPOSE_APP_SERVER)
        words_add(&compose->argv, "app-server");
    else
        words_add_all(&compose->argv, compose->mode == COMPOSE_EXEC ? exec : tui);
    if (compose->prompt) {
        words_add(&compose->argv, "--");
        words_add(&compose->argv, compose->prompt);
    }
}
