/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "repeat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holder.h"
#include "job.h"
#include "ledger.h"
#include "lib/auto.h"
#include "lib/text.h"
#include "lookup.h"

#define LOOK_LIMIT_MS  20000
#define MAX_NOTE       16384
#define START_LIMIT_NS (10 * NS_PER_SEC) /* for another process to hear of its start */
#define START_PAUSE_NS (200 * NS_PER_MS)
#define SERVER_LAG_MS  10000

/* What a run that is in the way means. */
#define PASS KCAP_WAIT_TIMEOUT /* nothing: ask again without it */

struct repeat {
    const struct subject *subject;
    const struct run *run;
    bool equal;       /* its arguments, too */
    bool new_run;     /* one beside others is wanted */
    int64_t until_ns; /* a start of another process is waited for until then */
};

char *
repeat_mark(const char *text)
{
    char mark[33];

    (void)snprintf(mark, sizeof mark, "%016llx%016llx",
                   (unsigned long long)text_hash(text, UINT64_C(0xcbf29ce484222325)),
                   (unsigned long long)text_hash(text, UINT64_C(0x84222325cbf29ce4)));
    return strdup(mark);
}

static int64_t
age_ms(const struct repeat *repeat)
{
    const struct kcap_host *host = repeat->subject->flows->host;

    return host->wall_ms(host) - repeat->run->started_ms;
}

struct subject
repeat_joining(const struct subject *joined, int64_t since_ms, const char *what,
               const char *another, struct buf *note)
{
    const struct kcap_host *host = joined->flows->host;
    struct subject subject = *joined;

    buf_addf(note,
             "joined: the very same %s was made %lld s ago, and its result is not known to "
             "have reached you; nothing new was sent. %s\n",
             what, (long long)((host->wall_ms(host) - since_ms) / 1000), another);
    subject.note = buf_str(note);
    return subject;
}

static struct subject
joining(const struct repeat *repeat, struct buf *note)
{
    return repeat_joining(repeat->subject, repeat->run->started_ms, "start",
                          repeat->new_run
                              ? "Another can be started once you have its result."
                              : "Only \"new_run\": true starts another before that.",
                          note);
}

int32_t
repeat_show_unseen(const struct subject *subject, const struct run *run,
                   const struct api_answer *answer, const char *fault, const char *meaning)
{
    AUTO_BUF struct buf error = BUF_INIT(MAX_NOTE);

    if (fault)
        buf_addf(&error, "Error: %s", fault);
    else
        api_add_error(&error, answer);
    buf_addf(&error, "\n%s", meaning);
    return show_run_error(subject,
                          &(struct head){.run_id = run->run_id,
                                         .status = "unknown",
                                         .next_step = subject->family->next[NEXT_LOOK]},
                          buf_str(&error));
}

/* The same target with other arguments. */
static int32_t
refuse(const struct repeat *repeat, const char *status)
{
    AUTO_BUF struct buf error = BUF_INIT(MAX_NOTE);

    buf_addf(&error,
             "Error: a flow for the same target, started with other arguments, is open in this "
             "session; nothing was started by this call. Follow that one, or close it. If the "
             "user wants another one beside it, call %s again with \"new_run\": true.",
             repeat->subject->family->start);
    return show_run_error(repeat->subject,
                          &(struct head){.run_id = repeat->run->run_id,
                                         .status = status,
                                         .round = repeat->run->round,
                                         .next_step = repeat->subject->family->next[NEXT_WAIT]},
                          buf_str(&error));
}

/* ---- a start without an id so far ---- */

static int32_t
show_unknown(const struct repeat *repeat)
{
    const struct family *family = repeat->subject->family;
    AUTO_BUF struct buf error = BUF_INIT(MAX_NOTE);

    buf_addf(&error,
             "Error: the very same start was sent %lld s ago, and what became of it is not "
             "known; nothing was started by this call. If %s finds no flow of it for some "
             "minutes, ask the user whether to call %s with \"new_run\": true.",
             (long long)(age_ms(repeat) / 1000), family->status, family->start);
    return show_run_error(
        repeat->subject,
        &(struct head){.status = "unknown", .next_step = family->next[NEXT_FIND]},
        buf_str(&error));
}

/* What is not told may be the same. */
static bool
may_be(const char *kept, const char *whole)
{
    return !kept || !whole || job_kept(kept, whole);
}

static bool
may_be_made_by(const struct run *start, const struct run *run)
{
    bool is_own_definition =
        start->definition && strcmp(start->definition, JOB_OWN_DEFINITION) == 0;

    return run->listed && !run->start_id &&
           (is_own_definition || may_be(start->definition, run->definition)) &&
           may_be(start->target_kind, run->target_kind) &&
           may_be(start->target_ref, run->target_ref) &&
           may_be(start->target_title, run->target_title);
}

/* How many runs the server lists that may be what became of the start: none of them is known to
 * be another one's. *ret is the last. */
static size_t
find_arrived(const struct run *start, const struct runs *listed, const struct run **ret)
{
    size_t n = 0;

    for (size_t i = 0; i < listed->n; i++) {
        if (may_be_made_by(start, &listed->items[i])) {
            *ret = &listed->items[i];
            n++;
        }
    }
    return n;
}

static int32_t look_at_run(const struct repeat *repeat, struct runs *passed);

/* The start made that run. The journal is told, but what follows does not wait for it to know.
 */
static int32_t
join_arrived(const struct repeat *repeat, const struct run *arrived, struct runs *passed)
{
    struct run run = *arrived;
    struct repeat found = *repeat;

    run.started_ms = repeat->run->started_ms;
    found.run = &run;
    ledger_note(repeat->subject->flows, repeat->subject->call,
                &(struct event){.kind = EVENT_RUN,
                                .session = repeat->subject->session->key,
                                .start_id = repeat->run->start_id,
                                .run_id = run.run_id,
                                .server = repeat->run->server});
    return look_at_run(&found, passed);
}

/* Whose start it was cannot be asked any more, but the server can. That it lists no such run
 * proves something only of our own: others may have one that has ended meanwhile. */
static int32_t
ask_what_became(const struct repeat *repeat, struct runs *passed)
{
    const struct subject *subject = repeat->subject;
    AUTO_LOOKUP struct lookup lookup = {.server_answered = false};
    const struct run *arrived = NULL;
    size_t n;
    int32_t r = lookup_session(subject->flows, subject->call, subject->session, &lookup);

    if (r == KCAP_WAIT_DEADLINE || (r == 0 && !lookup.server_answered))
        return show_unknown(repeat);
    if (r != 0)
        return show_end(r);
    n = find_arrived(repeat->run, &lookup.runs, &arrived);
    if (n > 1 || (n == 0 && (lookup.is_cut || !api_server_is_local(subject->flows))))
        return show_unknown(repeat);
    /* also when the journal cannot be written */
    if (runs_apply(passed,
                   &(struct event){.kind = EVENT_START, .start_id = repeat->run->start_id}) < 0)
        return KCAP_E_NOMEM;
    if (n == 1)
        return join_arrived(repeat, arrived, passed);
    ledger_note(subject->flows, subject->call,
                &(struct event){.kind = EVENT_START_FAILED,
                                .session = subject->session->key,
                                .start_id = repeat->run->start_id,
                                .server = repeat->run->server});
    return PASS;
}

static int32_t
show_held(const struct repeat *repeat)
{
    AUTO_BUF struct buf note = BUF_INIT(MAX_NOTE);
    struct subject subject = joining(repeat, &note);

    return show_held_elsewhere(&subject, repeat->run->run_id);
}

static int32_t
join_start(const struct repeat *repeat, struct runs *passed)
{
    const struct kcap_host *host = repeat->subject->flows->host;
    AUTO_BUF struct buf note = BUF_INIT(MAX_NOTE);
    AUTO_JOB struct job *job = job_find_start(repeat->subject->flows, repeat->run->start_id);
    bool is_held = holder_is_elsewhere(repeat->run->holder);
    int64_t until_ns = host->now_ns(host) + START_PAUSE_NS;
    struct subject subject;
    int32_t r;

    if (!repeat->equal)
        return refuse(repeat, "starting");
    if (job) {
        subject = joining(repeat, &note);
        return show_job(&subject, job);
    }
    if (until_ns > repeat->until_ns && !is_held)
        return ask_what_became(repeat, passed);
    r = host->wait(repeat->subject->call, KCAP_SEQ_NONE, NULL, 0, until_ns);
    if (r == KCAP_WAIT_DEADLINE)
        return is_held ? show_held(repeat) : show_unknown(repeat);
    return r == KCAP_WAIT_TIMEOUT ? r : show_end(r);
}

/* ---- a run ---- */

static int32_t
show_unwanted(const struct repeat *repeat)
{
    return show_run_error(
        repeat->subject,
        &(struct head){.run_id = repeat->run->run_id,
                       .status = "unknown",
                       .next_step = repeat->subject->family->next[NEXT_CLOSE]},
        "Error: the very same start made this flow, whose reviewer may not be the one that was "
        "asked for and which could not be closed. Close it, then start again; nothing was "
        "started by this call.");
}

static int32_t
show_unseen(const struct repeat *repeat, const struct api_answer *answer, const char *fault)
{
    return repeat_show_unseen(repeat->subject, repeat->run, answer, fault,
                              "This session has started a flow for the same target before; how "
                              "it stands could not be seen, so nothing was started by this "
                              "call. If it is gone for good, close it: then it is forgotten.");
}

static int32_t
join_run(const struct repeat *repeat)
{
    const struct run *run = repeat->run;
    struct wait_goal goal = {.run_id = run->run_id,
                             .round = run->round,
                             .called_ns = repeat->subject->began_ns,
                             .fresh = run->round > 0};
    AUTO_BUF struct buf note = BUF_INIT(MAX_NOTE);
    struct subject subject = joining(repeat, &note);

    return show_wait(&subject, &goal, 0);
}

/* One that failed, or that the server has lost, is in nobody's way; an equal one that has ended
 * well still has a result to give. */
static int32_t
judge_run(const struct repeat *repeat, const struct api_answer *answer)
{
    struct view view;
    const char *fault;

    if (answer->kind == API_OK) {
        fault = view_read_status(answer->json, repeat->run->run_id, &view);
        if (fault)
            return show_unseen(repeat, NULL, fault);
        if (!view.run_ended && repeat->equal && repeat->run->unwanted)
            return show_unwanted(repeat);
        if (view.run_ended && (!repeat->equal || strcmp(view.status, "failed") == 0))
            return PASS;
        return repeat->equal ? join_run(repeat) : refuse(repeat, view.status);
    }
    if (answer->status != 404 || (answer->kind != API_CODED && age_ms(repeat) >= SERVER_LAG_MS))
        return show_unseen(repeat, answer, NULL);
    if (age_ms(repeat) >= SERVER_LAG_MS)
        return PASS;
    return repeat->equal ? join_run(repeat) : refuse(repeat, "running");
}

static int32_t
look_at_run(const struct repeat *repeat, struct runs *passed)
{
    AUTO_FREE char *path = api_path("/api/flows", repeat->run->run_id, "");
    AUTO_ANSWER struct api_answer answer = {.kind = API_REFUSED};
    int32_t r;

    if (!path)
        return KCAP_E_NOMEM;
    r = api_request(
        repeat->subject->flows, repeat->subject->call,
        &(struct api_request){.method = "GET", .path = path, .limit_ms = LOOK_LIMIT_MS},
        &answer);
    if (r == KCAP_WAIT_DEADLINE)
        return show_unseen(repeat, NULL,
                           "the server did not answer while this call could wait");
    if (r != 0)
        return show_end(r);
    r = judge_run(repeat, &answer);
    if (r == PASS && runs_apply(passed, &(struct event){.kind = EVENT_RUN,
                                                        .run_id = repeat->run->run_id}) < 0)
        return KCAP_E_NOMEM;
    return r;
}

/* ---- both ---- */

int32_t
repeat_claim(const struct subject *subject, const struct event *start)
{
    const struct kcap_host *host = subject->flows->host;
    AUTO_RUNS struct runs passed = {.items = NULL};
    struct repeat repeat = {.subject = subject,
                            .new_run = start->beside,
                            .until_ns = host->now_ns(host) + START_LIMIT_NS};
    int32_t r;

    do {
        AUTO_RUNS struct runs found = {.items = NULL};
        r = ledger_claim(subject->flows, subject->call, start, &passed, &found);
        if (r != -EEXIST)
            return r < 0 ? KCAP_E_NOMEM : KCAP_WAIT_TIMEOUT;
        repeat.run = &found.items[0];
        repeat.equal =
            repeat.run->args_mark && strcmp(repeat.run->args_mark, start->args_mark) == 0;
        r = repeat.run->run_id ? look_at_run(&repeat, &passed) : join_start(&repeat, &passed);
    } while (r == PASS);
    return r;
}
