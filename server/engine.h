/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of runs and rounds. Every function works inside the store's transaction and changes
 * nothing else: what is to be done in the world (start a reviewer, end one, wake a waiter) is
 * noted as an effect, to be carried out once the transaction is on disk.
 */
#ifndef KCAP_SERVER_ENGINE_H
#define KCAP_SERVER_ENGINE_H

#include <stddef.h>

#include "server/store.h"

#define FLOW_RUNNING "running" /* a round is in the reviewer's hands */
#define FLOW_WAITING "waiting" /* open, the driver's turn */
#define FLOW_CLOSED  "closed"

#define ROUND_RUNNING   "running"
#define ROUND_FINDINGS  "findings"
#define ROUND_CLEAN     "clean"
#define ROUND_UNCLEAR   "unclear"
#define ROUND_FAILED    "failed" /* and would fail again */
#define ROUND_CANCELLED "cancelled"

/* Result texts of an unclear round that clients know by heart. */
#define ROUND_TEXT_DIED    "participant_died"
#define ROUND_TEXT_STOPPED "participant_stopped"

/* Besides 0 and the store's codes. */
enum {
    ENGINE_UNKNOWN_FLOW = -1001,
    ENGINE_RUN_CLOSED = -1002,
    ENGINE_ROUND_IN_PROGRESS = -1003,
    ENGINE_NO_ACTIVE_FLOW = -1004,
    ENGINE_NO_OPEN_ROUND = -1005,
    ENGINE_STALE_ROUND_TOKEN = -1006
};

enum effect_kind {
    EFFECT_START,  /* start the reviewer of round id */
    EFFECT_FINISH, /* the round is answered: let its reviewer leave */
    EFFECT_END,    /* end the round's reviewer now */
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
    const char *definition_id;
    const char *target_kind, *target_ref, *target_title;
    const char *context;
    const char *instructions;     /* or NULL */
    const char *session_id;       /* or NULL */
    const char *requested_vendor; /* or NULL */
    const char *vendor;
    const char *cwd;
};

int engine_start(struct engine *engine, const struct start *start, struct flow *ret_flow,
                 struct round *ret_round);
int engine_submit(struct engine *engine, const char *flow_id, const char *context,
                  const char *instructions, struct flow *ret_flow, struct round *ret_round);
int engine_close(struct engine *engine, const char *flow_id, struct flow *ret_flow);

/* A reviewer's answer; kind is ROUND_FINDINGS or ROUND_CLEAN, text may be NULL. The very same
 * answer again is fine at any time. */
int engine_result(struct engine *engine, const char *agent_id, const char *round_token,
                  const char *kind, const char *text);

/* The round's reviewer is gone or given up; result_text is ROUND_TEXT_*, or NULL when no
 * further try could do better. Nothing happens when the round has ended already. */
int engine_round_lost(struct engine *engine, const char *round_id, const char *result_text,
                      const char *reason);

/* Forgets runs that were closed before that time. */
int engine_forget(struct engine *engine, int64_t before_ms);

/* After a start: rounds that ran when the former process ended. */
int engine_recover(struct engine *engine);

#endif
