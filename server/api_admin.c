/* SPDX-License-Identifier: Apache-2.0 */
/* What kcap-flowd's own commands ask for: the state of the server and of all runs. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "server/api_internal.h"
#include "server/util.h"

#define MAX_RUNS 200 /* in one list */

struct listing {
    struct api_call *call;
    cJSON *list;
};

static cJSON *
add_item(struct listing *listing)
{
    cJSON *item = cJSON_CreateObject();

    if (item && cJSON_AddItemToArray(listing->list, item))
        return item;
    cJSON_Delete(item);
    return NULL;
}

static int
list_run(void *arg, const struct flow *flow)
{
    struct listing *listing = arg;
    struct store *store = listing->call->engine->store;
    struct round newest = {0};
    struct participant who = {0};
    cJSON *item = add_item(listing);
    int r = item ? api_add_run(listing->call, item, flow) : -ENOMEM;

    if (r < 0)
        return r;
    r = store_get_newest_short_round(store, flow->id, &newest);
    if (r == 0)
        r = api_add_round(listing->call, item, &newest);
    if (r == 0)
        r = store_get_participant(store, flow->id, newest.role, &who);
    if (r == 0 && !json_add_str(item, "round_vendor", who.vendor))
        r = -ENOMEM;
    participant_fini(&who);
    round_fini(&newest);
    return r == -ENOENT ? 0 : r;
}

static int
list_some(struct api_call *call, bool also_ended)
{
    struct listing listing = {.call = call,
                              .list = cJSON_AddArrayToObject(call->result, "runs")};
    int r = listing.list ? store_each_flow(call->engine->store, also_ended, MAX_RUNS + 1,
                                           list_run, &listing)
                         : -ENOMEM;

    if (r == 0 && cJSON_GetArraySize(listing.list) > MAX_RUNS) {
        cJSON_DeleteItemFromArray(listing.list, MAX_RUNS);
        r = cJSON_AddTrueToObject(call->result, "has_more") ? 0 : -ENOMEM;
    }
    return r;
}

static int
list_open(struct api_call *call)
{
    return list_some(call, false);
}

static int
list_all(struct api_call *call)
{
    return list_some(call, true);
}

static int
list_round(void *arg, const struct round *round)
{
    struct listing *listing = arg;
    cJSON *item = add_item(listing);

    return item && api_add_time(item, "started_at", round->started_ms)
               ? api_add_round(listing->call, item, round)
               : -ENOMEM;
}

static int
list_env_names(void *arg, const struct participant *who)
{
    struct listing *listing = arg;
    cJSON *item = add_item(listing);

    return item && json_add_str(item, "role", who->role) &&
                   json_add_str(item, "vendor", who->vendor) &&
                   json_add_str(item, "model", who->model) &&
                   json_add_str(item, "workspace", who->applied_workspace) &&
                   json_add_str(item, "dir", who->dir) &&
                   json_add_str(item, "environment", who->env_names)
               ? 0
               : -ENOMEM;
}

/* Everything about one run but its prompts. */
static int
show_run(struct api_call *call)
{
    struct store *store = call->engine->store;
    struct listing rounds = {.call = call}, people = {.call = call};
    struct flow flow = {0};
    int r = store_get_flow(store, call->id, &flow);

    if (r == -ENOENT)
        return ENGINE_UNKNOWN_FLOW;
    if (r == 0)
        r = api_add_run(call, call->result, &flow);
    rounds.list = cJSON_AddArrayToObject(call->result, "rounds");
    people.list = cJSON_AddArrayToObject(call->result, "people");
    if (r == 0 && (!rounds.list || !people.list))
        r = -ENOMEM;
    if (r == 0)
        r = store_each_participant(store, flow.id, list_env_names, &people);
    if (r == 0)
        r = store_each_round(store, flow.id, list_round, &rounds);
    if (r == 0)
        r = api_add_messages(call, call->result, &flow);
    flow_fini(&flow);
    return r;
}

static int
show_server(struct api_call *call)
{
    const struct api_site *site = call->request->site;
    cJSON *object = call->result;

    return json_add_str(object, "version", PACKAGE_VERSION) &&
                   api_add_int(object, "pid", getpid()) &&
                   api_add_int(object, "uptime_sec",
                               (util_now_ns() - site->began_ns) / UTIL_SEC_NS) &&
                   api_add_int(object, "turns", (int64_t)reviewers_turns(site->reviewers)) &&
                   api_add_int(object, "reviewers",
                               (int64_t)reviewers_count(site->reviewers)) &&
                   api_add_int(object, "queued", (int64_t)launch_count(site->launcher)) &&
                   json_add_str(object, "config_dir", site->config_dir)
               ? 0
               : -ENOMEM;
}

const struct api_route api_admin_routes[] = {
    {"GET", "/api/flowd/status", false, show_server},
    {"GET", "/api/flowd/runs", false, list_all},
    {"GET", "/api/flowd/open-runs", false, list_open},
    {"GET", "/api/flowd/runs/*", false, show_run},
    {NULL, NULL, false, NULL},
};
