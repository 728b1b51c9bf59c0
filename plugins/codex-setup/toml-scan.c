/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "toml-scan.h"

#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/text.h"

#define MAX_STRING ((size_t)16 << 20)

bool
scan_fail_at(struct scan *s, size_t at, const char *text)
{
    if (!s->error) {
        s->error = text;
        s->error_at = at;
    }
    return false;
}

bool
scan_fail(struct scan *s, const char *text)
{
    return scan_fail_at(s, s->at, text);
}

void
scan_position(const struct scan *s, struct toml_error *ret)
{
    size_t line_start = 0;

    *ret = (struct toml_error){.line = 1, .text = s->error};
    for (size_t i = 0; i < s->error_at && i < s->len; i++) {
        if (s->text[i] == '\n') {
            ret->line++;
            line_start = i + 1;
        }
    }
    ret->column = s->error_at - line_start + 1;
}

bool
scan_check_text(struct scan *s)
{
    for (size_t i = 0; i < s->len;) {
        size_t n = text_utf8_len(s->text + i, s->len - i);
        unsigned char c = (unsigned char)s->text[i];

        if (n == 0)
            return scan_fail_at(s, i, "this is not valid UTF-8");
        if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
            return scan_fail_at(s, i, "control characters are not allowed");
        if (c == '\r' && (i + 1 == s->len || s->text[i + 1] != '\n'))
            return scan_fail_at(s, i, "a carriage return must be followed by a line feed");
        i += n;
    }
    return true;
}

bool
scan_is(const struct scan *s, const char *word)
{
    size_t len = strlen(word);

    return s->len - s->at >= len && memcmp(s->text + s->at, word, len) == 0;
}

bool
scan_take(struct scan *s, const char *word, const char *otherwise)
{
    scan_blanks(s);
    if (!scan_is(s, word))
        return scan_fail(s, otherwise);
    s->at += strlen(word);
    return true;
}

void
scan_blanks(struct scan *s)
{
    while (s->at < s->len && (s->text[s->at] == ' ' || s->text[s->at] == '\t'))
        s->at++;
}

bool
scan_newline(struct scan *s)
{
    if (scan_is(s, "\r\n"))
        s->at += 2;
    else if (scan_is(s, "\n"))
        s->at++;
    else
        return false;
    return true;
}

bool
scan_comment(struct scan *s)
{
    if (!scan_is(s, "#"))
        return true;
    while (s->at < s->len && s->text[s->at] != '\n' && s->text[s->at] != '\r')
        s->at++;
    return true;
}

bool
scan_space_and_comments(struct scan *s)
{
    do {
        scan_blanks(s);
        if (!scan_comment(s))
            return false;
    } while (scan_newline(s));
    return true;
}

size_t
scan_line_start(const struct scan *s)
{
    size_t at = s->at;

    while (at > 0 && s->text[at - 1] != '\n')
        at--;
    /* a byte order mark belongs to the file, not to its first line */
    return at == 0 && s->len >= 3 && memcmp(s->text, "\xef\xbb\xbf", 3) == 0 ? 3 : at;
}

/* ---- keys ---- */

static bool
is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '-';
}

static bool
scan_key(struct scan *s, struct key *ret)
{
    size_t from = s->at;
    struct toml_value *quoted;

    ret->at = from;
    if (scan_is(s, "\"") || scan_is(s, "'")) {
        if (scan_is(s, "\"\"\"") || scan_is(s, "'''"))
            return scan_fail(s, "a key cannot span lines");
        quoted = scan_string(s);
        if (!quoted)
            return false;
        if (memchr(quoted->text, '\0', quoted->text_len)) {
            toml_free(quoted);
            return scan_fail_at(s, from, "a key with a NUL character is not supported");
        }
        ret->text = quoted->text;
        quoted->text = NULL;
        toml_free(quoted);
        return true;
    }
    while (s->at < s->len && is_bare(s->text[s->at]))
        s->at++;
    if (s->at == from)
        return scan_fail(s, "a key is missing");
    ret->text = strndup(s->text + from, s->at - from);
    return ret->text || scan_fail(s, "out of memory");
}

bool
scan_path(struct scan *s, struct path *ret)
{
    ret->n = 0;
    do {
        if (ret->n == PATH_MAX_KEYS)
            return scan_fail(s, "this key has too many parts");
        if (ret->n > 0)
            s->at++; /* the dot */
        scan_blanks(s);
        if (!scan_key(s, &ret->keys[ret->n]))
            return false;
        ret->n++;
        scan_blanks(s);
    } while (scan_is(s, "."));
    return true;
}

void
path_fini(struct path *path)
{
    for (size_t i = 0; i < path->n; i++)
        free(path->keys[i].text);
    path->n = 0;
}

char *
path_take_last(struct path *path)
{
    return path->keys[--path->n].text;
}

/* ---- strings ---- */

static int
hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool
scan_code_point(struct scan *s, int digits, struct buf *to)
{
    uint32_t code = 0;
    char bytes[4];

    for (int i = 0; i < digits; i++) {
        int digit = s->at < s->len ? hex_digit(s->text[s->at]) : -1;
        if (digit < 0)
            return scan_fail(s, "this escape needs more hexadecimal digits");
        code = code * 16 + (uint32_t)digit;
        s->at++;
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return scan_fail(s, "this escape names no character");
    buf_add(to, bytes, text_encode_utf8(code, bytes));
    return true;
}

/* A backslash at the end of a line swallows it and all space before the next character. */
static bool
scan_line_continuation(struct scan *s)
{
    size_t at = s->at;

    scan_blanks(s);
    if (!scan_newline(s)) {
        s->at = at;
        return false;
    }
    do
        scan_blanks(s);
    while (scan_newline(s));
    return true;
}

static bool
scan_escape(struct scan *s, bool multi_line, struct buf *to)
{
    static const char from[] = "btnfre\"\\", into[] = "\b\t\n\f\r\x1b\"\\";
    const char *known;
    char c;

    s->at++;
    if (s->at == s->len)
        return scan_fail(s, "this string does not end");
    if (multi_line && scan_line_continuation(s))
        return true;
    c = s->text[s->at++];
    if (c == 'u')
        return scan_code_point(s, 4, to);
    if (c == 'U')
        return scan_code_point(s, 8, to);
    if (c == 'x')
        return scan_code_point(s, 2, to);
    known = c ? strchr(from, c) : NULL;
    if (!known)
        return scan_fail_at(s, s->at - 2, "this escape is unknown");
    buf_addc(to, into[known - from]);
    return true;
}

/* The closing quotes of a multi-line string may have up to two of its own before them. */
static bool
scan_end_of_multi_line(struct scan *s, char quote, struct buf *to)
{
    size_t n = 0;

    while (s->at + n < s->len && s->text[s->at + n] == quote && n < 5)
        n++;
    for (size_t i = 0; i < (n >= 3 ? n - 3 : n); i++)
        buf_addc(to, quote);
    s->at += n;
    return n >= 3;
}

static bool
scan_string_body(struct scan *s, char quote, bool multi_line, struct buf *to)
{
    size_t begin = s->at;

    while (s->at < s->len) {
        char c = s->text[s->at];

        if (c == quote && multi_line) {
            if (scan_end_of_multi_line(s, quote, to))
                return true;
        } else if (c == quote) {
            s->at++;
            return true;
        } else if (c == '\\' && quote == '"') {
            if (!scan_escape(s, multi_line, to))
                return false;
        } else if (c == '\n' || c == '\r') {
            if (!multi_line)
                return scan_fail(s, "this string does not end on its line");
            buf_addc(to, '\n'); /* either line end is the same text */
            (void)scan_newline(s);
        } else {
            buf_addc(to, c);
            s->at++;
        }
    }
    return scan_fail_at(s, begin, "this string does not end");
}

struct toml_value *
scan_string(struct scan *s)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_STRING);
    struct toml_value *value = toml_new(TOML_STRING);
    char quote = s->text[s->at];
    bool multi_line = scan_is(s, quote == '"' ? "\"\"\"" : "'''");
    size_t from = s->at;

    s->at += multi_line ? 3 : 1;
    if (multi_line)
        (void)scan_newline(s); /* the first one is not part of the text */
    if (value && scan_string_body(s, quote, multi_line, &text)) {
        value->text = buf_take(&text, &value->text_len);
        value->span = (struct toml_span){from, s->at};
        if (value->text)
            return value;
    }
    (void)scan_fail(s, "out of memory");
    toml_free(value);
    return NULL;
}

/* ---- arrays and inline tables ---- */

/* After an element: a comma, or the end. Returns 1 to go on, 0 at the end, -1 on a fault. */
static int
scan_separator(struct scan *s, const char *close)
{
    if (!scan_space_and_comments(s))
        return -1;
    if (scan_is(s, ",")) {
        s->at++;
        return scan_space_and_comments(s) ? (scan_is(s, close) ? 0 : 1) : -1;
    }
    if (scan_is(s, close))
        return 0;
    return scan_fail(s, "a comma or the closing bracket is missing") ? 0 : -1;
}

static bool
scan_elements(struct scan *s, struct toml_value *array, int depth)
{
    int more = scan_space_and_comments(s) ? !scan_is(s, "]") : -1;

    while (more > 0) {
        struct toml_value *element = scan_value(s, depth + 1);
        if (!element)
            return false;
        if (!toml_append(array, element))
            return scan_fail(s, "out of memory");
        more = scan_separator(s, "]");
    }
    return more == 0;
}

static bool
scan_inline_pair(struct scan *s, struct toml_value *table, int depth)
{
    struct path path = {.n = 0};
    struct toml_value *owner = NULL, *value = NULL;
    size_t from = s->at;

    if (scan_path(s, &path) && scan_take(s, "=", "an equals sign is missing after the key")) {
        owner = toml_descend(s, table, &path, 0);
        if (owner) {
            scan_blanks(s);
            value = scan_value(s, depth + 1);
        }
    }
    if (value) {
        value->key = path_take_last(&path);
        value->path.from = from;
        if (!toml_append(owner, value)) {
            (void)scan_fail(s, "out of memory");
            value = NULL;
        }
    }
    path_fini(&path);
    return value != NULL;
}

/* Nothing can be added to it any more, nor to the tables its dotted keys made. */
static void
freeze(struct toml_value *value)
{
    value->frozen = true;
    for (struct toml_value *each = value->first; each; each = each->next)
        freeze(each);
}

static bool
scan_pairs(struct scan *s, struct toml_value *table, int depth)
{
    int more = scan_space_and_comments(s) ? !scan_is(s, "}") : -1;

    while (more > 0) {
        if (!scan_inline_pair(s, table, depth))
            return false;
        more = scan_separator(s, "}");
    }
    return more == 0;
}

static struct toml_value *
scan_nested(struct scan *s, int depth)
{
    bool is_array = s->text[s->at] == '[';
    struct toml_value *value = toml_new(is_array ? TOML_ARRAY : TOML_TABLE);
    size_t from = s->at++;
    bool good = value && depth < TOML_MAX_DEPTH;

    if (!good)
        (void)scan_fail(s, value ? "nested too deep" : "out of memory");
    if (good)
        good = is_array ? scan_elements(s, value, depth) : scan_pairs(s, value, depth);
    if (!good) {
        toml_free(value);
        return NULL;
    }
    s->at++;
    value->form = TOML_INLINE;
    value->span = (struct toml_span){from, s->at};
    freeze(value);
    return value;
}

struct toml_value *
scan_value(struct scan *s, int depth)
{
    char c = s->at < s->len ? s->text[s->at] : '\0';

    if (c == '"' || c == '\'')
        return scan_string(s);
    if (c == '[' || c == '{')
        return scan_nested(s, depth);
    return scan_number_or_time(s);
}
