/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a notification of codex app-server says about our turn: which threads and turns are
 * ours, which items are open, and what is proof that the turn goes on.
 */
#ifndef KCAP_SERVER_CODEX_TRACK_H
#define KCAP_SERVER_CODEX_TRACK_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/span.h"

#define TRACK_MAX_THREADS 64
#define TRACK_MAX_ITEMS   256
#define TRACK_MAX_ID      64

/* A thread and the turn of it that is ours. */
struct track_thread {
    char id[TRACK_MAX_ID + 1];
    char turn[TRACK_MAX_ID + 1]; /* "": none yet */
};

struct track_item {
    char id[TRACK_MAX_ID + 1];
    size_t thread;    /* whose it is: its place in threads */
    bool is_mcp_call; /* else a command */
};

struct codex_track {
    struct track_thread threads[TRACK_MAX_THREADS]; /* the first is the root */
    size_t thread_count;
    struct track_item items[TRACK_MAX_ITEMS]; /* open ones */
    size_t item_count;
};

enum track_sign {
    TRACK_NOTHING, /* not of our turn, or no proof of life */
    TRACK_ALIVE,
    TRACK_RETRYING, /* the harness tries again: no life */
    TRACK_BROKEN,   /* an error that will end the turn */
    TRACK_ENDED,    /* our turn has ended */
    TRACK_CLOSED    /* our thread is gone */
};

/* False when the id is too long to be one. */
bool track_set_root(struct codex_track *track, struct span thread_id);
/* A new turn of the root; its id may come with turn/started or with the answer. */
void track_begin_turn(struct codex_track *track);
void track_set_turn(struct codex_track *track, struct span turn_id);
const char *track_root(const struct codex_track *track);
const char *track_turn(const struct codex_track *track); /* "" while it is not known */

enum track_sign track_read(struct codex_track *track, const char *method, struct span params);

void track_count_open(const struct codex_track *track, unsigned *ret_mcp_calls,
                      unsigned *ret_commands);

#endif
