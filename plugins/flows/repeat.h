/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Safe to repeat: clients that lose patience send the very same start again, each time from a
 * new process perhaps, and must not pay for it twice.
 */
#ifndef KCAP_FLOWS_REPEAT_H
#define KCAP_FLOWS_REPEAT_H

#include "show.h"

/* A short name for the text: equal ones mean equal texts. NULL when out of memory. */
char *repeat_mark(const char *text);

/* Records the start and returns KCAP_WAIT_TIMEOUT when it is to be made. Else a flow that is
 * there was shown instead, or the call is over; this is then what kcap_plugin.call returns. */
int32_t repeat_claim(const struct subject *subject, const struct event *start, bool new_run);

#endif
