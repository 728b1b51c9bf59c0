/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdint.h>
#include <string.h>

#include "edit.h"

static bool
is_number(const struct toml_value *value)
{
    return value->kind == TOML_INTEGER || value->kind == TOML_FLOAT;
}

/* As values, with 600 the same as 600.0. */
static bool
same_values(const struct toml_value *a, const struct toml_value *b)
{
    if (a->n != b->n)
        return false;
    for (const struct toml_value *each = a->first; each; each = each->next) {
        const struct toml_value *other = toml_get(b, each->key);
        bool numbers = other && is_number(each) && is_number(other);

        if (!other ||
            (numbers ? strcmp(each->text, other->text) != 0 : !toml_equal(each, other)))
            return false;
    }
    return true;
}

/* What was put in, by itself: as it is, or, when it was a member of an inline table, in one. */
static struct toml_value *
parse_put(const char *put)
{
    AUTO_BUF struct buf text = BUF_INIT(SIZE_MAX);
    struct toml_value *root = NULL;
    struct toml_error error;

    if (toml_parse(put, strlen(put), &root, &error) == 0)
        return root;
    buf_addf(&text, "mcp_servers = {%s}", put + strspn(put, ", "));
    if (buf_ok(&text) && toml_parse(buf_str(&text), text.len, &root, &error) == 0)
        return root;
    return NULL;
}

/* Whether the entry says what was put in for it. */
static bool
says(const struct toml_value *table, const char *put)
{
    struct toml_value *root = parse_put(put);
    struct entry entry = {.table = NULL};
    bool same;

    if (root)
        entry_find(root, &entry);
    same = entry.table && entry.table->kind == TOML_TABLE && same_values(table, entry.table);
    toml_free(root);
    return same;
}

/* The lines of the whole entry: its header and what follows, when nothing of it is elsewhere.
 */
static bool
find_entry(const char *text, size_t len, const struct toml_value *table, struct toml_span *ret)
{
    if (table->form == TOML_INLINE) {
        *ret = table->statement; /* none inside another inline table */
        return true;
    }
    if (table->form != TOML_HEADER)
        return false;
    for (const struct toml_value *each = table->first; each; each = each->next) {
        if (each->statement.from < table->span.to || each->statement.to > table->body_end)
            return false;
    }
    *ret = (struct toml_span){table->span.from, table->body_end};
    /* one of the two empty lines that would meet */
    if (ret->from >= 2 && memcmp(text + ret->from - 2, "\n\n", 2) == 0 &&
        (ret->to == len || text[ret->to] == '\n'))
        ret->from--;
    return true;
}

bool
edit_undo_rewritten(const char *text, size_t len, const struct toml_value *root,
                    enum edit_kind kind, const char *put, struct edit *ret)
{
    struct buf result = BUF_INIT(SIZE_MAX);
    struct toml_span span = {0, 0};
    const struct toml_value *key;
    struct entry entry;
    bool undone = false;

    entry_find(root, &entry);
    if (!entry.table || entry.table->kind != TOML_TABLE)
        return false;
    if (kind == EDIT_ENTRY && says(entry.table, put)) {
        if (!find_entry(text, len, entry.table, &span))
            return false;
    } else if (kind == EDIT_TIMEOUT || kind == EDIT_VARIABLES) {
        key = toml_get(entry.table, kind == EDIT_TIMEOUT ? "tool_timeout_sec" : "env_vars");
        if (!key ||
            (kind == EDIT_TIMEOUT && (!is_number(key) || strcmp(key->text, "600") != 0)))
            return false;
        span = key->statement;
    }
    if (span.to <= span.from || memchr(text + span.from, '#', span.to - span.from))
        return false;
    *ret = (struct edit){
        .kind = kind, .at = span.from, .len = span.to - span.from, .text = BUF_INIT(1)};
    edit_apply(text, len, ret, &result);
    undone = buf_ok(&result) && edit_is_undone(&result, root, kind);
    buf_fini(&result);
    return undone;
}
