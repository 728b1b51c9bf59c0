/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of drivers: runs are started, looked at and closed. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/text.h"
#include "server/api_internal.h"
#include "server/util.h"
#include "server/vendor.h"

#define DEFAULT_VENDOR "checklist"
#define MAX_WAIT_SEC   25

static const struct {
    const char *name, *definition_id;
} definitions[] = {
    {"code-review", "code-review"},
    {"code_review", "code-review"},
    {"spec-review", "spec-review"},
    {"spec_review", "spec-review"},
};

/* ---- parts of answers ---- */

static bool
add_int(cJSON *object, const char *name, int64_t value)
{
    return cJSON_AddNumberToObject(object, name, (double)value) != NULL;
}

static bool
add_time(cJSON *object, const char *name, int64_t wall_ms)
{
    char text[32];

    util_format_time(wall_ms, text);
    return json_add_str(object, name, text);
}

/* What was asked for and what was done about it. */
static bool
add_audit(cJSON *object, const struct flow *flow)
{
    return json_add_str(object, "workspace_mode", "borrowed") &&
           json_add_str(object, "requested_reviewer_vendor", flow->requested_vendor) &&
           json_add_str(object, "applied_reviewer_vendor", flow->vendor) &&
           json_add_str(object, "reviewer_vendor_source",
                        flow->requested_vendor ? "request" : "default");
}

static bool
add_participants(cJSON *object, const struct flow *flow)
{
    cJSON *list = cJSON_AddArrayToObject(object, "participants");
    cJSON *reviewer = cJSON_CreateObject();

    if (!list || !reviewer || !cJSON_AddItemToArray(list, reviewer)) {
        cJSON_Delete(reviewer);
        return false;
    }
    return json_add_str(reviewer, "role", "reviewer") &&
           json_add_str(reviewer, "vendor", flow->vendor) &&
           json_add_str(reviewer, "model", "") &&
           cJSON_AddBoolToObject(reviewer, "stopped", strcmp(flow->status, FLOW_CLOSED) == 0) !=
               NULL;
}

/* What a run is, in its own status as in a session's list. */
static bool
add_run(cJSON *object, const struct flow *flow)
{
    return json_add_str(object, "flow_run_id", flow->id) &&
           json_add_str(object, "status", flow->status) &&
           json_add_str(object, "definition_id", flow->definition_id) &&
           json_add_str(object, "target_kind", flow->target_kind) &&
           json_add_str(object, "target_ref", flow->target_ref) &&
           json_add_str(object, "target_title", flow->target_title) &&
           add_time(object, "started_at", flow->started_ms) &&
           add_time(object, "updated_at", flow->updated_ms) && add_participants(object, flow);
}

static bool
add_new_round(cJSON *object, const struct flow *flow, const struct round *round)
{
    return json_add_str(object, "flow_run_id", flow->id) &&
           json_add_str(object, "round_id", round->id) &&
           add_int(object, "round_number", round->number) &&
           json_add_str(object, "status", FLOW_RUNNING) && add_audit(object, flow);
}

static bool
add_newest_round(cJSON *object, const struct round *round)
{
    bool answered =
        strcmp(round->status, ROUND_FINDINGS) == 0 || strcmp(round->status, ROUND_CLEAN) == 0;

    return json_add_str(object, "round_id", round->id) &&
           add_int(object, "round_number", round->number) &&
           json_add_str(object, "round_status", round->status) &&
           json_add_str(object, "round_result_kind", round->result_kind) &&
           json_add_str(object, "round_result_text", round->result_text) &&
           json_add_str(object, answered ? "round_note" : "round_reason", round->reason);
}

/* When the run has ended, this answer shows how. */
static bool
mark_shown(struct api_call *call, const struct flow *flow)
{
    if (strcmp(flow->status, FLOW_CLOSED) != 0)
        return true;
    call->answer->shown_flow = strdup(flow->id);
    return call->answer->shown_flow != NULL;
}

/* ---- starting ---- */

static int
check_definition(struct api_call *call, const char **ret_definition_id)
{
    const char *kind;
    int r;

    if (json_get(call->body, "definition_yaml"))
        return api_fail(
            call, 404, "unknown_definition",
            "This kcap-flowd takes no inline definition; use \"kind\" code-review or "
            "spec-review.");
    r = api_text(call, "kind", true, &kind);
    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof definitions / sizeof *definitions; i++) {
        if (strcmp(definitions[i].name, kind) == 0) {
            *ret_definition_id = definitions[i].definition_id;
            return 0;
        }
    }
    return api_fail(call, 404, "unknown_definition",
                    "There is no definition \"%s\"; there are code-review and spec-review.",
                    kind);
}

static int
check_vendor(struct api_call *call, const char **ret_requested, const char **ret_vendor)
{
    static const char *const known[] = {"claude", "codex", "command"};
    AUTO_BUF struct buf names = BUF_INIT(512);
    const char *model;
    int r = api_text(call, "vendor", false, ret_requested);

    if (r == 0)
        r = api_text(call, "model", false, &model);
    if (r < 0)
        return r;
    *ret_vendor = *ret_requested ? *ret_requested : DEFAULT_VENDOR;
    vendor_add_names(&names);
    if (!vendor_find(*ret_vendor)) {
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            if (strcmp(known[i], *ret_vendor) == 0)
                return api_fail(call, 400, "reviewer_vendor_unavailable",
                                "This kcap-flowd cannot run \"%s\"; it has: %s.", *ret_vendor,
                                buf_str(&names));
        }
        return api_fail(call, 400, "unknown_vendor",
                        "There is no reviewer vendor \"%s\"; this kcap-flowd has: %s.",
                        *ret_vendor, buf_str(&names));
    }
    if (model)
        return api_fail(call, 400, "reviewer_model_unavailable",
                        "The vendor \"%s\" has no model to choose; leave \"model\" out.",
                        *ret_vendor);
    return 0;
}

static int
check_dir(struct api_call *call, const char **ret)
{
    struct stat st;
    int r = api_text(call, "requesting_cwd", true, ret);

    if (r < 0)
        return r;
    if ((*ret)[0] != '/')
        return api_fail(call, 400, "invalid_request",
                        "\"requesting_cwd\" must be an absolute path.");
    if (stat(*ret, &st) < 0 || !S_ISDIR(st.st_mode))
        return api_fail(call, 400, "invalid_request",
                        "\"requesting_cwd\" is no directory that kcap-flowd can see: %s", *ret);
    return 0;
}

/* Members that are not used here are still checked: a client that sends nonsense should hear of
 * it from any server. */
static int
check_unused(struct api_call *call)
{
    static const char *const texts[] = {"mode",      "requesting_repo_root",
                                        "repo_path", "repo_owner",
                                        "repo_name", "requester_machine_id"};
    const char *text;
    int r = api_check_bool(call, "async");

    if (r == 0)
        r = api_check_int(call, "client_flow_protocol_version");
    for (size_t i = 0; i < sizeof texts / sizeof *texts && r == 0; i++)
        r = api_text(call, texts[i], false, &text);
    return r;
}

static int
start_run(struct api_call *call)
{
    struct start start = {0};
    struct flow flow = {0};
    struct round round = {0};
    int r = check_definition(call, &start.definition_id);

    if (r == 0)
        r = api_text(call, "target_kind", true, &start.target_kind);
    if (r == 0)
        r = api_text(call, "target_ref", true, &start.target_ref);
    if (r == 0)
        r = api_text(call, "target_title", true, &start.target_title);
    if (r == 0)
        r = api_text(call, "context", true, &start.context);
    if (r == 0)
        r = api_text(call, "instructions", false, &start.instructions);
    if (r == 0)
        r = api_text(call, "requesting_session_id", false, &start.session_id);
    if (r == 0)
        r = check_unused(call);
    if (r == 0)
        r = check_vendor(call, &start.requested_vendor, &start.vendor);
    if (r == 0)
        r = check_dir(call, &start.cwd);
    if (r == 0)
        r = engine_start(call->engine, &start, &flow, &round);
    if (r == 0 && !add_new_round(call->result, &flow, &round))
        r = -ENOMEM;
    round_fini(&round);
    flow_fini(&flow);
    return r;
}

/* ---- runs ---- */

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
    if (r == 0 && participant && strcmp(participant, "reviewer") != 0)
        r = api_fail(call, 404, "unknown_participant",
                     "The run has no participant \"%s\"; it has: reviewer.", participant);
    if (r == 0)
        r = engine_submit(call->engine, call->id, context, instructions, &flow, &round);
    if (r == 0 && !add_new_round(call->result, &flow, &round))
        r = -ENOMEM;
    round_fini(&round);
    flow_fini(&flow);
    return r;
}

static int
add_status(struct api_call *call, const struct flow *flow)
{
    struct store *store = call->engine->store;
    struct round newest = {0}, answered = {0};
    int r = store_get_newest_round(store, flow->id, &newest);
    bool has_answer = false;

    if (r == 0) {
        r = store_get_answered_round(store, flow->id, &answered);
        has_answer = r == 0;
        if (r == -ENOENT)
            r = 0;
    }
    if (r == 0 && (!add_run(call->result, flow) ||
                   !add_int(call->result, "round_count", flow->round_count) ||
                   (has_answer &&
                    (!json_add_str(call->result, "last_result_kind", answered.result_kind) ||
                     !json_add_str(call->result, "last_result_text", answered.result_text))) ||
                   !add_newest_round(call->result, &newest) || !add_audit(call->result, flow) ||
                   !mark_shown(call, flow)))
        r = -ENOMEM;
    round_fini(&newest);
    round_fini(&answered);
    return r;
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

static int
close_run(struct api_call *call)
{
    struct flow flow = {0};
    int r = engine_close(call->engine, call->id, &flow);

    if (r == 0 && (!json_add_str(call->result, "flow_run_id", flow.id) ||
                   !json_add_str(call->result, "status", flow.status) ||
                   !add_audit(call->result, &flow) || !mark_shown(call, &flow)))
        r = -ENOMEM;
    flow_fini(&flow);
    return r;
}

/* ---- a session's runs ---- */

struct listing {
    struct store *store;
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
    r = store_get_newest_round(listing->store, flow->id, &newest);
    if (r == 0 && (!add_run(item, flow) || !add_int(item, "round_number", newest.number) ||
                   !json_add_str(item, "round_status", newest.status)))
        r = -ENOMEM;
    round_fini(&newest);
    return r;
}

static int
list_session(struct api_call *call)
{
    struct listing listing = {.store = call->engine->store};

    if (!json_add_str(call->result, "session_id", call->id))
        return -ENOMEM;
    listing.flows = cJSON_AddArrayToObject(call->result, "flows");
    if (!listing.flows)
        return -ENOMEM;
    return store_each_session_flow(listing.store, call->id, FLOW_CLOSED, list_flow, &listing);
}

static int
show_auth(struct api_call *call)
{
    return json_add_str(call->result, "provider", "None") ? 0 : -ENOMEM;
}

const struct api_route api_driver_routes[] = {
    {"GET", "/auth/config", false, show_auth},
    {"POST", "/api/flows/review/start/v4", true, start_run},
    {"POST", "/api/flows/review/start/v3", true, start_run},
    {"POST", "/api/flows/review/start/v2", true, start_run},
    {"GET", "/api/flows/session/*", false, list_session},
    {"POST", "/api/flows/*/rounds", true, submit_round},
    {"POST", "/api/flows/*/close", false, close_run},
    {"GET", "/api/flows/*", false, show_run},
};
const size_t api_driver_route_count = sizeof api_driver_routes / sizeof *api_driver_routes;
