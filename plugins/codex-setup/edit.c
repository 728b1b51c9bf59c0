/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "edit.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/text.h"

/* The file's own line end: that of its first line. */
static const char *
line_end(const char *text, size_t len)
{
    const char *lf = len ? memchr(text, '\n', len) : NULL;

    return lf && lf > text && lf[-1] == '\r' ? "\r\n" : "\n";
}

static void
add_variables(struct buf *to, const struct registration *registration)
{
    buf_adds(to, "env_vars = [");
    for (size_t i = 0; registration->variables[i]; i++) {
        buf_adds(to, i ? ", " : "");
        text_add_toml(to, registration->variables[i]);
    }
    buf_addc(to, ']');
}

#define OUR_ARGS "[\"--plugin\", \"flows\"]"

/* The entry's members, each after before and with between among them. */
static void
add_members(struct buf *to, const struct registration *registration, const char *before,
            const char *after)
{
    buf_addf(to, "%scommand = ", before);
    text_add_toml(to, registration->command);
    buf_addf(to, "%s%sargs = " OUR_ARGS "%s%stool_timeout_sec = %d", after, before, after,
             before, ENTRY_TIMEOUT);
    if (registration->variables[0]) {
        buf_addf(to, "%s%s", after, before);
        add_variables(to, registration);
    }
}

void
edit_show_entry(const struct registration *registration, struct buf *to)
{
    buf_adds(to, "[mcp_servers." ENTRY_NAME "]\n");
    add_members(to, registration, "", "\n");
    buf_addc(to, '\n');
}

/* The last statement below a table that is written as key = value lines. */
static void
last_statement(const struct toml_value *table, const struct toml_value **ret)
{
    for (const struct toml_value *each = table->first; each; each = each->next) {
        if (each->statement.to > each->statement.from &&
            (!*ret || each->statement.to > (*ret)->statement.to))
            *ret = each;
        if (each->kind == TOML_TABLE && each->form == TOML_DOTTED)
            last_statement(each, ret);
    }
}

static void
add_indent_of(struct buf *to, const char *text, size_t line)
{
    while (text[line] == ' ' || text[line] == '\t')
        buf_addc(to, text[line++]);
}

/* Begins a line at an offset where the line before may lack its end. */
static bool
lacks_line_end(const char *text, size_t at)
{
    return at > 0 && text[at - 1] != '\n';
}

/* A whole line after the one that ends at `at`; a file that ends without a line end goes on
 * doing so. */
static void
put_line(const char *text, size_t len, size_t at, size_t model_line, const char *line,
         struct edit *ret)
{
    const char *end = line_end(text, len);
    bool last = lacks_line_end(text, at);

    ret->at = at;
    if (last)
        buf_adds(&ret->text, end);
    add_indent_of(&ret->text, text, model_line);
    buf_adds(&ret->text, line);
    if (!last)
        buf_adds(&ret->text, end);
}

/* Into { ... }: behind its last member, so that a comma that is there already comes after ours.
 */
static void
put_inline(const struct toml_value *table, const char *member, struct edit *ret)
{
    if (table->last) {
        ret->at = table->last->span.to;
        /* a member made by dotted keys ends where its own last member ends */
        for (const struct toml_value *at = table->last; at->form == TOML_DOTTED && at->last;
             at = at->last)
            ret->at = at->last->span.to;
        buf_addf(&ret->text, ", %s", member);
    } else {
        ret->at = table->span.from + 1;
        buf_addf(&ret->text, " %s ", member);
    }
}

void
edit_add_entry(const char *text, size_t len, const struct entry *entry,
               const struct registration *registration, struct edit *ret)
{
    const struct toml_value *servers = entry->servers, *last = NULL;
    const char *end = line_end(text, len);

    ret->kind = EDIT_ENTRY;
    if (servers && servers->form == TOML_INLINE) {
        AUTO_BUF struct buf member = BUF_INIT(65536);

        buf_adds(&member, ENTRY_NAME " = {");
        add_members(&member, registration, " ", ",");
        buf_adds(&member, " }");
        put_inline(servers, buf_str(&member), ret);
        return;
    }
    if (servers && servers->form == TOML_DOTTED)
        last_statement(servers, &last);
    if (last) {
        /* as its neighbours are written: dotted keys in the same place */
        AUTO_BUF struct buf lines = BUF_INIT(65536);
        bool at_end = lacks_line_end(text, last->statement.to);

        add_members(&lines, registration, "mcp_servers." ENTRY_NAME ".", end);
        ret->at = last->statement.to;
        buf_addf(&ret->text, "%s%s%s", at_end ? end : "", buf_str(&lines), at_end ? "" : end);
        return;
    }
    ret->at = len;
    if (lacks_line_end(text, len))
        buf_adds(&ret->text, end);
    if (len > 0)
        buf_adds(&ret->text, end);
    buf_addf(&ret->text, "[mcp_servers." ENTRY_NAME "]%s", end);
    add_members(&ret->text, registration, "", end);
    buf_adds(&ret->text, end);
}

/* How the entry's own keys are spelled in front of their last part. */
static void
add_path_prefix(struct buf *to, const char *text, struct toml_span path)
{
    size_t dot = path.from;
    char quote = '\0';

    for (size_t i = path.from; i < path.to; i++) {
        if (quote)
            quote = text[i] == quote ? '\0' : quote;
        else if (text[i] == '"' || text[i] == '\'')
            quote = text[i];
        else if (text[i] == '.')
            dot = i + 1;
    }
    buf_add(to, text + path.from, dot - path.from);
}

static void
add_member(const char *text, size_t len, const struct entry *entry, const char *member,
           struct edit *ret)
{
    const struct toml_value *table = entry->table, *last = NULL;
    AUTO_BUF struct buf line = BUF_INIT(65536);

    if (table->form == TOML_INLINE) {
        put_inline(table, member, ret);
        return;
    }
    last_statement(table, &last);
    if (table->form == TOML_DOTTED)
        add_path_prefix(&line, text, toml_get(table, "command")->path);
    buf_adds(&line, member);
    put_line(text, len, last ? last->statement.to : table->body_end,
             last ? last->statement.from : table->span.from, buf_str(&line), ret);
}

void
edit_add_timeout(const char *text, size_t len, const struct entry *entry, struct edit *ret)
{
    char member[64];

    (void)snprintf(member, sizeof member, "tool_timeout_sec = %d", ENTRY_TIMEOUT);
    ret->kind = EDIT_TIMEOUT;
    add_member(text, len, entry, member, ret);
}

void
edit_add_variables(const char *text, size_t len, const struct entry *entry,
                   const struct registration *registration, struct edit *ret)
{
    AUTO_BUF struct buf member = BUF_INIT(65536);

    add_variables(&member, registration);
    ret->kind = EDIT_VARIABLES;
    add_member(text, len, entry, buf_str(&member), ret);
}

/* One edit from the first of the two values to the end of the second, with what lies between
 * them as it is. */
void
edit_switch(const char *text, const struct entry *entry,
            const struct registration *registration, struct edit *ret)
{
    struct toml_span command = toml_get(entry->table, "command")->span,
                     args = toml_get(entry->table, "args")->span;
    bool command_first = command.from < args.from;
    struct toml_span first = command_first ? command : args,
                     second = command_first ? args : command;

    ret->kind = EDIT_SWITCH;
    ret->at = first.from;
    ret->len = second.to - first.from;
    if (command_first)
        text_add_toml(&ret->text, registration->command);
    else
        buf_adds(&ret->text, OUR_ARGS);
    buf_add(&ret->text, text + first.to, second.from - first.to);
    if (command_first)
        buf_adds(&ret->text, OUR_ARGS);
    else
        text_add_toml(&ret->text, registration->command);
}

void
edit_apply(const char *text, size_t len, const struct edit *edit, struct buf *to)
{
    buf_add(to, text, edit->at);
    buf_add(to, buf_str(&edit->text), edit->text.len);
    buf_add(to, text + edit->at + edit->len, len - edit->at - edit->len);
    if (!buf_ok(&edit->text))
        to->failed = true;
}

/* ---- taking back ---- */

/* A byte that lies in what the edit put, if it is still there. */
static bool
find_anchor(const struct entry *entry, enum edit_kind kind, size_t *ret)
{
    const struct toml_value *command = toml_get(entry->table, "command"),
                            *args = toml_get(entry->table, "args"),
                            *variables = toml_get(entry->table, "env_vars"), *anchor = NULL;

    switch (kind) {
    case EDIT_ENTRY:
        anchor = command;
        break;
    case EDIT_TIMEOUT:
        anchor = entry->timeout;
        break;
    case EDIT_VARIABLES:
        anchor = variables;
        break;
    case EDIT_SWITCH:
        anchor = command && args && args->span.from < command->span.from ? args : command;
        break;
    }
    if (anchor)
        *ret = anchor->span.from;
    return anchor != NULL;
}

bool
edit_is_undone(const struct buf *text, const struct toml_value *root, enum edit_kind kind)
{
    struct toml_value *now = NULL;
    struct toml_error error;
    struct entry entry;
    bool undone = false;

    if (toml_parse(buf_str(text), text->len, &now, &error) == 0) {
        entry_find(now, &entry);
        undone = entry_only_difference(root, now) &&
                 (kind == EDIT_ENTRY ? entry.owner == ENTRY_ABSENT : entry.table != NULL);
        undone = undone && !(kind == EDIT_TIMEOUT && entry.timeout) &&
                 !(kind == EDIT_VARIABLES && toml_get(entry.table, "env_vars")) &&
                 !(kind == EDIT_SWITCH && entry.owner != ENTRY_KCAP);
    }
    toml_free(now);
    return undone;
}

bool
edit_undo(const char *text, size_t len, const struct toml_value *root, enum edit_kind kind,
          const char *put, const char *was, struct edit *ret)
{
    size_t put_len = strlen(put), anchor = 0, first, last;
    struct entry entry;

    entry_find(root, &entry);
    if (put_len == 0 || put_len > len || !find_anchor(&entry, kind, &anchor))
        return false;
    /* wherever it can begin and still hold that byte; the anchor of a switch is its start */
    first = kind == EDIT_SWITCH || anchor + 1 < put_len ? 0 : anchor + 1 - put_len;
    first = kind == EDIT_SWITCH ? anchor : first;
    last = anchor < len - put_len ? anchor : len - put_len;
    for (size_t at = first; at <= last; at++) {
        AUTO_BUF struct buf result = BUF_INIT(SIZE_MAX);

        if (memcmp(text + at, put, put_len) != 0)
            continue;
        buf_clear(&ret->text);
        buf_adds(&ret->text, was);
        ret->kind = kind;
        ret->at = at;
        ret->len = put_len;
        edit_apply(text, len, ret, &result);
        if (buf_ok(&result) && edit_is_undone(&result, root, kind))
            return true;
    }
    return false;
}
