/* SPDX-License-Identifier: Apache-2.0 */
/* The three streams of a child, from our side: never blocking, capped, close-on-exec, so that
 * our death is the child's end of file. */
#ifndef KCAP_SERVER_PIPES_H
#define KCAP_SERVER_PIPES_H

#include <stdbool.h>

#include "lib/buf.h"
#include "server/loop.h"

#define PIPES_MAX_LINE ((size_t)16 << 20)
#define PIPES_MAX_SAID 400 /* of the last line on standard error, or output */

/* The last line of a stream that was not blank. */
struct last_line {
    struct buf line; /* being read */
    struct buf words;
};

struct pipes {
    int epoll_fd;
    struct source input, output, errors;
    struct buf unsent;
    bool fed;       /* what is sent goes out; before, it waits */
    bool end_input; /* close once all is sent */
    bool refused;   /* what it goes on writing is thrown away */
    struct last_line said, complained;
    /* Bytes came on standard output, or none for its end. */
    void (*got)(struct pipes *pipes, const char *bytes, size_t len);
    /* Something came on standard error. */
    void (*complaint)(struct pipes *pipes);
};

void pipes_init(struct pipes *pipes,
                void (*got)(struct pipes *pipes, const char *bytes, size_t),
                void (*complaint)(struct pipes *pipes));
/* Theirs are the child's ends, the caller's to close. Returns 0 or -errno. */
int pipes_open(struct pipes *pipes, int epoll_fd, int ret_theirs[3]);
void pipes_close(struct pipes *pipes);

void pipes_feed(struct pipes *pipes);
/* False when there is too much unsent. */
bool pipes_send(struct pipes *pipes, const void *bytes, size_t len);
void pipes_end_input(struct pipes *pipes);
/* At once, whatever is unsent. */
void pipes_close_input(struct pipes *pipes);
/* Reads standard output once more, now. */
void pipes_look(struct pipes *pipes);
/* Reads what is there after the child's end. */
void pipes_drain(struct pipes *pipes);
/* The last line it wrote to standard output or error, NULL for none. */
const char *pipes_said(const struct last_line *last);

#endif
