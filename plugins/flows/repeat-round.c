/* SPDX-License-Identifier: Apache-2.0 */
/* The very same round again: joined while its result is not known to have arrived. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"
#include "lib/auto.h"
#include "repeat.h"

#define LOOK_LIMIT_MS 20000
#define MAX_NOTE      16384
#define SEND_LIMIT_NS (10 * NS_PER_SEC) /* for another process to hear of its round */
#define SEND_PAUSE_NS (200 * NS_PER_MS)
#define SERVER_LAG_MS 60000

#define PASS KCAP_WAIT_TIMEOUT /* it is in nobody's way: ask again without it */

struct again {
    const struct subject *subject;
    const struct run *run; /* whose last round this would double */
    const char *body;
    int64_t until_ns; /* another process is waited for until then */
};

static int64_t
age_ms(const struct again *again)
{
    const struct kcap_host *host = again->subject->flows->host;

    return host->wall_ms(host) - again->run->submitted_ms;
}

static struct subject
joining(const struct again *again, struct buf *note)
{
    return repeat_joining(again->subject, again->run->submitted_ms, "round",
                          "Another text makes another round.", note);
}

static int32_t
join_wait(const struct again *again, int64_t round)
{
    AUTO_BUF struct buf note = BUF_INIT(MAX_NOTE);
    struct subject subject = joining(again, &note);
    struct wait_goal goal = {.run_id = again->run->run_id,
                             .round = round,
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

/* Whether the round the server speaks of is the one that was submitted. */
static bool
is_that_round(const struct run *run, const struct view *view)
{
    if (!run_is_pending(run))
        return view->round == run->marked_round;
    /* where it is not known which rounds there were before, only one at work can be it */
    return run->round > 0 ? view->round > run->round : view->round > 0 && !view->round_ended;
}

static int32_t
judge_view(const struct again *again, const struct view *view)
{
    const struct run *run = again->run;
    AUTO_BUF struct buf note = BUF_INIT(MAX_NOTE);
    struct subject subject;

    if (view->run_ended)
        return PASS; /* the server says so to a further round, too */
    if (!run_is_pending(run) && view->round < run->marked_round &&
        age_ms(again) < SERVER_LAG_MS)
        return join_wait(again, run->marked_round);
    if (!is_that_round(run, view))
        return PASS;
    if (!view->round_ended)
        return join_wait(again, view->round);
    if (!has_result(view))
        return PASS;
    subject = joining(again, &note);
    return show_view(&subject, view, false);
}

static int32_t
show_unseen(const struct again *again, const struct api_answer *answer, const char *fault)
{
    return repeat_show_unseen(again->subject, again->run, answer, fault,
                              "The very same round was submitted before; what became of it "
                              "could not be seen, so nothing was submitted by this call.");
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
wait_a_little(const struct again *again)
{
    const struct kcap_host *host = again->subject->flows->host;
    int32_t r = host->wait(again->subject->call, KCAP_SEQ_NONE, NULL, 0,
                           host->now_ns(host) + SEND_PAUSE_NS);

    if (r == KCAP_WAIT_DEADLINE)
        return show_unseen(again, NULL, "another process is just submitting it");
    return r == KCAP_WAIT_TIMEOUT ? PASS : show_end(r);
}

static int32_t
judge(const struct again *again, struct runs *passed)
{
    const struct kcap_host *host = again->subject->flows->host;
    AUTO_JOB struct job *job = job_find_round(again->subject->flows, again->run->run_id);
    AUTO_BUF struct buf note = BUF_INIT(MAX_NOTE);
    struct subject subject;
    int32_t r;

    if (job && strcmp(job->body, again->body) == 0) {
        subject = joining(again, &note);
        return show_job(&subject, job);
    }
    if (run_is_pending(again->run) && age_ms(again) < SEND_LIMIT_NS / NS_PER_MS &&
        host->now_ns(host) < again->until_ns)
        return wait_a_little(again);
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
    AUTO_RUNS struct runs passed = {.items = NULL};
    struct event submit = {.kind = EVENT_SUBMIT,
                           .session = subject->session->key,
                           .run_id = run_id,
                           .args_mark = mark};
    struct again again = {
        .subject = subject, .body = body, .until_ns = host->now_ns(host) + SEND_LIMIT_NS};
    int32_t r;

    if (!mark)
        return KCAP_E_NOMEM;
    do {
        AUTO_RUNS struct runs found = {.items = NULL};
        r = ledger_claim(subject->flows, subject->call, &submit, &passed, &found);
        if (r != -EEXIST)
            return r < 0 ? KCAP_E_NOMEM : KCAP_WAIT_TIMEOUT;
        again.run = &found.items[0];
        r = judge(&again, &passed);
    } while (r == PASS);
    return r;
}
