/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "entry.h"

#include <string.h>

static const char *const our_args[] = {"--plugin", "flows", NULL};
static const char *const kcap_args[] = {"mcp", "flows", NULL};

static const char *
string_of(const struct toml_value *value)
{
    return value && value->kind == TOML_STRING ? value->text : NULL;
}

bool
entry_runs(const struct toml_value *table, const char *program, const char *const *args)
{
    const char *command = string_of(toml_get(table, "command"));
    const struct toml_value *list = toml_get(table, "args"), *each;
    const char *slash = command ? strrchr(command, '/') : NULL;

    if (!command || strcmp(slash ? slash + 1 : command, program) != 0 || !list ||
        list->kind != TOML_ARRAY)
        return false;
    for (each = list->first; *args; args++, each = each->next) {
        if (!each || !string_of(each) || strcmp(each->text, *args) != 0)
            return false;
    }
    return true;
}

/* kcap's own form has the first two keys, and for some servers the third; the timeout may have
 * been added by us or a user. */
static bool
is_kcap_shape(const struct toml_value *table)
{
    const struct toml_value *args = toml_get(table, "args");
    size_t n = 0;

    for (const struct toml_value *each = table->first; each; each = each->next) {
        if (strcmp(each->key, "command") != 0 && strcmp(each->key, "args") != 0 &&
            strcmp(each->key, "default_tools_approval_mode") != 0 &&
            strcmp(each->key, "tool_timeout_sec") != 0)
            return false;
    }
    for (const struct toml_value *each = args ? args->first : NULL; each; each = each->next)
        n++;
    return n == 2 && entry_runs(table, "kcap", kcap_args);
}

void
entry_find(const struct toml_value *root, struct entry *ret)
{
    *ret = (struct entry){.servers = toml_get(root, "mcp_servers")};
    if (!ret->servers)
        return;
    if (ret->servers->kind != TOML_TABLE) {
        ret->owner = ENTRY_BLOCKED;
        return;
    }
    ret->table = toml_get(ret->servers, ENTRY_NAME);
    if (!ret->table)
        return;
    ret->timeout = toml_get(ret->table, "tool_timeout_sec");
    if (ret->table->kind != TOML_TABLE)
        ret->owner = ENTRY_BLOCKED;
    else if (entry_runs(ret->table, "kcap-host", our_args))
        ret->owner = ENTRY_OURS;
    else
        ret->owner = is_kcap_shape(ret->table) ? ENTRY_KCAP : ENTRY_FOREIGN;
}

/* Every member of a but skip is in b and the same. */
static bool
contains(const struct toml_value *a, const struct toml_value *b, const char *skip)
{
    for (const struct toml_value *each = a ? a->first : NULL; each; each = each->next) {
        const struct toml_value *other = toml_get(b, each->key);

        if (strcmp(each->key, skip) != 0 && (!other || !toml_equal(each, other)))
            return false;
    }
    return true;
}

bool
entry_only_difference(const struct toml_value *a, const struct toml_value *b)
{
    const struct toml_value *in_a = toml_get(a, "mcp_servers"),
                            *in_b = toml_get(b, "mcp_servers");

    if (!contains(a, b, "mcp_servers") || !contains(b, a, "mcp_servers"))
        return false;
    if ((in_a && in_a->kind != TOML_TABLE) || (in_b && in_b->kind != TOML_TABLE))
        return false;
    return contains(in_a, in_b, ENTRY_NAME) && contains(in_b, in_a, ENTRY_NAME);
}
