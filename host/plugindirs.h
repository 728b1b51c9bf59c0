/* SPDX-License-Identifier: Apache-2.0 */
/* Where plugins are looked for: ROOT/CLASS/NAME.so, then, for drivers, the user's own
 * directory. */
#ifndef KCAP_HOST_PLUGINDIRS_H
#define KCAP_HOST_PLUGINDIRS_H

#include <stddef.h>
#include <stdint.h>

#include "host/cli.h"

/* The directories for a class, in order; absent ones are NULL. Free each. */
#define PLUGINDIRS_MAX 2
void plugindirs_of(const struct cli *cli, uint32_t trust_class, char *ret_dirs[PLUGINDIRS_MAX]);

/* The path of NAME.so in the first directory that has it (to be freed), or NULL after logging.
 */
char *plugindirs_find(const struct cli *cli, uint32_t trust_class, const char *name);

/* Prints "name class path" for each plugin file, with the reason where it would be refused;
 * nothing is mapped. Returns the exit status. */
int plugindirs_list(const struct cli *cli);

#endif
