/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must outlive the process, in one SQLite file. SQL and nothing else: the rules are the
 * engine's. Everything but open and close happens between store_begin and store_commit.
 *
 * Functions return 0, -ENOENT (no such row) or -EIO (store_error says what the database said).
 */
#ifndef KCAP_SERVER_STORE_H
#define KCAP_SERVER_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/buf.h"

struct store;

/* One run. Texts are owned; the optional ones are NULL when absent. */
struct flow {
    char *id;
    char *definition_id;
    char *target_kind, *target_ref, *target_title;
    char *session_id; /* optional */
    char *cwd;
    char *requested_vendor, *requested_model; /* optional */
    char *status;
    char *end_reason; /* optional: why it ended by itself */
    char *definition; /* JSON of definition.h; absent in runs of older versions */
    int64_t round_count;
    int64_t started_ms, updated_ms; /* wall clock, for showing */
};

/* One who takes part in a run. */
struct participant {
    char *flow_id;
    char *role;
    char *vendor;
    char *model; /* optional */
    char *agent_id;
    char *prompt;                              /* optional */
    char *workspace;                           /* as wanted */
    char *applied_workspace, *fallback_reason; /* optional: as it is since the first launch */
    char *dir;                                 /* optional: where it runs */
    char *env_names; /* optional: of the variables its last process got */
};

struct round {
    char *id;
    char *flow_id;
    char *role; /* whose turn it is */
    char *token;
    char *context;
    char *instructions; /* optional */
    char *status;
    char *result_kind, *result_text, *reason; /* optional */
    char *reason_code;                        /* optional */
    char *memory;                             /* optional: ROUND_MEMORY_* */
    int64_t number;
    int64_t silence_ms, elapsed_ms; /* at the end of its turn; 0: not known */
    int64_t started_ms;
};

/* What a participant has for the driver besides results. */
struct message {
    char *flow_id;
    char *role;
    char *id;
    char *text;
};

/* A participant's process: enough to find it again after a crash, and nothing else. */
struct launch {
    char *agent_id;
    char *mark; /* the value of KCAP_REVIEWER in its environment */
    char *boot_id;
    int64_t pid;
    int64_t start_ticks; /* field 22 of /proc/PID/stat: tells a process from a later namesake */
};

void flow_fini(struct flow *flow);
void participant_fini(struct participant *who);
void round_fini(struct round *round);
void message_fini(struct message *message);
void launch_fini(struct launch *launch);

/* Returns 0 or a negative number, with a line for people in error. */
int store_open(const char *path, struct store **ret, struct buf *error);
void store_close(struct store *store);
const char *store_error(const struct store *store);

int store_begin(struct store *store);
int store_commit(struct store *store);
void store_rollback(struct store *store);
/* A part of the transaction that can fail alone. */
int store_part_begin(struct store *store);
int store_part_end(struct store *store, bool keep);

int store_add_flow(struct store *store, const struct flow *flow);
int store_get_flow(struct store *store, const char *id, struct flow *ret);
int store_set_flow_status(struct store *store, const char *id, const char *status,
                          int64_t updated_ms);
/* reason may be NULL. */
int store_end_flow(struct store *store, const char *id, const char *status, const char *reason,
                   int64_t updated_ms);
/* Removes runs that have ended and that nothing has happened to since before_ms, with all that
 * is theirs. */
int store_remove_old_flows(struct store *store, int64_t before_ms);
int store_set_flow_shown(struct store *store, const char *id);

int store_add_participant(struct store *store, const struct participant *who, int64_t position);
int store_get_participant(struct store *store, const char *flow_id, const char *role,
                          struct participant *ret);
int store_get_participant_by_agent(struct store *store, const char *agent_id,
                                   struct participant *ret);
int store_set_env_names(struct store *store, const char *agent_id, const char *names);
/* applied_workspace, fallback_reason and dir. */
int store_set_workspace(struct store *store, const struct participant *who);

/* Adds the round and makes it the flow's newest. */
int store_add_round(struct store *store, const struct round *round, int64_t started_ms);
int store_get_round(struct store *store, const char *id, struct round *ret);
int store_get_newest_round(struct store *store, const char *flow_id, struct round *ret);
/* The same without context, instructions and result. */
int store_get_newest_short_round(struct store *store, const char *flow_id, struct round *ret);
/* The newest round that a reviewer answered. */
int store_get_answered_round(struct store *store, const char *flow_id, struct round *ret);
int store_get_answered_round_of(struct store *store, const char *flow_id, const char *role,
                                struct round *ret);
/* Whether there is a round of the same run and role before this one: 1 or 0. */
int store_has_earlier_round(struct store *store, const struct round *round);
int store_get_round_by_token(struct store *store, const char *flow_id, const char *token,
                             struct round *ret);
/* Status, result_kind, result_text, reason, reason_code, silence and elapsed are taken from
 * round. */
int store_end_round(struct store *store, const struct round *round, int64_t ended_ms);
int store_set_round_memory(struct store *store, const char *id, const char *memory);
int store_set_round_cost(struct store *store, const char *id, int64_t microusd);
/* Of all rounds together. */
int store_get_flow_cost(struct store *store, const char *flow_id, int64_t *ret_microusd);

/* A message with the same flow and id is not added again. */
int store_add_message(struct store *store, const struct message *message, int64_t sent_ms);
int store_get_message(struct store *store, const char *flow_id, const char *id,
                      struct message *ret);
int store_ack_message(struct store *store, const char *flow_id, const char *id);

int store_add_launch(struct store *store, const struct launch *launch);
int store_remove_launch(struct store *store, const char *agent_id, int64_t pid);
int store_remove_launches(struct store *store);

/* Walk rows until each returns non-zero, which is then returned. */
int store_each_launch(struct store *store, int (*each)(void *arg, const struct launch *launch),
                      void *arg);
int store_each_open_round(struct store *store, const char *running_status,
                          int (*each)(void *arg, const struct round *round), void *arg);
int store_each_round(struct store *store, const char *flow_id,
                     int (*each)(void *arg, const struct round *round), void *arg);
int store_each_participant(struct store *store, const char *flow_id,
                           int (*each)(void *arg, const struct participant *who), void *arg);
/* Those that were not acknowledged, in the order in which they were sent. */
int store_each_pending_message(struct store *store, const char *flow_id,
                               int (*each)(void *arg, const struct message *message),
                               void *arg);
/* Runs of a session that have not ended, and those whose end nobody was shown; the newest
 * activity comes first. */
int store_each_session_flow(struct store *store, const char *session_id,
                            int (*each)(void *arg, const struct flow *flow), void *arg);
/* The limit newest, of all or of those that have not ended. */
int store_each_flow(struct store *store, bool also_ended, int64_t limit,
                    int (*each)(void *arg, const struct flow *flow), void *arg);
/* Open runs in which it is the driver's turn, the longest idle first. */
int store_each_waiting_flow(struct store *store,
                            int (*each)(void *arg, const struct flow *flow), void *arg);

#endif
