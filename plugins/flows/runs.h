/* SPDX-License-Identifier: Apache-2.0 */
/* Runs as a list that events change: the same for what this process remembers and for what the
 * journal tells. */
#ifndef KCAP_FLOWS_RUNS_H
#define KCAP_FLOWS_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A start without an outcome counts no longer than this. */
#define START_FORGOTTEN_MS (INT64_C(3600) * 1000)

enum event_kind {
    EVENT_START,        /* a start is about to be sent */
    EVENT_START_FAILED, /* and made no run */
    EVENT_RUN,          /* a run's id became known */
    EVENT_SUBMIT,       /* a round is about to be sent */
    EVENT_NOT_TAKEN,    /* and was refused */
    EVENT_ROUND,        /* a round was accepted */
    EVENT_SHOWN,        /* an outcome was written to the client */
    EVENT_UNSHOWN,      /* which had given up at that moment */
    EVENT_NAMED,        /* a later call named the run: the outcome was read */
    EVENT_CLOSED,       /* the run was closed */
    N_EVENTS
};

/* Borrowed text; NULL and 0 are "not told". */
struct event {
    enum event_kind kind;
    int64_t wall_ms;
    int64_t round;
    bool ended;          /* SHOWN: the run itself had ended */
    bool unwanted;       /* RUN: it should have been closed at once and was not */
    bool beside;         /* START: others for the same target are in nobody's way */
    const char *session; /* key; not in the journal, where it is the file's name */
    const char *start_id, *run_id, *server;
    const char *definition, *target_kind, *target_ref, *target_title;
    const char *args_mark;   /* START, and all about a round: equal ones mean equal arguments */
    const char *target_mark; /* START: equal ones mean equal targets */
    const char *holder;      /* START, SUBMIT: who sends it */
};

#define MAX_SUBMISSIONS 4
#define MAX_MARK        40
#define MAX_HOLDER      64

/* A round that was sent, or is about to be. */
struct submission {
    char mark[MAX_MARK];     /* of its arguments */
    char holder[MAX_HOLDER]; /* who waits for the answer (holder.h) */
    int64_t round;           /* 0: not known */
    int64_t base;            /* the last round that was known before it, 0: none */
    int64_t at_ms, shown_ms; /* when it was sent, and its outcome written: 0: never */
};

struct run {
    char *session, *start_id, *run_id, *server;
    char *definition, *target_kind, *target_ref, *target_title;
    char *args_mark, *target_mark;
    char holder[MAX_HOLDER]; /* of its start */
    int64_t started_ms, updated_ms;
    int64_t round;    /* last one known, 0 for none */
    int64_t shown_ms; /* when the outcome of that round was written, 0 for never */
    bool ended;       /* with it */
    bool named;       /* by a call that came after it */
    bool unwanted;    /* its reviewer may not be the one that was asked for */
    struct submission rounds[MAX_SUBMISSIONS]; /* the last ones, oldest first */
    size_t n_rounds;
    bool is_guess; /* all that is known of the run is such a submission */
    /* told by the server just now */
    char *status, *round_status;
    bool listed;
};

struct runs {
    struct run *items;
    size_t n, cap;
};

void runs_fini(struct runs *runs);
#define AUTO_RUNS __attribute__((cleanup(runs_fini)))

/* Returns 0 or -ENOMEM. Events that name nothing known are fine. */
int runs_apply(struct runs *runs, const struct event *event);

struct run *runs_find(const struct runs *runs, const char *run_id);
void runs_remove(struct runs *runs, size_t at);

/* Appends a copy. Returns 0 or -ENOMEM. */
int runs_copy(struct runs *to, const struct run *from);

/* Copies into to what from has of that session and to has not. Returns 0 or -ENOMEM. */
int runs_merge(struct runs *to, const struct runs *from, const char *session);

/* Copies to ret_found (empty before) the newest run that this order would double. START: one of
 * its session and server, with its arguments or else its target, not delivered. SUBMIT: the run
 * it is for, if its last round had the same arguments and was not delivered. None among passed.
 * Returns 0 when there is none, -EEXIST or -ENOMEM. */
int runs_take_double(const struct runs *runs, const struct event *order,
                     const struct runs *passed, struct runs *ret_found);

/* The newest submission whose outcome is not known, or NULL. */
const struct submission *run_pending(const struct run *run);

/* The submission with that mark, or NULL. */
const struct submission *run_submission(const struct run *run, const char *mark);

/* Whether the outcome has reached the client: written, and no cancel crossed it, or a later
 * call named the run. */
bool run_is_delivered(const struct run *run, int64_t now_ms);

/* Replaces owned text; NULL leaves it as it is. */
int run_set(char **place, const char *text);

#endif
