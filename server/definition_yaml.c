/* SPDX-License-Identifier: Apache-2.0 */
/* A definition as people write it. Strict: what is not understood is an error with its line. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "lib/text.h"
#include "server/definition.h"
#include "server/vendor.h"

#define MAX_DEPTH  16
#define MAX_NUMBER CLOCKS_MAX_SEC
#define MAX_ROLE   64

struct reader {
    yaml_document_t document;
    const char *origin;
    struct buf *error;
    struct definition *to;
};

static int
fail(struct reader *reader, const yaml_node_t *at, const char *key, const char *what)
{
    buf_addf(reader->error, "%s: line %zu: ", reader->origin, at->start_mark.line + 1);
    if (key) {
        buf_adds(reader->error, "\"");
        text_add_line(reader->error, key, text_prefix(key, strlen(key), 200));
        buf_adds(reader->error, "\" ");
    }
    buf_adds(reader->error, what);
    return -EINVAL;
}

/* A scalar's text, or NULL: not one, or with a NUL inside. */
static const char *
scalar(const yaml_node_t *node)
{
    const char *text;

    if (node->type != YAML_SCALAR_NODE)
        return NULL;
    text = (const char *)node->data.scalar.value;
    return strlen(text) == node->data.scalar.length ? text : NULL;
}

/* A mapping's members, handed to read one by one; each key once. */
static int
each_member(struct reader *reader, const yaml_node_t *map, const char *what,
            int (*read)(struct reader *reader, const char *key, const yaml_node_t *value,
                        void *arg),
            void *arg)
{
    const yaml_node_pair_t *first = map->data.mapping.pairs.start;

    if (map->type != YAML_MAPPING_NODE)
        return fail(reader, map, what, "must be a mapping");
    for (const yaml_node_pair_t *pair = first; pair < map->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key_node = yaml_document_get_node(&reader->document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(&reader->document, pair->value);
        const char *key = scalar(key_node);
        int r;
        if (!key)
            return fail(reader, key_node, NULL, "a key must be a text");
        for (const yaml_node_pair_t *before = first; before < pair; before++) {
            const char *other = scalar(yaml_document_get_node(&reader->document, before->key));
            if (other && strcmp(other, key) == 0)
                return fail(reader, key_node, key, "is there twice");
        }
        r = read(reader, key, value, arg);
        if (r == 1)
            return fail(reader, key_node, key, "is not known here");
        if (r < 0)
            return r;
    }
    return 0;
}

static int
read_text(struct reader *reader, const char *key, const yaml_node_t *value, char **ret)
{
    const char *text = scalar(value);

    if (text_is_blank(text))
        return fail(reader, value, key, "must be a text");
    *ret = strdup(text);
    return *ret ? 0 : -ENOMEM;
}

static int
read_number(struct reader *reader, const char *key, const yaml_node_t *value, int64_t least,
            int64_t *ret)
{
    char what[96];

    if (scalar(value) && value->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
        text_to_int(scalar(value), least, MAX_NUMBER, ret))
        return 0;
    (void)snprintf(what, sizeof what, "must be a whole number from %lld to %lld",
                   (long long)least, (long long)MAX_NUMBER);
    return fail(reader, value, key, what);
}

/* 12 or 12.5 or 12.50, in millionths. */
static int
read_usd(struct reader *reader, const char *key, const yaml_node_t *value, int64_t *ret)
{
    const char *text = scalar(value);
    int64_t whole = 0, part = 0, unit = 1000000;
    size_t len = text ? strspn(text, "0123456789") : 0;
    bool ok = len > 0 && len <= 7;

    for (size_t i = 0; ok && i < len; i++)
        whole = whole * 10 + (text[i] - '0');
    if (ok && text[len] == '.') {
        ok = text[len + 1] != '\0';
        for (len++; text[len] >= '0' && text[len] <= '9' && unit > 1; len++) {
            unit /= 10;
            part += (text[len] - '0') * unit;
        }
    }
    *ret = whole * 1000000 + part;
    if (ok && text[len] == '\0' && *ret > 0)
        return 0;
    return fail(reader, value, key, "must be an amount in USD above zero, such as 2.50");
}

/* ---- participants ---- */

static int
read_role(struct reader *reader, const char *key, const yaml_node_t *value, char **ret)
{
    int r = read_text(reader, key, value, ret);

    if (r < 0)
        return r;
    if (strlen(*ret) > MAX_ROLE ||
        strspn(*ret, "abcdefghijklmnopqrstuvwxyz0123456789-_") != strlen(*ret))
        return fail(reader, value, key,
                    "must be of lower-case letters, digits, - and _, at most 64 of them");
    for (size_t i = 0; i + 1 < reader->to->participant_count; i++) {
        if (strcmp(reader->to->participants[i].role, *ret) == 0)
            return fail(reader, value, key, "is another participant's already");
    }
    return 0;
}

static int
read_workspace(struct reader *reader, const char *key, const yaml_node_t *value, char **ret)
{
    const char *text = scalar(value);

    if (text && strcmp(text, "none") == 0) { /* kcap's word for it */
        free(*ret);
        *ret = strdup(WORKSPACE_CONTEXT_ONLY);
        return *ret ? 0 : -ENOMEM;
    }
    if (!text ||
        (strcmp(text, WORKSPACE_BORROWED) != 0 && strcmp(text, WORKSPACE_WORKTREE) != 0 &&
         strcmp(text, WORKSPACE_CONTEXT_ONLY) != 0))
        return fail(reader, value, key, "must be borrowed, worktree, context-only or none");
    free(*ret);
    return read_text(reader, key, value, ret);
}

static int
read_participant_member(struct reader *reader, const char *key, const yaml_node_t *value,
                        void *arg)
{
    struct definition_participant *who = arg;

    if (strcmp(key, "role") == 0 && who->role)
        return fail(reader, value, key, "is its key already");
    if (strcmp(key, "role") == 0)
        return read_role(reader, key, value, &who->role);
    if (strcmp(key, "vendor") == 0) {
        int r = read_text(reader, key, value, &who->vendor);
        return r == 0 && !vendor_find(who->vendor)
                   ? fail(reader, value, key, "names no vendor of this kcap-flowd")
                   : r;
    }
    if (strcmp(key, "model") == 0)
        return read_text(reader, key, value, &who->model);
    if (strcmp(key, "prompt") == 0)
        return read_text(reader, key, value, &who->prompt);
    if (strcmp(key, "workspace") == 0)
        return read_workspace(reader, key, value, &who->workspace);
    return 1;
}

/* role is the node that names it when members does not. */
static int
read_participant(struct reader *reader, const yaml_node_t *role, const yaml_node_t *members)
{
    struct definition *to = reader->to;
    struct definition_participant *who = &to->participants[to->participant_count];
    int r = 0;

    if (to->participant_count == DEFINITION_MAX_PARTICIPANTS)
        return fail(reader, members, "participants", "may have at most 8");
    to->participant_count++;
    who->workspace = strdup(WORKSPACE_BORROWED);
    if (!who->workspace)
        return -ENOMEM;
    if (role)
        r = read_role(reader, "participants", role, &who->role);
    if (r == 0)
        r = each_member(reader, members, "participant", read_participant_member, who);
    if (r == 0 && !who->role)
        return fail(reader, members, "role", "is missing");
    return r;
}

/* A list whose items name their roles, or a map from roles to the rest. */
static int
read_participants(struct reader *reader, const char *key, const yaml_node_t *value)
{
    yaml_document_t *document = &reader->document;
    int r = 0;

    if (value->type == YAML_MAPPING_NODE) {
        const yaml_node_pair_t *pair = value->data.mapping.pairs.start;
        for (; r == 0 && pair < value->data.mapping.pairs.top; pair++)
            r = read_participant(reader, yaml_document_get_node(document, pair->key),
                                 yaml_document_get_node(document, pair->value));
    } else if (value->type == YAML_SEQUENCE_NODE) {
        const yaml_node_item_t *item = value->data.sequence.items.start;
        for (; r == 0 && item < value->data.sequence.items.top; item++)
            r = read_participant(reader, NULL, yaml_document_get_node(document, *item));
    }
    if (r == 0 && reader->to->participant_count == 0)
        return fail(reader, value, key, "must be a list of participants, or a map of roles");
    return r;
}

/* ---- limits ---- */

static int
read_clock(struct reader *reader, const char *key, const yaml_node_t *value, void *arg)
{
    (void)arg;
    for (int i = 0; i < CLOCKS_COUNT; i++) {
        if (strcmp(clocks_names[i].name, key) == 0)
            return read_number(reader, key, value, clocks_names[i].least,
                               clocks_place(&reader->to->clocks, i));
    }
    return 1;
}

static int
read_limit(struct reader *reader, const char *key, const yaml_node_t *value, void *arg)
{
    struct definition *to = reader->to;

    if (strcmp(key, "max_rounds") == 0)
        return read_number(reader, key, value, 1, &to->max_rounds);
    if (strcmp(key, "round_timeout") == 0)
        return read_number(reader, key, value, 1, &to->clocks.hard_ceiling_sec);
    if (strcmp(key, "idle_ttl") == 0)
        return read_number(reader, key, value, 1, &to->idle_ttl_sec);
    if (strcmp(key, "budget_usd") == 0)
        return read_usd(reader, key, value, &to->budget_microusd);
    return read_clock(reader, key, value, arg);
}

static int
read_member(struct reader *reader, const char *key, const yaml_node_t *value, void *arg)
{
    (void)arg;
    if (strcmp(key, "name") == 0) {
        char *name = NULL;
        int r = read_text(reader, key, value, &name);
        if (r < 0)
            return r;
        free(reader->to->id);
        reader->to->id = name;
        return 0;
    }
    if (strcmp(key, "description") == 0)
        return scalar(value) ? 0 : fail(reader, value, key, "must be a text");
    if (strcmp(key, "participants") == 0)
        return read_participants(reader, key, value);
    if (strcmp(key, "limits") == 0)
        return each_member(reader, value, key, read_limit, NULL);
    return 1;
}

static int
read_document(struct reader *reader)
{
    const yaml_node_t *root = yaml_document_get_root_node(&reader->document);
    int r;

    if (!root) {
        buf_addf(reader->error, "%s: it is empty", reader->origin);
        return -EINVAL;
    }
    r = each_member(reader, root, "the definition", read_member, NULL);
    if (r == 0 && reader->to->participant_count == 0)
        return fail(reader, root, "participants", "is missing");
    return r;
}

static void
explain_syntax(const yaml_parser_t *parser, const char *origin, struct buf *error)
{
    buf_addf(error, "%s: line %zu: it is no YAML: %s", origin, parser->problem_mark.line + 1,
             parser->problem ? parser->problem : "out of memory");
}

static bool
begin_parsing(yaml_parser_t *parser, const char *text, size_t len)
{
    if (!yaml_parser_initialize(parser))
        return false;
    yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(parser, (const unsigned char *)text, len);
    return true;
}

/* libyaml takes time that grows with the square of the depth, so that is looked at first.
 * Returns 0 or -EINVAL; what is no YAML is left to the one who reads it. */
static int
check_depth(const char *text, size_t len, const char *origin, struct buf *error)
{
    yaml_parser_t parser;
    yaml_event_type_t type = YAML_NO_EVENT;
    int depth = 0, r = 0;

    if (!begin_parsing(&parser, text, len))
        return -ENOMEM;
    while (r == 0 && type != YAML_STREAM_END_EVENT) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event))
            break;
        type = event.type;
        if (type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT)
            depth++;
        else if (type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT)
            depth--;
        if (depth > MAX_DEPTH) {
            buf_addf(error, "%s: line %zu: nested more than %d levels deep", origin,
                     event.start_mark.line + 1, MAX_DEPTH);
            r = -EINVAL;
        }
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return r;
}

int
definition_from_yaml(const char *text, size_t len, const char *origin, struct definition *ret,
                     struct buf *error)
{
    struct reader reader = {.origin = origin, .error = error, .to = ret};
    yaml_parser_t parser;
    int r;

    *ret = (struct definition){.id = strdup("dynamic")};
    clocks_clear(&ret->clocks);
    if (!ret->id)
        return -ENOMEM;
    if (len > DEFINITION_MAX_YAML) {
        buf_addf(error, "%s: it is longer than 256 KiB", origin);
        return -EINVAL;
    }
    r = check_depth(text, len, origin, error);
    if (r < 0)
        return r;
    if (!begin_parsing(&parser, text, len))
        return -ENOMEM;
    if (yaml_parser_load(&parser, &reader.document)) {
        r = read_document(&reader);
        yaml_document_delete(&reader.document);
    } else {
        explain_syntax(&parser, origin, error);
        r = -EINVAL;
    }
    yaml_parser_delete(&parser);
    return r;
}
