/* SPDX-License-Identifier: Apache-2.0 */
/* One question to the daemon that serves a place, from a command in the terminal. */
#ifndef KCAP_SERVER_ASK_H
#define KCAP_SERVER_ASK_H

#include <sys/types.h>

#include "lib/json.h"
#include "server/place.h"

/* GET path. Returns 0 with *ret_json, -ENOENT when no daemon runs, or another negative number
 * with a line for people in error. */
int ask(const struct place *place, const char *path, cJSON **ret_json, struct buf *error);

/* The daemon's pid, from the kernel. Returns 0, -ENOENT or -errno. */
int ask_pid(const struct place *place, pid_t *ret);

#endif
