/* SPDX-License-Identifier: Apache-2.0 */
/* The statements, and how they are run. */
#include "config.h"

#include "server/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/database.h"
#include "server/store_internal.h"

#define FLOW_COLUMNS                                                                       \
    "f.id, f.definition_id, f.target_kind, f.target_ref, f.target_title, f.session_id,"    \
    " f.cwd, f.requested_vendor, f.requested_model, f.status, f.end_reason, f.definition," \
    " f.round_count, f.started_ms, f.updated_ms FROM flows f "
#define PARTICIPANT_COLUMNS                                                         \
    "flow_id, role, vendor, model, agent_id, prompt, workspace, applied_workspace," \
    " fallback_reason, dir, env_names FROM participants "
#define ROUND_COLUMNS_AND(CONTEXT, INSTRUCTIONS, RESULT)                                    \
    "id, flow_id, role, token, " CONTEXT ", " INSTRUCTIONS ", status, result_kind, " RESULT \
    ", reason, reason_code, memory, number, silence_ms, elapsed_ms, started_ms FROM rounds "
#define ROUND_COLUMNS ROUND_COLUMNS_AND("context", "instructions", "result_text")
/* The texts may be megabytes. */
#define SHORT_ROUND_COLUMNS ROUND_COLUMNS_AND("''", "NULL", "NULL")

/* One whose reviewer is still on record stays until that one's end is seen. */
#define OLD_FLOWS                                                                       \
    "(SELECT f.id FROM flows f WHERE f.status IN ('closed', 'failed') AND f.updated_ms" \
    " < ? AND NOT EXISTS (SELECT 1 FROM launches l JOIN participants p"                 \
    " ON p.agent_id = l.agent_id WHERE p.flow_id = f.id))"

static const char *const queries[Q_COUNT] = {
    [Q_BEGIN] = "BEGIN IMMEDIATE",
    [Q_COMMIT] = "COMMIT",
    [Q_ROLLBACK] = "ROLLBACK",
    [Q_PART_BEGIN] = "SAVEPOINT part",
    [Q_PART_KEEP] = "RELEASE part",
    [Q_PART_UNDO] = "ROLLBACK TO part",
    [Q_ADD_FLOW] = "INSERT INTO flows (id, definition_id, target_kind, target_ref,"
                   " target_title, session_id, cwd, requested_vendor, requested_model, status,"
                   " definition, round_count, started_ms, updated_ms)"
                   " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)",
    [Q_GET_FLOW] = "SELECT " FLOW_COLUMNS "WHERE f.id = ?",
    [Q_SET_FLOW_STATUS] = "UPDATE flows SET status = ?, updated_ms = ? WHERE id = ?",
    [Q_END_FLOW] = "UPDATE flows SET status = ?, end_reason = ?, updated_ms = ? WHERE id = ?",
    [Q_SET_FLOW_SHOWN] = "UPDATE flows SET end_shown = 1 WHERE id = ? AND end_shown = 0",
    [Q_EACH_SESSION_FLOW] = "SELECT " FLOW_COLUMNS "WHERE f.session_id = ?"
                            " AND (f.status NOT IN ('closed', 'failed') OR f.end_shown = 0)"
                            " ORDER BY f.updated_ms DESC, f.started_ms DESC",
    [Q_EACH_FLOW] =
        "SELECT " FLOW_COLUMNS "ORDER BY f.updated_ms DESC, f.started_ms DESC LIMIT ?",
    [Q_EACH_OPEN_FLOW] = "SELECT " FLOW_COLUMNS "WHERE f.status NOT IN ('closed', 'failed')"
                         " ORDER BY f.updated_ms DESC, f.started_ms DESC LIMIT ?",
    [Q_EACH_STALE_FLOW] = "SELECT " FLOW_COLUMNS "WHERE f.status = 'waiting'"
                          " ORDER BY f.updated_ms",
    [Q_REMOVE_OLD_MESSAGES] = "DELETE FROM messages WHERE flow_id IN " OLD_FLOWS,
    [Q_REMOVE_OLD_ROUNDS] = "DELETE FROM rounds WHERE flow_id IN " OLD_FLOWS,
    [Q_REMOVE_OLD_PARTICIPANTS] = "DELETE FROM participants WHERE flow_id IN " OLD_FLOWS,
    [Q_REMOVE_OLD_FLOWS] = "DELETE FROM flows WHERE id IN " OLD_FLOWS,
    [Q_ADD_PARTICIPANT] = "INSERT INTO participants (flow_id, role, vendor, model, agent_id,"
                          " prompt, workspace, position) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    [Q_GET_PARTICIPANT] = "SELECT " PARTICIPANT_COLUMNS "WHERE flow_id = ? AND role = ?",
    [Q_GET_PARTICIPANT_BY_AGENT] = "SELECT " PARTICIPANT_COLUMNS "WHERE agent_id = ?",
    [Q_EACH_PARTICIPANT] =
        "SELECT " PARTICIPANT_COLUMNS "WHERE flow_id = ? ORDER BY position, role",
    [Q_SET_ENV_NAMES] = "UPDATE participants SET env_names = ? WHERE agent_id = ?",
    [Q_SET_WORKSPACE] = "UPDATE participants SET applied_workspace = ?, fallback_reason = ?,"
                        " dir = ? WHERE agent_id = ?",
    [Q_ADD_ROUND] = "INSERT INTO rounds (id, flow_id, role, token, context, instructions,"
                    " status, number, started_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [Q_SET_ROUND_COUNT] = "UPDATE flows SET round_count = ? WHERE id = ?",
    [Q_GET_ROUND] = "SELECT " ROUND_COLUMNS "WHERE id = ?",
    [Q_GET_NEWEST_ROUND] =
        "SELECT " ROUND_COLUMNS "WHERE flow_id = ? ORDER BY number DESC LIMIT 1",
    [Q_GET_NEWEST_SHORT_ROUND] =
        "SELECT " SHORT_ROUND_COLUMNS "WHERE flow_id = ? ORDER BY number DESC LIMIT 1",
    [Q_GET_ANSWERED_ROUND] =
        "SELECT " ROUND_COLUMNS "WHERE flow_id = ? AND status IN ('findings', 'clean')"
        " ORDER BY number DESC LIMIT 1",
    [Q_GET_ANSWERED_ROUND_OF] =
        "SELECT " ROUND_COLUMNS "WHERE flow_id = ? AND role = ?"
        " AND status IN ('findings', 'clean') ORDER BY number DESC LIMIT 1",
    [Q_COUNT_EARLIER_ROUNDS] =
        "SELECT count(*) FROM rounds WHERE flow_id = ? AND role = ? AND number < ?",
    [Q_GET_ROUND_BY_TOKEN] = "SELECT " ROUND_COLUMNS "WHERE flow_id = ? AND token = ?",
    [Q_END_ROUND] = "UPDATE rounds SET status = ?, result_kind = ?, result_text = ?,"
                    " reason = ?, reason_code = ?, silence_ms = ?, elapsed_ms = ?,"
                    " ended_ms = ? WHERE id = ?",
    [Q_SET_ROUND_MEMORY] = "UPDATE rounds SET memory = ? WHERE id = ?",
    [Q_SET_ROUND_COST] = "UPDATE rounds SET cost_microusd = ? WHERE id = ?",
    [Q_GET_FLOW_COST] = "SELECT sum(cost_microusd) FROM rounds WHERE flow_id = ?",
    [Q_EACH_OPEN_ROUND] = "SELECT " ROUND_COLUMNS "WHERE ended_ms IS NULL AND status = ?",
    [Q_EACH_ROUND] = "SELECT " ROUND_COLUMNS "WHERE flow_id = ? ORDER BY number",
    [Q_ADD_MESSAGE] = "INSERT INTO messages (flow_id, role, id, text, sent_ms)"
                      " VALUES (?, ?, ?, ?, ?)",
    [Q_GET_MESSAGE] =
        "SELECT flow_id, role, id, text FROM messages WHERE flow_id = ? AND id = ?",
    [Q_ACK_MESSAGE] = "UPDATE messages SET acked = 1 WHERE flow_id = ? AND id = ?",
    [Q_EACH_MESSAGE] = "SELECT flow_id, role, id, text FROM messages WHERE flow_id = ?"
                       " AND acked = 0 ORDER BY sent_ms, rowid",
    [Q_ADD_LAUNCH] = "INSERT OR REPLACE INTO launches (agent_id, mark, boot_id, pid,"
                     " start_ticks) VALUES (?, ?, ?, ?, ?)",
    [Q_REMOVE_LAUNCH] = "DELETE FROM launches WHERE agent_id = ? AND pid = ?",
    [Q_REMOVE_LAUNCHES] = "DELETE FROM launches",
    [Q_EACH_LAUNCH] = "SELECT agent_id, mark, boot_id, pid, start_ticks FROM launches",
};

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

sqlite3_stmt *
store_stmt(struct store *store, enum query query)
{
    sqlite3_stmt **place = &store->prepared[query];

    if (!*place && sqlite3_prepare_v3(store->db, queries[query], -1, SQLITE_PREPARE_PERSISTENT,
                                      place, NULL) != SQLITE_OK)
        *place = NULL;
    return *place;
}

void
store_bind_texts(sqlite3_stmt *stmt, int first, const char *const *texts, int count)
{
    for (int i = 0; stmt && i < count; i++)
        (void)sqlite3_bind_text(stmt, first + i, texts[i], -1, SQLITE_STATIC);
}

void
store_bind_int(sqlite3_stmt *stmt, int at, int64_t value)
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

int
store_run(sqlite3_stmt *stmt)
{
    int r;

    if (!stmt)
        return -EIO;
    r = sqlite3_step(stmt);
    finish(stmt);
    return r == SQLITE_DONE ? 0 : -EIO;
}

int
store_run_one(sqlite3_stmt *stmt, int (*read)(void *arg, sqlite3_stmt *stmt), void *arg)
{
    int r;

    if (!stmt)
        return -EIO;
    r = sqlite3_step(stmt);
    r = r == SQLITE_ROW ? read(arg, stmt) : r == SQLITE_DONE ? -ENOENT : -EIO;
    finish(stmt);
    return r;
}

int
store_run_each(sqlite3_stmt *stmt, int (*read)(void *arg, sqlite3_stmt *stmt), void *arg)
{
    int r = 0, step = SQLITE_ERROR;

    while (stmt && r == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        r = read(arg, stmt);
    if (stmt)
        finish(stmt);
    return r != 0 ? r : step == SQLITE_DONE ? 0 : -EIO;
}

int
store_read_texts(sqlite3_stmt *stmt, int first, char **const *places, int count)
{
    for (int i = 0; i < count; i++) {
        const void *text = sqlite3_column_text(stmt, first + i);
        if (!text && sqlite3_column_type(stmt, first + i) == SQLITE_NULL)
            continue;
        *places[i] = text ? strdup(text) : NULL;
        if (!*places[i])
            return -EIO;
    }
    return 0;
}

/* ---- transactions ---- */

int
store_begin(struct store *store)
{
    return store_run(store_stmt(store, Q_BEGIN));
}

int
store_commit(struct store *store)
{
    return store_run(store_stmt(store, Q_COMMIT));
}

void
store_rollback(struct store *store)
{
    if (!sqlite3_get_autocommit(store->db)) /* SQLite may have rolled back by itself */
        (void)store_run(store_stmt(store, Q_ROLLBACK));
}

int
store_part_begin(struct store *store)
{
    return store_run(store_stmt(store, Q_PART_BEGIN));
}

int
store_part_end(struct store *store, bool keep)
{
    int r = keep ? 0 : store_run(store_stmt(store, Q_PART_UNDO));

    return r < 0 ? r : store_run(store_stmt(store, Q_PART_KEEP));
}
