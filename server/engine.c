/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/text.h"
#include "server/engine_internal.h"
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
open_round(struct engine *engine, const struct flow *flow, const char *role,
           const char *context, const char *instructions, struct round *ret)
{
    struct round round = {.number = flow->round_count + 1, .started_ms = util_wall_ms()};
    const char *const from[] = {flow->id, role, context, instructions, ROUND_RUNNING};
    char **const to[] = {&round.flow_id, &round.role, &round.context, &round.instructions,
                         &round.status};
    int r = new_id(&round.id);

    if (r == 0)
        r = new_id(&round.token);
    for (size_t i = 0; i < sizeof from / sizeof *from && r == 0; i++)
        r = copy_text(from[i], to[i]);
    if (r == 0)
        r = store_add_round(engine->store, &round, round.started_ms);
    if (r == 0)
        r = store_set_flow_status(engine->store, flow->id, FLOW_RUNNING, round.started_ms);
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
    const char *const from[] = {
        start->definition->id,   start->target_kind,     start->target_ref,
        start->target_title,     start->session_id,      start->cwd,
        start->requested_vendor, start->requested_model, FLOW_WAITING};
    char **const to[] = {&flow->definition_id,    &flow->target_kind,     &flow->target_ref,
                         &flow->target_title,     &flow->session_id,      &flow->cwd,
                         &flow->requested_vendor, &flow->requested_model, &flow->status};
    int r = new_id(&flow->id);

    for (size_t i = 0; i < sizeof from / sizeof *from && r == 0; i++)
        r = copy_text(from[i], to[i]);
    if (r == 0) {
        flow->definition = definition_to_json(start->definition);
        r = flow->definition ? 0 : -ENOMEM;
    }
    flow->started_ms = flow->updated_ms = util_wall_ms();
    return r;
}

static int
add_participants(struct engine *engine, const struct flow *flow,
                 const struct definition *definition)
{
    int r = 0;

    for (size_t i = 0; i < definition->participant_count && r == 0; i++) {
        const struct definition_participant *from = &definition->participants[i];
        const struct participant who = {.flow_id = flow->id,
                                        .role = from->role,
                                        .vendor = from->vendor,
                                        .model = from->model,
                                        .prompt = from->prompt,
                                        .workspace = from->workspace};
        struct participant added = who;
        r = new_id(&added.agent_id);
        if (r == 0)
            r = store_add_participant(engine->store, &added, (int64_t)i);
        free(added.agent_id);
    }
    return r;
}

int
engine_start(struct engine *engine, const struct start *start, struct flow *ret_flow,
             struct round *ret_round)
{
    const struct definition *definition = start->definition;
    struct flow flow = {0};
    int r = make_flow(start, &flow);

    if (r == 0)
        r = store_add_flow(engine->store, &flow);
    if (r == 0)
        r = add_participants(engine, &flow, definition);
    if (r == 0 && definition->participant_count == 1)
        r = open_round(engine, &flow, definition->participants[0].role, start->context,
                       start->instructions, ret_round);
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

static bool
has_ended(const struct flow *flow)
{
    return strcmp(flow->status, FLOW_CLOSED) == 0 || strcmp(flow->status, FLOW_FAILED) == 0;
}

/* Who is meant when no role is given: the only one. */
struct only {
    char *role;
    size_t count;
};

static int
see_participant(void *arg, const struct participant *who)
{
    struct only *only = arg;

    only->count++;
    return only->role ? 0 : copy_text(who->role, &only->role);
}

static int
find_role(struct engine *engine, const char *flow_id, const char *role, char **ret)
{
    struct participant who = {0};
    struct only only = {0};
    int r;

    if (role) {
        r = store_get_participant(engine->store, flow_id, role, &who);
        participant_fini(&who);
        return r == -ENOENT ? ENGINE_UNKNOWN_PARTICIPANT : r < 0 ? r : copy_text(role, ret);
    }
    r = store_each_participant(engine->store, flow_id, see_participant, &only);
    if (r == 0 && only.count != 1)
        r = ENGINE_PARTICIPANT_NEEDED;
    if (r < 0)
        free(only.role);
    else
        *ret = only.role;
    return r;
}

static int
check_limits(const struct flow *flow)
{
    struct definition definition = {0};
    int r = definition_from_json(flow->definition, &definition);

    if (r == 0 && definition.max_rounds > 0 && flow->round_count >= definition.max_rounds)
        r = ENGINE_MAX_ROUNDS;
    definition_fini(&definition);
    return r;
}

int
engine_submit(struct engine *engine, const char *flow_id, const char *role, const char *context,
              const char *instructions, struct flow *ret_flow, struct round *ret_round)
{
    struct flow flow = {0};
    char *found = NULL;
    int r = get_flow(engine, flow_id, &flow);

    if (r == 0 && strcmp(flow.status, FLOW_CLOSED) == 0)
        r = ENGINE_RUN_CLOSED;
    if (r == 0 && strcmp(flow.status, FLOW_FAILED) == 0)
        r = ENGINE_RUN_FAILED;
    if (r == 0)
        r = find_role(engine, flow_id, role, &found);
    if (r == 0 && strcmp(flow.status, FLOW_RUNNING) == 0)
        r = ENGINE_ROUND_IN_PROGRESS;
    if (r == 0)
        r = check_limits(&flow);
    if (r == 0)
        r = open_round(engine, &flow, found, context, instructions, ret_round);
    free(found);
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

static int
end_participant(void *arg, const struct participant *who)
{
    return note(arg, EFFECT_END, who->agent_id);
}

int
engine_end_flow(struct engine *engine, const struct flow *flow, const char *status,
                const char *reason)
{
    struct round newest = {0};
    int r = 0;

    if (strcmp(flow->status, FLOW_RUNNING) == 0) {
        r = store_get_newest_round(engine->store, flow->id, &newest);
        if (r == 0) {
            char cancelled[] = ROUND_CANCELLED;
            struct round ended = {
                .id = newest.id, .flow_id = newest.flow_id, .status = cancelled};
            r = end_round(engine, &ended, status);
        }
    }
    if (r == 0)
        r = store_end_flow(engine->store, flow->id, status, reason, util_wall_ms());
    if (r == 0)
        r = store_each_participant(engine->store, flow->id, end_participant, engine);
    if (r == 0)
        r = note(engine, EFFECT_CHANGED, flow->id);
    round_fini(&newest);
    return r;
}

int
engine_close(struct engine *engine, const char *flow_id, struct flow *ret_flow)
{
    struct flow flow = {0};
    int r = get_flow(engine, flow_id, &flow);

    if (r == 0 && strcmp(flow.status, FLOW_CLOSED) == 0)
        r = store_each_participant(engine->store, flow.id, end_participant, engine);
    else if (r == 0)
        r = engine_end_flow(engine, &flow, FLOW_CLOSED, flow.end_reason);
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
    if (has_ended(flow))
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
        ended.elapsed_ms = util_wall_ms() - round->started_ms;
        r = end_round(engine, &ended, FLOW_WAITING);
    }
    if (r == 0)
        r = note(engine, EFFECT_FINISH, round->id);
    free(kind_copy);
    free(text_copy);
    free(note_text);
    return r;
}

/* The run of an agent, and the agent. */
static int
get_agent(struct engine *engine, const char *agent_id, struct participant *ret_who,
          struct flow *ret_flow)
{
    int r = store_get_participant_by_agent(engine->store, agent_id, ret_who);

    if (r == 0)
        r = store_get_flow(engine->store, ret_who->flow_id, ret_flow);
    return r == -ENOENT ? ENGINE_NO_ACTIVE_FLOW : r;
}

int
engine_result(struct engine *engine, const char *agent_id, const char *round_token,
              const char *kind, const char *text)
{
    struct participant who = {0};
    struct flow flow = {0};
    struct round round = {0};
    int r = get_agent(engine, agent_id, &who, &flow);

    if (r == 0) {
        r = store_get_round_by_token(engine->store, flow.id, round_token, &round);
        if (r == 0 && strcmp(round.role, who.role) != 0)
            r = ENGINE_STALE_ROUND_TOKEN;
        else if (r == 0)
            r = answer_round(engine, &flow, &round, kind, text);
        else if (r == -ENOENT)
            r = has_ended(&flow)                         ? ENGINE_NO_ACTIVE_FLOW
                : strcmp(flow.status, FLOW_RUNNING) == 0 ? ENGINE_STALE_ROUND_TOKEN
                                                         : ENGINE_NO_OPEN_ROUND;
    }
    round_fini(&round);
    flow_fini(&flow);
    participant_fini(&who);
    return r;
}

static int
count_message(void *arg, const struct message *message)
{
    (void)message;
    ++*(int *)arg;
    return 0;
}

/* Whether the message is on record: 1, 0, or ENGINE_MESSAGE_ID_IN_USE when its id is another's.
 */
static int
has_message(struct engine *engine, const struct message *message)
{
    struct message earlier = {0};
    int r = store_get_message(engine->store, message->flow_id, message->id, &earlier);

    if (r == 0)
        r = strcmp(earlier.role, message->role) == 0 && strcmp(earlier.text, message->text) == 0
                ? 1
                : ENGINE_MESSAGE_ID_IN_USE;
    message_fini(&earlier);
    return r == -ENOENT ? 0 : r;
}

int
engine_message(struct engine *engine, const char *agent_id, const char *message_id,
               const char *text)
{
    struct participant who = {0};
    struct flow flow = {0};
    struct message message = {0};
    int r = get_agent(engine, agent_id, &who, &flow), count = 0;

    if (r == 0)
        r = copy_text(flow.id, &message.flow_id);
    if (r == 0)
        r = copy_text(who.role, &message.role);
    if (r == 0)
        r = copy_text(message_id, &message.id);
    if (r == 0)
        r = copy_text(text, &message.text);
    if (r == 0)
        r = has_message(engine, &message);
    if (r == 0 && has_ended(&flow))
        r = ENGINE_RUN_CLOSED;
    if (r == 0)
        r = store_each_pending_message(engine->store, flow.id, count_message, &count);
    if (r == 0 && count >= ENGINE_MAX_MESSAGES)
        r = ENGINE_TOO_MANY_MESSAGES;
    if (r == 0)
        r = store_add_message(engine->store, &message, util_wall_ms());
    if (r == 0)
        r = note(engine, EFFECT_CHANGED, flow.id);
    message_fini(&message);
    flow_fini(&flow);
    participant_fini(&who);
    return r > 0 ? 0 : r;
}

int
engine_round_lost(struct engine *engine, const char *round_id, const struct loss *loss)
{
    struct round round = {0};
    char *text = NULL, *why = NULL, *code = NULL;
    int r = store_get_round(engine->store, round_id, &round);

    if (r == 0 && strcmp(round.status, ROUND_RUNNING) == 0) {
        char unclear[] = ROUND_UNCLEAR, failed[] = ROUND_FAILED;
        char *status = loss->result_text ? unclear : failed;
        struct round ended = {.id = round.id,
                              .flow_id = round.flow_id,
                              .status = status,
                              .result_kind = status,
                              .silence_ms = loss->silence_ms,
                              .elapsed_ms = loss->elapsed_ms};
        r = copy_text(loss->result_text, &text);
        if (r == 0)
            r = copy_text(loss->reason, &why);
        if (r == 0)
            r = copy_text(loss->code, &code);
        ended.result_text = text;
        ended.reason = why;
        ended.reason_code = code;
        if (r == 0)
            r = end_round(engine, &ended, FLOW_WAITING);
    }
    free(text);
    free(why);
    free(code);
    round_fini(&round);
    return r == -ENOENT ? 0 : r; /* forgotten meanwhile */
}

int
engine_round_cost(struct engine *engine, const char *round_id, int64_t microusd)
{
    struct round round = {0};
    struct flow flow = {0};
    struct definition definition = {0};
    int64_t total = 0;
    int r = store_get_round(engine->store, round_id, &round);

    if (r == -ENOENT)
        return 0;
    if (r == 0)
        r = store_set_round_cost(engine->store, round_id, microusd);
    if (r == 0)
        r = store_get_flow(engine->store, round.flow_id, &flow);
    if (r == 0)
        r = definition_from_json(flow.definition, &definition);
    if (r == 0)
        r = store_get_flow_cost(engine->store, flow.id, &total);
    if (r == 0 && definition.budget_microusd > 0 && total >= definition.budget_microusd &&
        !has_ended(&flow)) {
        char reason[128];
        (void)snprintf(reason, sizeof reason, "budget_exceeded: %.2f of %.2f USD are spent",
                       (double)total / 1e6, (double)definition.budget_microusd / 1e6);
        r = engine_end_flow(engine, &flow, FLOW_FAILED, reason);
    }
    definition_fini(&definition);
    flow_fini(&flow);
    round_fini(&round);
    return r;
}
