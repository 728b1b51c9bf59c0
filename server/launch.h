/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an open round to a reviewer that works on it: a fair queue, and a start so that a crash
 * at any instruction leaves no process behind: one gets its input only once its pid is on disk,
 * and without input it leaves.
 */
#ifndef KCAP_SERVER_LAUNCH_H
#define KCAP_SERVER_LAUNCH_H

#include "server/queue.h"
#include "server/reviewer.h"
#include "server/store.h"

struct launch_entry;

struct launcher {
    const char *settings_path;
    const char *work_dir; /* of copies of checkouts */
    const struct settings_override *override;
    size_t max_turns; /* as the settings said last */
    struct queue queue;
    struct launch_entry *first; /* started, not yet on disk */
};

void launcher_init(struct launcher *launcher, const char *settings_path, const char *work_dir,
                   const struct settings_override *override);
void launcher_fini(struct launcher *launcher);

void launch_add(struct launcher *launcher, struct store *store, struct reviewers *reviewers,
                const char *round_id);
/* Begins as many turns as there may be. A failure becomes a lost round. */
void launch_run(struct launcher *launcher, struct store *store, struct reviewers *reviewers);
/* A child has ended; false when it is none of the launcher's. */
bool launch_child_ended(struct launcher *launcher, pid_t pid, int status);
/* Gives up copies that take too long. */
void launch_tick(struct launcher *launcher, int64_t now_ns);
int64_t launch_deadline_ns(const struct launcher *launcher);
size_t launch_count(const struct launcher *launcher); /* of rounds that wait */
bool launch_is_idle(const struct launcher *launcher);
bool launch_is_queued(const struct launcher *launcher, const char *round_id);

#endif
