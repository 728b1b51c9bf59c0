/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "waiting.h"

#include <stdlib.h>
#include <string.h>

#include "lib/auto.h"
#include "settle.h"

#define WAIT_SEC         "15" /* asked of the server; one that cannot hold answers at once */
#define GET_LIMIT_MS     20000
#define INTERVAL_NS      (3 * NS_PER_SEC)
#define LAG_NS           (60 * NS_PER_SEC)
#define GRACE_NS         (10 * NS_PER_SEC)
#define MAX_RETRY_AFTER  60000
#define MAX_BAD_IN_A_ROW 5
#define MAX_ERROR        16384

struct waiting {
    struct flows *flows;
    struct kcap_call *call;
    const struct wait_goal *goal;
    int64_t began_ns, asked_ns, said_ns;
    int64_t pause_ms; /* wished by the server, 0 for none */
    int bad_in_a_row;
};

/* What one answer means for the waiting. */
enum step { STEP_DONE, STEP_AGAIN, STEP_BAD };

void
wait_end_fini(struct wait_end *end)
{
    api_answer_fini(&end->answer);
    free(end->error);
    end->error = NULL;
}

static int64_t
now(const struct waiting *w)
{
    return w->flows->host->now_ns(w->flows->host);
}

/* Whether a server that has just taken a round may still be expected not to show it. */
static bool
is_fresh(const struct waiting *w, int64_t limit_ns)
{
    return w->goal->fresh && now(w) - w->began_ns < limit_ns;
}

static enum step
done(struct wait_end *end, enum wait_end_kind kind)
{
    end->kind = kind;
    return STEP_DONE;
}

/* The result of an earlier round must never pass for the one that is waited for. */
static enum step
judge_missing_round(const struct waiting *w, struct wait_end *end)
{
    if (end->view.run_ended)
        return done(end, WAIT_RUN_ENDED);
    if (is_fresh(w, LAG_NS))
        return STEP_AGAIN;
    cJSON_Delete(take_ptr(end->answer.json));
    end->answer.kind = API_BAD;
    end->answer.text = strdup("the server does not show the round that was submitted");
    return done(end, WAIT_FAILED);
}

/* Servers show one round only, and may let several roles work at once. While another one is at
 * work, ours may be; a role has one round at a time. */
static bool
is_of_another_role(const struct waiting *w, const struct view *view)
{
    const char *role = w->goal->role;

    return view->round_status && !view->round_ended && !view->run_ended &&
           !(role && view->round_role && strcmp(role, view->round_role) == 0);
}

static enum step
judge_view(const struct waiting *w, struct wait_end *end)
{
    const struct view *view = &end->view;
    int64_t wanted = w->goal->round;

    end->seen_round = view->round;
    if (wanted > 0 && view->round > 0 && view->round != wanted && is_of_another_role(w, view))
        return STEP_AGAIN;
    if (view->round < wanted)
        return judge_missing_round(w, end);
    if (view->round_ended || (wanted > 0 && view->round > wanted))
        return done(end, WAIT_OVER);
    if (view->run_ended)
        return done(end, WAIT_RUN_ENDED);
    return view->round_status || is_fresh(w, GRACE_NS) ? STEP_AGAIN : done(end, WAIT_OVER);
}

static enum step
judge_answer(struct waiting *w, struct wait_end *end)
{
    struct api_answer *answer = &end->answer;
    const char *fault;

    if (answer->kind == API_OK) {
        fault = view_read_status(answer->json, w->goal->run_id, &end->view);
        if (!fault) {
            w->bad_in_a_row = 0;
            return judge_view(w, end);
        }
        cJSON_Delete(take_ptr(answer->json));
        answer->kind = API_BAD;
        answer->text = strdup(fault);
        return STEP_BAD;
    }
    if (answer->status == 404 && is_fresh(w, GRACE_NS))
        return STEP_AGAIN;
    if (settle_is_asked(answer))
        return STEP_AGAIN;
    if (answer->status == 429 || answer->status >= 500) {
        w->pause_ms = answer->retry_after_ms;
        return STEP_BAD;
    }
    if (answer->kind == API_CODED || answer->kind == API_STATUS || answer->kind == API_REFUSED)
        return done(end, WAIT_FAILED);
    return STEP_BAD;
}

static int32_t
set_error(struct waiting *w, struct wait_end *end)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_ERROR);

    if (end->answer.kind != API_CODED && !end->answer.text)
        return KCAP_E_NOMEM;
    api_add_error(&line, &end->answer);
    if (w->bad_in_a_row > MAX_BAD_IN_A_ROW)
        buf_addf(&line, " (the %dth failure in a row)", w->bad_in_a_row);
    end->error = buf_take(&line, NULL);
    return end->error ? 0 : KCAP_E_NOMEM;
}

/* How long the reviewer has been silent, if the server tells. */
static void
add_silence(char *text, size_t size, const struct wait_end *end)
{
    size_t len = strlen(text);
    int64_t silence_ms;

    if (end->answer.kind == API_OK &&
        json_int(end->answer.json, "round_silence_ms", &silence_ms) && silence_ms >= 0)
        (void)snprintf(text + len, size - len, ", last sign of life %lld s ago",
                       (long long)(silence_ms / 1000));
}

static int32_t
say_progress(struct waiting *w, const struct wait_end *end)
{
    const struct kcap_host *host = w->flows->host;
    int64_t elapsed_sec = (now(w) - w->goal->called_ns) / NS_PER_SEC;
    char text[160];

    if (now(w) - w->said_ns < PROGRESS_NS)
        return 0;
    w->said_ns = now(w);
    if (end->seen_round > 0)
        (void)snprintf(text, sizeof text, "round %lld is being reviewed, %lld s so far",
                       (long long)end->seen_round, (long long)elapsed_sec);
    else
        (void)snprintf(text, sizeof text, "the review goes on, %lld s so far",
                       (long long)elapsed_sec);
    add_silence(text, sizeof text, end);
    return host->progress(w->call, (double)elapsed_sec, -1, text);
}

/* At most one request per interval; a server that holds them is asked again at once. */
static int32_t
pause_until_next(struct waiting *w)
{
    const struct kcap_host *host = w->flows->host;
    int64_t until_ns = w->asked_ns + INTERVAL_NS, wish_ms = w->pause_ms;
    int32_t r;

    if (wish_ms > MAX_RETRY_AFTER)
        wish_ms = MAX_RETRY_AFTER;
    if (wish_ms > 0 && now(w) + wish_ms * NS_PER_MS > until_ns)
        until_ns = now(w) + wish_ms * NS_PER_MS;
    r = host->wait(w->call, KCAP_SEQ_NONE, NULL, 0, until_ns);
    return r == KCAP_WAIT_TIMEOUT ? 0 : r;
}

static int32_t
ask_until_done(struct waiting *w, const char *path, struct wait_end *end)
{
    const struct api_request request = {.method = "GET",
                                        .path = path,
                                        .text_offset = w->goal->text_offset,
                                        .limit_ms = GET_LIMIT_MS};

    for (;;) {
        enum step step;
        int32_t r;
        w->asked_ns = now(w);
        w->pause_ms = 0;
        api_answer_fini(&end->answer);
        r = api_request(w->flows, w->call, &request, &end->answer);
        if (r != 0)
            return r;
        step = judge_answer(w, end);
        if (step == STEP_BAD && ++w->bad_in_a_row > MAX_BAD_IN_A_ROW)
            step = done(end, WAIT_FAILED);
        if (step == STEP_DONE)
            return end->kind == WAIT_FAILED ? set_error(w, end) : 0;
        r = say_progress(w, end);
        if (r == 0)
            r = pause_until_next(w);
        if (r != 0)
            return r;
    }
}

int32_t
waiting_run(struct flows *flows, struct kcap_call *call, const struct wait_goal *goal,
            struct wait_end *ret)
{
    AUTO_FREE char *path = api_path("/api/flows", goal->run_id, "?wait_sec=" WAIT_SEC);
    struct waiting w = {.flows = flows, .call = call, .goal = goal};

    *ret = (struct wait_end){.kind = WAIT_FAILED};
    if (!path)
        return KCAP_E_NOMEM;
    w.began_ns = w.said_ns = now(&w);
    return ask_until_done(&w, path, ret);
}
