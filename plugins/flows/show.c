/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "show.h"

#include <stdlib.h>
#include <string.h>

#include "ledger.h"
#include "lib/auto.h"
#include "lib/text.h"
#include "messages.h"

#define MAX_NOTE        32768
#define MAX_EXCERPT_LEN 16384

static const char not_a_failure[] =
    "This is normal: a review takes minutes, and this call ended only because its client lets "
    "no call last longer. The reviewer goes on. Do not start another flow, do not close this "
    "one, do not look for the cause.\n";

int32_t
show_end(int32_t r)
{
    /* cancelled: the client wants no answer; shutdown: there is nobody left to read one */
    return r < 0 ? r : KCAP_OK;
}

int32_t
show_error(const struct subject *subject, const char *text)
{
    AUTO_BUF struct buf copy = BUF_INIT(MAX_ANSWER_TEXT);

    buf_adds(&copy, text);
    return render_result(subject->flows->host, subject->call, true,
                         &(struct head){.run_id = NULL}, &copy, NULL);
}

int32_t
show_over(const struct subject *subject, const char *done)
{
    const struct kcap_host *host = subject->flows->host;
    AUTO_BUF struct buf text = BUF_INIT(MAX_ANSWER_TEXT);
    int32_t r = host->wait(subject->call, KCAP_SEQ_NONE, NULL, 0, host->now_ns(host));

    if (r != KCAP_WAIT_DEADLINE)
        return r == KCAP_WAIT_TIMEOUT ? r : show_end(r);
    buf_addf(&text, "Error: this call's time was over before anything could be %s. Call again.",
             done);
    return show_error(subject, buf_str(&text));
}

static void
add_note(struct buf *text, const struct subject *subject)
{
    if (subject->note)
        buf_adds(text, subject->note);
}

int32_t
show_run_error(const struct subject *subject, const struct head *head, const char *error)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_ANSWER_TEXT);

    render_head(&text, head);
    add_note(&text, subject);
    buf_addc(&text, '\n');
    buf_adds(&text, error);
    buf_addc(&text, '\n');
    return render_result(subject->flows->host, subject->call, true, head, &text, NULL);
}

int32_t
show_no_server(const struct subject *subject, const char *run_id, const char *fault)
{
    AUTO_BUF struct buf error = BUF_INIT(MAX_ANSWER_TEXT);

    buf_addf(&error, "Error: %s; nothing was sent.", fault);
    if (text_is_blank(run_id))
        return show_error(subject, buf_str(&error));
    return show_run_error(
        subject,
        &(struct head){.run_id = run_id,
                       .status = "unknown",
                       .next_step = "tell the user which setting names no usable server; the "
                                    "flow itself is not touched by it"},
        buf_str(&error));
}

/* Where nothing was submitted, that the run is there is all there is to tell. */
static bool
is_outcome(const struct subject *subject, const struct view *view)
{
    return view->round_ended || view->run_ended ||
           (view->no_round &&
            ledger_round(subject->flows, subject->session->key, view->run_id) <= 0);
}

/* Tells the ledger that an outcome is about to reach the client. */
static void
expect_shown(const struct subject *subject, const struct view *view)
{
    struct flows *flows = subject->flows;

    if (is_outcome(subject, view))
        ledger_expect(flows, flows->host->serial(subject->call), subject->session->key,
                      view->run_id, view->round, view->run_ended);
}

/* Beside a result of its own. */
static void
add_excerpt(struct buf *text, const char *heading, const struct api_text *words)
{
    size_t len = words->text ? strlen(words->text) : 0, room = MAX_EXCERPT_LEN, kept;

    if (len == 0)
        return;
    kept = render_fit(words->text, len, &room);
    render_words(text, heading, words->text, kept);
    if (kept < len)
        buf_adds(text, "[cut]\n");
}

/* What an earlier round brought must not pass for the answer to this one. */
static void
add_previous(struct buf *text, const struct subject *subject, const struct view *view)
{
    static const char earlier[] = "The reviewer's words about the earlier round";

    if (!view->previous_kind && !view->previous.text)
        return;
    render_line(text, "previous_result_kind", view->previous_kind);
    if (view->round > 1 && !view->result.text)
        buf_addf(text, "(of a round before round %lld, which has no result)\n",
                 (long long)view->round);
    if (view->result.text && subject->offset > 0)
        return; /* a further part of that one */
    if (view->result.text)
        add_excerpt(text, earlier, &view->previous);
    else
        render_reviewer(text, subject->family, earlier, &view->previous, subject->offset);
}

int32_t
show_view(const struct subject *subject, const struct view *view, bool is_error)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_ANSWER_TEXT), ids = BUF_INIT(MAX_IDS_LEN);
    const cJSON *count = json_get(view->doc, "round_count");
    struct head head = {
        .run_id = view->run_id,
        .status = view->status,
        .round = view->round,
        .result_kind = view->result_kind,
        .next_step = render_next_step(subject->family, view),
    };

    render_head(&text, &head);
    add_note(&text, subject);
    render_line(&text, "round_id", json_str(view->doc, "round_id"));
    render_line(&text, "round_status", view->round_status);
    render_line(&text, "round_reason", view->marker ? view->marker : view->reason);
    if (view->marker)
        render_line(&text, "what_happened", view->reason);
    render_line(&text, "round_note", view->note);
    render_line(&text, "definition_id", json_str(view->doc, "definition_id"));
    render_line(&text, "target_title", json_str(view->doc, "target_title"));
    if (cJSON_IsNumber(count))
        buf_addf(&text, "round_count: %.0f\n", count->valuedouble);
    render_audit(&text, view->doc);
    render_participants(&text, view);
    render_reviewer(&text, subject->family, "The reviewer's words", &view->result,
                    subject->offset);
    add_previous(&text, subject, view);
    messages_render(subject, view->run_id, view->doc, &text, &ids);
    messages_expect(subject, view->run_id, &ids);
    expect_shown(subject, view);
    return render_result(subject->flows->host, subject->call, is_error, &head, &text, NULL);
}

static int32_t
show_still_running(const struct subject *subject, const char *run_id, int64_t round,
                   int64_t since_ns)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_ANSWER_TEXT);
    const struct kcap_host *host = subject->flows->host;
    int64_t now_ns = host->now_ns(host);
    struct head head = {.run_id = run_id,
                        .status = "running",
                        .round = round,
                        .next_step = subject->family->next[NEXT_WAIT]};

    render_head(&text, &head);
    add_note(&text, subject);
    if (since_ns > 0)
        buf_addf(&text, "elapsed: %lld s\n", (long long)((now_ns - since_ns) / NS_PER_SEC));
    buf_addf(&text, "\nFlow still running: this call waited %lld s. %s",
             (long long)((now_ns - subject->began_ns) / NS_PER_SEC), not_a_failure);
    return render_result(host, subject->call, false, &head, &text, NULL);
}

/* A run the server does not know (any more) must not be found again and again. */
void
show_expect_gone(const struct subject *subject, const char *run_id)
{
    struct flows *flows = subject->flows;

    ledger_expect(flows, flows->host->serial(subject->call), subject->session->key, run_id, 0,
                  true);
}

int32_t
show_held_elsewhere(const struct subject *subject, const char *run_id)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_ANSWER_TEXT);
    struct head head = {
        .run_id = run_id, .status = "starting", .next_step = subject->family->next[NEXT_WAIT]};

    render_head(&text, &head);
    add_note(&text, subject);
    buf_addf(&text,
             "\nFlow still running: another kcap-host has sent this, and the server has not "
             "answered yet. %s",
             not_a_failure);
    return render_result(subject->flows->host, subject->call, false, &head, &text, NULL);
}

int32_t
show_not_shown_yet(const struct subject *subject, const char *run_id)
{
    return show_still_running(subject, run_id, 0, 0);
}

/* The host failed us in the middle of a wait; the run is not to be lost for that. */
static int32_t
show_broken(const struct subject *subject, const char *run_id, int32_t r)
{
    if (r >= 0 || !run_id)
        return show_end(r);
    return show_run_error(
        subject,
        &(struct head){.run_id = run_id,
                       .status = "unknown",
                       .next_step = subject->family->next[NEXT_WAIT]},
        "Error: kcap-host could not wait any longer; its log has the reason. The flow itself "
        "goes on.");
}

static int32_t
show_wait_failed(const struct subject *subject, const struct wait_goal *goal,
                 const struct wait_end *end, bool is_new)
{
    AUTO_BUF struct buf error = BUF_INIT(MAX_ANSWER_TEXT);
    bool gone = end->answer.status == 404 && end->answer.kind == API_CODED && !is_new;

    buf_adds(&error, end->error);
    if (gone)
        show_expect_gone(subject, goal->run_id);
    else
        buf_adds(&error, "\nThe flow itself may well go on: do not start another one.");
    return show_run_error(
        subject,
        &(struct head){.run_id = goal->run_id,
                       .status = "unknown",
                       .round = goal->round ? goal->round : end->seen_round,
                       .next_step = subject->family->next[gone ? NEXT_FIND : NEXT_LOOK_LONGER]},
        buf_str(&error));
}

static bool
is_failed(const struct view *view)
{
    return strcmp(view->status, "failed") == 0;
}

void
show_remember(const struct subject *subject, const char *run_id, int64_t round, bool run_ended)
{
    if (!run_ended && ledger_round(subject->flows, subject->session->key, run_id) < 0)
        ledger_note(subject->flows, subject->call,
                    &(struct event){.kind = EVENT_RUN,
                                    .session = subject->session->key,
                                    .run_id = run_id,
                                    .server = api_server(subject->flows),
                                    .round = round});
}

/* A wait that outlasted the round it was for: the server shows a later one now. */
static int32_t
show_round_waited_for(const struct subject *subject, const struct wait_goal *goal,
                      const struct wait_end *end)
{
    AUTO_BUF struct buf note = BUF_INIT(MAX_ANSWER_TEXT);
    const struct view *view = &end->view;
    struct subject noted = *subject;

    if (goal->round > 0 && view->round > goal->round)
        buf_addf(&note,
                 "warning: this call waited for round %lld, which the server does not show any "
                 "more; what follows is of round %lld\n",
                 (long long)goal->round, (long long)view->round);
    add_note(&note, subject);
    noted.note = buf_str(&note);
    return show_view(&noted, view, end->kind == WAIT_RUN_ENDED && is_failed(view));
}

int32_t
show_wait(const struct subject *subject, const struct wait_goal *goal, int64_t since_ns)
{
    AUTO_WAIT_END struct wait_end end = {.kind = WAIT_FAILED};
    int32_t r = waiting_run(subject->flows, subject->call, goal, &end);

    if (end.seen_round > 0)
        show_remember(subject, goal->run_id, end.seen_round, r == 0 && end.view.run_ended);
    if (r == KCAP_WAIT_DEADLINE)
        return show_still_running(subject, goal->run_id,
                                  goal->round ? goal->round : end.seen_round, since_ns);
    if (r != 0)
        return show_broken(subject, goal->run_id, r);
    if (end.kind == WAIT_FAILED)
        return show_wait_failed(subject, goal, &end, since_ns > 0);
    return show_round_waited_for(subject, goal, &end);
}

/* A start or round whose own answer is still out when the window ends. */
static int32_t
show_in_progress(const struct subject *subject, const struct job *job)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_ANSWER_TEXT);
    const struct kcap_host *host = subject->flows->host;
    struct head head = {.run_id = job->run_id,
                        .status = "starting",
                        .next_step = subject->family->next[NEXT_WAIT]};

    render_head(&text, &head);
    add_note(&text, subject);
    render_line(&text, "target_title", job->title);
    buf_addf(&text, "elapsed: %lld s\n",
             (long long)((host->now_ns(host) - job->started_ns) / NS_PER_SEC));
    buf_addf(&text,
             "\nFlow still running: the %s still in progress, the server has not answered yet; "
             "the request stays open. %s",
             job->run_id ? "submission of the round is" : "start is", not_a_failure);
    return render_result(host, subject->call, false, &head, &text, NULL);
}

static const char *
job_failed_step(const struct family *family, const struct job *job, const char *run_id)
{
    if (job->run_unknown || (!run_id && job->may_exist))
        return family->next[NEXT_FIND];
    if (!run_id)
        return "read the error below; nothing was started";
    return family->next[job->is_unwanted ? NEXT_CLOSE : NEXT_LOOK];
}

static int32_t
show_job_failed(const struct subject *subject, struct job *job)
{
    AUTO_BUF struct buf error = BUF_INIT(MAX_ANSWER_TEXT);
    const char *run_id = job->run_id ? job->run_id : job->view.run_id;

    buf_adds(&error, job->error ? job->error : "Error: out of memory");
    if (job->may_exist)
        buf_addf(&error,
                 "\nWhat became of it is unknown: the server may have %s all the same. Do not "
                 "send it again before a status call has shown that it did not.",
                 job->run_id ? "taken the round" : "started a flow");
    job_forget(job);
    return show_run_error(
        subject,
        &(struct head){.run_id = run_id,
                       .status = job->may_exist ? "unknown" : "error",
                       .next_step = job_failed_step(subject->family, job, run_id)},
        buf_str(&error));
}

/* Waits for the round of a job that is done. */
static int32_t
show_done(const struct subject *subject, struct job *job)
{
    struct wait_goal goal = {.called_ns = subject->began_ns, .fresh = true};

    if (job->end == JOB_FINISHED || job->view.no_round)
        return show_view(subject, &job->view, job->view.run_ended && is_failed(&job->view));
    goal.run_id = job->view.run_id;
    goal.round = job->view.round;
    goal.role = job->role;
    return show_wait(subject, &goal, job->started_ns);
}

int32_t
show_job(const struct subject *subject, struct job *job)
{
    AUTO_BUF struct buf note = BUF_INIT(MAX_NOTE);
    struct subject noted = *subject;
    int32_t r = job_await(job, subject->call, subject->began_ns);

    if (r == KCAP_WAIT_DEADLINE)
        return show_in_progress(subject, job);
    if (r != 0)
        return show_broken(subject, job->run_id, r);
    if (job->end == JOB_FAILED)
        return show_job_failed(subject, job);
    if (!job->preference.vendor)
        return show_done(subject, job);
    render_line(&note, "reviewer_from_saved_preference", job->preference.vendor);
    add_note(&note, subject);
    noted.note = buf_str(&note);
    return show_done(&noted, job);
}
