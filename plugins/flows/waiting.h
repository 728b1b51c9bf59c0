/* SPDX-License-Identifier: Apache-2.0 */
/* Polling a run until its round is done. */
#ifndef KCAP_FLOWS_WAITING_H
#define KCAP_FLOWS_WAITING_H

#include "api.h"
#include "flows.h"
#include "view.h"

struct wait_goal {
    const char *run_id;
    int64_t round;       /* whose result is wanted; 0: whichever there is */
    const char *role;    /* who works on it; NULL: not known */
    int64_t called_ns;   /* when the call began: progress counts from there */
    int64_t text_offset; /* of the result's words */
    bool fresh;          /* just accepted: for some seconds the server may not show it yet */
};

enum wait_end_kind {
    WAIT_OVER,      /* view has the result, or nothing is being worked on */
    WAIT_RUN_ENDED, /* the run ended before the round did */
    WAIT_FAILED,    /* error says why; the run may go on */
};

struct wait_end {
    enum wait_end_kind kind;
    struct api_answer answer; /* what view borrows from */
    struct view view;
    int64_t seen_round; /* the round the server spoke of last, also at a deadline */
    char *error;
};

/* Returns 0 with *ret filled, else what ended the call (then only seen_round is). Free it with
 * wait_end_fini in either case. */
int32_t waiting_run(struct flows *flows, struct kcap_call *call, const struct wait_goal *goal,
                    struct wait_end *ret);
void wait_end_fini(struct wait_end *end);
#define AUTO_WAIT_END __attribute__((cleanup(wait_end_fini)))

#endif
