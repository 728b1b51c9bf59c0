/* SPDX-License-Identifier: Apache-2.0 */
/* A start on its way to the server: which route, and whether the answer is what was asked for.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "job.h"
#include "ledger.h"
#include "lib/auto.h"
#include "lib/text.h"
#include "settle.h"

#define POST_LIMIT_MS  (20 * 60 * 1000) /* old servers hold it for the whole round */
#define CLOSE_LIMIT_MS 10000
#define MAX_ERROR      16384

struct route {
    const char *path;
    int protocol; /* 0: the body does not name it */
};
static const struct route route_v4 = {"/api/flows/review/start/v4", 4};
static const struct route route_v3 = {"/api/flows/review/start/v3", 3};
static const struct route route_v2 = {"/api/flows/review/start/v2", 2};
static const struct route route_dynamic = {"/api/flows/review/start", 0};

static int32_t
post(struct job *job, struct kcap_call *bg_call, const struct route *route,
     struct api_answer *ret)
{
    AUTO_BUF struct buf body = BUF_INIT(JOB_MAX_BODY_LEN + 256);
    struct api_request request = {
        .method = "POST", .path = route->path, .limit_ms = POST_LIMIT_MS};

    buf_adds(&body, job->body);
    args_add_member(&body, "vendor", job->preference.vendor);
    if (route->protocol > 0)
        buf_addf(&body, ",\"client_flow_protocol_version\":%d", route->protocol);
    buf_addc(&body, '}');
    if (!buf_ok(&body))
        return KCAP_E_NOMEM;
    request.body = body.data;
    request.body_len = body.len;
    /* with a model each post may launch a reviewer */
    return job->model ? api_request(job->flows, bg_call, &request, ret)
                      : settle_post(job->flows, bg_call, &request, false, &job->settling, ret);
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

static int32_t
post_by_route(struct job *job, struct kcap_call *bg_call, struct api_answer *ret)
{
    bool has_vendor = wanted_vendor(job) != NULL;
    int32_t r;

    if (job->is_dynamic)
        return post(job, bg_call, &route_dynamic, ret);
    r = post(job, bg_call, has_vendor ? &route_v4 : &route_v2, ret);
    if (r != 0 || !has_vendor || !lacks_route(ret))
        return r;
    api_answer_fini(ret);
    return post(job, bg_call, job->model ? &route_v3 : &route_v2, ret);
}

/* What the server must repeat, or the reviewer is not the one that was asked for. */
static const char *
check_echo(const struct job *job)
{
    const char *vendor = json_str(job->doc, "applied_reviewer_vendor");
    const char *wanted = wanted_vendor(job);

    if (job->is_dynamic)
        return NULL; /* its definition says who takes part */
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
        buf_adds(&line, answer.kind == API_UNKNOWN || answer.kind == API_BAD
                            ? "Whether the flow was closed is not known; close it: "
                            : "The flow could not be closed; close it: ");
        api_add_error(&line, &answer);
        job->is_unwanted = true;
    }
    job_fail(job, answer.kind != API_OK, buf_str(&line));
    return 0;
}

static bool
is_coded(const struct api_answer *answer, const char *code)
{
    return answer->kind == API_CODED && strcmp(answer->code, code) == 0;
}

/* Adds to the error what else there is to say. */
static int32_t
explain(struct job *job, void (*add)(struct buf *to, const struct preference *preference))
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_ERROR * 2);

    buf_adds(&line, job->error ? job->error : "");
    add(&line, &job->preference);
    job_fail(job, job->may_exist, buf_str(&line));
    return 0;
}

static void
add_dynamic_hint(struct buf *to, const struct preference *preference)
{
    (void)preference;
    buf_adds(to, "\nThe server may not take definitions that are sent to it (definition_yaml); "
                 "one of its own, named by definition_id, may do.");
}

/* It takes part in no conversation about models. */
static bool
is_model_skew(const struct api_answer *answer)
{
    return is_coded(answer, "reviewer_model_protocol_required") ||
           is_coded(answer, "flow_client_protocol_required") ||
           is_coded(answer, "flow_client_protocol_unsupported");
}

static void
add_model_hint(struct buf *to, const struct preference *preference)
{
    (void)preference;
    buf_adds(to, "\nThis server cannot choose a model for us; nothing was started with another "
                 "one.");
}

/* Why a server without the route cannot do what was asked. */
static const char *
missing_route(const struct job *job)
{
    if (job->is_dynamic)
        return "Error: this server takes no definition_yaml (HTTP 404): it is too old, or its "
               "address is wrong; use one of its own definitions by definition_id";
    if (job->model)
        return "Error (reviewer_model_protocol_required): this server cannot choose a model; "
               "nothing was started with another one";
    return "Error: this server has no review flows (HTTP 404): it is too old, or its address "
           "is wrong";
}

static int32_t
judge(struct job *job, struct kcap_call *bg_call, struct api_answer *answer, bool no_vendor)
{
    bool is_stale =
        job->preference.vendor &&
        (is_coded(answer, "reviewer_vendor_unavailable") || is_coded(answer, "unknown_vendor"));
    bool is_vague = job->is_dynamic && answer->kind == API_STATUS && answer->status != 401;
    bool is_skewed = job->model && is_model_skew(answer);
    bool is_405 = answer->kind == API_STATUS && answer->status == 405;
    const char *fault;

    if (lacks_route(answer) || (job->model && is_405)) {
        job_fail(job, false, missing_route(job));
        return 0;
    }
    job_take_answer(job, answer);
    if (job->end == JOB_FAILED) {
        fault = job->view.run_id ? check_echo(job) : NULL;
        if (fault)
            return give_up_run(job, bg_call, fault);
        if (is_skewed)
            return explain(job, add_model_hint);
        if (is_stale)
            return explain(job, preference_add_stale);
        if (no_vendor && !job->preference.vendor)
            return explain(job, preference_add_missing);
        return is_vague ? explain(job, add_dynamic_hint) : 0;
    }
    fault = check_echo(job);
    return fault ? give_up_run(job, bg_call, fault) : 0;
}

int32_t
job_run_start(struct job *job, struct kcap_call *bg_call)
{
    AUTO_ANSWER struct api_answer answer = {.kind = API_REFUSED};
    int32_t r = post_by_route(job, bg_call, &answer);
    bool no_vendor = r == 0 && !job->vendor && !job->is_dynamic &&
                     is_coded(&answer, "reviewer_vendor_required");

    if (no_vendor)
        r = preference_find(job->flows->host, job->project, &job->preference);
    if (r == 0 && job->preference.vendor) {
        api_answer_fini(&answer);
        r = post_by_route(job, bg_call, &answer);
    }
    return r == 0 ? judge(job, bg_call, &answer, no_vendor) : r;
}
