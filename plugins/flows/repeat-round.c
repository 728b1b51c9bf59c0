/* SPDX-License-Identifier: Apache-2.0 */
/* The very same round again: joined while its result is not known to have arrived. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "holder.h"
#include "ledger.h"
#include "lib/auto.h"
#include "lib/json.h"
#include "repeat.h"

#define LOOK_LIMIT_MS 20000
#define MAX_NOTE      16384
#define SEND_LIMIT_NS (10 * NS_PER_SEC) /* for another process to hear of its round */
#define SEND_PAUSE_NS (200 * NS_PER_MS)
#define SERVER_LAG_MS 60000

#define PASS KCAP_WAIT_TIMEOUT /* it is in nobody's way: ask again without it */

struct again {
    const struct subject *subject;
    const struct run *run;               /* that it is for, */
    const struct submission *submission; /* and the round it would double */
    const char *body;
    const char *role; /* who is to work on it; NULL: the only one */
    int64_t until_ns; /* another process is waited for until then */
};

static int64_t
age_ms(const struct again *again)
{
    const struct kcap_host *host = again->subject->flows->host;

    return host->wall_ms(host) - again->submission->at_ms;
}

static struct subject
joining(const struct again *again, struct buf *note)
{
    return repeat_joining(again->subject, again->submission->at_ms, "round",
                          "Another text makes another round.", note);
}

static int32_t
join_wait(const struct again *again, int64_t round)
{
    AUTO_BUF struct buf note = BUF_INIT(MAX_NOTE);
    struct subject subject = joining(again, &note);
    struct wait_goal goal = {.run_id = again->run->run_id,
                             .round = round,
                             .role = again->role,
                             .called_ns = subject.began_ns,
                             .fresh = true};

    return show_wait(&subject, &goal, 0);
}

static bool
has_result(const struct view *view)
{
    return view->round_ended && !view->reason && !view->marker &&
           (strcmp(view->round_status, "findings") == 0 ||
            strcmp(view->round_status, "clean") == 0 ||
            strcmp(view->round_status, "waiting") == 0);
}

/* Whether a round with that number is another submission's. */
static bool
is_anothers(const struct again *again, int64_t round)
{
    for (size_t i = 0; i < again->run->n_rounds; i++) {
        if (&again->run->rounds[i] != again->submission && again->run->rounds[i].round == round)
            return true;
    }
    return false;
}

/* Whether the round the server speaks of is the one that was submitted. */
static bool
is_that_round(const struct again *again, const struct view *view)
{
    const struct submission *submission = again->submission;

    if (submission->round > 0)
        return view->round == submission->round;
    if (view->round == 0 || is_anothers(again, view->round))
        return false;
    /* where it is not known which rounds there were before, only one at work can be it */
    return submission->base > 0 ? view->round > submission->base : !view->round_ended;
}

static int32_t
show_unseen(const struct again *again, const struct api_answer *answer, const char *fault)
{
    return repeat_show_unseen(again->subject, again->run, answer, fault,
                              "The very same round was submitted before; what became of it "
                              "could not be seen, so nothing was submitted by this call.");
}

/* A server shows one round: while it shows another participant's, ours may still be at work. */
static bool
shows_another_role(const struct again *again, const struct view *view)
{
    return again->role && view->round_role && strcmp(again->role, view->round_role) != 0;
}

static int32_t
judge_view(const struct again *again, const struct view *view)
{
    const struct submission *submission = again->submission;
    AUTO_BUF struct buf note = BUF_INIT(MAX_NOTE);
    struct subject subject;

    if (view->run_ended)
        return PASS; /* the server says so to a further round, too */
    if (shows_another_role(again, view))
        return submission->round > 0
                   ? join_wait(again, submission->round)
                   : show_unseen(again, NULL, "the server shows another participant's round");
    if (view->round < submission->round && age_ms(again) < SERVER_LAG_MS)
        return join_wait(again, submission->round);
    if (!is_that_round(again, view))
        return PASS;
    if (!view->round_ended)
        return join_wait(again, view->round);
    if (!has_result(view))
        return PASS;
    subject = joining(again, &note);
    return show_view(&subject, view, false);
}

static int32_t
look(const struct again *again)
{
    AUTO_FREE char *path = api_path("/api/flows", again->run->run_id, "");
    AUTO_ANSWER struct api_answer answer = {.kind = API_REFUSED};
    const char *fault;
    struct view view;
    int32_t r;

    if (!path)
        return KCAP_E_NOMEM;
    r = api_request(
        again->subject->flows, again->subject->call,
        &(struct api_request){.method = "GET", .path = path, .limit_ms = LOOK_LIMIT_MS},
        &answer);
    if (r == KCAP_WAIT_DEADLINE)
        return show_unseen(again, NULL, "the server did not answer while this call could wait");
    if (r != 0)
        return show_end(r);
    if (answer.kind != API_OK)
        return answer.status == 404 && answer.kind == API_CODED
                   ? PASS
                   : show_unseen(again, &answer, NULL);
    fault = view_read_status(answer.json, again->run->run_id, &view);
    return fault ? show_unseen(again, NULL, fault) : judge_view(again, &view);
}

/* A call that ends here has sent nothing. */
static int32_t
wait_a_little(const struct again *again, bool is_held)
{
    const struct kcap_host *host = again->subject->flows->host;
    AUTO_BUF struct buf note = BUF_INIT(MAX_NOTE);
    struct subject subject = joining(again, &note);
    int32_t r =
        host->wait(subject.call, KCAP_SEQ_NONE, NULL, 0, host->now_ns(host) + SEND_PAUSE_NS);

    if (r == KCAP_WAIT_DEADLINE && is_held)
        return show_held_elsewhere(&subject, again->run->run_id);
    if (r == KCAP_WAIT_DEADLINE)
        return show_unseen(again, NULL, "another process may be just submitting it");
    return r == KCAP_WAIT_TIMEOUT ? PASS : show_end(r);
}

static int32_t
judge(const struct again *again, struct runs *passed)
{
    const struct kcap_host *host = again->subject->flows->host;
    AUTO_JOB struct job *job = job_find_round(again->subject->flows, again->run->run_id);
    AUTO_BUF struct buf note = BUF_INIT(MAX_NOTE);
    struct subject subject;
    bool is_pending, is_held;
    int32_t r;

    if (job && strcmp(job->body, again->body) == 0) {
        subject = joining(again, &note);
        return show_job(&subject, job);
    }
    is_pending = again->submission->round == 0;
    is_held = is_pending && holder_is_elsewhere(again->submission->holder);
    if (is_held || (is_pending && age_ms(again) < SEND_LIMIT_NS / NS_PER_MS &&
                    host->now_ns(host) < again->until_ns))
        return wait_a_little(again, is_held);
    r = look(again);
    if (r == PASS && runs_apply(passed, &(struct event){.kind = EVENT_RUN,
                                                        .run_id = again->run->run_id}) < 0)
        return KCAP_E_NOMEM;
    return r;
}

int32_t
repeat_claim_round(const struct subject *subject, const char *run_id, const char *body)
{
    const struct kcap_host *host = subject->flows->host;
    AUTO_FREE char *mark = repeat_mark(body);
    AUTO_JSON cJSON *json = json_parse(body, strlen(body), NULL);
    AUTO_RUNS struct runs passed = {.items = NULL};
    struct event submit = {.kind = EVENT_SUBMIT,
                           .session = subject->session->key,
                           .run_id = run_id,
                           .holder = holder_self(),
                           .args_mark = mark};
    struct again again = {.subject = subject,
                          .body = body,
                          .role = json_str(json, "participant"),
                          .until_ns = host->now_ns(host) + SEND_LIMIT_NS};
    int32_t r;

    if (!mark)
        return KCAP_E_NOMEM;
    do {
        AUTO_RUNS struct runs found = {.items = NULL};
        r = ledger_claim(subject->flows, subject->call, &submit, &passed, &found);
        if (r != -EEXIST)
            return r < 0 ? KCAP_E_NOMEM : KCAP_WAIT_TIMEOUT;
        again.run = &found.items[0];
        again.submission = run_submission(again.run, mark);
        r = judge(&again, &passed);
    } while (r == PASS);
    return r;
}

void
repeat_note_not_taken(const struct subject *subject, const char *run_id, const char *body)
{
    AUTO_FREE char *mark = repeat_mark(body);

    ledger_note(subject->flows, subject->call,
                &(struct event){.kind = EVENT_NOT_TAKEN,
                                .session = subject->session->key,
                                .run_id = run_id,
                                .args_mark = mark});
}
