/* SPDX-License-Identifier: Apache-2.0 */
/* Statements and tables: which line says what about which table, and what may not be said
 * twice. */
#include "config.h"

#include "toml.h"

#include <stdlib.h>
#include <string.h>

#include "lib/text.h"
#include "toml-scan.h"

#define FEW 8 /* members that are looked through faster than looked up */

struct toml_value *
toml_new(enum toml_kind kind)
{
    struct toml_value *value = calloc(1, sizeof *value);

    if (value)
        value->kind = kind;
    return value;
}

void
toml_free(struct toml_value *value)
{
    while (value) {
        struct toml_value *next = value->next;

        toml_free(value->first); /* depth is bounded by the parser */
        free(value->by_name);
        free(value->key);
        free(value->text);
        free(value);
        value = next;
    }
}

/* ---- members by name ---- */

/* Where key is, or the free place for it. There always is one: the table is never full. Its
 * address is what a file could not have been made for. */
static struct toml_value **
place_of(struct toml_value **table, size_t room, const char *key)
{
    size_t at = (size_t)text_hash(key, (uintptr_t)table) & (room - 1);

    while (table[at] && strcmp(table[at]->key, key) != 0)
        at = (at + 1) & (room - 1);
    return &table[at];
}

static bool
grow_index(struct toml_value *table)
{
    size_t room = table->by_name_room ? table->by_name_room * 2 : 4 * FEW;
    struct toml_value **by_name = calloc(room, sizeof *by_name);

    if (!by_name)
        return false;
    for (struct toml_value *each = table->first; each; each = each->next)
        *place_of(by_name, room, each->key) = each;
    free(table->by_name);
    table->by_name = by_name;
    table->by_name_room = room;
    return true;
}

bool
toml_append(struct toml_value *to, struct toml_value *value)
{
    if (to->last)
        to->last->next = value;
    else
        to->first = value;
    to->last = value;
    to->n++;
    if (to->kind != TOML_TABLE || to->n <= FEW)
        return true;
    if (to->n * 2 > to->by_name_room)
        return grow_index(to);
    *place_of(to->by_name, to->by_name_room, value->key) = value;
    return true;
}

struct toml_value *
toml_get(const struct toml_value *table, const char *key)
{
    struct toml_value *value;

    if (!table || table->kind != TOML_TABLE)
        return NULL;
    if (table->by_name)
        return *place_of(table->by_name, table->by_name_room, key);
    for (value = table->first; value && strcmp(value->key, key) != 0; value = value->next)
        ;
    return value;
}

bool
toml_equal(const struct toml_value *a, const struct toml_value *b)
{
    const struct toml_value *x = a->first, *y = b->first;

    if (a->kind != b->kind || a->n != b->n)
        return false;
    if (a->kind == TOML_TABLE) {
        for (; x; x = x->next) {
            y = toml_get(b, x->key);
            if (!y || !toml_equal(x, y))
                return false;
        }
        return true;
    }
    if (a->kind == TOML_ARRAY) {
        for (; x; x = x->next, y = y->next) {
            if (!toml_equal(x, y))
                return false;
        }
        return true;
    }
    return a->text_len == b->text_len && memcmp(a->text, b->text, a->text_len) == 0;
}

/* ---- tables by path ---- */

static struct toml_value *
add_table(struct scan *s, struct toml_value *parent, const struct key *key, enum toml_form form)
{
    struct toml_value *table = toml_new(TOML_TABLE);

    if (table)
        table->key = strdup(key->text);
    if (!table || !table->key) {
        toml_free(table);
        scan_fail(s, "out of memory");
        return NULL;
    }
    table->form = form;
    if (!toml_append(parent, table)) {
        scan_fail(s, "out of memory");
        return NULL;
    }
    return table;
}

/* One step of a header's path: into a table, or into the newest element of an array of tables.
 */
static struct toml_value *
header_step(struct scan *s, struct toml_value *at, const struct key *key)
{
    struct toml_value *next = toml_get(at, key->text);

    if (!next)
        return add_table(s, at, key, TOML_IMPLICIT);
    if (next->kind == TOML_ARRAY && next->of_tables)
        next = next->last;
    if (next->kind != TOML_TABLE || next->frozen) {
        scan_fail_at(s, key->at,
                     "this name is already a value, so it cannot have a table below it");
        return NULL;
    }
    return next;
}

/* The table of [path] or the new element of [[path]]. */
static struct toml_value *
open_header(struct scan *s, struct toml_value *root, const struct path *path, bool element)
{
    const struct key *last = &path->keys[path->n - 1];
    struct toml_value *at = root, *table, *array;

    for (size_t i = 0; at && i + 1 < path->n; i++)
        at = header_step(s, at, &path->keys[i]);
    if (!at)
        return NULL;
    table = toml_get(at, last->text);
    if (!element) {
        if (table && (table->kind != TOML_TABLE || table->explicit_ || table->frozen)) {
            scan_fail_at(s, last->at, "this table is defined twice");
            return NULL;
        }
        if (!table)
            table = add_table(s, at, last, TOML_HEADER);
    } else {
        array = table;
        if (array && !(array->kind == TOML_ARRAY && array->of_tables)) {
            scan_fail_at(s, last->at,
                         "this name is already something else than an array of tables");
            return NULL;
        }
        if (!array) {
            array = add_table(s, at, last, TOML_HEADER);
            if (!array)
                return NULL;
            array->kind = TOML_ARRAY;
            array->of_tables = true;
        }
        table = toml_new(TOML_TABLE);
        if (!table || !toml_append(array, table)) {
            scan_fail(s, "out of memory");
            return NULL;
        }
    }
    if (table) {
        table->form = TOML_HEADER;
        table->explicit_ = true;
    }
    return table;
}

struct toml_value *
toml_descend(struct scan *s, struct toml_value *table, const struct path *path,
             unsigned section)
{
    for (size_t i = 0; i + 1 < path->n; i++) {
        const struct key *key = &path->keys[i];
        struct toml_value *next = toml_get(table, key->text);

        if (!next) {
            next = add_table(s, table, key, TOML_DOTTED);
            if (!next)
                return NULL;
            next->explicit_ = true;
            next->section = section;
        } else if (next->kind != TOML_TABLE || next->frozen ||
                   (next->explicit_ &&
                    (next->form != TOML_DOTTED || next->section != section))) {
            scan_fail_at(
                s, key->at,
                "this name is already defined elsewhere, so it cannot be added to here");
            return NULL;
        }
        table = next;
    }
    if (toml_get(table, path->keys[path->n - 1].text)) {
        scan_fail_at(s, path->keys[path->n - 1].at, "this key is given twice");
        return NULL;
    }
    return table;
}

/* ---- statements ---- */

static bool
end_of_line(struct scan *s)
{
    scan_blanks(s);
    return scan_comment(s) && (scan_newline(s) || s->at == s->len ||
                               scan_fail(s, "nothing but a comment may follow on this line"));
}

static bool
parse_header(struct scan *s, struct toml_value *root, struct toml_value **section)
{
    size_t line = scan_line_start(s);
    struct path path = {.n = 0};
    struct toml_value *table = NULL;
    bool element = scan_is(s, "[[");
    bool good;

    s->at += element ? 2 : 1;
    good = scan_path(s, &path) &&
           scan_take(s, element ? "]]" : "]", "the header's closing bracket is missing");
    if (good)
        table = open_header(s, root, &path, element);
    path_fini(&path);
    if (!table || !end_of_line(s))
        return false;
    table->span = (struct toml_span){line, s->at};
    table->body_end = s->at;
    *section = table;
    return true;
}

static bool
parse_pair(struct scan *s, struct toml_value *section, unsigned number)
{
    size_t line = scan_line_start(s), path_from = s->at;
    struct path path = {.n = 0};
    struct toml_value *table = NULL, *value = NULL;
    bool good = scan_path(s, &path);
    size_t path_to = s->at;

    while (good && path_to > path_from &&
           (s->text[path_to - 1] == ' ' || s->text[path_to - 1] == '\t'))
        path_to--;
    good = good && scan_take(s, "=", "an equals sign is missing after the key");
    if (good)
        table = toml_descend(s, section, &path, number);
    if (table) {
        scan_blanks(s);
        value = scan_value(s, 0);
    }
    if (value) {
        value->key = path_take_last(&path);
        value->path = (struct toml_span){path_from, path_to};
        if (!toml_append(table, value))
            value = NULL;
    }
    path_fini(&path);
    if (!value && table)
        scan_fail(s, "out of memory"); /* unless there was another fault */
    if (!value || !end_of_line(s))
        return false;
    value->statement = (struct toml_span){line, s->at};
    section->body_end = s->at;
    return true;
}

static bool
parse_document(struct scan *s, struct toml_value *root)
{
    struct toml_value *section = root;
    unsigned number = 0;

    if (scan_is(s, "\xef\xbb\xbf"))
        s->at += 3;
    while (s->at < s->len) {
        bool good;

        scan_blanks(s);
        if (s->at == s->len)
            break;
        if (s->text[s->at] == '[') {
            number++;
            good = parse_header(s, root, &section);
        } else if (s->text[s->at] == '#' || s->text[s->at] == '\n' || s->text[s->at] == '\r') {
            good = end_of_line(s);
        } else {
            good = parse_pair(s, section, number);
        }
        if (!good)
            return false;
    }
    return true;
}

int
toml_parse(const char *text, size_t len, struct toml_value **ret_root,
           struct toml_error *ret_error)
{
    struct scan s = {.text = text, .len = len};
    struct toml_value *root = toml_new(TOML_TABLE);
    bool good = false;

    if (!root) {
        scan_fail(&s, "out of memory");
    } else {
        root->explicit_ = true;
        good = scan_check_text(&s) && parse_document(&s, root);
    }
    if (!good) {
        toml_free(root);
        scan_position(&s, ret_error);
        return -1;
    }
    *ret_root = root;
    return 0;
}
