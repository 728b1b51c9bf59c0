/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "lib/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

size_t
text_utf8_len(const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned char low = 0x80, high = 0xbf;
    size_t n;

    if (len == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (len < n)
        return 0;
    /* the second byte's range keeps out overlong forms, surrogates and what lies above U+10FFFF
     */
    if (p[0] == 0xe0)
        low = 0xa0;
    else if (p[0] == 0xed)
        high = 0x9f;
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    }
    return n;
}

size_t
text_plain_len(const char *p, size_t len)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    size_t at = 0;

    for (; len - at >= 8; at += 8) {
        uint64_t word, quote, slash;

        memcpy(&word, p + at, sizeof word);
        quote = word ^ (ones * '"');
        slash = word ^ (ones * '\\');
        /* a byte below n borrows into its high bit when n is taken away from each */
        if ((word | (word - ones * 0x20) | (quote - ones) | (slash - ones)) & high)
            break;
    }
    while (at < len && (unsigned char)p[at] >= 0x20 && (unsigned char)p[at] < 0x80 &&
           p[at] != '"' && p[at] != '\\')
        at++;
    return at;
}

bool
text_is_utf8(const char *p, size_t len)
{
    while (len > 0) {
        size_t n = text_utf8_len(p, len);
        if (n == 0)
            return false;
        p += n;
        len -= n;
    }
    return true;
}

size_t
text_encode_utf8(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | (c >> 6));
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | (c >> 12));
        out[1] = (char)(0x80 | ((c >> 6) & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | (c >> 18));
    out[1] = (char)(0x80 | ((c >> 12) & 0x3f));
    out[2] = (char)(0x80 | ((c >> 6) & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* C0, DEL and the C1 block (two bytes, c2 80 to c2 9f): terminals obey both. U+2028 and U+2029
 * end a line for some. */
static bool
is_control(const char *p, size_t n)
{
    unsigned char c = (unsigned char)p[0];

    return (n == 1 && (c < 0x20 || c == 0x7f)) ||
           (n == 2 && c == 0xc2 && (unsigned char)p[1] < 0xa0) ||
           (n == 3 && (memcmp(p, "\xe2\x80\xa8", 3) == 0 || memcmp(p, "\xe2\x80\xa9", 3) == 0));
}

/* Marks that turn the reading direction, 0 for none: with them a line can look like another
 * one. U+061C, U+200E and F, U+202A to E, U+2066 to 9. */
static uint32_t
direction_mark(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;

    if (n == 2 && p[0] == 0xd8 && p[1] == 0x9c)
        return 0x061c;
    if (n != 3 || p[0] != 0xe2)
        return 0;
    if (p[1] == 0x80 && (p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xaa && p[2] <= 0xae)))
        return 0x2000u + (p[2] & 0x3fu);
    if (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9)
        return 0x2040u + (p[2] & 0x3fu);
    return 0;
}

static void
add_escaped(struct buf *to, const char *text, size_t len, bool one_line)
{
    const char *end = text + len, *run = text;

    while (text < end) {
        size_t n = text_utf8_len(text, (size_t)(end - text));
        bool kept = !one_line && (*text == '\n' || *text == '\t');
        uint32_t mark = one_line ? direction_mark(text, n) : 0;
        if (n > 0 && (kept || (!mark && !is_control(text, n)))) {
            text += n;
            continue;
        }
        buf_add(to, run, (size_t)(text - run));
        if (one_line && *text == '\n')
            buf_adds(to, "\\n");
        else if (one_line && *text == '\r')
            buf_adds(to, "\\r");
        else if (one_line && *text == '\t')
            buf_adds(to, "\\t");
        else if (mark)
            buf_addf(to, "\\u%04x", mark);
        else
            buf_adds(to, REPLACEMENT);
        text += n > 0 ? n : 1;
        run = text;
    }
    buf_add(to, run, (size_t)(text - run));
}

void
text_add_clean(struct buf *to, const char *text, size_t len)
{
    add_escaped(to, text, len, false);
}

void
text_add_line(struct buf *to, const char *text, size_t len)
{
    add_escaped(to, text, len, true);
}

void
text_add_json(struct buf *to, const char *text, size_t len)
{
    static const char letters[] = "btnvfr"; /* 0x08 to 0x0d; \v has no short form */
    const char *end = text + len, *run = text;

    buf_addc(to, '"');
    while (text < end) {
        unsigned char c;
        size_t n;

        text += text_plain_len(text, (size_t)(end - text));
        if (text == end)
            break;
        c = (unsigned char)*text;
        n = text_utf8_len(text, (size_t)(end - text));
        if (n > 0 && c >= 0x20 && c != '"' && c != '\\') {
            text += n;
            continue;
        }
        buf_add(to, run, (size_t)(text - run));
        if (n == 0)
            buf_adds(to, REPLACEMENT);
        else if (c == '"' || c == '\\')
            buf_add(to, (const char[]){'\\', (char)c}, 2);
        else if (c >= 0x08 && c <= 0x0d && c != 0x0b)
            buf_add(to, (const char[]){'\\', letters[c - 0x08]}, 2);
        else
            buf_addf(to, "\\u%04x", c);
        text += n > 0 ? n : 1;
        run = text;
    }
    buf_add(to, run, (size_t)(text - run));
    buf_addc(to, '"');
}

void
text_add_toml(struct buf *to, const char *text)
{
    buf_addc(to, '"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            buf_addf(to, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            buf_addf(to, "\\u%04X", c);
        else
            buf_addc(to, (char)c);
    }
    buf_addc(to, '"');
}

size_t
text_prefix(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    while (max > 0 && ((unsigned char)text[max] & 0xc0) == 0x80)
        max--;
    return max;
}

bool
text_to_int(const char *text, int64_t min, int64_t max, int64_t *ret)
{
    const char *p = text;
    char *end;
    long long value;

    if (!text)
        return false;
    if (*p == '-')
        p++;
    if (*p < '0' || *p > '9')
        return false;
    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < min || value > max)
        return false;
    *ret = value;
    return true;
}

bool
text_is_blank(const char *text)
{
    return !text || text[strspn(text, " \t\r\n\v\f")] == '\0';
}

uint64_t
text_hash(const char *text, uint64_t start)
{
    for (; *text; text++)
        start = (start ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return start;
}
