/* SPDX-License-Identifier: Apache-2.0 */
/* One turn: from the prompt to its end, and the clocks in between. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "lib/auto.h"
#include "lib/text.h"
#include "server/log.h"
#include "server/reviewer_internal.h"

#define LINGER_SEC      10 /* from its answer to its end, if it does not leave */
#define LINGER_KEEP_SEC 60 /* for the last words of one that stays */
#define MAX_EXPLAINED   1000
#define MAX_REASON      4096

void
reviewer_begin_turn(struct reviewer *reviewer)
{
    reviewer->in_turn = true;
    reviewer->watch.in_handshake = false;
    reviewer->watch.sign_ns = util_now_ns();
    reviewer->vendor->turn(reviewer, &reviewer->job, reviewer->job.prompt);
}

void
reviewer_drop_turn(struct reviewer *reviewer)
{
    if (!reviewer->has_job)
        return;
    assignment_fini(&reviewer->job);
    reviewer->has_job = reviewer->in_turn = reviewer->answered = reviewer->reminded = false;
    reviewer->linger_until_ns = UTIL_NEVER;
    buf_fini(&reviewer->explained);
}

/* ---- what vendors tell ---- */

void
reviewer_set_state(struct reviewer *reviewer, void *state)
{
    reviewer->state = state;
}

void *
reviewer_state(const struct reviewer *reviewer)
{
    return reviewer->state;
}

const struct assignment *
reviewer_job(const struct reviewer *reviewer)
{
    return reviewer->has_job ? &reviewer->job : NULL;
}

const struct buf *
reviewer_output(const struct reviewer *reviewer)
{
    return &reviewer->output;
}

void
reviewer_send(struct reviewer *reviewer, const void *bytes, size_t len)
{
    if (!pipes_send(&reviewer->pipes, bytes, len))
        reviewer_refuse(reviewer, "protocol_error", "it does not read what it is sent");
}

void
reviewer_end_input(struct reviewer *reviewer)
{
    pipes_end_input(&reviewer->pipes);
}

void
reviewer_step(struct reviewer *reviewer, const char *next, int64_t more_sec)
{
    reviewer->step = next;
    reviewer->watch.step_ns = util_now_ns();
    reviewer->watch.step_more_sec = more_sec;
}

void
reviewer_later(struct reviewer *reviewer, int64_t ms)
{
    reviewer->later_ns = util_now_ns() + ms * (UTIL_SEC_NS / 1000);
}

void
reviewer_ready(struct reviewer *reviewer)
{
    reviewer->ready = true;
    if (reviewer->has_job && !reviewer->in_turn && reviewer->rung == RUNG_NONE)
        reviewer_begin_turn(reviewer);
}

void
reviewer_sign(struct reviewer *reviewer)
{
    reviewer->watch.sign_ns = util_now_ns();
    buf_clear(&reviewer->explained); /* it goes on: nothing is to be explained */
}

void
reviewer_waits(struct reviewer *reviewer, unsigned mcp_calls, unsigned commands)
{
    reviewer->watch.mcp_calls = mcp_calls;
    reviewer->watch.commands = commands;
}

void
reviewer_explain(struct reviewer *reviewer, const char *text)
{
    buf_clear(&reviewer->explained);
    text_add_line(&reviewer->explained, text,
                  text_prefix(text, strlen(text), MAX_EXPLAINED / 8));
}

/* "CODE: DETAIL", on one line. */
static void
add_reason(struct buf *to, const char *code, const char *detail)
{
    buf_adds(to, code);
    if (!text_is_blank(detail)) {
        buf_adds(to, ": ");
        text_add_line(to, detail, text_prefix(detail, strlen(detail), MAX_REASON / 8));
    }
}

void
reviewer_turn_ended(struct reviewer *reviewer, const char *code, const char *detail)
{
    AUTO_BUF struct buf reason = BUF_INIT(MAX_REASON);

    if (!reviewer->has_job || !reviewer->in_turn)
        return;
    reviewer_waits(reviewer, 0, 0); /* an interrupted item is never completed */
    if (reviewer->rung != RUNG_NONE) {
        ladder_turn_ended(reviewer);
        return;
    }
    if (reviewer->answered) {
        reviewer_drop_turn(reviewer);
        return;
    }
    if (!code && reviewer->vendor->keeps && !reviewer->reminded && !reviewer->exited) {
        log_line("round %s: the turn ended without a result; reminding",
                 reviewer->job.round.id);
        reviewer->reminded = true;
        reviewer_sign(reviewer);
        reviewer->vendor->turn(reviewer, &reviewer->job, reviewer->job.reminder);
        return;
    }
    if (code)
        add_reason(&reason, code, detail);
    else
        add_reason(&reason, "no_verdict",
                   reviewer->reminded
                       ? "the reviewer ended its turn without submitting a result, and the one "
                         "after the reminder too"
                       : "the reviewer ended its turn without submitting a result");
    reviewer_lose(reviewer, &(struct loss){.code = code ? code : "no_verdict",
                                           .reason = buf_str(&reason)});
}

void
reviewer_refuse(struct reviewer *reviewer, const char *code, const char *detail)
{
    AUTO_BUF struct buf reason = BUF_INIT(MAX_REASON);
    struct loss loss = {.code = code};

    add_reason(&reason, code, detail);
    loss.reason = buf_str(&reason);
    if (reviewer->rung == RUNG_NONE) {
        ladder_begin_close(reviewer, &loss);
        reviewer_lose(reviewer, &loss);
    }
}

/* ---- clocks ---- */

static void
give_up(struct reviewer *reviewer, struct watch_end end)
{
    AUTO_BUF struct buf reason = BUF_INIT(MAX_REASON);

    buf_addf(&reason, "%s (%lld s)", end.code, (long long)end.sec);
    if (reviewer->watch.in_handshake)
        buf_addf(&reason,
                 ": waited in vain for %s; where that takes longer, raise handshake_sec in "
                 "flowd.json",
                 reviewer->step);
    else if (reviewer->explained.len > 0)
        buf_addf(&reason, ": %s", buf_str(&reviewer->explained));
    log_line("round %s: %s", reviewer->job.round.id, buf_str(&reason));
    ladder_begin(reviewer, &(struct loss){.result_text = ROUND_TEXT_STOPPED,
                                          .code = end.code,
                                          .reason = buf_str(&reason)});
}

void
reviewer_look(struct reviewer *reviewer, int64_t now_ns)
{
    if (reviewer->later_ns <= now_ns) {
        reviewer->later_ns = UTIL_NEVER;
        reviewer->vendor->later(reviewer);
    }
    if (reviewer->rung != RUNG_NONE) {
        if (reviewer->rung_until_ns <= now_ns)
            ladder_next(reviewer);
    } else if (reviewer->has_job && reviewer->answered) {
        if (reviewer->linger_until_ns > now_ns)
            return;
        log_line("round %s: the reviewer does not end its turn after its answer",
                 reviewer->job.round.id);
        /* a command that is interrupted goes on until its agent has gone */
        reviewer->may_live = reviewer->vendor->keeps && reviewer->watch.commands == 0;
        ladder_begin(reviewer, &(struct loss){.reason = "it did not end its turn"});
    } else if (reviewer->has_job) {
        struct watch_end end = watch_look(&reviewer->watch, now_ns);
        if (end.code)
            give_up(reviewer, end);
    }
}

int64_t
reviewer_until_ns(const struct reviewer *reviewer)
{
    if (reviewer->rung != RUNG_NONE)
        return reviewer->rung_until_ns;
    if (!reviewer->has_job)
        return reviewer->later_ns;
    return util_earlier(reviewer->later_ns, reviewer->answered
                                                ? reviewer->linger_until_ns
                                                : watch_until_ns(&reviewer->watch));
}

/* How long a turn may go on after its answer: for last words, and no longer than any silence.
 */
static int64_t
linger_sec(const struct reviewer *reviewer)
{
    int64_t sec = reviewer->vendor->keeps ? LINGER_KEEP_SEC : LINGER_SEC;

    return reviewer->watch.clocks.idle_sec < sec ? reviewer->watch.clocks.idle_sec : sec;
}

void
reviewers_finish(struct reviewers *reviewers, const char *round_id)
{
    for (struct reviewer *reviewer = reviewers->first; reviewer; reviewer = reviewer->next) {
        if (!reviewer->has_job || strcmp(reviewer->job.round.id, round_id) != 0)
            continue;
        reviewer->answered = true;
        reviewer->linger_until_ns = util_now_ns() + linger_sec(reviewer) * UTIL_SEC_NS;
    }
}

bool
reviewers_live(const struct reviewers *reviewers, const char *round_id,
               struct reviewer_live *ret)
{
    int64_t now_ns = util_now_ns();

    for (const struct reviewer *reviewer = reviewers->first; reviewer;
         reviewer = reviewer->next) {
        if (!reviewer->has_job || strcmp(reviewer->job.round.id, round_id) != 0)
            continue;
        ret->state = reviewer->rung != RUNG_NONE ? "ending"
                     : reviewer->answered        ? "reporting"
                     : reviewer->in_turn         ? "working"
                                                 : "starting";
        ret->elapsed_ms = (now_ns - reviewer->watch.began_ns) / 1000000;
        ret->silence_ms = (now_ns - reviewer->watch.sign_ns) / 1000000;
        return true;
    }
    return false;
}
