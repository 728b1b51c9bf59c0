/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JSON-RPC batch (revision 2025-03-26 alone has them): the answers to one array leave as one
 * array, when the last of them is there. Everything here is called under host->lock.
 */
#ifndef KCAP_HOST_BATCH_H
#define KCAP_HOST_BATCH_H

#include "host/host.h"
#include "lib/buf.h"
#include "lib/span.h"

struct batch;
struct kcap_call;

/* NULL when out of memory. */
struct batch *batch_new(struct host *host);

/* One more answer is to come. */
void batch_expect(struct batch *batch);

/* That answer: one line, whose bytes are taken. call (or NULL) is told by call_written when the
 * array left. False when it could not be kept; then it counts as skipped. */
bool batch_deliver(struct batch *batch, struct buf *line, struct kcap_call *call);

/* That answer will not come: its call was cancelled. */
void batch_skip(struct batch *batch);

/* No member is left to be read. The batch goes when it is complete; do not use it afterwards.
 */
void batch_seal(struct batch *batch);

/* Whether a call of this id has been answered, but its array has not left. */
bool batch_has_id(struct host *host, struct span id);

/* Takes such an answer out of its array. Returns the call, whose reference is the caller's now,
 * or NULL. */
struct kcap_call *batch_cancel(struct host *host, struct span id);

#endif
