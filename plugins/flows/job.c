/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "job.h"

#include <stdlib.h>
#include <string.h>

#include "ledger.h"
#include "lib/auto.h"
#include "lib/text.h"
#include "repeat.h"

#define MAX_ERROR 16384

static void
free_order(const struct job *order)
{
    free(order->session);
    free(order->start_id);
    free(order->run_id);
    free(order->title);
    free(order->project);
    free(order->vendor);
    free(order->model);
    free(order->role);
    free(order->body);
}

struct job *
job_new(struct flows *flows, const struct job *order)
{
    struct job *job = malloc(sizeof *job);

    if (!job || !order->session || !order->body) {
        free_order(order);
        free(job);
        return NULL;
    }
    *job = *order;
    job->flows = flows;
    job->refs = 1;
    job->end = JOB_FAILED;
    job->started_ns = flows->host->now_ns(flows->host);
    return job;
}

void
job_unref(struct job *job)
{
    bool last;

    if (!job)
        return;
    (void)pthread_mutex_lock(&job->flows->lock);
    last = --job->refs == 0;
    (void)pthread_mutex_unlock(&job->flows->lock);
    if (!last)
        return;
    free_order(job);
    preference_fini(&job->preference);
    cJSON_Delete(job->doc);
    free(job->error);
    free(job);
}

/* Called with the lock held. */
static bool
unlist(struct job *job)
{
    struct job **place = &job->flows->jobs;

    if (!job->listed)
        return false;
    while (*place != job)
        place = &(*place)->next;
    *place = job->next;
    job->listed = false;
    return true;
}

void
job_forget(struct job *job)
{
    bool was_listed;

    (void)pthread_mutex_lock(&job->flows->lock);
    was_listed = unlist(job);
    (void)pthread_mutex_unlock(&job->flows->lock);
    if (was_listed)
        job_unref(job); /* the list's reference */
}

void
job_fini_all(struct flows *flows)
{
    while (flows->jobs)
        job_forget(flows->jobs);
}

void
job_fail(struct job *job, bool may_exist, const char *error)
{
    free(job->error);
    job->end = JOB_FAILED;
    job->may_exist = may_exist;
    job->error = strdup(error);
}

/* Whatever has a run id is in the ledger from here on, so the list need not keep it; a failure
 * stays until somebody has heard of it. */
static void
finish(struct job *job, struct kcap_call *bg_call)
{
    const struct kcap_host *host = job->flows->host;
    bool known = job->end != JOB_FAILED || (job->view.run_id && job->may_exist);
    AUTO_FREE char *mark = job->run_id ? repeat_mark(job->body) : NULL;
    struct event event = {.session = job->session,
                          .start_id = job->start_id,
                          .run_id = job->run_id,
                          .args_mark = mark};

    if (known) {
        event.kind = job->run_id ? EVENT_ROUND : EVENT_RUN;
        event.server = api_server(job->flows);
        event.run_id = job->view.run_id;
        event.unwanted = job->is_unwanted;
        event.round = job->view.round;
    } else {
        event.kind = job->run_id ? EVENT_NOT_TAKEN : EVENT_START_FAILED;
    }
    if (known || !job->may_exist)
        ledger_note(job->flows, bg_call, &event);
    (void)pthread_mutex_lock(&job->flows->lock);
    job->done = true;
    (void)pthread_mutex_unlock(&job->flows->lock);
    host->notify(host);
    if (known)
        job_forget(job);
    job_unref(job);
}

static void
run_in_background(struct kcap_call *bg_call, void *arg)
{
    struct job *job = arg;
    int32_t r = job->run_id ? job_run_round(job, bg_call) : job_run_start(job, bg_call);

    if (r != 0)
        job_fail(job, true,
                 r == KCAP_WAIT_SHUTDOWN ? "kcap-host is leaving" : "something failed inside");
    finish(job, bg_call);
}

static void
drop_in_background(void *arg)
{
    struct job *job = arg;

    job_fail(job, false, "kcap-host is leaving; nothing was sent");
    finish(job, NULL);
}

int32_t
job_start(struct job *job)
{
    struct flows *flows = job->flows;
    int32_t r;

    (void)pthread_mutex_lock(&flows->lock);
    job->refs += 2; /* the list's and the background's */
    job->listed = true;
    job->next = flows->jobs;
    flows->jobs = job;
    (void)pthread_mutex_unlock(&flows->lock);
    r = flows->host->background(flows->host, run_in_background, drop_in_background, job);
    if (r < 0) {
        job_forget(job);
        job_unref(job);
    }
    return r;
}

bool
job_is_done(struct job *job)
{
    bool done;

    (void)pthread_mutex_lock(&job->flows->lock);
    done = job->done;
    (void)pthread_mutex_unlock(&job->flows->lock);
    return done;
}

static bool
has_start(const struct job *job, const char *id)
{
    return job->start_id && strcmp(job->start_id, id) == 0;
}

static bool
has_run(const struct job *job, const char *id)
{
    return job->run_id && strcmp(job->run_id, id) == 0;
}

/* The newest one that matches, with a reference; NULL when there is none. */
static struct job *
find(struct flows *flows, bool (*matches)(const struct job *job, const char *id),
     const char *id)
{
    struct job *job;

    (void)pthread_mutex_lock(&flows->lock);
    for (job = flows->jobs; job && !matches(job, id); job = job->next)
        ;
    if (job)
        job->refs++;
    (void)pthread_mutex_unlock(&flows->lock);
    return job;
}

struct job *
job_find_start(struct flows *flows, const char *start_id)
{
    return find(flows, has_start, start_id);
}

struct job *
job_find_round(struct flows *flows, const char *run_id)
{
    return find(flows, has_run, run_id);
}

int32_t
job_await(struct job *job, struct kcap_call *call, int64_t began_ns)
{
    const struct kcap_host *host = job->flows->host;
    int64_t next_ns = host->now_ns(host) + PROGRESS_NS;

    for (;;) {
        uint64_t seen = host->seq(host);
        int32_t r;
        if (job_is_done(job))
            return 0;
        r = host->wait(call, seen, NULL, 0, next_ns);
        if (r == KCAP_WAIT_TIMEOUT) {
            next_ns += PROGRESS_NS;
            r = host->progress(call, (double)((host->now_ns(host) - began_ns) / NS_PER_SEC), -1,
                               job->run_id ? "the server has not taken the round yet"
                                           : "the server has not started the flow yet");
        }
        if (r < 0 || r >= KCAP_WAIT_CANCELLED)
            return r;
    }
}

size_t
job_find_starts(struct flows *flows, const char *session, struct job **ret, size_t max)
{
    size_t n = 0;

    (void)pthread_mutex_lock(&flows->lock);
    for (struct job *job = flows->jobs; job && n < max; job = job->next) {
        if (job->run_id || strcmp(job->session, session) != 0)
            continue;
        job->refs++;
        ret[n++] = job;
    }
    (void)pthread_mutex_unlock(&flows->lock);
    return n;
}

bool
job_kept(const char *kept, const char *whole)
{
    size_t len = strlen(kept);

    return strncmp(kept, whole, len) == 0 &&
           len == text_prefix(whole, strlen(whole), JOB_MAX_TITLE);
}

/* A run that only the server knows, with the title of this start, is what became of it. */
static struct run *
find_listed(const struct job *job, const struct runs *runs)
{
    for (size_t i = 0; job->title && i < runs->n; i++) {
        struct run *run = &runs->items[i];
        if (run->listed && run->started_ms == 0 && run->target_title &&
            job_kept(job->title, run->target_title))
            return run;
    }
    return NULL;
}

/* Whether runs has what became of the start. */
static bool
is_among(struct job *job, struct runs *runs)
{
    struct run *listed;

    if (job_is_done(job) && job->end != JOB_FAILED)
        return runs_find(runs, job->view.run_id) != NULL;
    listed = find_listed(job, runs);
    if (!listed)
        return false;
    if (!job_is_done(job)) { /* its own answer is still to come and will tell all */
        runs_remove(runs, (size_t)(listed - runs->items));
        return false;
    }
    if (job->may_exist)
        job_forget(job); /* it did come to be */
    return job->may_exist;
}

size_t
job_join_starts(struct job **starts, size_t n, struct runs *runs)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (is_among(starts[i], runs))
            job_unref(starts[i]);
        else
            starts[kept++] = starts[i];
    }
    return kept;
}

/* A 2xx whose body cannot be used, and no answer at all: there may be a run. */
static bool
may_have_acted(const struct api_answer *answer)
{
    return answer->kind == API_BAD || answer->kind == API_UNKNOWN ||
           (answer->kind == API_STATUS && answer->status >= 500);
}

/* An answer that makes no sense may still name the run that it started. */
static void
salvage_id(struct job *job, struct api_answer *answer)
{
    const char *id = json_str(answer->json, "flow_run_id");

    job->view = (struct view){.doc = NULL};
    if (job->run_id || text_is_blank(id))
        return;
    job->doc = take_ptr(answer->json);
    job->view.run_id = id;
}

/* The run is there; only the role is not. */
static bool
is_about_participant(const struct api_answer *answer)
{
    return answer->kind == API_CODED && strcmp(answer->code, "unknown_participant") == 0;
}

void
job_take_answer(struct job *job, struct api_answer *answer)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_ERROR);
    const char *fault;

    if (answer->kind != API_OK) {
        api_add_error(&line, answer);
        if (job->settling.gave_up)
            buf_addf(
                &line, " (the server was busy %d times in %lld s; try again later)",
                job->settling.refusals,
                (long long)((job->flows->host->now_ns(job->flows->host) - job->started_ns) /
                            NS_PER_SEC));
        job->run_unknown = answer->status == 404 && !is_about_participant(answer);
        job_fail(job, may_have_acted(answer), buf_str(&line));
        return;
    }
    fault = view_read_round(answer->json, &job->view);
    if (!fault && job->run_id && strcmp(job->view.run_id, job->run_id) != 0)
        fault = "it is about another flow_run_id";
    if (fault) {
        buf_addf(&line, "Error: the server's answer cannot be used: %s", fault);
        job_fail(job, true, buf_str(&line));
        salvage_id(job, answer);
        return;
    }
    job->doc = take_ptr(answer->json);
    job->end = job->view.round_ended ? JOB_FINISHED : JOB_RUNNING;
}
