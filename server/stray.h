/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that a reviewer's process left behind. As the subreaper we get each of them as a
 * child, whatever session or group it made for itself.
 */
#ifndef KCAP_SERVER_STRAY_H
#define KCAP_SERVER_STRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "server/reviewer.h"

/* Whether all children of this process will be reviewers' or started here: not so when it had
 * some already, or when it is the first process and gets everybody's. */
bool strays_are_ours(void);

/* Kills the children that nobody here started, but for those that carry the mark of a reviewer
 * that lives: they end with it. is_ours names the children that are no reviewers and are to
 * stay. What a killed one leaves behind comes to us when it has ended: call this after each end
 * of a child. Returns how many were killed. */
size_t strays_end(const struct reviewers *reviewers,
                  bool (*is_ours)(const void *arg, pid_t pid), const void *arg);

#endif
