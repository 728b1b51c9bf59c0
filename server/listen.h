/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP listener of --listen, for clients that know no Unix socket. It is for loopback
 * addresses alone, and whoever comes that way has to show the token. */
#ifndef KCAP_SERVER_LISTEN_H
#define KCAP_SERVER_LISTEN_H

#include "lib/buf.h"

#define LISTEN_TOKEN_LEN 64

/* spec is PORT, ADDRESS:PORT or [ADDRESS]:PORT; port 0 is any. *ret_name, owned, is what it
 * listens on. Returns a non-blocking, close-on-exec descriptor, or negative with a line for
 * people in error. */
int listen_open(const char *spec, char **ret_name, struct buf *error);

/* Reads the token from path, or makes one there, for the owner alone. */
int listen_token(const char *path, char ret[LISTEN_TOKEN_LEN + 1], struct buf *error);

#endif
