/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of drivers for runs that are there: another round, a look, the end. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"
#include "server/api_internal.h"
#include "server/util.h"

#define MAX_WAIT_SEC 25

/* When the run has ended, this answer shows how. */
static int
mark_shown(struct api_call *call, const struct flow *flow)
{
    if (strcmp(flow->status, FLOW_CLOSED) != 0 && strcmp(flow->status, FLOW_FAILED) != 0)
        return 0;
    call->answer->shown_flow = strdup(flow->id);
    return call->answer->shown_flow ? 0 : -ENOMEM;
}

/* ---- another round ---- */

static int
name_roles(void *arg, const struct participant *who)
{
    struct buf *names = arg;

    buf_addf(names, "%s%s", names->len > 0 ? ", " : "", who->role);
    return 0;
}

/* What the rules say no to, in the words that clients know. */
static int
explain(struct api_call *call, int code, const char *participant)
{
    AUTO_BUF struct buf roles = BUF_INIT(4096);
    struct flow flow = {0};
    struct definition definition = {0};
    int r = code;

    if (store_get_flow(call->engine->store, call->id, &flow) < 0)
        return code;
    if (code == ENGINE_UNKNOWN_PARTICIPANT) {
        (void)store_each_participant(call->engine->store, flow.id, name_roles, &roles);
        r = api_fail(call, 404, "unknown_participant",
                     "The run has no participant \"%s\"; it has: %s.", participant,
                     buf_str(&roles));
    } else if (code == ENGINE_MAX_ROUNDS &&
               definition_from_json(flow.definition, &definition) == 0) {
        r = api_fail(call, 400, NULL, "max_rounds (%lld) reached",
                     (long long)definition.max_rounds);
    } else if (code == ENGINE_RUN_FAILED && flow.end_reason &&
               strncmp(flow.end_reason, "budget_exceeded:", 16) == 0) {
        r = api_fail(call, 400, NULL, "%s", flow.end_reason);
    }
    definition_fini(&definition);
    flow_fini(&flow);
    return r;
}

static int
submit_round(struct api_call *call)
{
    const char *context, *instructions, *participant;
    struct flow flow = {0};
    struct round round = {0};
    int r = api_text(call, "context", true, &context);

    if (r == 0)
        r = api_text(call, "instructions", false, &instructions);
    if (r == 0)
        r = api_text(call, "participant", false, &participant);
    if (r == 0)
        r = api_check_bool(call, "async");
    if (r < 0)
        return r;
    r = engine_submit(call->engine, call->id, participant, context, instructions, &flow,
                      &round);
    if (r == 0)
        r = api_add_begun(call, &flow, &round);
    else
        r = explain(call, r, participant);
    round_fini(&round);
    flow_fini(&flow);
    return r;
}

/* ---- a look ---- */

static int
add_newest_round(struct api_call *call, const struct flow *flow)
{
    struct round newest = {0};
    int r = store_get_newest_round(call->engine->store, flow->id, &newest);

    if (r == 0)
        r = api_add_round(call, call->result, &newest);
    round_fini(&newest);
    return r == -ENOENT ? 0 : r; /* begun without a round */
}

static int
add_last_answer(struct api_call *call, const struct flow *flow)
{
    struct round answered = {0};
    int r = store_get_answered_round(call->engine->store, flow->id, &answered);

    if (r == 0 && (!json_add_str(call->result, "last_result_kind", answered.result_kind) ||
                   !json_add_str(call->result, "last_result_text", answered.result_text)))
        r = -ENOMEM;
    round_fini(&answered);
    return r == -ENOENT ? 0 : r;
}

static int
add_status(struct api_call *call, const struct flow *flow)
{
    int r = api_add_run(call, call->result, flow);

    if (r == 0 && !api_add_int(call->result, "round_count", flow->round_count))
        r = -ENOMEM;
    if (r == 0)
        r = add_last_answer(call, flow);
    if (r == 0)
        r = add_newest_round(call, flow);
    if (r == 0)
        r = api_add_audit(call, call->result, flow);
    if (r == 0)
        r = api_add_messages(call, call->result, flow);
    return r < 0 ? r : mark_shown(call, flow);
}

static int
show_run(struct api_call *call)
{
    const char *text = call->request->wait_sec_text;
    struct flow flow = {0};
    int64_t wait_sec = 0;
    int r;

    if (text && !text_to_int(text, 0, MAX_WAIT_SEC, &wait_sec))
        return api_fail(call, 400, "invalid_request",
                        "\"wait_sec\" must be a whole number from 0 to %d.", MAX_WAIT_SEC);
    r = store_get_flow(call->engine->store, call->id, &flow);
    if (r == -ENOENT)
        r = ENGINE_UNKNOWN_FLOW;
    /* nothing is in flight in any other state, so there is nothing to wait for */
    if (r == 0 && wait_sec > 0 && call->request->may_wait &&
        strcmp(flow.status, FLOW_RUNNING) == 0) {
        call->answer->wait_flow = strdup(flow.id);
        call->answer->wait_sec = (int)wait_sec;
        r = call->answer->wait_flow ? 0 : -ENOMEM;
    } else if (r == 0) {
        r = add_status(call, &flow);
    }
    flow_fini(&flow);
    return r;
}

/* ---- messages ---- */

static int
ack_messages(struct api_call *call)
{
    const cJSON *ids = json_get(call->body, "message_ids"), *id;
    struct flow flow = {0};
    int r = store_get_flow(call->engine->store, call->id, &flow);

    flow_fini(&flow);
    if (r == -ENOENT)
        return ENGINE_UNKNOWN_FLOW;
    if (r == 0 && !cJSON_IsArray(ids))
        return api_fail(call, 400, "invalid_request",
                        "\"message_ids\" must be a list of texts.");
    cJSON_ArrayForEach(id, ids)
    {
        if (r == 0 && !cJSON_IsString(id))
            return api_fail(call, 400, "invalid_request",
                            "\"message_ids\" must be a list of texts.");
        if (r == 0)
            r = store_ack_message(call->engine->store, call->id, id->valuestring);
    }
    return r;
}

/* ---- the end ---- */

static int
close_run(struct api_call *call)
{
    struct flow flow = {0};
    int r = engine_close(call->engine, call->id, &flow);

    if (r == 0 && (!json_add_str(call->result, "flow_run_id", flow.id) ||
                   !json_add_str(call->result, "status", flow.status)))
        r = -ENOMEM;
    if (r == 0)
        r = api_add_audit(call, call->result, &flow);
    if (r == 0)
        r = api_add_messages(call, call->result, &flow);
    if (r == 0)
        r = mark_shown(call, &flow);
    flow_fini(&flow);
    return r;
}

/* ---- a session's runs ---- */

struct listing {
    struct api_call *call;
    cJSON *flows;
};

static int
list_flow(void *arg, const struct flow *flow)
{
    struct listing *listing = arg;
    cJSON *item = cJSON_CreateObject();
    struct round newest = {0};
    int r;

    if (!item || !cJSON_AddItemToArray(listing->flows, item)) {
        cJSON_Delete(item);
        return -ENOMEM;
    }
    r = api_add_run(listing->call, item, flow);
    if (r < 0)
        return r;
    r = store_get_newest_round(listing->call->engine->store, flow->id, &newest);
    if (r == 0 && (!api_add_int(item, "round_number", newest.number) ||
                   !json_add_str(item, "round_status", newest.status)))
        r = -ENOMEM;
    round_fini(&newest);
    return r == -ENOENT ? 0 : r;
}

static int
list_session(struct api_call *call)
{
    struct listing listing = {.call = call};

    if (!json_add_str(call->result, "session_id", call->id))
        return -ENOMEM;
    listing.flows = cJSON_AddArrayToObject(call->result, "flows");
    if (!listing.flows)
        return -ENOMEM;
    return store_each_session_flow(call->engine->store, call->id, list_flow, &listing);
}

const struct api_route api_driver_routes[] = {
    {"GET", "/api/flows/session/*", false, list_session},
    {"POST", "/api/flows/*/rounds", true, submit_round},
    {"POST", "/api/flows/*/close", false, close_run},
    {"POST", "/api/flows/*/messages/ack", true, ack_messages},
    {"GET", "/api/flows/*", false, show_run},
    {NULL, NULL, false, NULL},
};
