/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/reader.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define CHUNK (64u << 10)

void
reader_init(struct reader *reader, int fd)
{
    *reader = (struct reader){.fd = fd, .buf = BUF_INIT(READER_MAX_LINE + 2 * CHUNK)};
}

/* Moves the unfinished line to the front, once per fill and only when there is something before
 * it. */
static void
compact(struct reader *reader)
{
    buf_shift(&reader->buf, reader->start);
    reader->scanned -= reader->start;
    reader->start = 0;
}

void
reader_fill(struct reader *reader)
{
    ssize_t n;

    if (reader->start > 0)
        compact(reader);
    if (!buf_reserve(&reader->buf, CHUNK)) {
        reader->eof =
            true; /* out of memory, or a bug: the limit below keeps the buffer under its cap */
        return;
    }
    do
        n = read(reader->fd, reader->buf.data + reader->buf.len, CHUNK);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        reader->buf.len += (size_t)n;
    else if (n == 0 ||
             errno !=
                 EAGAIN) /* the descriptor is shared: others may have made it non-blocking */
        reader->eof = true;
}

static bool
is_blank(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            return false;
    }
    return true;
}

/* Takes one raw line of len bytes plus skip (its LF). */
static const char *
take_line(struct reader *reader, size_t len, size_t skip)
{
    const char *line = reader->buf.data + reader->start;

    reader->start += len + skip;
    reader->scanned = reader->start;
    return line;
}

enum reader_result
reader_next(struct reader *reader, const char **ret_line, size_t *ret_len)
{
    for (;;) {
        const char *from = buf_str(&reader->buf) + reader->scanned;
        const char *lf = memchr(from, '\n', reader->buf.len - reader->scanned);
        size_t len =
            (lf ? (size_t)(lf - buf_str(&reader->buf)) : reader->buf.len) - reader->start;
        const char *line;

        if (!lf && !reader->eof) {
            reader->scanned = reader->buf.len;
            if (reader->skipping || len > READER_MAX_LINE) {
                bool first = !reader->skipping;
                (void)take_line(reader, len, 0);
                reader->skipping = true;
                if (first)
                    return READER_TOO_LONG;
            }
            return READER_NONE;
        }
        if (!lf && len == 0)
            return READER_NONE;
        line = take_line(reader, len, lf ? 1 : 0);
        if (reader->skipping) {
            reader->skipping = false;
            continue;
        }
        if (len > READER_MAX_LINE)
            return READER_TOO_LONG;
        if (is_blank(line, len))
            continue;
        if (line[len - 1] == '\r')
            len--;
        *ret_line = line;
        *ret_len = len;
        return READER_LINE;
    }
}
