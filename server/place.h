/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one daemon per state directory: its lock, held for life, and its socket, which is only
 * ever there while somebody accepts on it.
 */
#ifndef KCAP_SERVER_PLACE_H
#define KCAP_SERVER_PLACE_H

#include <stdbool.h>

#include "lib/buf.h"

struct place {
    char *dir;
    char *socket_path;
    char *hidden_path; /* the socket's name while it is not published */
    char *url;         /* unix://SOCKET_PATH */
    char *store_path;
    char *log_path;
    int lock_fd;   /* -1 until taken */
    int listen_fd; /* -1 while there is none; non-blocking */
};

/* Finds (and makes) the state directory and refuses one that cannot hold a store. Returns 0 or
 * negative with a line for people in error. */
int place_init(struct place *place, struct buf *error);
void place_fini(struct place *place);

/* Takes the lock, or finds that another daemon answers on the socket: *ret_served. Waits, not
 * for long, for a daemon that is just starting or leaving. */
int place_take(struct place *place, bool *ret_served, struct buf *error);

/* Listens, then publishes; again when the socket was removed. */
int place_listen(struct place *place, struct buf *error);

/* Moves the socket out of sight (newcomers start the next daemon) or back. */
int place_hide(struct place *place);
int place_publish(struct place *place);

/* A descriptor that is readable when something was removed from the directory: close-on-exec,
 * non-blocking, the caller's to read and close. Or -errno. */
int place_watch(const struct place *place);
bool place_is_published(const struct place *place);
/* Whether more than the socket was removed: then the directory is going, and us with it. */
bool place_is_going(const struct place *place);

/* The next connection of our own user, close-on-exec and non-blocking, and whether a process of
 * one of our reviewers made it. Or -errno: -EAGAIN when there is none, else it is still in the
 * queue and the listening socket stays readable. */
int place_accept(const struct place *place, bool *ret_by_reviewer);

#endif
