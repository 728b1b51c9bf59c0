/* SPDX-License-Identifier: Apache-2.0 */
/* What a reviewer is told: its contract, its target, and the driver's words, fenced. */
#ifndef KCAP_SERVER_PROMPT_H
#define KCAP_SERVER_PROMPT_H

#include "lib/buf.h"
#include "server/store.h"

struct prompt_parts {
    const struct flow *flow;
    const struct round *round;
    const struct participant *who;
    const char *last_result; /* or NULL: what it said in an earlier round and no longer knows */
    bool says_verdict;       /* its result is what it writes to its standard output */
    bool remembers;          /* it was given the same contract before */
};

void prompt_write(const struct prompt_parts *parts, struct buf *to);
void prompt_write_reminder(const struct round *round, struct buf *to);

#endif
