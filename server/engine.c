/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/text.h"
#include "server/util.h"

#define MAX_NOTE 4096

void
engine_drop_effects(struct engine *engine, size_t keep)
{
    while (engine->effect_count > keep)
        free(engine->effects[--engine->effect_count].id);
}

void
engine_fini(struct engine *engine)
{
    engine_drop_effects(engine, 0);
    free(engine->effects);
    *engine = (struct engine){0};
}

static int
note(struct engine *engine, enum effect_kind kind, const char *id)
{
    char *copy = strdup(id);

    if (engine->effect_count == engine->effect_cap) {
        size_t cap = engine->effect_cap ? engine->effect_cap * 2 : 16;
        struct effect *more = reallocarray(engine->effects, cap, sizeof *more);
        if (more) {
            engine->effects = more;
            engine->effect_cap = cap;
        }
    }
    if (!copy || engine->effect_count == engine->effect_cap) {
        free(copy);
        return -ENOMEM;
    }
    engine->effects[engine->effect_count++] = (struct effect){.kind = kind, .id = copy};
    return 0;
}

static int
copy_text(const char *text, char **ret)
{
    if (!text)
        return 0;
    *ret = strdup(text);
    return *ret ? 0 : -ENOMEM;
}

static int
new_id(char **ret)
{
    char id[UTIL_ID_LEN + 1];
    int r = util_new_id(id);

    return r < 0 ? r : copy_text(id, ret);
}

/* Makes the next round of flow, in the store and in *ret, and has its reviewer started. */
static int
open_round(struct engine *engine, const struct flow *flow, const char *context,
           const char *instructions, struct round *ret)
{
    struct round round = {.number = flow->round_count + 1};
    int64_t now_ms = util_wall_ms();
    int r = new_id(&round.id);

    if (r == 0)
        r = new_id(&round.token);
    if (r == 0)
        r = copy_text(flow->id, &round.flow_id);
    if (r == 0)
        r = copy_text(context, &round.context);
    if (r == 0)
        r = copy_text(instructions, &round.instructions);
    if (r == 0)
        r = copy_text(ROUND_RUNNING, &round.status);
    if (r == 0)
        r = store_add_round(engine->store, &round, now_ms);
    if (r == 0)
        r = store_set_flow_status(engine->store, flow->id, FLOW_RUNNING, now_ms);
    if (r == 0)
        r = note(engine, EFFECT_START, round.id);
    if (r == 0)
        r = note(engine, EFFECT_CHANGED, flow->id);
    if (r < 0)
        round_fini(&round);
    else
        *ret = round;
    return r;
}

static int
make_flow(const struct start *start, struct flow *flow)
{
    const char *const from[] = {start->definition_id,    start->target_kind, start->target_ref,
                                start->target_title,     start->session_id,  start->cwd,
                                start->requested_vendor, start->vendor,      FLOW_RUNNING};
    char **const to[] = {&flow->definition_id,    &flow->target_kind, &flow->target_ref,
                         &flow->target_title,     &flow->session_id,  &flow->cwd,
                         &flow->requested_vendor, &flow->vendor,      &flow->status};
    int r = new_id(&flow->id);

    if (r == 0)
        r = new_id(&flow->agent_id);
    for (size_t i = 0; i < sizeof from / sizeof *from && r == 0; i++)
        r = copy_text(from[i], to[i]);
    flow->started_ms = flow->updated_ms = util_wall_ms();
    return r;
}

int
engine_start(struct engine *engine, const struct start *start, struct flow *ret_flow,
             struct round *ret_round)
{
    struct flow flow = {0};
    int r = make_flow(start, &flow);

    if (r == 0)
        r = store_add_flow(engine->store, &flow);
    if (r == 0)
        r = open_round(engine, &flow, start->context, start->instructions, ret_round);
    if (r < 0)
        flow_fini(&flow);
    else
        *ret_flow = flow;
    return r;
}

static int
get_flow(struct engine *engine, const char *flow_id, struct flow *ret)
{
    int r = store_get_flow(engine->store, flow_id, ret);

    return r == -ENOENT ? ENGINE_UNKNOWN_FLOW : r;
}

int
engine_submit(struct engine *engine, const char *flow_id, const char *context,
              const char *instructions, struct flow *ret_flow, struct round *ret_round)
{
    struct flow flow = {0};
    int r = get_flow(engine, flow_id, &flow);

    if (r == 0 && strcmp(flow.status, FLOW_CLOSED) == 0)
        r = ENGINE_RUN_CLOSED;
    if (r == 0 && strcmp(flow.status, FLOW_RUNNING) == 0)
        r = ENGINE_ROUND_IN_PROGRESS;
    if (r == 0)
        r = open_round(engine, &flow, context, instructions, ret_round);
    if (r < 0)
        flow_fini(&flow);
    else
        *ret_flow = flow;
    return r;
}

/* Ends a running round and gives its run the status that follows. */
static int
end_round(struct engine *engine, const struct round *ended, const char *flow_status)
{
    int64_t now_ms = util_wall_ms();
    int r = store_end_round(engine->store, ended, now_ms);

    if (r == 0)
        r = store_set_flow_status(engine->store, ended->flow_id, flow_status, now_ms);
    if (r == 0)
        r = note(engine, EFFECT_CHANGED, ended->flow_id);
    return r;
}

int
engine_close(struct engine *engine, const char *flow_id, struct flow *ret_flow)
{
    struct flow flow = {0};
    struct round newest = {0};
    int r = get_flow(engine, flow_id, &flow);

    if (r == 0 && strcmp(flow.status, FLOW_RUNNING) == 0) {
        r = store_get_newest_round(engine->store, flow_id, &newest);
        if (r == 0) {
            char status[] = ROUND_CANCELLED;
            struct round ended = {.id = newest.id, .flow_id = newest.flow_id, .status = status};
            r = end_round(engine, &ended, FLOW_CLOSED);
        }
        if (r == 0)
            r = note(engine, EFFECT_END, newest.id);
    } else if (r == 0 && strcmp(flow.status, FLOW_CLOSED) != 0) {
        r = store_set_flow_status(engine->store, flow_id, FLOW_CLOSED, util_wall_ms());
        if (r == 0)
            r = note(engine, EFFECT_CHANGED, flow_id);
    }
    round_fini(&newest);
    flow_fini(&flow);
    return r < 0 ? r : get_flow(engine, flow_id, ret_flow);
}

static bool
same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool
is_recorded_answer(const struct round *round, const char *kind, const char *text)
{
    return round->result_kind && strcmp(round->result_kind, kind) == 0 &&
           same_text(round->result_text, text);
}

/* A note is not worth losing the answer for. */
static char *
take_note(const struct engine *engine, const char *round_id)
{
    const char *note = engine->note ? engine->note(engine->note_arg, round_id) : NULL;
    AUTO_BUF struct buf clean = BUF_INIT(MAX_NOTE);

    if (note)
        text_add_line(&clean, note, strlen(note));
    return note ? buf_take(&clean, NULL) : NULL;
}

static int
answer_round(struct engine *engine, const struct flow *flow, const struct round *round,
             const char *kind, const char *text)
{
    struct round ended = *round;
    char *kind_copy = NULL, *text_copy = NULL, *note_text = NULL;
    int r;

    if (is_recorded_answer(round, kind, text))
        return 0;
    if (strcmp(flow->status, FLOW_CLOSED) == 0)
        return ENGINE_NO_ACTIVE_FLOW;
    if (strcmp(round->status, ROUND_RUNNING) != 0)
        return ENGINE_STALE_ROUND_TOKEN;
    r = copy_text(kind, &kind_copy);
    if (r == 0)
        r = copy_text(text, &text_copy);
    if (r == 0) {
        ended.status = ended.result_kind = kind_copy;
        ended.result_text = text_copy;
        ended.reason = note_text = take_note(engine, round->id);
        r = end_round(engine, &ended, FLOW_WAITING);
    }
    if (r == 0)
        r = note(engine, EFFECT_FINISH, round->id);
    free(kind_copy);
    free(text_copy);
    free(note_text);
    return r;
}

int
engine_result(struct engine *engine, const char *agent_id, const char *round_token,
              const char *kind, const char *text)
{
    struct flow flow = {0};
    struct round round = {0};
    int r = store_get_flow_by_agent(engine->store, agent_id, &flow);

    if (r == -ENOENT)
        r = ENGINE_NO_ACTIVE_FLOW;
    if (r == 0) {
        r = store_get_round_by_token(engine->store, flow.id, round_token, &round);
        if (r == 0)
            r = answer_round(engine, &flow, &round, kind, text);
        else if (r == -ENOENT)
            r = strcmp(flow.status, FLOW_CLOSED) == 0    ? ENGINE_NO_ACTIVE_FLOW
                : strcmp(flow.status, FLOW_RUNNING) == 0 ? ENGINE_STALE_ROUND_TOKEN
                                                         : ENGINE_NO_OPEN_ROUND;
    }
    round_fini(&round);
    flow_fini(&flow);
    return r;
}

int
engine_round_lost(struct engine *engine, const char *round_id, const char *result_text,
                  const char *reason)
{
    struct round round = {0};
    char *text = NULL, *why = NULL;
    int r = store_get_round(engine->store, round_id, &round);

    if (r == 0 && strcmp(round.status, ROUND_RUNNING) == 0) {
        char unclear[] = ROUND_UNCLEAR, failed[] = ROUND_FAILED;
        char *status = result_text ? unclear : failed;
        struct round ended = {.id = round.id, .flow_id = round.flow_id, .status = status};
        r = copy_text(result_text, &text);
        if (r == 0)
            r = copy_text(reason, &why);
        ended.result_kind = status;
        ended.result_text = text;
        ended.reason = why;
        if (r == 0)
            r = end_round(engine, &ended, FLOW_WAITING);
    }
    free(text);
    free(why);
    round_fini(&round);
    return r;
}

int
engine_forget(struct engine *engine, int64_t before_ms)
{
    return store_remove_old_flows(engine->store, FLOW_CLOSED, before_ms);
}

struct id_list {
    char **ids;
    size_t count;
};

static int
collect_id(void *arg, const struct round *round)
{
    struct id_list *list = arg;
    char **more = reallocarray(list->ids, list->count + 1, sizeof *more);

    if (!more)
        return -ENOMEM;
    list->ids = more;
    list->ids[list->count] = strdup(round->id);
    return list->ids[list->count++] ? 0 : -ENOMEM;
}

int
engine_recover(struct engine *engine)
{
    struct id_list list = {0};
    int r = store_each_open_round(engine->store, ROUND_RUNNING, collect_id, &list);

    for (size_t i = 0; i < list.count && r == 0; i++)
        r = engine_round_lost(engine, list.ids[i], ROUND_TEXT_DIED,
                              "kcap-flowd ended while the reviewer was at work");
    for (size_t i = 0; i < list.count; i++)
        free(list.ids[i]);
    free(list.ids);
    return r;
}
