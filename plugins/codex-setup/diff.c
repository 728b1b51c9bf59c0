/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "setup.h"

#define CONTEXT 3

/* The start of the line that holds byte at. */
static size_t
line_start(const struct buf *text, size_t at)
{
    while (at > 0 && text->data[at - 1] != '\n')
        at--;
    return at;
}

/* The end of the line that begins at from, behind its line end. */
static size_t
line_end(const struct buf *text, size_t from)
{
    const char *lf =
        from < text->len ? memchr(text->data + from, '\n', text->len - from) : NULL;

    return lf ? (size_t)(lf - text->data) + 1 : text->len;
}

static size_t
count_lines(const struct buf *text, size_t from, size_t to)
{
    size_t n = 0;

    for (; from < to; from = line_end(text, from))
        n++;
    return n;
}

static size_t
back(const struct buf *text, size_t at, int lines)
{
    for (; lines > 0 && at > 0; lines--)
        at = line_start(text, at - 1);
    return at;
}

static size_t
ahead(const struct buf *text, size_t at, int lines)
{
    for (; lines > 0 && at < text->len; lines--)
        at = line_end(text, at);
    return at;
}

static void
add_lines(struct buf *to, char mark, const struct buf *text, size_t from, size_t end)
{
    while (from < end) {
        size_t next = line_end(text, from);

        buf_addc(to, mark);
        buf_add(to, text->data + from, next - from);
        if (text->data[next - 1] != '\n')
            buf_adds(to, "\n\\ No newline at end of file\n");
        from = next;
    }
}

void
diff_add(struct buf *to, const char *path, const struct buf *old, const struct buf *text)
{
    size_t head = 0, tail = 0, from, old_end, new_end;
    size_t least = old->len < text->len ? old->len : text->len;

    while (head < least && old->data[head] == text->data[head])
        head++;
    head = line_start(text, head); /* the same in both: it lies in what they share */
    while (tail < least - head &&
           old->data[old->len - 1 - tail] == text->data[text->len - 1 - tail])
        tail++;
    /* only whole lines count as shared */
    while (tail > 0 && ((old->len > tail && old->data[old->len - tail - 1] != '\n') ||
                        (text->len > tail && text->data[text->len - tail - 1] != '\n')))
        tail--;
    from = back(text, head, CONTEXT);
    old_end = ahead(old, old->len - tail, CONTEXT);
    new_end = ahead(text, text->len - tail, CONTEXT);

    buf_addf(to, "--- %s\n+++ %s\n@@ -%zu,%zu +%zu,%zu @@\n", path, path,
             count_lines(old, 0, from) + (old_end > from), count_lines(old, from, old_end),
             count_lines(text, 0, from) + (new_end > from), count_lines(text, from, new_end));
    add_lines(to, ' ', text, from, head);
    add_lines(to, '-', old, head, old->len - tail);
    add_lines(to, '+', text, head, text->len - tail);
    add_lines(to, ' ', old, old->len - tail, old_end);
}
