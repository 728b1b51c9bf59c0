/* SPDX-License-Identifier: Apache-2.0 */
/* What the files reviewer*.c share. */
#ifndef KCAP_SERVER_REVIEWER_INTERNAL_H
#define KCAP_SERVER_REVIEWER_INTERNAL_H

#include "server/clocks.h"
#include "server/pipes.h"
#include "server/reviewer.h"
#include "server/util.h"

enum rung { RUNG_NONE, RUNG_INTERRUPT, RUNG_CLOSE, RUNG_TERM, RUNG_KILL };

struct reviewer {
    struct reviewer *next;
    struct reviewers *all;
    const struct vendor *vendor;
    void *state; /* the vendor's */
    char agent_id[UTIL_ID_LEN + 1];
    char mark[UTIL_ID_LEN + 1]; /* the value of its KCAP_REVIEWER */
    pid_t pid;
    bool exited;
    struct pipes pipes;
    struct buf output; /* the line being read; without vendor->line all of it */
    bool ready;        /* it can take a turn */
    const char *step;  /* of the handshake: what is waited for */
    int64_t later_ns;  /* UTIL_NEVER: the vendor wants nothing */

    bool has_job;
    struct assignment job;
    struct watch watch;
    bool in_turn;  /* the vendor was told */
    bool answered; /* the clocks do not count any more */
    bool reminded;
    int64_t linger_until_ns; /* answered: until then its turn may come to its end */
    struct buf explained;

    enum rung rung;
    int64_t rung_until_ns;
    bool may_live;   /* only its turn is to end: it is answered */
    struct loss end; /* fixed before the first step; its reason is in end_reason */
    struct buf end_reason;
};

struct reviewers {
    int epoll_fd;
    const char *url;
    const char *env_path;
    struct reviewer *first;
    struct reviewer *dead; /* freed by the next tick, when no event can name them */
    struct reviewer_event *events, **events_end;
};

struct reviewer *reviewer_find(const struct reviewers *reviewers, const char *agent_id);

/* ---- reviewer_event.c ---- */

/* Reports the end of the turn in hand, unless it is answered, and forgets the turn. */
void reviewer_lose(struct reviewer *reviewer, const struct loss *loss);
void reviewer_note_gone(struct reviewer *reviewer);

/* ---- reviewer_turn.c ---- */

void reviewer_begin_turn(struct reviewer *reviewer);
void reviewer_drop_turn(struct reviewer *reviewer);
/* Whether a clock of its has run out; then its end has begun. */
void reviewer_look(struct reviewer *reviewer, int64_t now_ns);
int64_t reviewer_until_ns(const struct reviewer *reviewer);

/* ---- ladder.c ---- */

/* The first step. loss says why; its reason is copied. */
void ladder_begin(struct reviewer *reviewer, const struct loss *loss);
/* From closing its input on: a turn that must end is not asked to. */
void ladder_begin_close(struct reviewer *reviewer, const struct loss *loss);
void ladder_next(struct reviewer *reviewer);
/* The turn ended while it was being ended. */
void ladder_turn_ended(struct reviewer *reviewer);

#endif
