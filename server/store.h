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
    char *requested_vendor; /* optional */
    char *status;
    int64_t round_count;
    int64_t started_ms, updated_ms; /* wall clock, for showing */
    char *vendor;                   /* of the participant "reviewer" */
    char *agent_id;
};

struct round {
    char *id;
    char *flow_id;
    int64_t number;
    char *token;
    char *context;
    char *instructions; /* optional */
    char *status;
    char *result_kind, *result_text, *reason; /* optional */
};

/* A process started for a round: enough to find it again after a crash, and nothing else. */
struct launch {
    char *round_id;
    char *agent_id;
    int64_t pid;
    int64_t start_ticks; /* field 22 of /proc/PID/stat: tells a process from a later namesake */
    char *boot_id;
};

void flow_fini(struct flow *flow);
void round_fini(struct round *round);
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
int store_get_flow_by_agent(struct store *store, const char *agent_id, struct flow *ret);
int store_set_flow_status(struct store *store, const char *id, const char *status,
                          int64_t updated_ms);
/* Removes runs in ended_status that nothing has happened to since before_ms, with their rounds.
 */
int store_remove_old_flows(struct store *store, const char *ended_status, int64_t before_ms);
int store_set_flow_shown(struct store *store, const char *id);

/* Adds the round and makes it the flow's newest. */
int store_add_round(struct store *store, const struct round *round, int64_t started_ms);
int store_get_round(struct store *store, const char *id, struct round *ret);
int store_get_newest_round(struct store *store, const char *flow_id, struct round *ret);
/* The newest round that a reviewer answered. */
int store_get_answered_round(struct store *store, const char *flow_id, struct round *ret);
int store_get_round_by_token(struct store *store, const char *flow_id, const char *token,
                             struct round *ret);
/* Status, result_kind, result_text and reason are taken from round. */
int store_end_round(struct store *store, const struct round *round, int64_t ended_ms);

int store_add_launch(struct store *store, const struct launch *launch);
int store_remove_launch(struct store *store, const char *round_id);
int store_remove_launches(struct store *store);

/* Walk rows until each returns non-zero, which is then returned. */
int store_each_launch(struct store *store, int (*each)(void *arg, const struct launch *launch),
                      void *arg);
int store_each_open_round(struct store *store, const char *running_status,
                          int (*each)(void *arg, const struct round *round), void *arg);
/* Runs of a session that are not in ended_status, and those whose end nobody was shown; the
 * newest activity comes first. */
int store_each_session_flow(struct store *store, const char *session_id,
                            const char *ended_status,
                            int (*each)(void *arg, const struct flow *flow), void *arg);

#endif
