/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way out to the client: whole lines, in the order they were queued. The descriptor is
 * inherited and may be shared, so it is never switched to non-blocking; what the pipe does not
 * take at once goes to a writer thread, and nobody else waits for a client that does not read.
 */
#ifndef KCAP_HOST_WIRE_H
#define KCAP_HOST_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"

struct wire;
struct kcap_call;

#define WIRE_PROGRESS_MAX (1u << 20)   /* more than this waiting: progress is dropped */
#define WIRE_CALLS_MAX    (64u << 20)  /* more than this waiting: new calls are refused */
#define WIRE_READ_MAX     (128u << 20) /* more than this waiting: the client is not read */

/* Takes over fd. NULL when out of memory. */
struct wire *wire_new(int fd);

/* Appends one line (with its LF) and takes its bytes; line is empty afterwards. call, when not
 * NULL, is told by call_written and holds a reference until then. False when the line was
 * broken or memory is out: then nothing is queued and call is not told. */
bool wire_queue(struct wire *wire, struct buf *line, struct kcap_call *call);

/* Writes what goes without waiting; the writer thread gets the rest. */
void wire_flush(struct wire *wire);

/* Between these two, flushes wait, so that the answers of one turn leave in one write. Main
 * thread. */
void wire_cork(struct wire *wire);
void wire_uncork(struct wire *wire);

size_t wire_pending(struct wire *wire); /* bytes not yet written */

/* Waits until all is written or until_ns has come. */
bool wire_drain(struct wire *wire, int64_t until_ns);

/* Waits until fewer bytes are pending, or until until_ns. */
void wire_wait_below(struct wire *wire, size_t bytes, int64_t until_ns);

#endif
