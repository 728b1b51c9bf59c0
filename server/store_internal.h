/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared statements and how they are run: for the files store*.c only. */
#ifndef KCAP_SERVER_STORE_INTERNAL_H
#define KCAP_SERVER_STORE_INTERNAL_H

#include <sqlite3.h>

#include "server/store.h"

enum query {
    Q_BEGIN,
    Q_COMMIT,
    Q_ROLLBACK,
    Q_PART_BEGIN,
    Q_PART_KEEP,
    Q_PART_UNDO,
    Q_ADD_FLOW,
    Q_GET_FLOW,
    Q_SET_FLOW_STATUS,
    Q_END_FLOW,
    Q_SET_FLOW_SHOWN,
    Q_EACH_SESSION_FLOW,
    Q_EACH_FLOW,
    Q_EACH_OPEN_FLOW,
    Q_EACH_STALE_FLOW,
    Q_REMOVE_OLD_MESSAGES,
    Q_REMOVE_OLD_ROUNDS,
    Q_REMOVE_OLD_PARTICIPANTS,
    Q_REMOVE_OLD_FLOWS,
    Q_ADD_PARTICIPANT,
    Q_GET_PARTICIPANT,
    Q_GET_PARTICIPANT_BY_AGENT,
    Q_EACH_PARTICIPANT,
    Q_SET_ENV_NAMES,
    Q_SET_WORKSPACE,
    Q_ADD_ROUND,
    Q_SET_ROUND_COUNT,
    Q_GET_ROUND,
    Q_GET_NEWEST_ROUND,
    Q_GET_NEWEST_SHORT_ROUND,
    Q_GET_ANSWERED_ROUND,
    Q_GET_ANSWERED_ROUND_OF,
    Q_COUNT_EARLIER_ROUNDS,
    Q_GET_ROUND_BY_TOKEN,
    Q_END_ROUND,
    Q_SET_ROUND_MEMORY,
    Q_SET_ROUND_COST,
    Q_GET_FLOW_COST,
    Q_EACH_OPEN_ROUND,
    Q_EACH_ROUND,
    Q_ADD_MESSAGE,
    Q_GET_MESSAGE,
    Q_ACK_MESSAGE,
    Q_EACH_MESSAGE,
    Q_ADD_LAUNCH,
    Q_REMOVE_LAUNCH,
    Q_REMOVE_LAUNCHES,
    Q_EACH_LAUNCH,
    Q_COUNT
};

struct store {
    sqlite3 *db;
    sqlite3_stmt *prepared[Q_COUNT];
};

/* NULL when it cannot be prepared; the functions below take that for -EIO. */
sqlite3_stmt *store_stmt(struct store *store, enum query query);

/* Texts are not copied: they live until the statement was run. NULL is SQL's NULL. */
void store_bind_texts(sqlite3_stmt *stmt, int first, const char *const *texts, int count);
void store_bind_int(sqlite3_stmt *stmt, int at, int64_t value);

/* Runs a statement that yields no row. */
int store_run(sqlite3_stmt *stmt);

/* Runs one that yields at most one row, which read gets; -ENOENT when there is none. */
int store_run_one(sqlite3_stmt *stmt, int (*read)(void *arg, sqlite3_stmt *stmt), void *arg);

/* Runs one that yields rows, until read returns non-zero, which is then returned. */
int store_run_each(sqlite3_stmt *stmt, int (*read)(void *arg, sqlite3_stmt *stmt), void *arg);

/* Columns from first on into owned texts; those that are NULL are left alone. */
int store_read_texts(sqlite3_stmt *stmt, int first, char **const *places, int count);

#endif
