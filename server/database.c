/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/auto.h"

#define BUSY_TIMEOUT_MS 100 /* the loop stands still meanwhile */

/* Never changed once released: a store of any older version takes the steps that it lacks. */
static const char *const steps[] = {
    /* 1 */
    "CREATE TABLE flows ("
    " id TEXT PRIMARY KEY, definition_id TEXT NOT NULL, target_kind TEXT NOT NULL,"
    " target_ref TEXT NOT NULL, target_title TEXT NOT NULL, session_id TEXT, cwd TEXT NOT NULL,"
    " requested_vendor TEXT, status TEXT NOT NULL, round_count INTEGER NOT NULL,"
    " end_shown INTEGER NOT NULL DEFAULT 0, started_ms INTEGER NOT NULL,"
    " updated_ms INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX flows_by_session ON flows (session_id, updated_ms);"
    "CREATE TABLE participants ("
    " flow_id TEXT NOT NULL REFERENCES flows, role TEXT NOT NULL, vendor TEXT NOT NULL,"
    " agent_id TEXT NOT NULL UNIQUE, PRIMARY KEY (flow_id, role)) WITHOUT ROWID;"
    "CREATE TABLE rounds ("
    " id TEXT PRIMARY KEY, flow_id TEXT NOT NULL REFERENCES flows, number INTEGER NOT NULL,"
    " token TEXT NOT NULL, context TEXT NOT NULL, instructions TEXT, status TEXT NOT NULL,"
    " result_kind TEXT, result_text TEXT, reason TEXT, started_ms INTEGER NOT NULL,"
    " ended_ms INTEGER, UNIQUE (flow_id, number), UNIQUE (flow_id, token))"
    " WITHOUT ROWID;"
    "CREATE INDEX rounds_open ON rounds (status) WHERE ended_ms IS NULL;"
    "CREATE TABLE launches ("
    " round_id TEXT PRIMARY KEY REFERENCES rounds, agent_id TEXT NOT NULL,"
    " pid INTEGER NOT NULL, start_ticks INTEGER NOT NULL, boot_id TEXT NOT NULL)"
    " WITHOUT ROWID;",
    /* 2: several participants, definitions, messages, reviewers that live between rounds */
    "ALTER TABLE flows ADD COLUMN requested_model TEXT;"
    "ALTER TABLE flows ADD COLUMN end_reason TEXT;"
    "ALTER TABLE flows ADD COLUMN definition TEXT;"
    "ALTER TABLE participants ADD COLUMN position INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE participants ADD COLUMN model TEXT;"
    "ALTER TABLE participants ADD COLUMN prompt TEXT;"
    "ALTER TABLE participants ADD COLUMN workspace TEXT NOT NULL DEFAULT 'borrowed';"
    "ALTER TABLE participants ADD COLUMN applied_workspace TEXT;"
    "ALTER TABLE participants ADD COLUMN fallback_reason TEXT;"
    "ALTER TABLE participants ADD COLUMN dir TEXT;"
    "ALTER TABLE participants ADD COLUMN env_names TEXT;"
    "ALTER TABLE rounds ADD COLUMN role TEXT NOT NULL DEFAULT 'reviewer';"
    "ALTER TABLE rounds ADD COLUMN reason_code TEXT;"
    "ALTER TABLE rounds ADD COLUMN memory TEXT;"
    "ALTER TABLE rounds ADD COLUMN silence_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE rounds ADD COLUMN elapsed_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE rounds ADD COLUMN cost_microusd INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX flows_by_activity ON flows (updated_ms);"
    "CREATE TABLE messages ("
    " flow_id TEXT NOT NULL REFERENCES flows, id TEXT NOT NULL, role TEXT NOT NULL,"
    " text TEXT NOT NULL, acked INTEGER NOT NULL DEFAULT 0, sent_ms INTEGER NOT NULL,"
    " UNIQUE (flow_id, id));"
    "ALTER TABLE launches RENAME TO launches_1;"
    "CREATE TABLE launches ("
    " agent_id TEXT PRIMARY KEY, mark TEXT NOT NULL, boot_id TEXT NOT NULL,"
    " pid INTEGER NOT NULL, start_ticks INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT OR REPLACE INTO launches SELECT agent_id, '', boot_id, pid, start_ticks"
    " FROM launches_1;"
    "DROP TABLE launches_1;"};
#define SCHEMA_VERSION ((int)(sizeof steps / sizeof *steps))

static int
read_version(sqlite3 *db, int *ret)
{
    sqlite3_stmt *stmt = NULL;
    int r = sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &stmt, NULL);

    if (r == SQLITE_OK)
        r = sqlite3_step(stmt);
    if (r == SQLITE_ROW)
        *ret = sqlite3_column_int(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return r == SQLITE_ROW ? 0 : -EIO;
}

/* All steps or none. */
static int
migrate(sqlite3 *db, const char *path, int version, struct buf *error)
{
    char set_version[48];
    bool ok;

    if (version == SCHEMA_VERSION)
        return 0;
    (void)snprintf(set_version, sizeof set_version, "PRAGMA user_version = %d", SCHEMA_VERSION);
    ok = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK;
    for (int step = version; ok && step < SCHEMA_VERSION; step++)
        ok = sqlite3_exec(db, steps[step], NULL, NULL, NULL) == SQLITE_OK;
    if (!ok || sqlite3_exec(db, set_version, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
        buf_addf(error, "%s: the store cannot be set up: %s", path, sqlite3_errmsg(db));
        return -EIO;
    }
    return 0;
}

static int
prepare_database(sqlite3 *db, const char *path, struct buf *error)
{
    int version = 0;

    (void)sqlite3_busy_timeout(db, BUSY_TIMEOUT_MS);
    if (sqlite3_exec(db,
                     "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                     "PRAGMA foreign_keys = ON;",
                     NULL, NULL, NULL) != SQLITE_OK ||
        read_version(db, &version) < 0) {
        buf_addf(error, "%s: %s; if the file is damaged, move it away", path,
                 sqlite3_errmsg(db));
        return -EIO;
    }
    if (version > SCHEMA_VERSION) {
        buf_addf(error,
                 "%s was written by a newer kcap-flowd (store version %d, this one knows %d): "
                 "install that version, or name another KCAP_STATE_DIR",
                 path, version, SCHEMA_VERSION);
        return -EPROTO;
    }
    return migrate(db, path, version, error);
}

/* SQLite would make the file readable for all, and its companions get the same mode. Our
 * descriptor is gone before SQLite has its own: closing one drops the process's locks. */
static int
make_private(const char *path)
{
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    return fd < 0 ? -errno : 0;
}

int
database_open(const char *path, sqlite3 **ret, struct buf *error)
{
    int r = make_private(path);

    if (r < 0) {
        buf_addf(error, "%s cannot be opened: %s", path, strerror(-r));
        return r;
    }
    if (sqlite3_open_v2(path, ret,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK) {
        buf_addf(error, "%s cannot be opened: %s", path,
                 *ret ? sqlite3_errmsg(*ret) : "out of memory");
        return -EIO;
    }
    return prepare_database(*ret, path, error);
}
