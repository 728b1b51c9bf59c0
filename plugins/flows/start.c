/* SPDX-License-Identifier: Apache-2.0 */
/* start_review_flow and start_flow */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "holder.h"
#include "job.h"
#include "ledger.h"
#include "lib/auto.h"
#include "lib/text.h"
#include "origin.h"
#include "repeat.h"
#include "show.h"

/* What is to be started: both tools' arguments in the same words. */
struct wish {
    const cJSON *args;
    const char
        *definition; /* its id in the server's catalog, or NULL: yaml is the definition */
    const char *yaml;
    char *vendor, *model; /* owned, or NULL */
};

static void
wish_fini(struct wish *wish)
{
    free(wish->vendor);
    free(wish->model);
}
#define AUTO_WISH __attribute__((cleanup(wish_fini)))

/* ---- what is asked ---- */

static const char *
check_reviewer(const struct wish *wish)
{
    const char *vendor = json_str(wish->args, "vendor"), *model = json_str(wish->args, "model");

    if (vendor && text_is_blank(vendor))
        return "vendor is blank: name a reviewer or leave it out; nothing was started.";
    if (model && text_is_blank(model))
        return "model is blank: name one or leave it out; nothing was started.";
    if (model && !vendor)
        return "model needs vendor: name whose model it is; nothing was started.";
    if (model && wish->yaml)
        return "model cannot be given with definition_yaml: name each participant's model in "
               "the definition; nothing was started.";
    return NULL;
}

static const char *
check(const struct wish *wish, char *space, size_t size)
{
    static const char *const required[] = {"target_kind", "context", NULL};
    const char *blank = args_first_blank(wish->args, required);

    if (blank) {
        (void)snprintf(space, size, "%s is missing or blank; nothing was started.", blank);
        return space;
    }
    if (!json_str(wish->args, "target_ref") || !json_str(wish->args, "target_title"))
        return "target_ref and target_title are needed; nothing was started.";
    return check_reviewer(wish);
}

static char *
compose(const struct kcap_host *host, const struct wish *wish, const struct session *session)
{
    static const char *const copied[] = {
        "target_kind", "target_ref", "target_title", "context", "instructions", "mode", NULL};
    AUTO_BUF struct buf body = BUF_INIT(JOB_MAX_BODY_LEN);

    args_add_member(&body, "kind", wish->definition);
    args_add_member(&body, "definition_yaml", wish->yaml);
    for (const char *const *name = copied; *name; name++)
        args_add_member(&body, *name, json_str(wish->args, *name));
    args_add_member(&body, "vendor", wish->vendor);
    args_add_member(&body, "model", wish->model);
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
mark_target(const struct wish *wish, const struct session *session)
{
    AUTO_BUF struct buf text = BUF_INIT(JOB_MAX_BODY_LEN);

    args_add_member(&text, "target_kind", json_str(wish->args, "target_kind"));
    args_add_member(&text, "target_ref", json_str(wish->args, "target_ref"));
    args_add_member(&text, "project", session->project);
    return buf_ok(&text) ? repeat_mark(text.data) : NULL;
}

/* Another run beside the first is another start; the same wish for one is not. */
static char *
mark_args(const char *body, bool new_run)
{
    AUTO_BUF struct buf text = BUF_INIT(JOB_MAX_BODY_LEN + 16);

    buf_adds(&text, body);
    buf_adds(&text, new_run ? "new_run" : "");
    return buf_ok(&text) ? repeat_mark(text.data) : NULL;
}

/* ---- the call ---- */

/* Notes the start, if it is to be made; returns as repeat_claim. */
static int32_t
claim(const struct subject *subject, const struct job *job, const struct wish *wish)
{
    AUTO_FREE char *definition =
        shorten(wish->definition ? wish->definition : JOB_OWN_DEFINITION);
    AUTO_FREE char *target_kind = shorten(json_str(wish->args, "target_kind"));
    AUTO_FREE char *target_ref = shorten(json_str(wish->args, "target_ref"));
    bool new_run = json_bool(wish->args, "new_run", false);
    AUTO_FREE char *args_mark = mark_args(job->body, new_run);
    AUTO_FREE char *target_mark = mark_target(wish, subject->session);

    if (!args_mark || !target_mark)
        return KCAP_E_NOMEM;
    return repeat_claim(subject, &(struct event){.kind = EVENT_START,
                                                 .session = job->session,
                                                 .start_id = job->start_id,
                                                 .server = api_server(subject->flows),
                                                 .definition = definition,
                                                 .target_kind = target_kind,
                                                 .target_ref = target_ref,
                                                 .target_title = job->title,
                                                 .args_mark = args_mark,
                                                 .target_mark = target_mark,
                                                 .holder = holder_self(),
                                                 .beside = new_run});
}

static void
note_not_started(const struct subject *subject, const struct job *job)
{
    ledger_note(subject->flows, subject->call,
                &(struct event){.kind = EVENT_START_FAILED,
                                .session = job->session,
                                .start_id = job->start_id});
}

static int32_t
start(const struct subject *subject, struct wish *wish)
{
    const struct kcap_host *host = subject->flows->host;
    AUTO_JOB struct job *job = NULL;
    AUTO_FREE char *body = NULL;
    char space[128];
    int32_t r;
    const char *fault = check(wish, space, sizeof space);

    if (fault)
        return show_error(subject, fault);
    wish->vendor = args_trim(json_str(wish->args, "vendor"), true);
    wish->model = args_trim(json_str(wish->args, "model"), false);
    if (session_find(subject, NULL) < 0)
        return KCAP_E_NOMEM;
    body = compose(host, wish, subject->session); /* before the order takes both */
    job = job_new(subject->flows, &(struct job){
                                      .session = strdup(subject->session->key),
                                      .start_id = make_start_id(host),
                                      .title = shorten(json_str(wish->args, "target_title")),
                                      .project = strdup(subject->session->project),
                                      .body = take_ptr(body),
                                      .vendor = take_ptr(wish->vendor),
                                      .model = take_ptr(wish->model),
                                      .is_dynamic = wish->yaml != NULL,
                                  });
    if (!job || !job->project)
        return KCAP_E_NOMEM;
    r = claim(subject, job, wish);
    if (r != KCAP_WAIT_TIMEOUT)
        return r;
    r = show_over(subject, "started");
    if (r != KCAP_WAIT_TIMEOUT) {
        note_not_started(subject, job);
        return r;
    }
    if (job_start(job) < 0) {
        note_not_started(subject, job);
        return show_error(subject,
                          "Error: kcap-host is too busy; nothing was started. Call again.");
    }
    return show_job(subject, job);
}

int32_t
start_review_flow(struct subject *subject, const cJSON *args)
{
    AUTO_WISH struct wish wish = {.args = args, .definition = json_str(args, "kind")};

    if (text_is_blank(wish.definition))
        return show_error(subject, "kind is missing or blank; nothing was started.");
    return start(subject, &wish);
}

int32_t
start_flow(struct subject *subject, const cJSON *args)
{
    AUTO_WISH struct wish wish = {.args = args,
                                  .definition = json_str(args, "definition_id"),
                                  .yaml = json_str(args, "definition_yaml")};
    const char *one = wish.definition ? wish.definition : wish.yaml;

    if (!wish.definition == !wish.yaml)
        return show_error(subject, "give either definition_id or definition_yaml, one of them "
                                   "and not both; nothing was started.");
    if (text_is_blank(one))
        return show_error(subject, "the definition is blank; nothing was started.");
    return start(subject, &wish);
}
