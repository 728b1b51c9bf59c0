/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "lib/span.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"

/* ---- strings ---- */

unsigned
span_hex4(const char *p)
{
    unsigned value = 0;

    for (int i = 0; i < 4; i++) {
        unsigned char c = (unsigned char)p[i];
        value = value * 16 + (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
}

/* Reads a checked raw string byte by byte, escapes resolved. */
struct reader {
    const char *p, *end;
    char bytes[4]; /* what the last escape stood for */
    size_t n, at;
};

static struct reader
reader_of(struct span raw)
{
    return (struct reader){.p = raw.p + 1, .end = raw.p + raw.len - 1};
}

static void
read_escape(struct reader *r)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *known;
    uint32_t c;

    if (r->p[1] != 'u') {
        known = strchr(from, r->p[1]);
        r->bytes[0] = known ? to[known - from] : r->p[1];
        r->n = 1;
        r->p += 2;
        return;
    }
    c = span_hex4(r->p + 2);
    r->p += 6;
    if (c >= 0xd800 && c < 0xdc00) {
        c = 0x10000 + ((c - 0xd800) << 10) + (span_hex4(r->p + 2) - 0xdc00);
        r->p += 6;
    }
    r->n = text_encode_utf8(c, r->bytes);
}

/* The next byte, or -1 at the end. */
static int
next_byte(struct reader *r)
{
    if (r->at < r->n)
        return (unsigned char)r->bytes[r->at++];
    if (r->p >= r->end)
        return -1;
    if (*r->p != '\\')
        return (unsigned char)*r->p++;
    read_escape(r);
    r->at = 1;
    return (unsigned char)r->bytes[0];
}

int
span_compare_strings(struct span a, struct span b)
{
    struct reader ra = reader_of(a), rb = reader_of(b);

    for (;;) {
        int ca = next_byte(&ra), cb = next_byte(&rb);
        if (ca != cb || ca < 0)
            return ca - cb;
    }
}

uint64_t
span_hash_string(struct span raw)
{
    struct reader r = reader_of(raw);
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

    for (int c; (c = next_byte(&r)) >= 0;)
        hash = (hash ^ (unsigned)c) * 0x100000001b3u;
    return hash;
}

/* ---- walking checked text ---- */

static const char *
skip_checked_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

/* A quote ends the string unless an odd number of backslashes stands before it. */
static const char *
skip_checked_string(const char *p, const char *end)
{
    const char *from = ++p;

    while ((p = memchr(p, '"', (size_t)(end - p)))) {
        const char *slash = p;

        while (slash > from && slash[-1] == '\\')
            slash--;
        p++;
        if ((p - 1 - slash) % 2 == 0)
            return p;
    }
    return end;
}

static const char *
skip_checked_value(const char *p, const char *end)
{
    int depth = 0;

    while (p < end) {
        switch (*p) {
        case '"':
            p = skip_checked_string(p, end);
            break;
        case '{':
        case '[':
            depth++;
            p++;
            break;
        case '}':
        case ']':
            if (depth == 0)
                return p;
            depth--;
            p++;
            break;
        case ',':
        case ' ':
        case '\t':
        case '\r':
        case '\n':
            if (depth == 0)
                return p;
            p++;
            break;
        default:
            p++;
            continue;
        }
        if (depth == 0)
            return p;
    }
    return p;
}

void
span_members(struct span object, struct span_iter *ret)
{
    bool is_object = span_type(object) == '{';

    ret->p = is_object ? object.p + 1 : NULL;
    ret->end = is_object ? object.p + object.len - 1 : NULL;
}

/* Steps over what stands before the next member or element; false at the end. */
static bool
skip_to_next(struct span_iter *iter)
{
    if (!iter->p)
        return false;
    iter->p = skip_checked_space(iter->p, iter->end);
    if (iter->p < iter->end && *iter->p == ',')
        iter->p = skip_checked_space(iter->p + 1, iter->end);
    return iter->p < iter->end;
}

static struct span
take_value(struct span_iter *iter)
{
    const char *from = iter->p;

    iter->p = skip_checked_value(from, iter->end);
    return (struct span){from, (size_t)(iter->p - from)};
}

bool
span_next_member(struct span_iter *iter, struct span *ret_key, struct span *ret_value)
{
    const char *from;

    if (!skip_to_next(iter))
        return false;
    from = iter->p;
    iter->p = skip_checked_string(from, iter->end);
    *ret_key = (struct span){from, (size_t)(iter->p - from)};
    iter->p = skip_checked_space(iter->p, iter->end);
    iter->p = skip_checked_space(iter->p + 1, iter->end); /* the colon */
    *ret_value = take_value(iter);
    return true;
}

void
span_elements(struct span array, struct span_iter *ret)
{
    bool is_array = span_type(array) == '[';

    ret->p = is_array ? array.p + 1 : NULL;
    ret->end = is_array ? array.p + array.len - 1 : NULL;
}

bool
span_next_element(struct span_iter *iter, struct span *ret_value)
{
    if (!skip_to_next(iter))
        return false;
    *ret_value = take_value(iter);
    return true;
}

bool
span_has_elements(struct span array)
{
    struct span_iter iter;
    struct span value;

    span_elements(array, &iter);
    return span_next_element(&iter, &value);
}

struct span
span_get(struct span object, const char *name)
{
    struct span_iter iter;
    struct span key, value;

    span_members(object, &iter);
    while (span_next_member(&iter, &key, &value)) {
        if (span_is(key, name))
            return value;
    }
    return (struct span){NULL, 0};
}

char
span_type(struct span value)
{
    char c = value.p && value.len > 0 ? value.p[0] : '\0';

    if (c == '-' || (c >= '0' && c <= '9'))
        return '0';
    return c == 'f' ? 't' : c;
}

bool
span_is(struct span string, const char *name)
{
    struct reader r;

    if (span_type(string) != '"')
        return false;
    r = reader_of(string);
    for (;; name++) {
        int c = next_byte(&r);
        if (c < 0 || *name == '\0')
            return c < 0 && *name == '\0';
        if (c != (unsigned char)*name)
            return false;
    }
}

bool
span_same(struct span a, struct span b)
{
    if (!a.p || !b.p)
        return a.p == b.p;
    if (span_type(a) == '"' && span_type(b) == '"')
        return span_compare_strings(a, b) == 0;
    return a.len == b.len && memcmp(a.p, b.p, a.len) == 0;
}

bool
span_is_integer(struct span value)
{
    return span_type(value) == '0' && !memchr(value.p, '.', value.len) &&
           !memchr(value.p, 'e', value.len) && !memchr(value.p, 'E', value.len);
}

char *
span_string(struct span string, size_t *ret_len)
{
    struct reader r = reader_of(string);
    char *copy = malloc(string.len),
         *to = copy; /* escapes only shrink, and the quotes leave room */

    if (!copy)
        return NULL;
    for (int c; (c = next_byte(&r)) >= 0;)
        *to++ = (char)c;
    *to = '\0';
    if (ret_len)
        *ret_len = (size_t)(to - copy);
    return copy;
}
