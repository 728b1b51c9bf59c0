/* SPDX-License-Identifier: Apache-2.0 */
/* How a call waits, and what wakes it. */
#ifndef KCAP_HOST_WAITS_H
#define KCAP_HOST_WAITS_H

#include "host/calls.h"

/* kcap_host.wait, .wake_fd and .notify. */
int32_t waits_wait(struct kcap_call *call, uint64_t seen_seq, struct kcap_fd *fds, uint32_t n,
                   int64_t until_ns);
int32_t waits_wake_fd(struct kcap_call *call);
void waits_notify(struct host *host);

/* Wakes this call to look at its state again. Under host->lock. */
void waits_wake(struct kcap_call *call);

/* Closes what the call was woken by, once nobody waits with it any more. */
void waits_close(struct kcap_call *call);

/* The end of the call as it stands now, or 0. Under host->lock. */
int32_t waits_end(struct kcap_call *call, int64_t now_ns);

#endif
