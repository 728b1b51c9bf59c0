/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files, read with a cap and replaced so that a reader, or a crash, sees the old or the
 * new. */
#ifndef KCAP_LIB_ATOMIC_H
#define KCAP_LIB_ATOMIC_H

#include <stddef.h>
#include <sys/types.h>

#include "lib/buf.h"

/* Replaces path by these bytes: a temporary file in the same directory, flushed to disk, then
 * renamed. A file that is there keeps its mode, owner and extended attributes, a symbolic link
 * stays and its target is replaced; a new file gets mode. Returns 0, or -errno and the old file
 * is untouched. */
int atomic_write(const char *path, const void *bytes, size_t len, mode_t mode);

/* The same, unless the file is no longer what was read from it: then -ESTALE and nothing is
 * changed. It is looked at again right before the rename. An empty expectation also stands for
 * "no such file". */
int atomic_write_if(const char *path, const struct buf *expected, const void *bytes, size_t len,
                    mode_t mode);

/* Appends the content of a regular file to *ret. Returns 0 or -errno; -EFBIG when it does not
 * fit under ret's cap, -EINVAL when it is no regular file. */
int atomic_read(const char *path, struct buf *ret);

/* Whether name is that of a temporary file that a crash may have left behind. */
bool atomic_is_leftover(const char *name);

#endif
