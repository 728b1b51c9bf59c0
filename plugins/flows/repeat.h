/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Safe to repeat: clients that lose patience send the very same start or round again, each time
 * from a new process perhaps, and must not pay for it twice.
 */
#ifndef KCAP_FLOWS_REPEAT_H
#define KCAP_FLOWS_REPEAT_H

#include "show.h"

/* A short name for the text: equal ones mean equal texts. NULL when out of memory. */
char *repeat_mark(const char *text);

/* Records the start and returns KCAP_WAIT_TIMEOUT when it is to be made. Else a flow that is
 * there was shown instead, or the call is over; this is then what kcap_plugin.call returns. */
int32_t repeat_claim(const struct subject *subject, const struct event *start);

/* The same for a round: body is what would be sent for it. One that ended without a result is
 * in nobody's way. */
int32_t repeat_claim_round(const struct subject *subject, const char *run_id, const char *body);

/* What repeat_claim_round has recorded was not sent. */
void repeat_note_not_taken(const struct subject *subject, const char *run_id, const char *body);

/* What both have in common. */

/* The subject with a line about what is joined, of so long ago, and how to have another; the
 * line is in note. */
struct subject repeat_joining(const struct subject *joined, int64_t since_ms, const char *what,
                              const char *another, struct buf *note);

/* How the run stands is not known (answer, or else fault, says why), and what that means. */
int32_t repeat_show_unseen(const struct subject *subject, const struct run *run,
                           const struct api_answer *answer, const char *fault,
                           const char *meaning);

#endif
