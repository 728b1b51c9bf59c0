/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's life once it holds its place: one thread, one loop, one transaction per turn. */
#ifndef KCAP_SERVER_SERVER_H
#define KCAP_SERVER_SERVER_H

#include <stdint.h>

#include "server/place.h"
#include "server/reviewer.h"

struct server_options {
    int64_t idle_exit_sec; /* 0: never */
    struct settings_override override;
    const char *listen;     /* NULL: no TCP */
    const char *config_dir; /* of flowd.json, flowd.env and flows/ */
};

/* Serves until a signal, or until nobody has come for idle_exit_sec. listening is called when
 * the socket answers. Returns 0 or negative with a line for people in error. */
int server_run(struct place *place, const struct server_options *options,
               void (*listening)(void *arg), void *arg, struct buf *error);

#endif
