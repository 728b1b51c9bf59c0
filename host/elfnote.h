/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the kcap note of a shared object with bounded reads, without mapping or running any of
 * it. */
#ifndef KCAP_HOST_ELFNOTE_H
#define KCAP_HOST_ELFNOTE_H

#include <stddef.h>
#include <stdint.h>

struct elfnote {
    uint32_t abi_major;
    uint32_t trust_class;
};

/* Returns 0, or -1 with *ret_error (else NULL) a constant that says what is wrong with the
 * file. */
int elfnote_read(int fd, struct elfnote *ret, const char **ret_error);

#endif
