/* SPDX-License-Identifier: Apache-2.0 */
/* An answer that is shortened while it comes in, cut into pieces anywhere: what was JSON still
 * is, the same but for its long texts, and of those exactly the promised bytes are left. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json.h"
#include "lib/text.h"
#include "plugins/flows/shorten.h"
#include "tests/fuzz/fuzz.h"

struct given {
    int64_t keep, offset;
    bool has_escapes; /* names are looked for as they are spelled */
    const struct shortener *shortener;
};

static const struct shorten_cut *
find_cut(const struct given *given, const char *name)
{
    for (size_t i = given->shortener->n_cuts; i > 0; i--) {
        if (strcmp(given->shortener->cuts[i - 1].name, name) == 0)
            return &given->shortener->cuts[i - 1];
    }
    return NULL;
}

/* The first byte at or behind at that begins a character. */
static size_t
boundary(const char *text, size_t len, size_t at)
{
    while (at < len && ((unsigned char)text[at] & 0xc0) == 0x80)
        at++;
    return at < len ? at : len;
}

static bool
is_text(const cJSON *item)
{
    size_t len = item->string ? strlen(item->string) : 0;

    return len >= 4 && len < 64 && strcmp(item->string + len - 4, "text") == 0;
}

static void
compare_text(const struct given *given, const char *was, const char *is, bool is_outer)
{
    size_t len = strlen(was), from, end;
    char note[64] = "";

    if (len <= (size_t)given->keep) {
        if (strcmp(was, is) != 0)
            abort();
        return;
    }
    from = is_outer ? boundary(was, len, (size_t)given->offset) : 0;
    end = from + text_prefix(was + from, len - from, (size_t)given->keep);
    if (!is_outer)
        (void)snprintf(note, sizeof note, " [cut: %zu bytes]", len);
    if (strncmp(is, was + from, end - from) != 0 || strcmp(is + (end - from), note) != 0)
        abort();
}

static void
compare(const struct given *given, const cJSON *was, const cJSON *is, int depth)
{
    const cJSON *one = was->child, *other = is->child;

    if (was->type != is->type)
        abort();
    if (cJSON_IsString(was) && (!is_text(was) || given->has_escapes) &&
        strcmp(was->valuestring, is->valuestring) == 0)
        return;
    if (cJSON_IsString(was) && !is_text(was))
        abort();
    if (cJSON_IsString(was)) {
        bool is_outer = depth == 1;
        size_t len = strlen(was->valuestring);
        const struct shorten_cut *cut;
        compare_text(given, was->valuestring, is->valuestring, is_outer);
        if (!is_outer || len <= (size_t)given->keep || strlen(was->string) > 63 ||
            strlen(was->string) != strlen(is->string))
            return;
        cut = find_cut(given, was->string);
        if (cut ? cut->total != (int64_t)len : !given->has_escapes)
            abort();
    }
    for (; one && other; one = one->next, other = other->next) {
        if (one->string && strcmp(one->string, other->string) != 0)
            abort();
        compare(given, one, other, depth + 1);
    }
    if (one || other)
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data + 2;
    struct shortener shortener;
    struct given given = {.shortener = &shortener};
    cJSON *was, *is;

    if (size < 2)
        return 0;
    size -= 2;
    given.keep = data[0] + 4; /* any character fits */
    given.offset = data[1];
    given.has_escapes = memchr(text, '\\', size) != NULL;
    shorten_init(&shortener, given.keep, given.offset);
    for (size_t at = 0, piece; at < size; at += piece) {
        piece = (at * 7 + size) % 5 + 1;
        if (piece > size - at)
            piece = size - at;
        (void)shorten_add(&shortener, text + at, piece);
    }
    was = json_parse(text, size, NULL);
    is = json_parse(buf_str(&shortener.out), shortener.out.len, NULL);
    if (was && !shortener.too_long) {
        if (!is)
            abort();
        compare(&given, was, is, 0);
    }
    cJSON_Delete(was);
    cJSON_Delete(is);
    shorten_fini(&shortener);
    return 0;
}
