/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "edit.h"

#include <string.h>

#include "lib/text.h"

/* The file's own line end: that of its first line. */
static const char *
line_end(const char *text, size_t len)
{
    const char *lf = len ? memchr(text, '\n', len) : NULL;

    return lf && lf > text && lf[-1] == '\r' ? "\r\n" : "\n";
}

/* The entry's members, each after before and with between among them. */
static void
add_members(struct buf *to, const struct registration *registration, const char *before,
            const char *after)
{
    buf_addf(to, "%scommand = ", before);
    text_add_toml(to, registration->command);
    buf_addf(to, "%s%sargs = [\"--plugin\", \"flows\"]%s%stool_timeout_sec = %d", after, before,
             after, before, ENTRY_TIMEOUT);
    if (registration->variables[0]) {
        buf_addf(to, "%s%senv_vars = [", after, before);
        for (size_t i = 0; registration->variables[i]; i++) {
            buf_adds(to, i ? ", " : "");
            text_add_toml(to, registration->variables[i]);
        }
        buf_addc(to, ']');
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

void
edit_add_timeout(const char *text, size_t len, const struct entry *entry, struct edit *ret)
{
    const struct toml_value *table = entry->table, *last = NULL;
    AUTO_BUF struct buf line = BUF_INIT(65536);

    if (table->form == TOML_INLINE) {
        buf_addf(&line, "tool_timeout_sec = %d", ENTRY_TIMEOUT);
        put_inline(table, buf_str(&line), ret);
        return;
    }
    last_statement(table, &last);
    if (table->form == TOML_DOTTED)
        add_path_prefix(&line, text, toml_get(table, "command")->path);
    buf_addf(&line, "tool_timeout_sec = %d", ENTRY_TIMEOUT);
    put_line(text, len, last ? last->statement.to : table->body_end,
             last ? last->statement.from : table->span.from, buf_str(&line), ret);
}
