/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "lib/jscan.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"

/* A member name of an object that is still open. */
struct key {
    uint64_t hash;
    struct span raw;
};

struct scanner {
    const char *start, *p, *end;
    struct key *keys; /* names of all open objects, innermost last */
    size_t n_keys, cap_keys;
    bool has_nul;
};

/* ---- duplicate names ---- */

static int
compare_keys(const void *left, const void *right)
{
    const struct key *a = left, *b = right;

    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return span_compare_strings(a->raw, b->raw);
}

static int
push_key(struct scanner *s, struct span raw)
{
    if (s->n_keys == s->cap_keys) {
        size_t cap = s->cap_keys ? s->cap_keys * 2 : 32;
        struct key *keys = realloc(s->keys, cap * sizeof *keys);
        if (!keys)
            return JSCAN_NOMEM;
        s->keys = keys;
        s->cap_keys = cap;
    }
    s->keys[s->n_keys++] = (struct key){.hash = span_hash_string(raw), .raw = raw};
    return JSCAN_OK;
}

/* Ends the object whose names begin at first. Sorting keeps a megabyte of names from costing
 * its square. */
static int
pop_keys(struct scanner *s, size_t first)
{
    struct key *keys = s->keys + first;
    size_t n = s->n_keys - first;

    if (n > 1) {
        qsort(keys, n, sizeof *keys, compare_keys);
        for (size_t i = 1; i < n; i++) {
            if (compare_keys(&keys[i - 1], &keys[i]) == 0) {
                s->p = keys[i].raw.p;
                return JSCAN_DUPLICATE;
            }
        }
    }
    s->n_keys = first;
    return JSCAN_OK;
}

/* ---- grammar ---- */

static void
skip_space(struct scanner *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
        s->p++;
}

static bool
is_hex(const struct scanner *s, size_t from)
{
    if ((size_t)(s->end - s->p) < from + 4)
        return false;
    for (size_t i = from; i < from + 4; i++) {
        char c = s->p[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')))
            return false;
    }
    return true;
}

static int
scan_escape(struct scanner *s)
{
    unsigned c;

    if (s->end - s->p < 2)
        return JSCAN_SYNTAX;
    if (s->p[1] != 'u') {
        if (s->p[1] == '\0' || !strchr("\"\\/bfnrt", s->p[1]))
            return JSCAN_SYNTAX;
        s->p += 2;
        return JSCAN_OK;
    }
    if (!is_hex(s, 2))
        return JSCAN_SYNTAX;
    c = span_hex4(s->p + 2);
    if (c == 0)
        s->has_nul = true;
    if (c >= 0xdc00 && c < 0xe000)
        return JSCAN_UTF8; /* a lone low surrogate is no character */
    if (c >= 0xd800 && c < 0xdc00) {
        if (s->end - s->p < 12 || s->p[6] != '\\' || s->p[7] != 'u' || !is_hex(s, 8) ||
            span_hex4(s->p + 8) < 0xdc00 || span_hex4(s->p + 8) > 0xdfff)
            return JSCAN_UTF8;
        s->p += 6;
    }
    s->p += 6;
    return JSCAN_OK;
}

static int
scan_string(struct scanner *s)
{
    s->p++;
    while (s->p < s->end) {
        unsigned char c;

        s->p += text_plain_len(s->p, (size_t)(s->end - s->p));
        if (s->p == s->end)
            break;
        c = (unsigned char)*s->p;
        if (c == '"') {
            s->p++;
            return JSCAN_OK;
        }
        if (c < 0x20)
            return JSCAN_SYNTAX;
        if (c == '\\') {
            int r = scan_escape(s);
            if (r < 0)
                return r;
        } else {
            size_t n = text_utf8_len(s->p, (size_t)(s->end - s->p));
            if (n == 0)
                return JSCAN_UTF8;
            s->p += n;
        }
    }
    return JSCAN_SYNTAX;
}

static bool
scan_digits(struct scanner *s)
{
    const char *from = s->p;

    while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
        s->p++;
    return s->p > from;
}

static int
scan_number(struct scanner *s)
{
    if (*s->p == '-')
        s->p++;
    if (s->p < s->end && *s->p == '0')
        s->p++;
    else if (!scan_digits(s))
        return JSCAN_SYNTAX;
    if (s->p < s->end && *s->p == '.') {
        s->p++;
        if (!scan_digits(s))
            return JSCAN_SYNTAX;
    }
    if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
        s->p++;
        if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
            s->p++;
        if (!scan_digits(s))
            return JSCAN_SYNTAX;
    }
    return JSCAN_OK;
}

static int
scan_word(struct scanner *s, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(s->end - s->p) < len || memcmp(s->p, word, len) != 0)
        return JSCAN_SYNTAX;
    s->p += len;
    return JSCAN_OK;
}

static int scan_value(struct scanner *s, int depth);

static int
scan_member_name(struct scanner *s)
{
    const char *from = s->p;
    int r;

    if (s->p >= s->end || *s->p != '"')
        return JSCAN_SYNTAX;
    r = scan_string(s);
    if (r == JSCAN_OK)
        r = push_key(s, (struct span){from, (size_t)(s->p - from)});
    if (r < 0)
        return r;
    skip_space(s);
    if (s->p >= s->end || *s->p != ':')
        return JSCAN_SYNTAX;
    s->p++;
    return JSCAN_OK;
}

/* Object or array: the two differ in the names alone. */
static int
scan_nested(struct scanner *s, int depth)
{
    bool object = *s->p == '{';
    char close = object ? '}' : ']';
    size_t first_key = s->n_keys;

    if (depth >= JSCAN_MAX_DEPTH)
        return JSCAN_DEPTH;
    s->p++;
    skip_space(s);
    if (s->p < s->end && *s->p == close) {
        s->p++;
        return JSCAN_OK;
    }
    for (;;) {
        int r = JSCAN_OK;
        skip_space(s);
        if (object)
            r = scan_member_name(s);
        if (r == JSCAN_OK)
            r = scan_value(s, depth + 1);
        if (r < 0)
            return r;
        skip_space(s);
        if (s->p >= s->end || (*s->p != ',' && *s->p != close))
            return JSCAN_SYNTAX;
        if (*s->p++ == close)
            return object ? pop_keys(s, first_key) : JSCAN_OK;
    }
}

static int
scan_value(struct scanner *s, int depth)
{
    skip_space(s);
    if (s->p >= s->end)
        return JSCAN_SYNTAX;
    switch (*s->p) {
    case '{':
    case '[':
        return scan_nested(s, depth);
    case '"':
        return scan_string(s);
    case 't':
        return scan_word(s, "true");
    case 'f':
        return scan_word(s, "false");
    case 'n':
        return scan_word(s, "null");
    default:
        return *s->p == '-' || (*s->p >= '0' && *s->p <= '9') ? scan_number(s) : JSCAN_SYNTAX;
    }
}

int
jscan(const char *text, size_t len, struct jscan *ret)
{
    struct scanner s = {.start = text, .p = text, .end = text + len};
    const char *from;
    int r;

    *ret = (struct jscan){.value = {NULL, 0}};
    skip_space(&s);
    from = s.p;
    r = scan_value(&s, 0);
    if (r == JSCAN_OK) {
        ret->value = (struct span){from, (size_t)(s.p - from)};
        skip_space(&s);
        if (s.p != s.end)
            r = JSCAN_SYNTAX;
    }
    ret->has_nul = s.has_nul;
    ret->error_at = (size_t)(s.p - s.start);
    free(s.keys);
    return r;
}

const char *
jscan_message(int code)
{
    switch (code) {
    case JSCAN_OK:
        return "valid JSON";
    case JSCAN_UTF8:
        return "not valid UTF-8";
    case JSCAN_DEPTH:
        return "nested too deep";
    case JSCAN_DUPLICATE:
        return "duplicate member name";
    case JSCAN_NOMEM:
        return "out of memory";
    default:
        return "not valid JSON";
    }
}
