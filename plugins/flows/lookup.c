/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "lookup.h"

#include <stdlib.h>
#include <string.h>

#include "ledger.h"
#include "lib/auto.h"
#include "lib/text.h"
#include "view.h"

#define LOOKUP_LIMIT_MS 10000
#define MAX_LISTED      200
#define MAX_ERROR       16384

void
lookup_fini(struct lookup *lookup)
{
    runs_fini(&lookup->runs);
    runs_fini(&lookup->starts);
    free(lookup->server_fault);
    lookup->server_fault = NULL;
}

static int32_t
set_fault(struct lookup *ret, const char *text)
{
    ret->server_fault = strdup(text);
    return ret->server_fault ? 0 : KCAP_E_NOMEM;
}

/* One flow of the server's list. An element that makes no sense is skipped. */
static int
merge_flow(struct lookup *ret, const cJSON *flow, const char *server)
{
    const char *status = json_str(flow, "status"), *run_id = json_str(flow, "flow_run_id");
    struct event event = {.kind = EVENT_RUN,
                          .run_id = run_id,
                          .server = server,
                          .definition = json_str(flow, "definition_id"),
                          .target_kind = json_str(flow, "target_kind"),
                          .target_ref = json_str(flow, "target_ref"),
                          .target_title = json_str(flow, "target_title")};
    struct run *run;

    if (text_is_blank(run_id))
        return 0;
    (void)json_int(flow, "round_number", &event.round);
    run = runs_find(&ret->runs, run_id);
    if (!run && ret->runs.n >= MAX_LISTED) {
        ret->is_cut = true;
        return 0;
    }
    if (runs_apply(&ret->runs, &event) < 0)
        return KCAP_E_NOMEM;
    run = runs_find(&ret->runs, run_id);
    run->listed = true;
    return run_set(&run->status, status) < 0 ||
                   run_set(&run->round_status, json_str(flow, "round_status")) < 0
               ? KCAP_E_NOMEM
               : 0;
}

static int32_t
merge_answer(struct lookup *ret, const struct api_answer *answer, const char *server)
{
    const cJSON *flow, *flows = json_get(answer->json, "flows");

    if (!cJSON_IsArray(flows))
        return set_fault(ret, "its list of flows cannot be read");
    cJSON_ArrayForEach(flow, flows)
    {
        if (merge_flow(ret, flow, server) < 0)
            return KCAP_E_NOMEM;
    }
    ret->server_answered = true;
    return 0;
}

static int32_t
ask_server(struct flows *flows, struct kcap_call *call, const struct session *session,
           struct lookup *ret)
{
    AUTO_FREE char *path = api_path("/api/flows/session", session->id, "?state=open");
    AUTO_ANSWER struct api_answer answer = {.kind = API_REFUSED};
    AUTO_BUF struct buf line = BUF_INIT(MAX_ERROR);
    int32_t r;

    if (!path)
        return KCAP_E_NOMEM;
    r = api_request(
        flows, call,
        &(struct api_request){.method = "GET", .path = path, .limit_ms = LOOKUP_LIMIT_MS},
        &answer);
    if (r != 0)
        return r;
    if (answer.kind == API_OK)
        return merge_answer(ret, &answer, api_server(flows));
    if (answer.kind == API_STATUS && (answer.status == 404 || answer.status == 405))
        return set_fault(ret, "it is too old to list a session's flows");
    api_add_error(&line, &answer);
    return set_fault(ret, buf_str(&line));
}

/* Runs of another server cannot be asked about here; starts are kept apart. */
static int
sort_out(struct lookup *ret, const char *server, int64_t now_ms)
{
    for (size_t i = 0; i < ret->runs.n;) {
        struct run *run = &ret->runs.items[i];
        bool foreign = run->server && strcmp(run->server, server) != 0;
        if (run->run_id && !foreign) {
            i++;
            continue;
        }
        if (!run->run_id && !foreign && now_ms - run->started_ms < START_FORGOTTEN_MS &&
            runs_apply(&ret->starts, &(struct event){.kind = EVENT_START,
                                                     .wall_ms = run->started_ms,
                                                     .start_id = run->start_id,
                                                     .target_title = run->target_title}) < 0)
            return KCAP_E_NOMEM;
        runs_remove(&ret->runs, i);
    }
    return 0;
}

/* What the server no longer counts as open stays only until its outcome was delivered. */
static void
drop_finished(struct lookup *ret, int64_t now_ms)
{
    for (size_t i = 0; i < ret->runs.n;) {
        const struct run *run = &ret->runs.items[i];
        bool over = !run->listed || view_is_run_end(run->status);
        if (over && run_is_delivered(run, now_ms))
            runs_remove(&ret->runs, i);
        else
            i++;
    }
}

/* Newest first; what the server alone knows keeps its order, which is the same. */
static void
sort(struct runs *runs)
{
    for (size_t i = 1; i < runs->n; i++) {
        struct run run = runs->items[i];
        size_t at = i;
        for (; at > 0 && runs->items[at - 1].updated_ms < run.updated_ms; at--)
            runs->items[at] = runs->items[at - 1];
        runs->items[at] = run;
    }
}

int32_t
lookup_session(struct flows *flows, struct kcap_call *call, const struct session *session,
               struct lookup *ret)
{
    int64_t now_ms = flows->host->wall_ms(flows->host);
    int32_t r;

    *ret = (struct lookup){.server_answered = false};
    if (ledger_list(flows, session->key, &ret->runs) < 0 ||
        sort_out(ret, api_server(flows), now_ms) < 0)
        return KCAP_E_NOMEM;
    r = session->id ? ask_server(flows, call, session, ret)
                    : set_fault(ret, "the client gives no session id to ask it by");
    if (r != 0)
        return r;
    if (ret->server_answered)
        drop_finished(ret, now_ms);
    sort(&ret->runs);
    return 0;
}
