/* SPDX-License-Identifier: Apache-2.0 */
/* Telling the plugin what became of its answers. Everything here is called under host->lock;
 * the plugin itself is called without it, by one worker at a time, so that the order of events
 * holds. */
#ifndef KCAP_HOST_SETTLED_H
#define KCAP_HOST_SETTLED_H

#include "host/calls.h"

/* Puts a call's outcome in line, and behind it the cancel that crossed its answer. */
void settled_queue(struct kcap_call *call);

/* Keeps an answered call's id, for a cancel that may be on its way. */
void settled_remember(struct kcap_call *call);

/* Its answer was taken back before it left. */
void settled_forget(struct kcap_call *call);

/* A cancel for an id that no running call has: if it was answered a moment ago, the two
 * crossed. */
void settled_late_cancel(struct host *host, struct span id);

#endif
