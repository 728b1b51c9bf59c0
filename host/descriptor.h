/* SPDX-License-Identifier: Apache-2.0 */
/* The checks between "the file is mapped" and "its code is called". */
#ifndef KCAP_HOST_DESCRIPTOR_H
#define KCAP_HOST_DESCRIPTOR_H

#include <kcap/plugin.h>

/* Copies the descriptor at symbol (size bytes by its ELF symbol) into *ret, zero where it is
 * shorter than ours, and checks it with its tools, options and commands. Returns 0, or -1 with
 * the reason in why. */
int descriptor_check(const void *symbol, size_t size, uint32_t trust_class,
                     struct kcap_plugin *ret, char *why, size_t why_len);

/* The tool of exactly this name, or NULL. */
const struct kcap_tool *descriptor_tool(const struct kcap_plugin *plugin, const char *name);

#endif
