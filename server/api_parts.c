/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that several answers have. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "lib/auto.h"
#include "server/api_internal.h"
#include "server/util.h"
#include "server/vendor.h"

bool
api_add_int(cJSON *object, const char *name, int64_t value)
{
    return cJSON_AddNumberToObject(object, name, (double)value) != NULL;
}

bool
api_add_time(cJSON *object, const char *name, int64_t wall_ms)
{
    char text[32];

    util_format_time(wall_ms, text);
    return json_add_str(object, name, text);
}

/* ---- who takes part ---- */

/* A new object at the end of the list, or NULL. */
static cJSON *
add_object(cJSON *list)
{
    cJSON *item = cJSON_CreateObject();

    if (item && cJSON_AddItemToArray(list, item))
        return item;
    cJSON_Delete(item);
    return NULL;
}

struct listing {
    cJSON *list;
    const struct flow *flow;
};

static bool
has_ended(const struct flow *flow)
{
    return strcmp(flow->status, FLOW_CLOSED) == 0 || strcmp(flow->status, FLOW_FAILED) == 0;
}

static int
list_participant(void *arg, const struct participant *who)
{
    const struct listing *listing = arg;
    cJSON *item = add_object(listing->list);

    return item && json_add_str(item, "role", who->role) &&
                   json_add_str(item, "vendor", who->vendor) &&
                   json_add_str(item, "model", who->model ? who->model : "") &&
                   cJSON_AddBoolToObject(item, "stopped", has_ended(listing->flow))
               ? 0
               : -ENOMEM;
}

int
api_add_participants(struct api_call *call, cJSON *object, const struct flow *flow)
{
    struct listing listing = {.list = cJSON_AddArrayToObject(object, "participants"),
                              .flow = flow};

    if (!listing.list)
        return -ENOMEM;
    return store_each_participant(call->engine->store, flow->id, list_participant, &listing);
}

/* ---- audit ---- */

/* The participant that the audit members speak of: the reviewer, else the first; and whose cost
 * nobody tells. */
struct audit {
    cJSON *object;
    const struct flow *flow;
    cJSON *unmetered;
    bool found;
};

static int
see_participant(void *arg, const struct participant *who)
{
    struct audit *audit = arg;
    const struct vendor *vendor = vendor_find(who->vendor);
    bool is_reviewer = strcmp(who->role, "reviewer") == 0;

    if (!vendor || !vendor->tells_cost) {
        cJSON *name = cJSON_CreateString(who->role);
        if (!name || !cJSON_AddItemToArray(audit->unmetered, name)) {
            cJSON_Delete(name);
            return -ENOMEM;
        }
    }
    if (audit->found && !is_reviewer)
        return 0;
    audit->found = true;
    cJSON_DeleteItemFromObject(audit->object, "workspace_mode");
    cJSON_DeleteItemFromObject(audit->object, "fallback_reason");
    cJSON_DeleteItemFromObject(audit->object, "applied_reviewer_vendor");
    cJSON_DeleteItemFromObject(audit->object, "applied_reviewer_model");
    if (!json_add_str(audit->object, "workspace_mode",
                      who->applied_workspace ? who->applied_workspace : who->workspace) ||
        !json_add_str(audit->object, "fallback_reason", who->fallback_reason) ||
        !json_add_str(audit->object, "applied_reviewer_vendor", who->vendor) ||
        !json_add_str(audit->object, "applied_reviewer_model", who->model))
        return -ENOMEM;
    return 0;
}

static bool
add_budget(struct audit *audit)
{
    struct definition definition = {0};
    int64_t budget = 0;

    if (definition_from_json(audit->flow->definition, &definition) == 0)
        budget = definition.budget_microusd;
    definition_fini(&definition);
    if (budget == 0)
        return true;
    if (cJSON_GetArraySize(audit->unmetered) == 0)
        return json_add_str(audit->object, "budget_enforcement", "full");
    if (!json_add_str(audit->object, "budget_enforcement", "partial") ||
        !cJSON_AddItemToObject(audit->object, "unmetered_roles", audit->unmetered))
        return false;
    audit->unmetered = NULL;
    return true;
}

/* Models of one vendor are the same when they are called the same. */
static bool
add_model_key(cJSON *object)
{
    const char *vendor = json_str(object, "applied_reviewer_vendor");
    const char *model = json_str(object, "applied_reviewer_model");
    AUTO_BUF struct buf key = BUF_INIT((size_t)8 << 20);

    if (!vendor || !model)
        return true;
    buf_addf(&key, "%s:%s", vendor, model);
    return buf_ok(&key) && json_add_str(object, "resolved_reviewer_model", model) &&
           json_add_str(object, "reviewer_model_equivalence_key", buf_str(&key));
}

int
api_add_audit(struct api_call *call, cJSON *object, const struct flow *flow)
{
    struct audit audit = {.object = object, .flow = flow, .unmetered = cJSON_CreateArray()};
    int r = audit.unmetered ? 0 : -ENOMEM;

    if (r == 0)
        r = store_each_participant(call->engine->store, flow->id, see_participant, &audit);
    if (r == 0 && (!json_add_str(object, "requested_reviewer_vendor", flow->requested_vendor) ||
                   !json_add_str(object, "reviewer_vendor_source",
                                 flow->requested_vendor ? "request" : "default") ||
                   !json_add_str(object, "requested_reviewer_model", flow->requested_model) ||
                   !json_add_str(object, "reviewer_model_source",
                                 flow->requested_model ? "request" : NULL) ||
                   !add_model_key(object) || !add_budget(&audit)))
        r = -ENOMEM;
    cJSON_Delete(audit.unmetered);
    return r;
}

/* ---- messages ---- */

static int
list_message(void *arg, const struct message *message)
{
    cJSON *item = add_object(arg);

    return item && json_add_str(item, "message_id", message->id) &&
                   json_add_str(item, "from_participant", message->role) &&
                   json_add_str(item, "text", message->text)
               ? 0
               : -ENOMEM;
}

int
api_add_messages(struct api_call *call, cJSON *object, const struct flow *flow)
{
    cJSON *list = cJSON_CreateArray();
    int r = list ? store_each_pending_message(call->engine->store, flow->id, list_message, list)
                 : -ENOMEM;

    if (r < 0 || cJSON_GetArraySize(list) == 0) {
        cJSON_Delete(list);
        return r;
    }
    if (cJSON_AddItemToObject(object, "pending_messages", list))
        return 0;
    cJSON_Delete(list);
    return -ENOMEM;
}

/* ---- rounds and runs ---- */

int
api_add_begun(struct api_call *call, const struct flow *flow, const struct round *round)
{
    cJSON *object = call->result;
    int r;

    if (!json_add_str(object, "flow_run_id", flow->id) ||
        !json_add_str(object, "status", FLOW_RUNNING) ||
        (round->id && (!json_add_str(object, "round_id", round->id) ||
                       !api_add_int(object, "round_number", round->number))))
        return -ENOMEM;
    r = api_add_audit(call, object, flow);
    if (r == 0)
        r = api_add_messages(call, object, flow);
    return r;
}

static bool
add_live(struct api_call *call, cJSON *object, const struct round *round)
{
    const struct api_site *site = call->request->site;
    struct reviewer_live live;

    if (reviewers_live(site->reviewers, round->id, &live))
        return json_add_str(object, "reviewer_state", live.state) &&
               api_add_int(object, "round_elapsed_ms", live.elapsed_ms) &&
               api_add_int(object, "round_silence_ms", live.silence_ms);
    if (launch_is_queued(site->launcher, round->id))
        return json_add_str(object, "reviewer_state", "queued");
    return round->elapsed_ms == 0 ||
           (api_add_int(object, "round_elapsed_ms", round->elapsed_ms) &&
            api_add_int(object, "round_silence_ms", round->silence_ms));
}

/* The one note there is place for: what the reviewer said of its work, and what it has
 * forgotten. */
static bool
add_note(cJSON *object, const struct round *round, bool answered)
{
    static const char forgotten[] =
        "The reviewer does not remember the rounds before this one: "
        "its process had ended.";
    AUTO_BUF struct buf note = BUF_INIT((size_t)1 << 16);
    bool lost = round->memory && strcmp(round->memory, ROUND_MEMORY_LOST) == 0;

    if (answered && round->reason)
        buf_adds(&note, round->reason);
    if (lost)
        buf_addf(&note, "%s%s", note.len > 0 ? " " : "", forgotten);
    return note.len == 0 || json_add_str(object, "round_note", buf_str(&note));
}

int
api_add_round(struct api_call *call, cJSON *object, const struct round *round)
{
    bool answered =
        strcmp(round->status, ROUND_FINDINGS) == 0 || strcmp(round->status, ROUND_CLEAN) == 0;

    return json_add_str(object, "round_id", round->id) &&
                   api_add_int(object, "round_number", round->number) &&
                   json_add_str(object, "round_participant", round->role) &&
                   json_add_str(object, "round_status", round->status) &&
                   json_add_str(object, "round_result_kind", round->result_kind) &&
                   json_add_str(object, "round_result_text", round->result_text) &&
                   (answered || json_add_str(object, "round_reason", round->reason)) &&
                   json_add_str(object, "round_reason_code", round->reason_code) &&
                   json_add_str(object, "reviewer_memory", round->memory) &&
                   add_note(object, round, answered) && add_live(call, object, round)
               ? 0
               : -ENOMEM;
}

int
api_add_run(struct api_call *call, cJSON *object, const struct flow *flow)
{
    if (!json_add_str(object, "flow_run_id", flow->id) ||
        !json_add_str(object, "status", flow->status) ||
        !json_add_str(object, "end_reason", flow->end_reason) ||
        !json_add_str(object, "definition_id", flow->definition_id) ||
        !json_add_str(object, "target_kind", flow->target_kind) ||
        !json_add_str(object, "target_ref", flow->target_ref) ||
        !json_add_str(object, "target_title", flow->target_title) ||
        !api_add_time(object, "started_at", flow->started_ms) ||
        !api_add_time(object, "updated_at", flow->updated_ms))
        return -ENOMEM;
    return api_add_participants(call, object, flow);
}
