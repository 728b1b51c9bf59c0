/* SPDX-License-Identifier: Apache-2.0 */
/* submit_review_round */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "job.h"
#include "lib/auto.h"
#include "settle.h"
#include "show.h"

#define MAX_BODY_LEN  ((size_t)16 << 20)
#define POST_LIMIT_MS (20 * 60 * 1000)

int32_t
job_run_round(struct job *job, struct kcap_call *bg_call)
{
    AUTO_FREE char *path = api_path("/api/flows", job->run_id, "/rounds");
    AUTO_ANSWER struct api_answer answer = {.kind = API_REFUSED};
    const struct api_request request = {
        .method = "POST",
        .path = path,
        .body = job->body,
        .body_len = strlen(job->body),
        .limit_ms = POST_LIMIT_MS,
    };
    int32_t r = path ? settle_post(job->flows, bg_call, &request, true, &answer, &job->attempts)
                     : KCAP_E_NOMEM;

    if (r != 0)
        return r;
    job_take_answer(job, &answer);
    return 0;
}

static char *
compose(const cJSON *args)
{
    AUTO_BUF struct buf body = BUF_INIT(MAX_BODY_LEN);

    args_add_member(&body, "context", json_str(args, "context"));
    args_add_member(&body, "instructions", json_str(args, "instructions"));
    buf_adds(&body, ",\"async\":true}");
    return buf_take(&body, NULL);
}

int32_t
submit_review_round(struct flows *flows, struct kcap_call *call, const cJSON *args)
{
    static const char *const required[] = {"context", "flow_run_id", NULL};
    AUTO_SESSION struct session session = {.key = NULL};
    AUTO_JOB struct job *job = NULL;
    const char *blank = args_first_blank(args, required);
    int32_t r;
    struct subject subject = {.flows = flows,
                              .call = call,
                              .session = &session,
                              .began_ns = flows->host->now_ns(flows->host)};

    if (blank)
        return show_error(flows, call,
                          strcmp(blank, "context") == 0
                              ? "context is missing or blank; nothing was submitted."
                              : "flow_run_id is missing or blank; nothing was submitted. "
                                "get_review_flow_status without an id finds the flow.");
    if (session_find(flows->host, call, NULL, &session) < 0)
        return KCAP_E_NOMEM;
    job = job_new(flows, &(struct job){
                             .session = strdup(session.key),
                             .run_id = args_trim(json_str(args, "flow_run_id"), false),
                             .body = compose(args),
                         });
    if (!job || !job->run_id)
        return KCAP_E_NOMEM;
    r = show_over(&subject, "submitted");
    if (r != KCAP_WAIT_TIMEOUT)
        return r;
    if (job_start(job) < 0)
        return show_error(flows, call,
                          "Error: kcap-host is too busy; nothing was submitted. Call again.");
    return show_job(&subject, job);
}
