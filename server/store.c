/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/store.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "server/database.h"

#define FLOW_COLUMNS                                                                   \
    "f.id, f.definition_id, f.target_kind, f.target_ref, f.target_title,"              \
    " f.session_id, f.cwd, f.requested_vendor, f.status, f.round_count, f.started_ms," \
    " f.updated_ms, p.vendor, p.agent_id FROM flows f"                                 \
    " JOIN participants p ON p.flow_id = f.id AND p.role = 'reviewer' "
#define ROUND_COLUMNS                                                                      \
    "id, flow_id, number, token, context, instructions, status, result_kind, result_text," \
    " reason FROM rounds "

/* One whose reviewer is still on record stays until that one's end is seen. */
#define OLD_FLOWS                                                                  \
    "(SELECT f.id FROM flows f WHERE f.status = ? AND f.updated_ms < ?"            \
    " AND NOT EXISTS (SELECT 1 FROM launches l JOIN rounds r ON r.id = l.round_id" \
    " WHERE r.flow_id = f.id))"

enum query {
    Q_BEGIN,
    Q_COMMIT,
    Q_ROLLBACK,
    Q_PART_BEGIN,
    Q_PART_KEEP,
    Q_PART_UNDO,
    Q_ADD_FLOW,
    Q_ADD_PARTICIPANT,
    Q_GET_FLOW,
    Q_GET_FLOW_BY_AGENT,
    Q_SET_FLOW_STATUS,
    Q_SET_FLOW_SHOWN,
    Q_REMOVE_OLD_ROUNDS,
    Q_REMOVE_OLD_PARTICIPANTS,
    Q_REMOVE_OLD_FLOWS,
    Q_ADD_ROUND,
    Q_SET_ROUND_COUNT,
    Q_GET_ROUND,
    Q_GET_NEWEST_ROUND,
    Q_GET_ANSWERED_ROUND,
    Q_GET_ROUND_BY_TOKEN,
    Q_END_ROUND,
    Q_ADD_LAUNCH,
    Q_REMOVE_LAUNCH,
    Q_REMOVE_LAUNCHES,
    Q_EACH_LAUNCH,
    Q_EACH_OPEN_ROUND,
    Q_EACH_SESSION_FLOW,
    Q_COUNT
};

static const char *const queries[Q_COUNT] = {
    [Q_BEGIN] = "BEGIN IMMEDIATE",
    [Q_COMMIT] = "COMMIT",
    [Q_ROLLBACK] = "ROLLBACK",
    [Q_PART_BEGIN] = "SAVEPOINT part",
    [Q_PART_KEEP] = "RELEASE part",
    [Q_PART_UNDO] = "ROLLBACK TO part",
    [Q_ADD_FLOW] = "INSERT INTO flows (id, definition_id, target_kind, target_ref,"
                   " target_title, session_id, cwd, requested_vendor, status, round_count,"
                   " started_ms, updated_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)",
    [Q_ADD_PARTICIPANT] = "INSERT INTO participants (flow_id, role, vendor, agent_id)"
                          " VALUES (?, 'reviewer', ?, ?)",
    [Q_GET_FLOW] = "SELECT " FLOW_COLUMNS "WHERE f.id = ?",
    [Q_GET_FLOW_BY_AGENT] = "SELECT " FLOW_COLUMNS "WHERE p.agent_id = ?",
    [Q_SET_FLOW_STATUS] = "UPDATE flows SET status = ?, updated_ms = ? WHERE id = ?",
    [Q_SET_FLOW_SHOWN] = "UPDATE flows SET end_shown = 1 WHERE id = ? AND end_shown = 0",
    [Q_REMOVE_OLD_ROUNDS] = "DELETE FROM rounds WHERE flow_id IN " OLD_FLOWS,
    [Q_REMOVE_OLD_PARTICIPANTS] = "DELETE FROM participants WHERE flow_id IN " OLD_FLOWS,
    [Q_REMOVE_OLD_FLOWS] = "DELETE FROM flows WHERE id IN " OLD_FLOWS,
    [Q_ADD_ROUND] = "INSERT INTO rounds (id, flow_id, number, token, context, instructions,"
                    " status, started_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    [Q_SET_ROUND_COUNT] = "UPDATE flows SET round_count = ? WHERE id = ?",
    [Q_GET_ROUND] = "SELECT " ROUND_COLUMNS "WHERE id = ?",
    [Q_GET_NEWEST_ROUND] =
        "SELECT " ROUND_COLUMNS "WHERE flow_id = ? ORDER BY number DESC LIMIT 1",
    [Q_GET_ANSWERED_ROUND] =
        "SELECT " ROUND_COLUMNS "WHERE flow_id = ? AND status IN ('findings', 'clean')"
        " ORDER BY number DESC LIMIT 1",
    [Q_GET_ROUND_BY_TOKEN] = "SELECT " ROUND_COLUMNS "WHERE flow_id = ? AND token = ?",
    [Q_END_ROUND] = "UPDATE rounds SET status = ?, result_kind = ?, result_text = ?,"
                    " reason = ?, ended_ms = ? WHERE id = ?",
    [Q_ADD_LAUNCH] = "INSERT INTO launches (round_id, agent_id, pid, start_ticks, boot_id)"
                     " VALUES (?, ?, ?, ?, ?)",
    [Q_REMOVE_LAUNCH] = "DELETE FROM launches WHERE round_id = ?",
    [Q_REMOVE_LAUNCHES] = "DELETE FROM launches",
    [Q_EACH_LAUNCH] = "SELECT round_id, agent_id, pid, start_ticks, boot_id FROM launches",
    [Q_EACH_OPEN_ROUND] = "SELECT " ROUND_COLUMNS "WHERE ended_ms IS NULL AND status = ?",
    [Q_EACH_SESSION_FLOW] =
        "SELECT " FLOW_COLUMNS "WHERE f.session_id = ? AND (f.status <> ? OR f.end_shown = 0)"
        " ORDER BY f.updated_ms DESC, f.started_ms DESC",
};

struct store {
    sqlite3 *db;
    sqlite3_stmt *prepared[Q_COUNT];
};

void
flow_fini(struct flow *flow)
{
    free(flow->id);
    free(flow->definition_id);
    free(flow->target_kind);
    free(flow->target_ref);
    free(flow->target_title);
    free(flow->session_id);
    free(flow->cwd);
    free(flow->requested_vendor);
    free(flow->status);
    free(flow->vendor);
    free(flow->agent_id);
    *flow = (struct flow){0};
}

void
round_fini(struct round *round)
{
    free(round->id);
    free(round->flow_id);
    free(round->token);
    free(round->context);
    free(round->instructions);
    free(round->status);
    free(round->result_kind);
    free(round->result_text);
    free(round->reason);
    *round = (struct round){0};
}

void
launch_fini(struct launch *launch)
{
    free(launch->round_id);
    free(launch->agent_id);
    free(launch->boot_id);
    *launch = (struct launch){0};
}

const char *
store_error(const struct store *store)
{
    return sqlite3_errmsg(store->db);
}

int
store_open(const char *path, struct store **ret, struct buf *error)
{
    struct store *store = calloc(1, sizeof *store);
    int r = store ? database_open(path, &store->db, error) : -ENOMEM;

    if (r < 0)
        store_close(store);
    else
        *ret = store;
    return r;
}

void
store_close(struct store *store)
{
    if (!store)
        return;
    for (int i = 0; i < Q_COUNT; i++)
        (void)sqlite3_finalize(store->prepared[i]);
    (void)sqlite3_close(store->db);
    free(store);
}

/* ---- running prepared statements ---- */

static sqlite3_stmt *
prepared(struct store *store, enum query query)
{
    sqlite3_stmt **place = &store->prepared[query];

    if (!*place && sqlite3_prepare_v3(store->db, queries[query], -1, SQLITE_PREPARE_PERSISTENT,
                                      place, NULL) != SQLITE_OK)
        *place = NULL;
    return *place;
}

/* Texts are not copied: they live until the statement was run. NULL is SQL's NULL. */
static void
bind_texts(sqlite3_stmt *stmt, int first, const char *const *texts, int count)
{
    for (int i = 0; stmt && i < count; i++)
        (void)sqlite3_bind_text(stmt, first + i, texts[i], -1, SQLITE_STATIC);
}

static void
bind_int(sqlite3_stmt *stmt, int at, int64_t value)
{
    if (stmt)
        (void)sqlite3_bind_int64(stmt, at, value);
}

static void
finish(sqlite3_stmt *stmt)
{
    (void)sqlite3_reset(stmt);
    (void)sqlite3_clear_bindings(stmt);
}

/* Runs a statement that yields no row. */
static int
run(sqlite3_stmt *stmt)
{
    int r;

    if (!stmt)
        return -EIO;
    r = sqlite3_step(stmt);
    finish(stmt);
    return r == SQLITE_DONE ? 0 : -EIO;
}

static int
run_query(struct store *store, enum query query)
{
    return run(prepared(store, query));
}

static int
read_text(sqlite3_stmt *stmt, int column, char **ret)
{
    const void *text = sqlite3_column_text(stmt, column);

    if (!text && sqlite3_column_type(stmt, column) == SQLITE_NULL)
        return 0;
    *ret = text ? strdup(text) : NULL;
    return *ret ? 0 : -EIO;
}

static int
read_texts(sqlite3_stmt *stmt, int first, char **const *places, int count)
{
    int r = 0;

    for (int i = 0; i < count && r == 0; i++)
        r = read_text(stmt, first + i, places[i]);
    return r;
}

static int
read_flow(sqlite3_stmt *stmt, struct flow *ret)
{
    struct flow flow = {0};
    char **const texts[] = {&flow.id,         &flow.definition_id,    &flow.target_kind,
                            &flow.target_ref, &flow.target_title,     &flow.session_id,
                            &flow.cwd,        &flow.requested_vendor, &flow.status};
    char **const reviewer[] = {&flow.vendor, &flow.agent_id};

    if (read_texts(stmt, 0, texts, 9) < 0 || read_texts(stmt, 12, reviewer, 2) < 0) {
        flow_fini(&flow);
        return -EIO;
    }
    flow.round_count = sqlite3_column_int64(stmt, 9);
    flow.started_ms = sqlite3_column_int64(stmt, 10);
    flow.updated_ms = sqlite3_column_int64(stmt, 11);
    *ret = flow;
    return 0;
}

static int
read_round(sqlite3_stmt *stmt, struct round *ret)
{
    struct round round = {0};
    char **const ids[] = {&round.id, &round.flow_id};
    char **const texts[] = {&round.token,  &round.context,     &round.instructions,
                            &round.status, &round.result_kind, &round.result_text,
                            &round.reason};

    if (read_texts(stmt, 0, ids, 2) < 0 || read_texts(stmt, 3, texts, 7) < 0) {
        round_fini(&round);
        return -EIO;
    }
    round.number = sqlite3_column_int64(stmt, 2);
    *ret = round;
    return 0;
}

static int
get_flow(sqlite3_stmt *stmt, const char *key, struct flow *ret)
{
    int r;

    if (!stmt)
        return -EIO;
    bind_texts(stmt, 1, &key, 1);
    r = sqlite3_step(stmt);
    r = r == SQLITE_ROW ? read_flow(stmt, ret) : r == SQLITE_DONE ? -ENOENT : -EIO;
    finish(stmt);
    return r;
}

static int
get_round(sqlite3_stmt *stmt, const char *const *keys, int count, struct round *ret)
{
    int r;

    if (!stmt)
        return -EIO;
    bind_texts(stmt, 1, keys, count);
    r = sqlite3_step(stmt);
    r = r == SQLITE_ROW ? read_round(stmt, ret) : r == SQLITE_DONE ? -ENOENT : -EIO;
    finish(stmt);
    return r;
}

/* ---- transactions ---- */

int
store_begin(struct store *store)
{
    return run_query(store, Q_BEGIN);
}

int
store_commit(struct store *store)
{
    return run_query(store, Q_COMMIT);
}

void
store_rollback(struct store *store)
{
    if (!sqlite3_get_autocommit(store->db)) /* SQLite may have rolled back by itself */
        (void)run_query(store, Q_ROLLBACK);
}

int
store_part_begin(struct store *store)
{
    return run_query(store, Q_PART_BEGIN);
}

int
store_part_end(struct store *store, bool keep)
{
    int r = keep ? 0 : run_query(store, Q_PART_UNDO);

    return r < 0 ? r : run_query(store, Q_PART_KEEP);
}

/* ---- flows ---- */

int
store_add_flow(struct store *store, const struct flow *flow)
{
    const char *const texts[] = {flow->id,         flow->definition_id,    flow->target_kind,
                                 flow->target_ref, flow->target_title,     flow->session_id,
                                 flow->cwd,        flow->requested_vendor, flow->status};
    const char *const reviewer[] = {flow->id, flow->vendor, flow->agent_id};
    sqlite3_stmt *stmt = prepared(store, Q_ADD_FLOW);
    int r;

    bind_texts(stmt, 1, texts, 9);
    bind_int(stmt, 10, flow->started_ms);
    bind_int(stmt, 11, flow->updated_ms);
    r = run(stmt);
    if (r < 0)
        return r;
    stmt = prepared(store, Q_ADD_PARTICIPANT);
    bind_texts(stmt, 1, reviewer, 3);
    return run(stmt);
}

int
store_get_flow(struct store *store, const char *id, struct flow *ret)
{
    return get_flow(prepared(store, Q_GET_FLOW), id, ret);
}

int
store_get_flow_by_agent(struct store *store, const char *agent_id, struct flow *ret)
{
    return get_flow(prepared(store, Q_GET_FLOW_BY_AGENT), agent_id, ret);
}

int
store_set_flow_status(struct store *store, const char *id, const char *status,
                      int64_t updated_ms)
{
    sqlite3_stmt *stmt = prepared(store, Q_SET_FLOW_STATUS);

    bind_texts(stmt, 1, &status, 1);
    bind_int(stmt, 2, updated_ms);
    bind_texts(stmt, 3, &id, 1);
    return run(stmt);
}

int
store_set_flow_shown(struct store *store, const char *id)
{
    sqlite3_stmt *stmt = prepared(store, Q_SET_FLOW_SHOWN);

    bind_texts(stmt, 1, &id, 1);
    return run(stmt);
}

int
store_remove_old_flows(struct store *store, const char *ended_status, int64_t before_ms)
{
    static const enum query parts[] = {Q_REMOVE_OLD_ROUNDS, Q_REMOVE_OLD_PARTICIPANTS,
                                       Q_REMOVE_OLD_FLOWS};
    int r = 0;

    for (size_t i = 0; i < sizeof parts / sizeof *parts && r == 0; i++) {
        sqlite3_stmt *stmt = prepared(store, parts[i]);
        bind_texts(stmt, 1, &ended_status, 1);
        bind_int(stmt, 2, before_ms);
        r = run(stmt);
    }
    return r;
}

int
store_each_session_flow(struct store *store, const char *session_id, const char *ended_status,
                        int (*each)(void *arg, const struct flow *flow), void *arg)
{
    const char *const keys[] = {session_id, ended_status};
    sqlite3_stmt *stmt = prepared(store, Q_EACH_SESSION_FLOW);
    int r = 0, step = SQLITE_ERROR;

    bind_texts(stmt, 1, keys, 2);
    while (stmt && r == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct flow flow = {0};
        r = read_flow(stmt, &flow);
        if (r == 0)
            r = each(arg, &flow);
        flow_fini(&flow);
    }
    finish(stmt);
    return r != 0 ? r : step == SQLITE_DONE ? 0 : -EIO;
}

/* ---- rounds ---- */

int
store_add_round(struct store *store, const struct round *round, int64_t started_ms)
{
    const char *const ids[] = {round->id, round->flow_id};
    const char *const texts[] = {round->token, round->context, round->instructions,
                                 round->status};
    sqlite3_stmt *stmt = prepared(store, Q_ADD_ROUND);
    int r;

    bind_texts(stmt, 1, ids, 2);
    bind_int(stmt, 3, round->number);
    bind_texts(stmt, 4, texts, 4);
    bind_int(stmt, 8, started_ms);
    r = run(stmt);
    if (r < 0)
        return r;
    stmt = prepared(store, Q_SET_ROUND_COUNT);
    bind_int(stmt, 1, round->number);
    bind_texts(stmt, 2, &ids[1], 1);
    return run(stmt);
}

int
store_get_round(struct store *store, const char *id, struct round *ret)
{
    return get_round(prepared(store, Q_GET_ROUND), &id, 1, ret);
}

int
store_get_newest_round(struct store *store, const char *flow_id, struct round *ret)
{
    return get_round(prepared(store, Q_GET_NEWEST_ROUND), &flow_id, 1, ret);
}

int
store_get_answered_round(struct store *store, const char *flow_id, struct round *ret)
{
    return get_round(prepared(store, Q_GET_ANSWERED_ROUND), &flow_id, 1, ret);
}

int
store_get_round_by_token(struct store *store, const char *flow_id, const char *token,
                         struct round *ret)
{
    const char *const keys[] = {flow_id, token};

    return get_round(prepared(store, Q_GET_ROUND_BY_TOKEN), keys, 2, ret);
}

int
store_end_round(struct store *store, const struct round *round, int64_t ended_ms)
{
    const char *const texts[] = {round->status, round->result_kind, round->result_text,
                                 round->reason};
    const char *id = round->id;
    sqlite3_stmt *stmt = prepared(store, Q_END_ROUND);

    bind_texts(stmt, 1, texts, 4);
    bind_int(stmt, 5, ended_ms);
    bind_texts(stmt, 6, &id, 1);
    return run(stmt);
}

int
store_each_open_round(struct store *store, const char *running_status,
                      int (*each)(void *arg, const struct round *round), void *arg)
{
    sqlite3_stmt *stmt = prepared(store, Q_EACH_OPEN_ROUND);
    int r = 0, step = SQLITE_ERROR;

    bind_texts(stmt, 1, &running_status, 1);
    while (stmt && r == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct round round = {0};
        r = read_round(stmt, &round);
        if (r == 0)
            r = each(arg, &round);
        round_fini(&round);
    }
    finish(stmt);
    return r != 0 ? r : step == SQLITE_DONE ? 0 : -EIO;
}

/* ---- launches ---- */

int
store_add_launch(struct store *store, const struct launch *launch)
{
    const char *const ids[] = {launch->round_id, launch->agent_id};
    const char *boot_id = launch->boot_id;
    sqlite3_stmt *stmt = prepared(store, Q_ADD_LAUNCH);

    bind_texts(stmt, 1, ids, 2);
    bind_int(stmt, 3, launch->pid);
    bind_int(stmt, 4, launch->start_ticks);
    bind_texts(stmt, 5, &boot_id, 1);
    return run(stmt);
}

int
store_remove_launch(struct store *store, const char *round_id)
{
    sqlite3_stmt *stmt = prepared(store, Q_REMOVE_LAUNCH);

    bind_texts(stmt, 1, &round_id, 1);
    return run(stmt);
}

int
store_remove_launches(struct store *store)
{
    return run_query(store, Q_REMOVE_LAUNCHES);
}

int
store_each_launch(struct store *store, int (*each)(void *arg, const struct launch *launch),
                  void *arg)
{
    sqlite3_stmt *stmt = prepared(store, Q_EACH_LAUNCH);
    int r = 0, step = SQLITE_ERROR;

    while (stmt && r == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct launch launch = {0};
        char **const ids[] = {&launch.round_id, &launch.agent_id};
        r = read_texts(stmt, 0, ids, 2);
        if (r == 0)
            r = read_text(stmt, 4, &launch.boot_id);
        launch.pid = sqlite3_column_int64(stmt, 2);
        launch.start_ticks = sqlite3_column_int64(stmt, 3);
        if (r == 0)
            r = each(arg, &launch);
        launch_fini(&launch);
    }
    finish(stmt);
    return r != 0 ? r : step == SQLITE_DONE ? 0 : -EIO;
}
