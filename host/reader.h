/* SPDX-License-Identifier: Apache-2.0 */
/* Lines from the client: LF ends one, CR before it is dropped, blank ones are skipped. */
#ifndef KCAP_HOST_READER_H
#define KCAP_HOST_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/buf.h"

#define READER_MAX_LINE (16u << 20)

struct reader {
    int fd;
    struct buf buf;
    size_t start;   /* of the next line in buf */
    size_t scanned; /* no LF between start and here */
    bool skipping;  /* in the rest of a line that was too long */
    bool eof;
};

enum reader_result { READER_LINE, READER_TOO_LONG, READER_NONE };

void reader_init(struct reader *reader, int fd);

/* Reads what is there, once; blocks when nothing is. Sets eof at the end or on a read error. */
void reader_fill(struct reader *reader);

/* The next whole line (borrowed until the next fill), or the last one without its LF after eof.
 * TOO_LONG is told once for a line over the limit. */
enum reader_result reader_next(struct reader *reader, const char **ret_line, size_t *ret_len);

#endif
