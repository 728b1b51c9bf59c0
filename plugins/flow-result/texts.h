/* SPDX-License-Identifier: Apache-2.0 */
/* What the reviewer is told. */
#ifndef KCAP_FLOW_RESULT_TEXTS_H
#define KCAP_FLOW_RESULT_TEXTS_H

#include "deliver.h"

#include "lib/buf.h"

/* Appends the text for an outcome; returns whether it is an error. */
int32_t texts_add(struct buf *to, enum errand_kind kind, const struct delivery *delivery);

/* The same as structured content, with the text in it: Codex and Claude Code show their models
 * nothing else of a result that has any. */
void texts_add_json(struct buf *to, const struct delivery *delivery, const struct buf *text);

/* "delivered", "not_delivered", "unknown". */
const char *texts_outcome(enum outcome outcome);

#endif
