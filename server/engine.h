/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of runs and rounds. Every function works inside the store's transaction and changes
 * nothing else: what is to be done in the world (start a reviewer, end one, wake a waiter) is
 * noted as an effect, to be carried out once the transaction is on disk.
 */
#ifndef KCAP_SERVER_ENGINE_H
#define KCAP_SERVER_ENGINE_H

#include <stddef.h>

#include "server/definition.h"
#include "server/store.h"

#define FLOW_RUNNING "running" /* a round is in a reviewer's hands */
#define FLOW_WAITING "waiting" /* open, the driver's turn */
#define FLOW_CLOSED  "closed"
#define FLOW_FAILED  "failed"

#define ROUND_RUNNING   "running"
#define ROUND_FINDINGS  "findings"
#define ROUND_CLEAN     "clean"
#define ROUND_UNCLEAR   "unclear"
#define ROUND_FAILED    "failed" /* and would fail again */
#define ROUND_CANCELLED "cancelled"

/* Result texts of an unclear round that clients know by heart. */
#define ROUND_TEXT_DIED    "participant_died"
#define ROUND_TEXT_STOPPED "participant_stopped"

/* What the reviewer of a round remembers of the rounds before it. */
#define ROUND_MEMORY_FIRST "first" /* there is nothing to remember */
#define ROUND_MEMORY_KEPT  "kept"
#define ROUND_MEMORY_NONE  "none" /* of a kind that begins anew each time */
#define ROUND_MEMORY_LOST  "lost"

/* Besides 0 and the store's codes. */
enum {
    ENGINE_UNKNOWN_FLOW = -1001,
    ENGINE_RUN_CLOSED = -1002,
    ENGINE_ROUND_IN_PROGRESS = -1003,
    ENGINE_NO_ACTIVE_FLOW = -1004,
    ENGINE_NO_OPEN_ROUND = -1005,
    ENGINE_STALE_ROUND_TOKEN = -1006,
    ENGINE_UNKNOWN_PARTICIPANT = -1007,
    ENGINE_PARTICIPANT_NEEDED = -1008,
    ENGINE_MAX_ROUNDS = -1009,
    ENGINE_RUN_FAILED = -1010,
    ENGINE_TOO_MANY_MESSAGES = -1011,
    ENGINE_MESSAGE_ID_IN_USE = -1012
};

enum effect_kind {
    EFFECT_START,  /* start the turn of round id */
    EFFECT_FINISH, /* round id is answered: its reviewer may come to its end */
    EFFECT_END,    /* end the process of agent id now */
    EFFECT_CHANGED /* wake who waits for flow id */
};

struct effect {
    enum effect_kind kind;
    char *id;
};

struct engine {
    struct store *store; /* borrowed */
    /* What a round's reviewer has for the driver besides its result, NULL for nothing. The
     * function may itself be NULL. */
    const char *(*note)(void *arg, const char *round_id);
    void *note_arg;
    struct effect *effects;
    size_t effect_count;
    size_t effect_cap;
};

void engine_fini(struct engine *engine);
/* Forgets the effects from number keep on. */
void engine_drop_effects(struct engine *engine, size_t keep);

struct start {
    const struct definition *definition; /* each participant has its vendor */
    const char *target_kind, *target_ref, *target_title;
    const char *context;
    const char *instructions;     /* or NULL */
    const char *session_id;       /* or NULL */
    const char *requested_vendor; /* or NULL */
    const char *requested_model;  /* or NULL */
    const char *cwd;
};

/* With several participants the run begins without a round: *ret_round is empty then. */
int engine_start(struct engine *engine, const struct start *start, struct flow *ret_flow,
                 struct round *ret_round);
/* role may be NULL where there is but one. */
int engine_submit(struct engine *engine, const char *flow_id, const char *role,
                  const char *context, const char *instructions, struct flow *ret_flow,
                  struct round *ret_round);
int engine_close(struct engine *engine, const char *flow_id, struct flow *ret_flow);

/* A reviewer's answer; kind is ROUND_FINDINGS or ROUND_CLEAN, text may be NULL. The very same
 * answer again is fine at any time. */
int engine_result(struct engine *engine, const char *agent_id, const char *round_token,
                  const char *kind, const char *text);

/* Messages of a run that wait to be read, at most. */
#define ENGINE_MAX_MESSAGES 100
/* A message for the driver; one with an id that is there is taken for the same. */
int engine_message(struct engine *engine, const char *agent_id, const char *message_id,
                   const char *text);

/* How a round ends without an answer. */
struct loss {
    const char *result_text; /* ROUND_TEXT_*: unclear. NULL: failed, for no further try could do
                                better */
    const char *code;        /* or NULL */
    const char *reason;
    int64_t silence_ms, elapsed_ms;
};

/* Nothing happens when the round has ended already. */
int engine_round_lost(struct engine *engine, const char *round_id, const struct loss *loss);

/* What the round has cost so far. A run that is over its budget fails. */
int engine_round_cost(struct engine *engine, const char *round_id, int64_t microusd);

/* Closes runs in which nothing happened for their idle_ttl_sec, or else default_ttl_sec.
 * *ret_next_ms is when the next one is due, INT64_MAX for none. */
int engine_end_idle(struct engine *engine, int64_t default_ttl_sec, int64_t now_ms,
                    int64_t *ret_next_ms);

/* Forgets runs that ended before that time. */
int engine_forget(struct engine *engine, int64_t before_ms);

/* After a start: rounds that ran when the former process ended. */
int engine_recover(struct engine *engine);

#endif
