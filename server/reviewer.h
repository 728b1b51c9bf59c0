/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of reviewers, each the leader of its own process group: started, given turns,
 * watched and ended here. At most one per agent. Whatever ends a turn early takes the same
 * ladder: interrupt, close its input, SIGTERM to the group, SIGKILL to the group; a result that
 * comes meanwhile counts.
 */
#ifndef KCAP_SERVER_REVIEWER_H
#define KCAP_SERVER_REVIEWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/engine.h"
#include "server/settings.h"
#include "server/vendor.h"

enum reviewer_event_kind {
    REVIEWER_LOST,    /* the turn ended without a result: loss */
    REVIEWER_VERDICT, /* it said its result on its output: kind and text */
    REVIEWER_COST,    /* microusd */
    REVIEWER_GONE     /* the process of agent_id, pid, has ended */
};

/* What happened to a reviewer, to be told to the engine. */
struct reviewer_event {
    struct reviewer_event *next;
    enum reviewer_event_kind kind;
    char *round_id; /* all but GONE */
    char *agent_id;
    struct loss loss; /* its reason is in text */
    char *token;
    const char *verdict;
    char *text;
    int64_t microusd;
    pid_t pid;
};

struct reviewers;

/* url: of this server; env_path: flowd.env. Both borrowed. Returns 0 or -errno. */
int reviewers_new(int epoll_fd, const char *url, const char *env_path, struct reviewers **ret);
/* Kills what still runs. */
void reviewers_free(struct reviewers *reviewers);

struct reviewer_started {
    pid_t pid;
    char mark[40];        /* the value of its KCAP_REVIEWER */
    struct buf env_names; /* of the variables that it got: "HOME, PATH" */
};

/* Starts the process for its first turn; it gets no input before reviewers_feed: if we die in
 * between it reads an end of file and leaves. Takes *job in any case. Returns 0 or -errno, with
 * a line for people in error. */
int reviewers_start(struct reviewers *reviewers, const struct settings *settings,
                    struct assignment *job, struct reviewer_started *ret, struct buf *error);
void reviewers_feed(struct reviewers *reviewers, const char *agent_id);

enum reviewer_place {
    REVIEWER_NONE,
    REVIEWER_FREE, /* it lives and can take a turn */
    REVIEWER_BUSY  /* with a turn, or with leaving */
};
enum reviewer_place reviewers_place(const struct reviewers *reviewers, const char *agent_id);
/* Gives a turn to one that is free. Takes *job. */
void reviewers_give(struct reviewers *reviewers, struct assignment *job);

/* How many turns are in hand: all, or those of a session (NULL: those without one). */
size_t reviewers_turns(const struct reviewers *reviewers);
size_t reviewers_turns_of(const struct reviewers *reviewers, const char *session_id);

/* The round is answered: a turn that does not end by itself soon is ended. */
void reviewers_finish(struct reviewers *reviewers, const char *round_id);
void reviewers_end(struct reviewers *reviewers, const char *agent_id);
void reviewers_end_all(struct reviewers *reviewers);

/* What the round's reviewer has for the driver so far, NULL for nothing; lives until the next
 * event. */
const char *reviewers_note(struct reviewers *reviewers, const char *round_id);

/* How a turn that is in hand is doing. */
struct reviewer_live {
    const char *state; /* "starting", "working", "reporting" or "ending" */
    int64_t elapsed_ms, silence_ms;
};
bool reviewers_live(const struct reviewers *reviewers, const char *round_id,
                    struct reviewer_live *ret);

/* After SIGCHLD. other gets the children that are no reviewers. */
void reviewers_reap(struct reviewers *reviewers,
                    void (*other)(void *arg, pid_t pid, int status), void *arg);
/* Looks at the clocks. */
void reviewers_tick(struct reviewers *reviewers, int64_t now_ns);
int64_t reviewers_deadline_ns(const struct reviewers *reviewers);
size_t reviewers_count(const struct reviewers *reviewers);

/* A round whose reviewer could not be started or kept. Texts are copied. */
void reviewers_note_lost(struct reviewers *reviewers, const char *round_id,
                         const struct loss *loss);
/* The oldest event, or NULL; it stays until it is dropped. */
const struct reviewer_event *reviewers_event(const struct reviewers *reviewers);
void reviewers_drop_event(struct reviewers *reviewers);

#endif
