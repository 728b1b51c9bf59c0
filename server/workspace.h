/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a participant works: the driver's own checkout, a copy of it that is thrown away, or an
 * empty directory. Copies lie below the state directory, one for each agent.
 */
#ifndef KCAP_SERVER_WORKSPACE_H
#define KCAP_SERVER_WORKSPACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "server/store.h"

#define WORKSPACE_FALLBACK "fallback" /* an empty directory, and fallback_reason says why */

/* Settles applied_workspace, fallback_reason and dir of *who, and makes the directory. Returns
 * 1 when a copy is to be made there before each turn, 0 when nothing is, or -errno. */
int workspace_settle(const char *work_dir, const char *cwd, struct participant *who);

/* argv[1] of the children that make a copy (SOURCE, DIR) and that remove some (DIR ...). */
#define WORKSPACE_COPY_WORD   "--copy-workspace"
#define WORKSPACE_REMOVE_WORD "--remove-workspace"
int workspace_copy(const char *source, const char *dir);
int workspace_remove(char *const *dirs);

/* Removes all that is in a directory, not the directory itself: it may be somebody's working
 * directory. Says on standard error what it cannot. Returns 0 or -errno. */
int workspace_empty(const char *dir);

/* Starts a child that removes directories of agents that are neither in a run that is open nor
 * in use. Returns its pid, or 0 when there is nothing to remove. */
pid_t workspace_sweep(const char *work_dir, struct store *store,
                      bool (*is_in_use)(const void *arg, const char *agent_id),
                      const void *arg);

#endif
