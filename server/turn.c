/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/turn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/api.h"
#include "server/log.h"
#include "server/util.h"

#define RETRY_NS (UTIL_SEC_NS / 2)

/* A request of this turn with its answer, held back until the transaction is on disk. */
struct handled {
    struct handled *next;
    struct request *request;
    struct api_answer answer;
};

bool
turn_has_work(const struct turn *turn)
{
    return http_has_pending(turn->http) || http_has_shown(turn->http) ||
           reviewers_event(turn->reviewers) != NULL;
}

int64_t
turn_deadline_ns(const struct turn *turn)
{
    if (!turn_has_work(turn))
        return UTIL_NEVER;
    return http_has_pending(turn->http) ? 0 : turn->retry_at_ns;
}

static void
answer_fini(struct api_answer *answer)
{
    free(answer->body);
    free(answer->shown_flow);
    free(answer->wait_flow);
}

/* Takes the answer's texts. */
static void
send_answer(struct request *request, struct api_answer *answer)
{
    free(request->shown_flow);
    request->shown_flow = answer->shown_flow;
    free(answer->wait_flow);
    http_answer(request, answer->status, answer->body, answer->type);
}

static void
send_unavailable(struct request *request)
{
    struct api_answer answer;

    api_answer_unavailable(&answer);
    send_answer(request, &answer);
}

static struct api_request
describe(const struct turn *turn, const struct request *request)
{
    return (struct api_request){.method = request->method,
                                .path = request->path,
                                .body = buf_str(&request->body),
                                .body_len = request->body.len,
                                .wait_sec_text = request->wait_sec_text,
                                .repo_root = request->repo_root,
                                .may_wait = !request->waited,
                                .site = &turn->site,
                                .remote = {.is_tcp = request->peer == HTTP_PEER_TCP,
                                           .is_reviewer = request->peer == HTTP_PEER_REVIEWER,
                                           .authorization = request->authorization,
                                           .host = request->host,
                                           .origin = request->origin}};
}

bool
turn_admits(void *arg, const struct request *request)
{
    struct api_request in = describe(arg, request);

    return api_is_admitted(&in);
}

/* ---- inside the transaction ---- */

static struct handled *
handle_request(struct turn *turn, struct request *request)
{
    struct engine *engine = &turn->engine;
    struct api_request in = describe(turn, request);
    struct handled *handled = calloc(1, sizeof *handled);
    size_t effects = engine->effect_count;
    bool keep;

    if (!handled || store_part_begin(engine->store) < 0) {
        free(handled);
        send_unavailable(request);
        return NULL;
    }
    handled->request = request;
    keep = api_handle(engine, &in, &handled->answer);
    if (!keep)
        engine_drop_effects(engine, effects);
    if (store_part_end(engine->store, keep) < 0) {
        engine_drop_effects(engine, effects);
        answer_fini(&handled->answer);
        api_answer_unavailable(&handled->answer);
    }
    return handled;
}

static int
apply_shown(struct turn *turn)
{
    char *flow_id;
    int r = 0;

    while (r == 0 && (flow_id = http_take_shown(turn->http)) != NULL) {
        r = store_set_flow_shown(turn->engine.store, flow_id);
        free(flow_id);
    }
    return r;
}

/* What the rules say no to is no fault of the store: the reviewer said it too late. */
static int
apply_verdict(struct turn *turn, const struct reviewer_event *event)
{
    int r = engine_result(&turn->engine, event->agent_id, event->token, event->verdict,
                          event->text);

    if (r > ENGINE_UNKNOWN_FLOW || r < ENGINE_MESSAGE_ID_IN_USE)
        return r;
    log_line("round %s: a result on standard output came too late", event->round_id);
    return 0;
}

static int
apply_event(struct turn *turn, const struct reviewer_event *event)
{
    switch (event->kind) {
    case REVIEWER_LOST:
        return engine_round_lost(&turn->engine, event->round_id, &event->loss);
    case REVIEWER_VERDICT:
        return apply_verdict(turn, event);
    case REVIEWER_COST:
        return engine_round_cost(&turn->engine, event->round_id, event->microusd);
    case REVIEWER_GONE:
        turn->sweep_due = true;
        return store_remove_launch(turn->engine.store, event->agent_id, event->pid);
    }
    return 0;
}

static int
apply_events(struct turn *turn, size_t *ret_count)
{
    int r = 0;

    *ret_count = 0;
    for (const struct reviewer_event *event = reviewers_event(turn->reviewers); event && r == 0;
         event = event->next) {
        r = apply_event(turn, event);
        if (r == 0)
            ++*ret_count;
    }
    return r;
}

/* ---- after it ---- */

void
turn_carry_out(struct turn *turn)
{
    struct engine *engine = &turn->engine;

    for (size_t i = 0; i < engine->effect_count; i++) {
        const struct effect *effect = &engine->effects[i];
        switch (effect->kind) {
        case EFFECT_START:
            launch_add(&turn->launcher, engine->store, turn->reviewers, effect->id);
            break;
        case EFFECT_FINISH:
            reviewers_finish(turn->reviewers, effect->id);
            break;
        case EFFECT_END:
            queue_drop(&turn->launcher.queue, effect->id);
            reviewers_end(turn->reviewers, effect->id);
            turn->sweep_due = true;
            break;
        case EFFECT_CHANGED:
            http_wake(turn->http, effect->id);
            break;
        }
    }
    engine_drop_effects(engine, 0);
}

static void
finish_request(struct handled *handled, bool on_disk)
{
    struct request *request = handled->request;
    struct api_answer *answer = &handled->answer;

    if (!on_disk) {
        answer_fini(answer);
        send_unavailable(request);
    } else if (answer->wait_flow) {
        http_wait(request, answer->wait_flow, util_now_ns() + answer->wait_sec * UTIL_SEC_NS);
    } else {
        send_answer(request, answer);
    }
    free(handled);
}

void
turn_run(struct turn *turn)
{
    struct store *store = turn->engine.store;
    struct handled *first = NULL, **end = &first;
    struct request *request;
    size_t events = 0;
    bool on_disk;

    if (!turn_has_work(turn) ||
        (!http_has_pending(turn->http) && util_now_ns() < turn->retry_at_ns)) {
        if (!turn->stopping) /* who waits in line is not to begin now */
            launch_run(&turn->launcher, store, turn->reviewers);
        return;
    }
    on_disk = store_begin(store) == 0 && apply_shown(turn) == 0;
    while ((request = http_take_pending(turn->http)) != NULL) {
        if (!on_disk) {
            send_unavailable(request);
            continue;
        }
        *end = handle_request(turn, request);
        if (*end)
            end = &(*end)->next;
    }
    /* after the requests: an answer that came before its reviewer's end counts */
    on_disk = on_disk && apply_events(turn, &events) == 0 && store_commit(store) == 0;
    if (on_disk) {
        turn->retry_at_ns = 0;
        while (events-- > 0)
            reviewers_drop_event(turn->reviewers);
    } else {
        log_line("the store cannot be written: %s", store_error(store));
        store_rollback(store);
        engine_drop_effects(&turn->engine, 0);
        turn->retry_at_ns = util_now_ns() + RETRY_NS;
    }
    while (first) { /* before the effects, which wake who waits since this turn too */
        struct handled *next = first->next;
        finish_request(first, on_disk);
        first = next;
    }
    turn_carry_out(turn);
    launch_run(&turn->launcher, store, turn->reviewers);
    http_run(turn->http);
}
