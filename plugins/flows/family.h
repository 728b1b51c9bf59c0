/* SPDX-License-Identifier: Apache-2.0 */
/* Reviews and flows of any kind have tools of their own over the same runs: these are the words
 * in which an answer tells the agent what to call next. */
#ifndef KCAP_FLOWS_FAMILY_H
#define KCAP_FLOWS_FAMILY_H

enum next {
    NEXT_WAIT,        /* the round goes on */
    NEXT_FIND,        /* there may be a run */
    NEXT_LOOK,        /* how this run stands is not known */
    NEXT_LOOK_OR_ASK, /* and looking just failed */
    NEXT_LOOK_LONGER, /* and it was waited for */
    NEXT_CHOOSE,      /* there are several runs */
    NEXT_ADDRESS,     /* no round yet: the participants wait for work */
    NEXT_FIX,         /* there are findings */
    NEXT_ANSWER,      /* the reviewer asks */
    NEXT_MEND,        /* the round failed */
    NEXT_READ,        /* the round ended without a result, and why is known */
    NEXT_REDO,        /* and why is not known */
    NEXT_CLOSE,       /* nothing is left to do */
    N_NEXT
};

struct family {
    const char *start, *round, *status, *close; /* its tools */
    const char *next[N_NEXT];
};

extern const struct family family_review, family_flow;

#endif
