/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer with a hard cap. A failed append (cap or memory) changes nothing and
 * sticks, so a row of appends is checked once, at the end, with buf_ok.
 */
#ifndef KCAP_LIB_BUF_H
#define KCAP_LIB_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data; /* NULL until the first append; then a NUL stands after len */
    size_t len;
    size_t cap;
    size_t max; /* longest len allowed */
    bool failed;
};

#define BUF_INIT(max_len) \
    ((struct buf){.data = NULL, .len = 0, .cap = 0, .max = (max_len), .failed = false})

void buf_init(struct buf *buf, size_t max_len);
void buf_fini(struct buf *buf); /* frees; buf is empty again with the same cap */
void buf_clear(struct buf *buf);

void buf_add(struct buf *buf, const void *bytes, size_t len);
void buf_adds(struct buf *buf, const char *text);
void buf_addc(struct buf *buf, char c);
void buf_addf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes room for len more bytes; false (and failed) when that would pass the cap. */
bool buf_reserve(struct buf *buf, size_t len);

/* Drops the first len bytes. */
void buf_shift(struct buf *buf, size_t len);

static inline bool
buf_ok(const struct buf *buf)
{
    return !buf->failed;
}

/* Borrowed text, "" while empty. */
static inline const char *
buf_str(const struct buf *buf)
{
    return buf->data ? buf->data : "";
}

/* Hands out the bytes (to be freed by the caller) and empties buf. NULL when anything had
 * failed. */
char *buf_take(struct buf *buf, size_t *ret_len);

#define AUTO_BUF __attribute__((cleanup(buf_fini)))

#endif
