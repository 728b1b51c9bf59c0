/* SPDX-License-Identifier: Apache-2.0 */
/* start_review_flow */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "job.h"
#include "ledger.h"
#include "lib/auto.h"
#include "lib/text.h"
#include "origin.h"
#include "repeat.h"
#include "settle.h"
#include "show.h"

#define MAX_BODY_LEN   ((size_t)16 << 20)
#define POST_LIMIT_MS  (20 * 60 * 1000) /* old servers hold it for the whole round */
#define CLOSE_LIMIT_MS 10000
#define MAX_ERROR      16384

struct route {
    const char *path;
    int protocol;
};
static const struct route route_v4 = {"/api/flows/review/start/v4", 4};
static const struct route route_v3 = {"/api/flows/review/start/v3", 3};
static const struct route route_v2 = {"/api/flows/review/start/v2", 2};

/* ---- in the background ---- */

static int32_t
post(struct job *job, struct kcap_call *bg_call, const struct route *route,
     struct api_answer *ret)
{
    AUTO_BUF struct buf body = BUF_INIT(MAX_BODY_LEN + 256);
    struct api_request request = {
        .method = "POST", .path = route->path, .limit_ms = POST_LIMIT_MS};

    buf_adds(&body, job->body);
    args_add_member(&body, "vendor", job->preference.vendor);
    buf_addf(&body, ",\"client_flow_protocol_version\":%d}", route->protocol);
    if (!buf_ok(&body))
        return KCAP_E_NOMEM;
    request.body = body.data;
    request.body_len = body.len;
    /* with a model each post may launch a reviewer */
    return job->model ? api_request(job->flows, bg_call, &request, ret)
                      : settle_post(job->flows, bg_call, &request, false, ret, &job->attempts);
}

/* An uncoded 404: the route is not there. A coded one is a verdict. */
static bool
lacks_route(const struct api_answer *answer)
{
    return answer->kind == API_STATUS && answer->status == 404;
}

static const char *
wanted_vendor(const struct job *job)
{
    return job->vendor ? job->vendor : job->preference.vendor;
}

/* What the server must repeat, or the reviewer is not the one that was asked for. */
static const char *
check_echo(const struct job *job)
{
    const char *vendor = json_str(job->doc, "applied_reviewer_vendor");
    const char *wanted = wanted_vendor(job);

    if (job->model && (text_is_blank(json_str(job->doc, "applied_reviewer_model")) ||
                       text_is_blank(json_str(job->doc, "reviewer_model_equivalence_key"))))
        return "the server did not confirm the reviewer's model";
    if (wanted && (!vendor || strcmp(vendor, wanted) != 0))
        return "the server did not confirm the reviewer's vendor";
    return NULL;
}

/* Closes a run that must not go on and says what came of that. */
static int32_t
give_up_run(struct job *job, struct kcap_call *bg_call, const char *fault)
{
    AUTO_FREE char *path = api_path("/api/flows", job->view.run_id, "/close");
    AUTO_BUF struct buf line = BUF_INIT(MAX_ERROR);
    AUTO_ANSWER struct api_answer answer = {.kind = API_REFUSED};
    int32_t r =
        path ? api_request(job->flows, bg_call,
                           &(struct api_request){
                               .method = "POST", .path = path, .limit_ms = CLOSE_LIMIT_MS},
                           &answer)
             : KCAP_E_NOMEM;

    if (r != 0)
        return r;
    buf_addf(&line, "Error: %s. ", fault);
    if (answer.kind == API_OK) {
        buf_adds(&line, "The flow was closed, so that it costs nothing more.");
    } else {
        buf_adds(&line, "The flow could not be closed, close it with close_review_flow: ");
        api_add_error(&line, &answer);
        ledger_note(job->flows, bg_call,
                    &(struct event){.kind = EVENT_RUN,
                                    .session = job->session,
                                    .start_id = job->start_id,
                                    .run_id = job->view.run_id});
    }
    job_fail(job, answer.kind != API_OK, buf_str(&line));
    return 0;
}

static int32_t
post_by_route(struct job *job, struct kcap_call *bg_call, struct api_answer *ret)
{
    bool has_vendor = wanted_vendor(job) != NULL;
    int32_t r = post(job, bg_call, has_vendor ? &route_v4 : &route_v2, ret);

    if (r != 0 || !has_vendor || !lacks_route(ret))
        return r;
    api_answer_fini(ret);
    return post(job, bg_call, job->model ? &route_v3 : &route_v2, ret);
}

static bool
is_coded(const struct api_answer *answer, const char *code)
{
    return answer->kind == API_CODED && strcmp(answer->code, code) == 0;
}

/* Says in the error what the saved preference has to do with it. */
static int32_t
explain_preference(struct job *job, const char *error, bool is_stale)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_ERROR * 2);

    buf_adds(&line, error);
    if (is_stale)
        preference_add_stale(&line, &job->preference);
    else
        preference_add_missing(&line, &job->preference);
    job_fail(job, false, buf_str(&line));
    return 0;
}

int32_t
job_run_start(struct job *job, struct kcap_call *bg_call)
{
    AUTO_ANSWER struct api_answer answer = {.kind = API_REFUSED};
    bool no_vendor, is_stale;
    const char *fault;
    int32_t r = post_by_route(job, bg_call, &answer);

    no_vendor = r == 0 && !job->vendor && is_coded(&answer, "reviewer_vendor_required");
    if (no_vendor)
        r = preference_find(job->flows->host, job->project, &job->preference);
    if (r == 0 && job->preference.vendor) {
        api_answer_fini(&answer);
        r = post_by_route(job, bg_call, &answer);
    }
    if (r != 0)
        return r;
    if (lacks_route(&answer)) {
        job_fail(job, false,
                 job->model
                     ? "Error (reviewer_model_protocol_required): this server cannot "
                       "choose a model; nothing was started with another one"
                     : "Error: this server has no review flows (HTTP 404): it is too old, "
                       "or its address is wrong");
        return 0;
    }
    is_stale = job->preference.vendor && (is_coded(&answer, "reviewer_vendor_unavailable") ||
                                          is_coded(&answer, "unknown_vendor"));
    job_take_answer(job, &answer);
    if (job->end == JOB_FAILED && (is_stale || (no_vendor && !job->preference.vendor))) {
        AUTO_FREE char *error = take_ptr(job->error);
        return explain_preference(job, error ? error : "", is_stale);
    }
    fault = job->end == JOB_FAILED ? NULL : check_echo(job);
    return fault ? give_up_run(job, bg_call, fault) : 0;
}

/* ---- the call ---- */

static const char *
check(const cJSON *args, char *space, size_t size)
{
    static const char *const required[] = {"kind", "target_kind", "context", NULL};
    const char *blank = args_first_blank(args, required);
    const char *vendor = json_str(args, "vendor"), *model = json_str(args, "model");

    if (blank) {
        (void)snprintf(space, size, "%s is missing or blank; nothing was started.", blank);
        return space;
    }
    if (!json_str(args, "target_ref") || !json_str(args, "target_title"))
        return "target_ref and target_title are needed; nothing was started.";
    if (vendor && text_is_blank(vendor))
        return "vendor is blank: name a reviewer or leave it out; nothing was started.";
    if (model && text_is_blank(model))
        return "model is blank: name one or leave it out; nothing was started.";
    if (model && !vendor)
        return "model needs vendor: name whose model it is; nothing was started.";
    return NULL;
}

static char *
compose(const struct kcap_host *host, const cJSON *args, const struct session *session,
        const char *vendor, const char *model)
{
    static const char *const copied[] = {"kind",         "target_kind", "target_ref",
                                         "target_title", "context",     "instructions",
                                         "mode",         NULL};
    AUTO_BUF struct buf body = BUF_INIT(MAX_BODY_LEN);

    for (const char *const *name = copied; *name; name++)
        args_add_member(&body, *name, json_str(args, *name));
    args_add_member(&body, "vendor", vendor);
    args_add_member(&body, "model", model);
    args_add_member(&body, "requesting_session_id", session->id);
    args_add_member(&body, "requesting_cwd", session->project);
    args_add_member(&body, "requesting_repo_root", session->repository);
    args_add_member(&body, "repo_path", session->repository);
    if (session->repository && origin_add_repository(&body, session->repository) < 0)
        return NULL;
    origin_add_machine(&body, host);
    buf_adds(&body, ",\"async\":true");
    return buf_take(&body, NULL);
}

/* Unique enough within one session: it only ties a start to its run. */
static char *
make_start_id(const struct kcap_host *host)
{
    char id[64];

    (void)snprintf(id, sizeof id, "%llx-%lx-%llx", (unsigned long long)host->wall_ms(host),
                   (unsigned long)getpid(), (unsigned long long)host->now_ns(host));
    return strdup(id);
}

static char *
shorten(const char *text)
{
    return text ? strndup(text, text_prefix(text, strlen(text), JOB_MAX_TITLE)) : NULL;
}

static char *
mark_target(const cJSON *args, const struct session *session)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_BODY_LEN);

    args_add_member(&text, "target_kind", json_str(args, "target_kind"));
    args_add_member(&text, "target_ref", json_str(args, "target_ref"));
    args_add_member(&text, "project", session->project);
    return buf_ok(&text) ? repeat_mark(text.data) : NULL;
}

/* Notes the start, if it is to be made; returns as repeat_claim. */
static int32_t
claim(const struct subject *subject, const struct job *job, const cJSON *args)
{
    AUTO_FREE char *definition = shorten(json_str(args, "kind"));
    AUTO_FREE char *target_kind = shorten(json_str(args, "target_kind"));
    AUTO_FREE char *target_ref = shorten(json_str(args, "target_ref"));
    AUTO_FREE char *args_mark = repeat_mark(job->body);
    AUTO_FREE char *target_mark = mark_target(args, subject->session);

    if (!args_mark || !target_mark)
        return KCAP_E_NOMEM;
    return repeat_claim(subject,
                        &(struct event){.kind = EVENT_START,
                                        .session = job->session,
                                        .start_id = job->start_id,
                                        .server = api_server(subject->flows),
                                        .definition = definition,
                                        .target_kind = target_kind,
                                        .target_ref = target_ref,
                                        .target_title = job->title,
                                        .args_mark = args_mark,
                                        .target_mark = target_mark},
                        json_bool(args, "new_run", false));
}

static void
note_not_started(struct flows *flows, struct kcap_call *call, const struct job *job)
{
    ledger_note(flows, call,
                &(struct event){.kind = EVENT_START_FAILED,
                                .session = job->session,
                                .start_id = job->start_id});
}

int32_t
start_review_flow(struct flows *flows, struct kcap_call *call, const cJSON *args)
{
    AUTO_SESSION struct session session = {.key = NULL};
    AUTO_JOB struct job *job = NULL;
    AUTO_FREE char *vendor = args_trim(json_str(args, "vendor"), true);
    AUTO_FREE char *model = args_trim(json_str(args, "model"), false);
    AUTO_FREE char *body = NULL;
    char space[128];
    int32_t r;
    const char *fault = check(args, space, sizeof space);
    struct subject subject = {.flows = flows,
                              .call = call,
                              .session = &session,
                              .began_ns = flows->host->now_ns(flows->host)};

    if (fault)
        return show_error(flows, call, fault);
    if (session_find(flows->host, call, NULL, &session) < 0)
        return KCAP_E_NOMEM;
    body =
        compose(flows->host, args, &session, vendor, model); /* before the order takes both */
    job = job_new(flows, &(struct job){
                             .session = strdup(session.key),
                             .start_id = make_start_id(flows->host),
                             .title = shorten(json_str(args, "target_title")),
                             .project = strdup(session.project),
                             .body = take_ptr(body),
                             .vendor = take_ptr(vendor),
                             .model = take_ptr(model),
                         });
    if (!job || !job->project)
        return KCAP_E_NOMEM;
    r = claim(&subject, job, args);
    if (r != KCAP_WAIT_TIMEOUT)
        return r;
    r = show_over(&subject, "started");
    if (r != KCAP_WAIT_TIMEOUT) {
        note_not_started(flows, call, job);
        return r;
    }
    if (job_start(job) < 0) {
        note_not_started(flows, call, job);
        return show_error(flows, call,
                          "Error: kcap-host is too busy; nothing was started. Call again.");
    }
    return show_job(&subject, job);
}
