/* SPDX-License-Identifier: Apache-2.0 */
/* submit_review_round and send_to_participant */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "job.h"
#include "ledger.h"
#include "lib/auto.h"
#include "repeat.h"
#include "settle.h"
#include "show.h"

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
    int32_t r = path ? settle_post(job->flows, bg_call, &request, true, &job->settling, &answer)
                     : KCAP_E_NOMEM;

    if (r != 0)
        return r;
    job_take_answer(job, &answer);
    return 0;
}

/* text is the name of the argument that says what to do. */
static char *
compose(const cJSON *args, const char *text)
{
    AUTO_BUF struct buf body = BUF_INIT(JOB_MAX_BODY_LEN);

    args_add_member(&body, "context", json_str(args, text));
    args_add_member(&body, "instructions", json_str(args, "instructions"));
    args_add_member(&body, "participant", json_str(args, "participant"));
    buf_addf(&body, ",\"async\":%s}", json_bool(args, "async", true) ? "true" : "false");
    return buf_take(&body, NULL);
}

static int32_t
submit(const struct subject *subject, const cJSON *args, const char *text)
{
    AUTO_JOB struct job *job = NULL;
    int32_t r;

    if (session_find(subject, NULL) < 0)
        return KCAP_E_NOMEM;
    job = job_new(subject->flows, &(struct job){
                                      .session = strdup(subject->session->key),
                                      .run_id = args_trim(json_str(args, "flow_run_id"), false),
                                      .role = args_trim(json_str(args, "participant"), false),
                                      .body = compose(args, text),
                                  });
    if (!job || !job->run_id)
        return KCAP_E_NOMEM;
    r = repeat_claim_round(subject, job->run_id, job->body);
    if (r != KCAP_WAIT_TIMEOUT)
        return r;
    r = show_over(subject, "submitted");
    if (r == KCAP_WAIT_TIMEOUT && job_start(job) == 0)
        return show_job(subject, job);
    repeat_note_not_taken(subject, job->run_id, job->body);
    return r != KCAP_WAIT_TIMEOUT
               ? r
               : show_error(subject,
                            "Error: kcap-host is too busy; nothing was submitted. Call again.");
}

static int32_t
show_blank(const struct subject *subject, const char *name)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_ANSWER_TEXT);

    buf_addf(&text, "%s is missing or blank; nothing was submitted.", name);
    if (strcmp(name, "flow_run_id") == 0)
        buf_addf(&text, " %s without an id finds the flow.", subject->family->status);
    return show_error(subject, buf_str(&text));
}

int32_t
submit_review_round(struct subject *subject, const cJSON *args)
{
    static const char *const required[] = {"context", "flow_run_id", NULL};
    const char *blank = args_first_blank(args, required);

    return blank ? show_blank(subject, blank) : submit(subject, args, "context");
}

int32_t
send_to_participant(struct subject *subject, const cJSON *args)
{
    static const char *const required[] = {"participant", "message", "flow_run_id", NULL};
    const char *blank = args_first_blank(args, required);

    return blank ? show_blank(subject, blank) : submit(subject, args, "message");
}
