/* SPDX-License-Identifier: Apache-2.0 */
/* Runs and who takes part in them. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "server/store_internal.h"

#define FLOW_TEXTS        12
#define PARTICIPANT_TEXTS 11

void
flow_fini(struct flow *flow)
{
    char *const texts[] = {flow->id,         flow->definition_id,    flow->target_kind,
                           flow->target_ref, flow->target_title,     flow->session_id,
                           flow->cwd,        flow->requested_vendor, flow->requested_model,
                           flow->status,     flow->end_reason,       flow->definition};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    *flow = (struct flow){0};
}

void
participant_fini(struct participant *who)
{
    char *const texts[] = {
        who->flow_id,         who->role,   who->vendor,    who->model,
        who->agent_id,        who->prompt, who->workspace, who->applied_workspace,
        who->fallback_reason, who->dir,    who->env_names};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    *who = (struct participant){0};
}

static int
read_flow(void *arg, sqlite3_stmt *stmt)
{
    struct flow flow = {0}, *ret = arg;
    char **const texts[FLOW_TEXTS] = {
        &flow.id,         &flow.definition_id,    &flow.target_kind,
        &flow.target_ref, &flow.target_title,     &flow.session_id,
        &flow.cwd,        &flow.requested_vendor, &flow.requested_model,
        &flow.status,     &flow.end_reason,       &flow.definition};

    if (store_read_texts(stmt, 0, texts, FLOW_TEXTS) < 0) {
        flow_fini(&flow);
        return -EIO;
    }
    flow.round_count = sqlite3_column_int64(stmt, FLOW_TEXTS);
    flow.started_ms = sqlite3_column_int64(stmt, FLOW_TEXTS + 1);
    flow.updated_ms = sqlite3_column_int64(stmt, FLOW_TEXTS + 2);
    *ret = flow;
    return 0;
}

static int
read_participant(void *arg, sqlite3_stmt *stmt)
{
    struct participant who = {0}, *ret = arg;
    char **const texts[PARTICIPANT_TEXTS] = {
        &who.flow_id,         &who.role,   &who.vendor,    &who.model,
        &who.agent_id,        &who.prompt, &who.workspace, &who.applied_workspace,
        &who.fallback_reason, &who.dir,    &who.env_names};

    if (store_read_texts(stmt, 0, texts, PARTICIPANT_TEXTS) < 0) {
        participant_fini(&who);
        return -EIO;
    }
    *ret = who;
    return 0;
}

struct flow_walk {
    int (*each)(void *arg, const struct flow *flow);
    void *arg;
};

static int
walk_flow(void *arg, sqlite3_stmt *stmt)
{
    const struct flow_walk *walk = arg;
    struct flow flow = {0};
    int r = read_flow(&flow, stmt);

    if (r == 0)
        r = walk->each(walk->arg, &flow);
    flow_fini(&flow);
    return r;
}

/* ---- flows ---- */

int
store_add_flow(struct store *store, const struct flow *flow)
{
    const char *const texts[] = {
        flow->id,         flow->definition_id,    flow->target_kind,
        flow->target_ref, flow->target_title,     flow->session_id,
        flow->cwd,        flow->requested_vendor, flow->requested_model,
        flow->status,     flow->definition};
    sqlite3_stmt *stmt = store_stmt(store, Q_ADD_FLOW);

    store_bind_texts(stmt, 1, texts, 11);
    store_bind_int(stmt, 12, flow->started_ms);
    store_bind_int(stmt, 13, flow->updated_ms);
    return store_run(stmt);
}

int
store_get_flow(struct store *store, const char *id, struct flow *ret)
{
    sqlite3_stmt *stmt = store_stmt(store, Q_GET_FLOW);

    store_bind_texts(stmt, 1, &id, 1);
    return store_run_one(stmt, read_flow, ret);
}

int
store_set_flow_status(struct store *store, const char *id, const char *status,
                      int64_t updated_ms)
{
    sqlite3_stmt *stmt = store_stmt(store, Q_SET_FLOW_STATUS);

    store_bind_texts(stmt, 1, &status, 1);
    store_bind_int(stmt, 2, updated_ms);
    store_bind_texts(stmt, 3, &id, 1);
    return store_run(stmt);
}

int
store_end_flow(struct store *store, const char *id, const char *status, const char *reason,
               int64_t updated_ms)
{
    const char *const texts[] = {status, reason};
    sqlite3_stmt *stmt = store_stmt(store, Q_END_FLOW);

    store_bind_texts(stmt, 1, texts, 2);
    store_bind_int(stmt, 3, updated_ms);
    store_bind_texts(stmt, 4, &id, 1);
    return store_run(stmt);
}

int
store_set_flow_shown(struct store *store, const char *id)
{
    sqlite3_stmt *stmt = store_stmt(store, Q_SET_FLOW_SHOWN);

    store_bind_texts(stmt, 1, &id, 1);
    return store_run(stmt);
}

int
store_remove_old_flows(struct store *store, int64_t before_ms)
{
    static const enum query parts[] = {Q_REMOVE_OLD_MESSAGES, Q_REMOVE_OLD_ROUNDS,
                                       Q_REMOVE_OLD_PARTICIPANTS, Q_REMOVE_OLD_FLOWS};
    int r = 0;

    for (size_t i = 0; i < sizeof parts / sizeof *parts && r == 0; i++) {
        sqlite3_stmt *stmt = store_stmt(store, parts[i]);
        store_bind_int(stmt, 1, before_ms);
        r = store_run(stmt);
    }
    return r;
}

int
store_each_session_flow(struct store *store, const char *session_id,
                        int (*each)(void *arg, const struct flow *flow), void *arg)
{
    struct flow_walk walk = {each, arg};
    sqlite3_stmt *stmt = store_stmt(store, Q_EACH_SESSION_FLOW);

    store_bind_texts(stmt, 1, &session_id, 1);
    return store_run_each(stmt, walk_flow, &walk);
}

int
store_each_flow(struct store *store, bool also_ended, int64_t limit,
                int (*each)(void *arg, const struct flow *flow), void *arg)
{
    struct flow_walk walk = {each, arg};
    sqlite3_stmt *stmt = store_stmt(store, also_ended ? Q_EACH_FLOW : Q_EACH_OPEN_FLOW);

    store_bind_int(stmt, 1, limit);
    return store_run_each(stmt, walk_flow, &walk);
}

int
store_each_waiting_flow(struct store *store, int (*each)(void *arg, const struct flow *flow),
                        void *arg)
{
    struct flow_walk walk = {each, arg};

    return store_run_each(store_stmt(store, Q_EACH_STALE_FLOW), walk_flow, &walk);
}

/* ---- participants ---- */

int
store_add_participant(struct store *store, const struct participant *who, int64_t position)
{
    const char *const texts[] = {who->flow_id,  who->role,   who->vendor,   who->model,
                                 who->agent_id, who->prompt, who->workspace};
    sqlite3_stmt *stmt = store_stmt(store, Q_ADD_PARTICIPANT);

    store_bind_texts(stmt, 1, texts, 7);
    store_bind_int(stmt, 8, position);
    return store_run(stmt);
}

int
store_get_participant(struct store *store, const char *flow_id, const char *role,
                      struct participant *ret)
{
    const char *const keys[] = {flow_id, role};
    sqlite3_stmt *stmt = store_stmt(store, Q_GET_PARTICIPANT);

    store_bind_texts(stmt, 1, keys, 2);
    return store_run_one(stmt, read_participant, ret);
}

int
store_get_participant_by_agent(struct store *store, const char *agent_id,
                               struct participant *ret)
{
    sqlite3_stmt *stmt = store_stmt(store, Q_GET_PARTICIPANT_BY_AGENT);

    store_bind_texts(stmt, 1, &agent_id, 1);
    return store_run_one(stmt, read_participant, ret);
}

struct participant_walk {
    int (*each)(void *arg, const struct participant *who);
    void *arg;
};

static int
walk_participant(void *arg, sqlite3_stmt *stmt)
{
    const struct participant_walk *walk = arg;
    struct participant who = {0};
    int r = read_participant(&who, stmt);

    if (r == 0)
        r = walk->each(walk->arg, &who);
    participant_fini(&who);
    return r;
}

int
store_each_participant(struct store *store, const char *flow_id,
                       int (*each)(void *arg, const struct participant *who), void *arg)
{
    struct participant_walk walk = {each, arg};
    sqlite3_stmt *stmt = store_stmt(store, Q_EACH_PARTICIPANT);

    store_bind_texts(stmt, 1, &flow_id, 1);
    return store_run_each(stmt, walk_participant, &walk);
}

int
store_set_env_names(struct store *store, const char *agent_id, const char *names)
{
    const char *const texts[] = {names, agent_id};
    sqlite3_stmt *stmt = store_stmt(store, Q_SET_ENV_NAMES);

    store_bind_texts(stmt, 1, texts, 2);
    return store_run(stmt);
}

int
store_set_workspace(struct store *store, const struct participant *who)
{
    const char *const texts[] = {who->applied_workspace, who->fallback_reason, who->dir,
                                 who->agent_id};
    sqlite3_stmt *stmt = store_stmt(store, Q_SET_WORKSPACE);

    store_bind_texts(stmt, 1, texts, 4);
    return store_run(stmt);
}
