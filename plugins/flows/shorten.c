/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "shorten.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"

#define MAX_OUT_LEN  ((size_t)9 << 18)
#define MAX_RECEIVED (INT64_C(256) << 20)
#define MAX_VALUES   12000 /* each costs memory when it is parsed, however short */
#define MAX_DEPTH    64

/* A character may take six bytes here for one of its own. */
#define MAX_SPELLED_LEN ((size_t)512 << 10)

/* Inner texts (messages) share this; what finds no room comes again with a later answer. Short
 * ones are not counted. */
#define MAX_INNER_LEN ((size_t)512 << 10)
#define SHORT_ENOUGH  256

void
shorten_init(struct shortener *s, int64_t keep, int64_t offset)
{
    *s = (struct shortener){.out = BUF_INIT(MAX_OUT_LEN), .keep = keep, .offset = offset};
}

void
shorten_fini(struct shortener *s)
{
    buf_fini(&s->out);
}

void
shorten_clear(struct shortener *s)
{
    int64_t keep = s->keep, offset = s->offset;

    shorten_fini(s);
    shorten_init(s, keep, offset);
}

static void
put(struct shortener *s, const char *bytes, size_t len)
{
    if (s->too_long || s->out.len + len > MAX_OUT_LEN) {
        s->too_long = true;
        return;
    }
    buf_add(&s->out, bytes, len);
}

static void
cut_back(struct shortener *s, size_t len)
{
    if (s->too_long || len >= s->out.len)
        return;
    s->out.len = len;
    s->out.data[len] = '\0';
}

/* ---- strings ---- */

static bool
ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);

    return len >= end_len && strcmp(name + len - end_len, end) == 0;
}

static void
begin_string(struct shortener *s)
{
    bool in_object =
        s->depth > 0 && s->depth <= MAX_DEPTH && (s->in_object >> (s->depth - 1) & 1);

    put(s, "\"", 1);
    s->in_string = true;
    s->is_value = !in_object || s->after_colon;
    s->is_text = in_object && s->is_value && ends_with(s->name, "text");
    s->is_id = in_object && s->is_value && ends_with(s->name, "id");
    s->is_outer = s->depth == 1 && s->is_text;
    s->limit = s->is_text ? s->keep : SHORTEN_MAX_FIELD;
    s->is_long = s->is_over = s->is_null = false;
    s->escape_len = s->n_bytes = 0;
    s->has_high = false;
    s->start = s->out.len;
    s->at = s->from = 0;
    s->mark_from = -1;
}

/* It turns out not to fit: of an outer one the bytes from offset on stay. */
static void
turn_long(struct shortener *s)
{
    s->is_long = true;
    if (!s->is_outer || s->offset == 0)
        return;
    s->from = s->mark_from;
    if (s->mark_from < 0 || s->too_long) {
        cut_back(s, s->start);
        return;
    }
    memmove(s->out.data + s->start, s->out.data + s->mark, s->out.len - s->mark);
    cut_back(s, s->out.len - (s->mark - s->start));
}

/* Whether an inner string has no place at all in the answer. */
static bool
has_no_room(const struct shortener *s, int64_t len)
{
    if (s->depth <= 1)
        return false;
    return s->is_text ? len > SHORT_ENOUGH && s->inner_len > MAX_INNER_LEN : len > s->limit;
}

/* Whether the next character is one that stays: so many bytes of it, which are spelled in len.
 */
static bool
fits(struct shortener *s, size_t decoded, size_t len)
{
    int64_t end = s->at + (int64_t)decoded;

    if (!s->is_value)
        return true;
    if (has_no_room(s, end))
        s->is_null = true;
    if (!s->is_long && (end > s->limit || s->out.len - s->start + len > MAX_SPELLED_LEN))
        turn_long(s);
    if (!s->is_long)
        return true;
    if (s->from < 0 && s->at >= s->offset)
        s->from = s->at;
    if (s->from >= 0 &&
        (end > s->from + s->limit || s->out.len - s->start + len > MAX_SPELLED_LEN))
        s->is_over = true;
    return s->from >= 0 && !s->is_over;
}

/* The text of a character, which is so many bytes in UTF-8. */
static void
add_character(struct shortener *s, const char *text, size_t len, size_t decoded)
{
    if (s->mark_from < 0 && s->at >= s->offset) {
        s->mark = s->out.len;
        s->mark_from = s->at;
    }
    if (fits(s, decoded, len) && !s->is_null)
        put(s, text, len);
    s->at += (int64_t)decoded;
}

/* For what is no character. An id that had one would be another: it stays a fault. */
static void
add_replacement(struct shortener *s)
{
    if (s->is_id)
        add_character(s, "\\u0000", 6, 1);
    else
        add_character(s, "\xef\xbf\xbd", 3, 3);
}

/* What is left of a character that the next one does not complete. */
static void
end_character(struct shortener *s)
{
    if (s->has_high || s->n_bytes > 0)
        add_replacement(s);
    s->has_high = false;
    s->n_bytes = 0;
}

/* How long the character is that begins with this byte; 0: none does. */
static size_t
character_len(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xc2)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

static void
add_byte(struct shortener *s, char c)
{
    bool goes_on = ((unsigned char)c & 0xc0) == 0x80;

    if (s->has_high || (s->n_bytes > 0 && !goes_on))
        end_character(s);
    if (s->n_bytes == 0 && character_len((unsigned char)c) < 2) {
        if ((unsigned char)c < 0x80)
            add_character(s, &c, 1, 1);
        else
            add_replacement(s);
        return;
    }
    s->bytes[s->n_bytes++] = c;
    if (s->n_bytes < character_len((unsigned char)s->bytes[0]))
        return;
    if (text_is_utf8(s->bytes, s->n_bytes)) {
        add_character(s, s->bytes, s->n_bytes, s->n_bytes);
        s->n_bytes = 0;
    } else {
        end_character(s);
    }
}

/* The code of a whole escape of six characters; what is no number stays, for the parser to
 * refuse.
 */
static unsigned long
code_of(const char *escape)
{
    char digits[5] = "";

    memcpy(digits, escape + 2, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? strtoul(digits, NULL, 16) : 1;
}

static void
add_code(struct shortener *s, const char *escape)
{
    unsigned long code = code_of(escape);
    bool is_low = code >= 0xdc00 && code < 0xe000;
    char pair[12];

    if (s->has_high && is_low) {
        memcpy(pair, s->high, 6);
        memcpy(pair + 6, escape, 6);
        s->has_high = false;
        add_character(s, pair, sizeof pair, 4);
        return;
    }
    end_character(s);
    if (code >= 0xd800 && code < 0xdc00) {
        memcpy(s->high, escape, sizeof s->high);
        s->has_high = true;
    } else if (is_low || code == 0) {
        add_replacement(s);
    } else {
        add_character(s, escape, 6, code < 0x80 ? 1 : code < 0x800 ? 2 : 3);
    }
}

static void
add_to_escape(struct shortener *s, char c)
{
    s->escape[s->escape_len++] = c;
    if (s->escape_len < (s->escape_len > 1 && s->escape[1] == 'u' ? 6 : 2))
        return;
    if (s->escape_len == 6) {
        add_code(s, s->escape);
    } else {
        end_character(s);
        add_character(s, s->escape, 2, 1);
    }
    s->escape_len = 0;
}

static void
note_cut(struct shortener *s)
{
    struct shorten_cut *cut = &s->cuts[s->n_cuts];

    if (s->n_cuts == SHORTEN_NAMES) {
        s->too_long = true; /* it cannot be told any more what is missing */
        return;
    }
    s->n_cuts++;
    memcpy(cut->name, s->name, sizeof cut->name);
    cut->from = s->from < 0 ? s->at : s->from;
    cut->total = s->at;
}

static void
note_name(struct shortener *s)
{
    size_t len = s->out.len - s->start;

    memset(s->name, 0, sizeof s->name);
    if (!s->too_long && len < sizeof s->name)
        memcpy(s->name, buf_str(&s->out) + s->start, len);
}

/* What is left of any other string says itself that it is not whole. */
static void
put_note(struct shortener *s)
{
    char note[64];

    put(s, note, (size_t)snprintf(note, sizeof note, " [cut: %lld bytes]", (long long)s->at));
}

static void
end_string(struct shortener *s)
{
    end_character(s);
    s->in_string = false;
    if (s->is_null) {
        cut_back(s, s->start - 1);
        put(s, "null", 4);
        return;
    }
    if (!s->is_value)
        note_name(s);
    if (s->is_text && s->depth > 1 && s->at > SHORT_ENOUGH)
        s->inner_len += s->out.len - s->start;
    if (s->is_outer && s->is_long)
        note_cut(s);
    else if (s->is_long)
        put_note(s);
    put(s, "\"", 1);
}

static void
add_in_string(struct shortener *s, char c)
{
    if (s->escape_len > 0 || c == '\\')
        add_to_escape(s, c);
    else if (c == '"')
        end_string(s);
    else
        add_byte(s, c);
}

/* How many bytes change nothing but the length of a string whose kept part is over. */
static size_t
count_dropped(const struct shortener *s, const char *bytes, size_t len)
{
    size_t n = 0;

    if (!s->in_string || !s->is_over || s->escape_len > 0 || s->has_high || s->n_bytes > 0)
        return 0;
    while (n < len && bytes[n] != '"' && bytes[n] != '\\' && (unsigned char)bytes[n] < 0x80)
        n++;
    return n;
}

/* ---- between strings ---- */

static void
open_level(struct shortener *s, bool is_object)
{
    if (s->depth == MAX_DEPTH) {
        s->too_long = true;
        return;
    }
    s->in_object &= ~(UINT64_C(1) << s->depth);
    s->in_object |= (uint64_t)is_object << s->depth;
    s->depth++;
}

static void
add_outside(struct shortener *s, char c)
{
    if (c == '"') {
        begin_string(s);
        return;
    }
    if (c == '{' || c == '[')
        open_level(s, c == '{');
    else if ((c == '}' || c == ']') && s->depth > 0)
        s->depth--;
    if (c == ':')
        s->after_colon = true;
    else if (strchr("{[}],", c) && c)
        s->after_colon = false;
    if ((c == ',' || c == '{' || c == '[') && ++s->n_values > MAX_VALUES)
        s->too_long = true;
    put(s, &c, 1);
}

bool
shorten_add(struct shortener *s, const char *bytes, size_t len)
{
    const char *end = bytes + len;

    s->received += (int64_t)len;
    while (bytes < end && !s->too_long) {
        size_t n = count_dropped(s, bytes, (size_t)(end - bytes));
        s->at += (int64_t)n;
        bytes += n;
        if (bytes == end)
            break;
        if (s->in_string)
            add_in_string(s, *bytes++);
        else
            add_outside(s, *bytes++);
    }
    return s->received <= MAX_RECEIVED;
}
