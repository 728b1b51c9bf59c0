/* SPDX-License-Identifier: Apache-2.0 */
/* status: what is registered, and the mistakes that people make by hand. Changes nothing. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch/environment.h"
#include "lib/auto.h"
#include "setup.h"

#define WINDOW_SEC 270 /* how long our calls block under Codex */

static const char *const our_args[] = {"--plugin", "flows", NULL};
static const char *const kcap_args[] = {"mcp", "flows", NULL};

extern char **environ;

static void
look_for_misplaced_keys(struct setup *setup)
{
    const struct toml_value *table = setup->entry.table;

    if (toml_get(setup->root, "tool_timeout_sec"))
        setup_say(setup, "mistake: tool_timeout_sec stands at the top of the file, where it "
                         "does nothing; it "
                         "belongs into [mcp_servers." ENTRY_NAME "].");
    if (toml_get(setup->entry.servers, "tool_timeout_sec"))
        setup_say(setup,
                  "mistake: tool_timeout_sec stands in [mcp_servers] itself, where it is "
                  "taken for a server; Codex refuses the file for it.");
    if (toml_get(setup->root, "mcpServers"))
        setup_say(
            setup,
            "mistake: a table mcpServers, which Codex does not read; it must be mcp_servers.");
    if (toml_get(table, "tool_timeout_ms"))
        setup_say(
            setup,
            "mistake: tool_timeout_ms does nothing; it must be tool_timeout_sec, in seconds.");
    if (toml_get(toml_get(table, "env"), "tool_timeout_sec"))
        setup_say(
            setup,
            "mistake: tool_timeout_sec stands below .env; Codex refuses the file for it.");
}

static void
look_at_timeout(struct setup *setup)
{
    const struct toml_value *timeout = setup->entry.timeout;
    bool is_number = timeout && (timeout->kind == TOML_INTEGER || timeout->kind == TOML_FLOAT);

    if (!timeout)
        setup_say(
            setup,
            "tool_timeout_sec is not set: Codex cuts calls after 300 s. 'install' adds it.");
    else if (!is_number)
        setup_say(
            setup,
            "mistake: tool_timeout_sec is no number; Codex refuses the whole file for it.");
    else if (strtod(timeout->text, NULL) <= WINDOW_SEC)
        setup_say(setup,
                  "tool_timeout_sec is %s, and our calls block up to %d s: give kcap-host a "
                  "--call-window "
                  "under it, or raise it.",
                  timeout->text, WINDOW_SEC);
    else
        setup_say(setup, "tool_timeout_sec is %s.", timeout->text);
}

static void
look_at_command(struct setup *setup)
{
    const struct toml_value *table = setup->entry.table, *command = toml_get(table, "command");
    AUTO_FREE char *found = NULL;

    if (!table || table->kind != TOML_TABLE)
        return;
    if (!command && !toml_get(table, "url")) {
        setup_say(setup, "mistake: it has no command; Codex refuses the whole file for it.");
        return;
    }
    if (!command || command->kind != TOML_STRING)
        return;
    found = environment_find_program((const char *const *)(uintptr_t)environ, command->text);
    if (!found)
        setup_say(
            setup,
            "mistake: its command %s cannot be run; 'remove' and 'install' point it here.",
            command->text);
}

/* A server that is switched off stays so, but one should know. */
static void
look_whether_off(struct setup *setup)
{
    const struct toml_value *enabled = toml_get(setup->entry.table, "enabled");

    if (enabled && enabled->kind == TOML_BOOL && strcmp(enabled->text, "false") == 0)
        setup_say(setup, "It is switched off: enabled = false.");
}

static void
look_for_twins(struct setup *setup)
{
    const struct toml_value *servers = setup->entry.servers;

    for (const struct toml_value *each = servers && servers->kind == TOML_TABLE ? servers->first
                                                                                : NULL;
         each; each = each->next) {
        if (each != setup->entry.table &&
            (entry_runs(each, "kcap-host", our_args) || entry_runs(each, "kcap", kcap_args)))
            setup_say(setup, "mistake: the server %s runs the same tools a second time.",
                      each->key);
    }
}

int
setup_status(struct setup *setup)
{
    static const char *const owners[] = {
        [ENTRY_ABSENT] = "is not registered",
        [ENTRY_OURS] = "is registered",
        [ENTRY_KCAP] = "is registered by kcap",
        [ENTRY_FOREIGN] = "is the name of a server that is not ours",
        [ENTRY_BLOCKED] = "cannot be registered: mcp_servers, or the entry, is not a table",
    };
    int r = setup_open(setup);

    if (r != SETUP_OK)
        return r;
    setup_say(setup, "%s %s in %s%s.", ENTRY_NAME, owners[setup->entry.owner], setup->path,
              setup->exists ? "" : " (there is no such file yet)");
    if (setup->entry.owner == ENTRY_OURS || setup->entry.owner == ENTRY_KCAP) {
        look_at_timeout(setup);
        look_whether_off(setup);
    }
    look_at_command(setup);
    look_for_misplaced_keys(setup);
    look_for_twins(setup);
    if (setup->exists) {
        AUTO_BUF struct buf why = BUF_INIT(8192);
        enum codex_answer answer = codex_check(setup, &setup->old, &why);
        if (answer == CODEX_ACCEPTS)
            setup_say(setup, "Codex accepts the file.");
        else if (answer == CODEX_REFUSES)
            setup_say(setup, "Codex does not accept the file%s.", buf_str(&why));
    }
    return SETUP_OK;
}
