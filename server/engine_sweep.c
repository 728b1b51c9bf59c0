/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to many runs at once: after a restart, and as time goes by. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/engine_internal.h"

int
engine_forget(struct engine *engine, int64_t before_ms)
{
    return store_remove_old_flows(engine->store, before_ms);
}

/* Ids of rows, kept until the walk over them is over and they can be changed. */
struct id_list {
    char **ids;
    size_t count;
    int64_t default_ttl_sec, now_ms, next_ms;
};

static int
keep_id(struct id_list *list, const char *id)
{
    char **more = reallocarray(list->ids, list->count + 1, sizeof *more);

    if (!more)
        return -ENOMEM;
    list->ids = more;
    list->ids[list->count] = strdup(id);
    return list->ids[list->count++] ? 0 : -ENOMEM;
}

static void
free_ids(struct id_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->ids[i]);
    free(list->ids);
}

/* By whether their turn has begun. */
struct open_rounds {
    struct id_list begun, queued;
};

static int
collect_round(void *arg, const struct round *round)
{
    struct open_rounds *rounds = arg;

    return keep_id(round->memory ? &rounds->begun : &rounds->queued, round->id);
}

static int
lose_all(struct engine *engine, const struct id_list *list, const char *reason)
{
    const struct loss loss = {
        .result_text = ROUND_TEXT_DIED, .code = "server_restart", .reason = reason};
    int r = 0;

    for (size_t i = 0; i < list->count && r == 0; i++)
        r = engine_round_lost(engine, list->ids[i], &loss);
    return r;
}

int
engine_recover(struct engine *engine)
{
    struct open_rounds rounds = {.begun = {0}};
    int r = store_each_open_round(engine->store, ROUND_RUNNING, collect_round, &rounds);

    if (r == 0)
        r = lose_all(engine, &rounds.begun, "kcap-flowd ended while the reviewer was at work");
    if (r == 0)
        r = lose_all(engine, &rounds.queued,
                     "kcap-flowd ended while the round waited for its turn: no reviewer has "
                     "seen it");
    free_ids(&rounds.begun);
    free_ids(&rounds.queued);
    return r;
}

static int
collect_idle_flow(void *arg, const struct flow *flow)
{
    struct id_list *list = arg;
    struct definition definition = {0};
    int r = definition_from_json(flow->definition, &definition);
    int64_t ttl_sec =
        definition.idle_ttl_sec > 0 ? definition.idle_ttl_sec : list->default_ttl_sec;
    int64_t due_ms = flow->updated_ms + ttl_sec * 1000;

    definition_fini(&definition);
    if (r < 0)
        return r;
    if (due_ms <= list->now_ms)
        return keep_id(list, flow->id);
    if (due_ms < list->next_ms)
        list->next_ms = due_ms;
    return 0;
}

int
engine_end_idle(struct engine *engine, int64_t default_ttl_sec, int64_t now_ms,
                int64_t *ret_next_ms)
{
    struct id_list list = {
        .default_ttl_sec = default_ttl_sec, .now_ms = now_ms, .next_ms = INT64_MAX};
    int r = store_each_waiting_flow(engine->store, collect_idle_flow, &list);

    for (size_t i = 0; i < list.count && r == 0; i++) {
        struct flow flow = {0};
        r = store_get_flow(engine->store, list.ids[i], &flow);
        if (r == 0)
            r = engine_end_flow(engine, &flow, FLOW_CLOSED,
                                "idle_ttl: nobody asked for another round in time");
        flow_fini(&flow);
    }
    *ret_next_ms = list.next_ms;
    free_ids(&list);
    return r;
}
