/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds, messages of reviewers, and their processes. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "server/store_internal.h"

#define ROUND_TEXTS 12

void
round_fini(struct round *round)
{
    char *const texts[] = {round->id,     round->flow_id,     round->role,
                           round->token,  round->context,     round->instructions,
                           round->status, round->result_kind, round->result_text,
                           round->reason, round->reason_code, round->memory};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    *round = (struct round){0};
}

void
launch_fini(struct launch *launch)
{
    free(launch->agent_id);
    free(launch->mark);
    free(launch->boot_id);
    *launch = (struct launch){0};
}

void
message_fini(struct message *message)
{
    free(message->flow_id);
    free(message->role);
    free(message->id);
    free(message->text);
    *message = (struct message){0};
}

static int
read_round(void *arg, sqlite3_stmt *stmt)
{
    struct round round = {0}, *ret = arg;
    char **const texts[ROUND_TEXTS] = {&round.id,     &round.flow_id,     &round.role,
                                       &round.token,  &round.context,     &round.instructions,
                                       &round.status, &round.result_kind, &round.result_text,
                                       &round.reason, &round.reason_code, &round.memory};

    if (store_read_texts(stmt, 0, texts, ROUND_TEXTS) < 0) {
        round_fini(&round);
        return -EIO;
    }
    round.number = sqlite3_column_int64(stmt, ROUND_TEXTS);
    round.silence_ms = sqlite3_column_int64(stmt, ROUND_TEXTS + 1);
    round.elapsed_ms = sqlite3_column_int64(stmt, ROUND_TEXTS + 2);
    round.started_ms = sqlite3_column_int64(stmt, ROUND_TEXTS + 3);
    *ret = round;
    return 0;
}

static int
get_round(struct store *store, enum query query, const char *const *keys, int count,
          struct round *ret)
{
    sqlite3_stmt *stmt = store_stmt(store, query);

    store_bind_texts(stmt, 1, keys, count);
    return store_run_one(stmt, read_round, ret);
}

/* ---- rounds ---- */

int
store_add_round(struct store *store, const struct round *round, int64_t started_ms)
{
    const char *const texts[] = {round->id,    round->flow_id, round->role,
                                 round->token, round->context, round->instructions,
                                 round->status};
    sqlite3_stmt *stmt = store_stmt(store, Q_ADD_ROUND);
    int r;

    store_bind_texts(stmt, 1, texts, 7);
    store_bind_int(stmt, 8, round->number);
    store_bind_int(stmt, 9, started_ms);
    r = store_run(stmt);
    if (r < 0)
        return r;
    stmt = store_stmt(store, Q_SET_ROUND_COUNT);
    store_bind_int(stmt, 1, round->number);
    store_bind_texts(stmt, 2, &texts[1], 1);
    return store_run(stmt);
}

int
store_get_round(struct store *store, const char *id, struct round *ret)
{
    return get_round(store, Q_GET_ROUND, &id, 1, ret);
}

int
store_get_newest_round(struct store *store, const char *flow_id, struct round *ret)
{
    return get_round(store, Q_GET_NEWEST_ROUND, &flow_id, 1, ret);
}

int
store_get_newest_short_round(struct store *store, const char *flow_id, struct round *ret)
{
    return get_round(store, Q_GET_NEWEST_SHORT_ROUND, &flow_id, 1, ret);
}

int
store_get_answered_round(struct store *store, const char *flow_id, struct round *ret)
{
    return get_round(store, Q_GET_ANSWERED_ROUND, &flow_id, 1, ret);
}

int
store_get_round_by_token(struct store *store, const char *flow_id, const char *token,
                         struct round *ret)
{
    const char *const keys[] = {flow_id, token};

    return get_round(store, Q_GET_ROUND_BY_TOKEN, keys, 2, ret);
}

int
store_get_answered_round_of(struct store *store, const char *flow_id, const char *role,
                            struct round *ret)
{
    const char *const keys[] = {flow_id, role};

    return get_round(store, Q_GET_ANSWERED_ROUND_OF, keys, 2, ret);
}

static int
read_int(void *arg, sqlite3_stmt *stmt)
{
    *(int64_t *)arg = sqlite3_column_int64(stmt, 0);
    return 0;
}

int
store_has_earlier_round(struct store *store, const struct round *round)
{
    const char *const keys[] = {round->flow_id, round->role};
    sqlite3_stmt *stmt = store_stmt(store, Q_COUNT_EARLIER_ROUNDS);
    int64_t count = 0;
    int r;

    store_bind_texts(stmt, 1, keys, 2);
    store_bind_int(stmt, 3, round->number);
    r = store_run_one(stmt, read_int, &count);
    return r < 0 ? r : count > 0;
}

int
store_end_round(struct store *store, const struct round *round, int64_t ended_ms)
{
    const char *const texts[] = {round->status, round->result_kind, round->result_text,
                                 round->reason, round->reason_code};
    const char *id = round->id;
    sqlite3_stmt *stmt = store_stmt(store, Q_END_ROUND);

    store_bind_texts(stmt, 1, texts, 5);
    store_bind_int(stmt, 6, round->silence_ms);
    store_bind_int(stmt, 7, round->elapsed_ms);
    store_bind_int(stmt, 8, ended_ms);
    store_bind_texts(stmt, 9, &id, 1);
    return store_run(stmt);
}

int
store_set_round_memory(struct store *store, const char *id, const char *memory)
{
    const char *const texts[] = {memory, id};
    sqlite3_stmt *stmt = store_stmt(store, Q_SET_ROUND_MEMORY);

    store_bind_texts(stmt, 1, texts, 2);
    return store_run(stmt);
}

int
store_set_round_cost(struct store *store, const char *id, int64_t microusd)
{
    sqlite3_stmt *stmt = store_stmt(store, Q_SET_ROUND_COST);

    store_bind_int(stmt, 1, microusd);
    store_bind_texts(stmt, 2, &id, 1);
    return store_run(stmt);
}

int
store_get_flow_cost(struct store *store, const char *flow_id, int64_t *ret_microusd)
{
    sqlite3_stmt *stmt = store_stmt(store, Q_GET_FLOW_COST);

    store_bind_texts(stmt, 1, &flow_id, 1);
    return store_run_one(stmt, read_int, ret_microusd);
}

struct round_walk {
    int (*each)(void *arg, const struct round *round);
    void *arg;
};

static int
walk_round(void *arg, sqlite3_stmt *stmt)
{
    const struct round_walk *walk = arg;
    struct round round = {0};
    int r = read_round(&round, stmt);

    if (r == 0)
        r = walk->each(walk->arg, &round);
    round_fini(&round);
    return r;
}

static int
each_round(struct store *store, enum query query, const char *key,
           int (*each)(void *arg, const struct round *round), void *arg)
{
    struct round_walk walk = {each, arg};
    sqlite3_stmt *stmt = store_stmt(store, query);

    store_bind_texts(stmt, 1, &key, 1);
    return store_run_each(stmt, walk_round, &walk);
}

int
store_each_open_round(struct store *store, const char *running_status,
                      int (*each)(void *arg, const struct round *round), void *arg)
{
    return each_round(store, Q_EACH_OPEN_ROUND, running_status, each, arg);
}

int
store_each_round(struct store *store, const char *flow_id,
                 int (*each)(void *arg, const struct round *round), void *arg)
{
    return each_round(store, Q_EACH_ROUND, flow_id, each, arg);
}

/* ---- messages ---- */

int
store_add_message(struct store *store, const struct message *message, int64_t sent_ms)
{
    const char *const texts[] = {message->flow_id, message->role, message->id, message->text};
    sqlite3_stmt *stmt = store_stmt(store, Q_ADD_MESSAGE);

    store_bind_texts(stmt, 1, texts, 4);
    store_bind_int(stmt, 5, sent_ms);
    return store_run(stmt);
}

int
store_ack_message(struct store *store, const char *flow_id, const char *id)
{
    const char *const keys[] = {flow_id, id};
    sqlite3_stmt *stmt = store_stmt(store, Q_ACK_MESSAGE);

    store_bind_texts(stmt, 1, keys, 2);
    return store_run(stmt);
}

struct message_walk {
    int (*each)(void *arg, const struct message *message);
    void *arg;
};

static int
read_message(void *arg, sqlite3_stmt *stmt)
{
    struct message message = {0}, *ret = arg;
    char **const texts[] = {&message.flow_id, &message.role, &message.id, &message.text};

    if (store_read_texts(stmt, 0, texts, 4) < 0) {
        message_fini(&message);
        return -EIO;
    }
    *ret = message;
    return 0;
}

int
store_get_message(struct store *store, const char *flow_id, const char *id, struct message *ret)
{
    const char *const keys[] = {flow_id, id};
    sqlite3_stmt *stmt = store_stmt(store, Q_GET_MESSAGE);

    store_bind_texts(stmt, 1, keys, 2);
    return store_run_one(stmt, read_message, ret);
}

static int
walk_message(void *arg, sqlite3_stmt *stmt)
{
    const struct message_walk *walk = arg;
    struct message message = {0};
    int r = read_message(&message, stmt);

    if (r == 0)
        r = walk->each(walk->arg, &message);
    message_fini(&message);
    return r;
}

int
store_each_pending_message(struct store *store, const char *flow_id,
                           int (*each)(void *arg, const struct message *message), void *arg)
{
    struct message_walk walk = {each, arg};
    sqlite3_stmt *stmt = store_stmt(store, Q_EACH_MESSAGE);

    store_bind_texts(stmt, 1, &flow_id, 1);
    return store_run_each(stmt, walk_message, &walk);
}

/* ---- launches ---- */

int
store_add_launch(struct store *store, const struct launch *launch)
{
    const char *const texts[] = {launch->agent_id, launch->mark, launch->boot_id};
    sqlite3_stmt *stmt = store_stmt(store, Q_ADD_LAUNCH);

    store_bind_texts(stmt, 1, texts, 3);
    store_bind_int(stmt, 4, launch->pid);
    store_bind_int(stmt, 5, launch->start_ticks);
    return store_run(stmt);
}

int
store_remove_launch(struct store *store, const char *agent_id, int64_t pid)
{
    sqlite3_stmt *stmt = store_stmt(store, Q_REMOVE_LAUNCH);

    store_bind_texts(stmt, 1, &agent_id, 1);
    store_bind_int(stmt, 2, pid);
    return store_run(stmt);
}

int
store_remove_launches(struct store *store)
{
    return store_run(store_stmt(store, Q_REMOVE_LAUNCHES));
}

struct launch_walk {
    int (*each)(void *arg, const struct launch *launch);
    void *arg;
};

static int
walk_launch(void *arg, sqlite3_stmt *stmt)
{
    const struct launch_walk *walk = arg;
    struct launch launch = {0};
    char **const texts[] = {&launch.agent_id, &launch.mark, &launch.boot_id};
    int r = store_read_texts(stmt, 0, texts, 3);

    launch.pid = sqlite3_column_int64(stmt, 3);
    launch.start_ticks = sqlite3_column_int64(stmt, 4);
    if (r == 0)
        r = walk->each(walk->arg, &launch);
    launch_fini(&launch);
    return r;
}

int
store_each_launch(struct store *store, int (*each)(void *arg, const struct launch *launch),
                  void *arg)
{
    struct launch_walk walk = {each, arg};

    return store_run_each(store_stmt(store, Q_EACH_LAUNCH), walk_launch, &walk);
}
