/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "lib/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
buf_init(struct buf *buf, size_t max_len)
{
    *buf = BUF_INIT(max_len);
}

void
buf_fini(struct buf *buf)
{
    free(buf->data);
    *buf = BUF_INIT(buf->max);
}

void
buf_clear(struct buf *buf)
{
    buf->len = 0;
    buf->failed = false;
    if (buf->data)
        buf->data[0] = '\0';
}

bool
buf_reserve(struct buf *buf, size_t len)
{
    size_t need, cap = buf->cap ? buf->cap : 128;
    char *data;

    if (buf->failed || len > buf->max || buf->len > buf->max - len ||
        __builtin_add_overflow(buf->len, len + 1, &need)) {
        buf->failed = true;
        return false;
    }
    if (need <= buf->cap)
        return true;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    data = realloc(buf->data, cap);
    if (!data) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    buf->cap = cap;
    return true;
}

void
buf_add(struct buf *buf, const void *bytes, size_t len)
{
    if (!buf_reserve(buf, len))
        return;
    if (len > 0)
        memcpy(buf->data + buf->len, bytes, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
}

void
buf_adds(struct buf *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}

void
buf_addc(struct buf *buf, char c)
{
    buf_add(buf, &c, 1);
}

void
buf_addf(struct buf *buf, const char *format, ...)
{
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0) {
        buf->failed = true;
        return;
    }
    if (!buf_reserve(buf, (size_t)len))
        return;
    va_start(args, format);
    (void)vsnprintf(buf->data + buf->len, (size_t)len + 1, format, args);
    va_end(args);
    buf->len += (size_t)len;
}

void
buf_shift(struct buf *buf, size_t len)
{
    if (len >= buf->len) {
        buf->len = 0;
    } else {
        memmove(buf->data, buf->data + len, buf->len - len);
        buf->len -= len;
    }
    if (buf->data)
        buf->data[buf->len] = '\0';
}

char *
buf_take(struct buf *buf, size_t *ret_len)
{
    char *data;

    if (buf->failed || (!buf->data && !buf_reserve(buf, 0))) {
        buf_fini(buf);
        return NULL;
    }
    data = buf->data;
    data[buf->len] = '\0';
    if (ret_len)
        *ret_len = buf->len;
    *buf = BUF_INIT(buf->max);
    return data;
}
