/* SPDX-License-Identifier: Apache-2.0 */
/* Starting reviewers so that a crash at any instruction leaves none behind: a process gets its
 * input only once its pid is on disk, and without input it leaves. */
#ifndef KCAP_SERVER_LAUNCH_H
#define KCAP_SERVER_LAUNCH_H

#include "server/reviewer.h"
#include "server/store.h"

struct launch_entry;

struct launcher {
    struct launch_entry *first; /* started, not yet on disk */
};

/* Starts the round's reviewer, unfed. A failure becomes a lost round. */
void launch_prepare(struct launcher *launcher, struct store *store, struct reviewers *reviewers,
                    const char *round_id);

/* Records what was prepared, in a transaction of its own, and feeds it. */
void launch_commit(struct launcher *launcher, struct store *store, struct reviewers *reviewers);

#endif
