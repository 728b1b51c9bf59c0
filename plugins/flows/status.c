/* SPDX-License-Identifier: Apache-2.0 */
/* get_review_flow_status and get_flow_status */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "ledger.h"
#include "lib/auto.h"
#include "lib/session-id.h"
#include "lib/text.h"
#include "lookup.h"
#include "show.h"

#define STATUS_LIMIT_MS 20000
#define MAX_NOTE        16384
#define MAX_STARTS      64
#define START_HELD_MS   (INT64_C(20) * 60 * 1000) /* servers may take so long to answer one */

/* ---- one run ---- */

static int32_t
show_status_error(const struct subject *subject, const char *run_id, bool no_such_run,
                  const char *error)
{
    return show_run_error(
        subject,
        &(struct head){.run_id = run_id,
                       .status = "unknown",
                       .next_step =
                           subject->family->next[no_such_run ? NEXT_FIND : NEXT_LOOK_OR_ASK]},
        error);
}

/* Only the server's own word that there is no such run is believed: a proxy, or a server that
 * has not caught up, answers with the same status. */
static void
add_gone(struct buf *to, const struct subject *subject, const char *run_id,
         const struct api_answer *answer)
{
    if (answer->status != 404)
        return;
    if (answer->kind == API_CODED)
        show_expect_gone(subject, run_id);
    else
        buf_addf(to,
                 "\nThe server does not show this flow now; that may pass. If it is gone for "
                 "good, %s forgets it.",
                 subject->family->close);
}

static int32_t
look_once(const struct subject *subject, const char *run_id)
{
    AUTO_FREE char *path = api_path("/api/flows", run_id, "");
    AUTO_ANSWER struct api_answer answer = {.kind = API_REFUSED};
    AUTO_BUF struct buf line = BUF_INIT(MAX_NOTE);
    struct view view;
    const char *fault;
    int32_t r;

    if (!path)
        return KCAP_E_NOMEM;
    r = api_request(subject->flows, subject->call,
                    &(struct api_request){.method = "GET",
                                          .path = path,
                                          .text_offset = subject->offset,
                                          .limit_ms = STATUS_LIMIT_MS},
                    &answer);
    if (r == KCAP_WAIT_DEADLINE)
        return show_status_error(
            subject, run_id, false,
            "Error: the server did not answer while this call could wait.");
    if (r != 0)
        return show_end(r);
    if (answer.kind != API_OK) {
        if (answer.status == 404 &&
            ledger_is_fresh(subject->flows, subject->session->key, run_id))
            return show_not_shown_yet(subject, run_id);
        api_add_error(&line, &answer);
        add_gone(&line, subject, run_id, &answer);
        return show_status_error(subject, run_id,
                                 (answer.status == 404 && answer.kind == API_CODED) ||
                                     answer.kind == API_REFUSED,
                                 buf_str(&line));
    }
    fault = view_read_status(answer.json, run_id, &view);
    if (fault) {
        buf_addf(&line, "Error: the server's answer cannot be used: %s", fault);
        return show_status_error(subject, run_id, false, buf_str(&line));
    }
    show_remember(subject, run_id, view.round, view.run_ended);
    return show_view(subject, &view, false);
}

static void
add_note(struct buf *to, const struct subject *subject)
{
    buf_adds(to, subject->note ? subject->note : "");
}

/* What the ledger knows of the run that the server's answer cannot tell. */
static int
add_warnings(struct buf *to, const struct subject *subject, const char *run_id)
{
    const struct kcap_host *host = subject->flows->host;
    AUTO_RUNS struct runs found = {.items = NULL};
    const struct submission *pending;
    const struct run *run;

    if (ledger_find(subject->flows, subject->session->key, run_id, &found) < 0)
        return KCAP_E_NOMEM;
    if (found.n == 0)
        return 0;
    run = &found.items[0];
    if (run->unwanted)
        buf_adds(to,
                 "warning: its reviewer may not be the one that was asked for; do not trust "
                 "its results, close the flow and tell the user\n");
    pending = run_pending(run);
    if (pending)
        buf_addf(
            to,
            "warning: a round that was submitted %lld s ago has no answer yet that is known "
            "here; what follows may be of the round before\n",
            (long long)((host->wall_ms(host) - pending->at_ms) / 1000));
    return 0;
}

static int32_t
status_of_run(const struct subject *given, const char *run_id, bool wait)
{
    AUTO_BUF struct buf note = BUF_INIT(MAX_ANSWER_TEXT);
    struct subject noted = *given, *subject = &noted;
    AUTO_JOB struct job *job = job_find_round(subject->flows, run_id);
    struct wait_goal goal = {
        .run_id = run_id, .called_ns = subject->began_ns, .text_offset = subject->offset};

    add_note(&note, given);
    if (add_warnings(&note, given, run_id) < 0)
        return KCAP_E_NOMEM;
    subject->note = buf_str(&note);
    if (!wait)
        return look_once(subject, run_id);
    if (job)
        return show_job(subject, job);
    goal.round = ledger_round(subject->flows, subject->session->key, run_id);
    if (goal.round < 0)
        goal.round = 0;
    goal.fresh = goal.round > 0;
    return show_wait(subject, &goal, 0);
}

/* ---- without an id ---- */

static void
add_session(struct buf *to, const struct session *session)
{
    if (session->id) {
        buf_adds(to, "session ");
        text_add_line(to, session->id, text_prefix(session->id, strlen(session->id), 100));
        buf_addf(to, " (from %s)", session->source);
    } else {
        buf_addf(to, "%s (the client gives no session id)", session->source);
    }
}

/* Whether there may be a run of that start. A server that was asked would have listed it, once
 * it had got so far. */
static bool
is_in_doubt(struct flows *flows, const struct lookup *lookup, const struct run *start)
{
    AUTO_JOB struct job *job = job_find_start(flows, start->start_id);
    int64_t age_ms = flows->host->wall_ms(flows->host) - start->started_ms;

    return !job && (!lookup->server_answered || age_ms < START_HELD_MS);
}

static bool
has_doubtful_start(struct flows *flows, const struct lookup *lookup)
{
    for (size_t i = 0; i < lookup->starts.n; i++) {
        if (is_in_doubt(flows, lookup, &lookup->starts.items[i]))
            return true;
    }
    return false;
}

static void
add_doubts(struct buf *to, struct flows *flows, bool has_session_id,
           const struct lookup *lookup)
{
    AUTO_FREE char *fault = ledger_fault(flows);

    if (lookup->server_fault && has_session_id) {
        buf_adds(to, "not asked: the server's own list of this session's flows: ");
        buf_adds(to, lookup->server_fault);
        buf_addc(to, '\n');
    }
    if (fault) {
        buf_adds(to, "not known: what earlier processes of this session started, because there "
                     "is no journal (");
        buf_adds(to, fault);
        buf_adds(to, ")\n");
    }
    for (size_t i = 0; i < lookup->starts.n; i++) {
        const struct run *start = &lookup->starts.items[i];
        if (!is_in_doubt(flows, lookup, start))
            continue;
        buf_addf(to, "a start of %lld s ago has no answer yet that is known here: ",
                 (long long)((flows->host->wall_ms(flows->host) - start->started_ms) / 1000));
        text_add_line(to, start->target_title ? start->target_title : "",
                      start->target_title ? strlen(start->target_title) : 0);
        buf_addc(to, '\n');
    }
}

static int32_t
show_none(const struct subject *subject, const struct lookup *lookup)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_ANSWER_TEXT);
    struct head head = {
        .status = "none",
        .next_step = "if there should be one, pass its flow_run_id, or the session_id it was "
                     "started under"};

    if (has_doubtful_start(subject->flows, lookup)) {
        head.status = "unknown";
        head.next_step = "call this tool again in a minute: a start has no answer yet; do not "
                         "start another one without asking the user";
    }
    render_head(&text, &head);
    add_note(&text, subject);
    buf_adds(&text, "No open flow is known for ");
    add_session(&text, subject->session);
    buf_adds(&text, ".\n");
    add_doubts(&text, subject->flows, subject->session->id != NULL, lookup);
    return render_result(subject->flows->host, subject->call, !lookup->server_answered, &head,
                         &text, &lookup->runs);
}

static void
add_candidate(struct buf *text, const struct run *run, int64_t now_ms)
{
    buf_addc(text, '\n');
    render_line(text, "- flow_run_id", run->run_id);
    render_line(text, "  definition_id", run->definition);
    render_line(text, "  target_title", run->target_title);
    render_line(text, "  target_ref", run->target_ref);
    render_line(text, "  status", run->status ? run->status : "not asked");
    if (run->round > 0)
        buf_addf(text, "  round_number: %lld\n", (long long)run->round);
    render_line(text, "  round_status", run->round_status);
    if (run->started_ms > 0)
        buf_addf(text, "  age: %lld s\n", (long long)((now_ms - run->started_ms) / 1000));
}

static int32_t
show_several(const struct subject *subject, const struct lookup *lookup, size_t n_starting)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_ANSWER_TEXT);
    int64_t now_ms = subject->flows->host->wall_ms(subject->flows->host);
    struct head head = {.status = "several", .next_step = subject->family->next[NEXT_CHOOSE]};

    render_head(&text, &head);
    add_note(&text, subject);
    buf_addf(&text, "%zu flows are candidates for ", lookup->runs.n + n_starting);
    add_session(&text, subject->session);
    buf_adds(&text, "; newest first, none was chosen.\n");
    add_doubts(&text, subject->flows, subject->session->id != NULL, lookup);
    if (n_starting > 0)
        buf_addf(&text, "\n- %zu on their way: started by this process, no answer yet\n",
                 n_starting);
    for (size_t i = 0; i < lookup->runs.n; i++)
        add_candidate(&text, &lookup->runs.items[i], now_ms);
    return render_result(subject->flows->host, subject->call, false, &head, &text,
                         &lookup->runs);
}

/* Why this one, as a line of the answer. */
static void
add_choice(struct buf *to, const struct subject *subject, const struct lookup *lookup,
           const char *what)
{
    buf_addf(to, "chosen: %s of ", what);
    add_session(to, subject->session);
    buf_addc(to, '\n');
    add_doubts(to, subject->flows, subject->session->id != NULL, lookup);
}

/* Starts that came to nothing are told beside whatever else there is, once, and are no
 * candidates. Returns how many are left. */
static size_t
tell_failed(struct buf *note, struct job **starts, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (!job_is_done(starts[i]) || starts[i]->end != JOB_FAILED) {
            starts[kept++] = starts[i];
            continue;
        }
        render_line(note, "a start that failed", starts[i]->title);
        buf_adds(note, starts[i]->error ? starts[i]->error : "");
        buf_adds(note, starts[i]->may_exist ? "\nWhat became of it is unknown.\n" : "\n");
        job_forget(starts[i]);
        job_unref(starts[i]);
    }
    return kept;
}

static int32_t
show_found(struct subject *subject, struct lookup *lookup, struct job *const *starts,
           size_t n_starting, bool wait)
{
    AUTO_BUF struct buf note = BUF_INIT(MAX_ANSWER_TEXT);

    if (lookup->runs.n + n_starting == 0)
        return show_none(subject, lookup);
    if (lookup->runs.n + n_starting > 1)
        return show_several(subject, lookup, n_starting);

    add_note(&note, subject);
    add_choice(&note, subject, lookup,
               n_starting > 0                 ? "the one start on its way"
               : lookup->runs.items[0].listed ? "the one flow, as the server lists it,"
                                              : "the one flow known here");
    if (!buf_ok(&note))
        return KCAP_E_NOMEM;
    subject->note = note.data;
    return n_starting > 0 ? show_job(subject, starts[0])
                          : status_of_run(subject, lookup->runs.items[0].run_id, wait);
}

static int32_t
status_of_session(struct subject *subject, bool wait)
{
    AUTO_LOOKUP struct lookup lookup = {.server_answered = false};
    AUTO_BUF struct buf failed = BUF_INIT(MAX_ANSWER_TEXT);
    struct job *starts[MAX_STARTS];
    /* before the look-up: one that is answered meanwhile would be in neither list */
    size_t n_starting =
        job_find_starts(subject->flows, subject->session->key, starts, MAX_STARTS);
    int32_t r = lookup_session(subject->flows, subject->call, subject->session, &lookup);

    if (r == KCAP_WAIT_DEADLINE) {
        r = show_error(subject, "Error: the server did not answer while this call could wait. "
                                "Call this tool again; do not start another flow.");
    } else if (r != 0) {
        r = show_end(r);
    } else {
        n_starting = job_join_starts(starts, n_starting, &lookup.runs);
        if (n_starting + lookup.runs.n > 1) {
            n_starting = tell_failed(&failed, starts, n_starting);
            subject->note = buf_str(&failed);
        }
        r = show_found(subject, &lookup, starts, n_starting, wait);
    }
    while (n_starting > 0)
        job_unref(starts[--n_starting]);
    return r;
}

int32_t
get_status(struct subject *subject, const cJSON *args)
{
    AUTO_FREE char *run_id = args_trim(json_str(args, "flow_run_id"), false);
    const char *session_id = json_str(args, "session_id");
    bool wait = json_bool(args, "wait", false);

    (void)json_int(args, "offset", &subject->offset);
    if (run_id && !run_id[0])
        return show_error(subject,
                          "flow_run_id is blank: leave it out to have the flow found.");
    if (session_id && text_is_blank(session_id))
        return show_error(subject,
                          "session_id is blank: leave it out to use the calling session.");
    if (session_id && strlen(session_id) > SESSION_ID_MAX_LEN)
        return show_error(subject, "session_id is longer than any session's id is.");
    if (session_find(subject, session_id) < 0)
        return KCAP_E_NOMEM;
    if (!run_id)
        return status_of_session(subject, wait);
    ledger_name(subject->flows, subject->call, subject->session->key, run_id);
    return status_of_run(subject, run_id, wait);
}
