/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must outlive this process: one file of JSON lines per session, appended under flock.
 * Safe at every instruction: a torn last line is skipped, and a rewrite is a rename.
 */
#ifndef KCAP_FLOWS_JOURNAL_H
#define KCAP_FLOWS_JOURNAL_H

#include "runs.h"

/* Appends the event to the session's file in dir. Returns 0 or -errno; -EWOULDBLOCK: somebody
 * else is writing, nothing was done. */
int journal_append(const char *dir, const char *session, const struct event *event);

/* The same for a start or a round, unless the file has one that it would double: then nothing
 * is written, and this returns -EEXIST with a copy of that (see runs_take_double). Of two at
 * once one finds the other. */
int journal_claim(const char *dir, const struct event *order, const struct runs *passed,
                  struct runs *ret_found);

/* Applies the session's file to runs. Returns 0 (also when there is none) or -errno. */
int journal_load(const char *dir, const char *session, struct runs *runs);

/* Removes the files of sessions that have been silent for a month; now_ms is the wall clock. */
void journal_prune(const char *dir, int64_t now_ms);

#endif
