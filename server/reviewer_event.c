/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be told to the engine, kept until it is on disk. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "server/log.h"
#include "server/reviewer_internal.h"

static void
event_free(struct reviewer_event *event)
{
    free(event->round_id);
    free(event->agent_id);
    free(event->token);
    free(event->text);
    free(event);
}

/* Without memory an event is lost, and its round ends with the daemon at the latest. */
static void
add_event(struct reviewers *reviewers, const struct reviewer_event *from)
{
    struct reviewer_event *event = calloc(1, sizeof *event);

    if (!event)
        return;
    *event = *from;
    event->round_id = from->round_id ? strdup(from->round_id) : NULL;
    event->agent_id = from->agent_id ? strdup(from->agent_id) : NULL;
    event->token = from->token ? strdup(from->token) : NULL;
    event->text = from->text ? strdup(from->text) : NULL;
    if ((from->round_id && !event->round_id) || (from->agent_id && !event->agent_id) ||
        (from->token && !event->token) || (from->text && !event->text)) {
        event_free(event);
        return;
    }
    event->loss.reason = event->text;
    *reviewers->events_end = event;
    reviewers->events_end = &event->next;
}

/* The struct only points at the text while it is copied. */
static char *
borrow(const char *text)
{
    return (char *)(uintptr_t)text;
}

void
reviewers_note_lost(struct reviewers *reviewers, const char *round_id, const struct loss *loss)
{
    const struct reviewer_event event = {.kind = REVIEWER_LOST,
                                         .round_id = borrow(round_id),
                                         .loss = *loss,
                                         .text = borrow(loss->reason)};

    add_event(reviewers, &event);
}

void
reviewer_lose(struct reviewer *reviewer, const struct loss *loss)
{
    int64_t now_ns = util_now_ns();
    struct loss told = *loss;

    if (!reviewer->has_job)
        return;
    if (!reviewer->answered) {
        if (reviewer->rung == RUNG_NONE) /* else it counts as it was when we gave up */
            told.silence_ms = (now_ns - reviewer->watch.sign_ns) / 1000000;
        told.elapsed_ms = (now_ns - reviewer->watch.began_ns) / 1000000;
        log_line("round %s: %s", reviewer->job.round.id, told.reason);
        reviewers_note_lost(reviewer->all, reviewer->job.round.id, &told);
    }
    reviewer_drop_turn(reviewer);
}

void
reviewer_note_gone(struct reviewer *reviewer)
{
    const struct reviewer_event event = {
        .kind = REVIEWER_GONE, .agent_id = reviewer->agent_id, .pid = reviewer->pid};

    add_event(reviewer->all, &event);
}

void
reviewer_verdict(struct reviewer *reviewer, const char *kind, const char *text)
{
    const struct reviewer_event event = {
        .kind = REVIEWER_VERDICT,
        .round_id = reviewer->job.round.id,
        .agent_id = reviewer->agent_id,
        .token = reviewer->job.round.token,
        .verdict = strcmp(kind, ROUND_CLEAN) == 0 ? ROUND_CLEAN : ROUND_FINDINGS,
        .text = borrow(text)};

    if (!reviewer->has_job)
        return;
    add_event(reviewer->all, &event);
    reviewer->answered = true;
    reviewer->linger_until_ns = UTIL_NEVER;
}

void
reviewer_cost(struct reviewer *reviewer, int64_t microusd)
{
    const struct reviewer_event event = {
        .kind = REVIEWER_COST, .round_id = reviewer->job.round.id, .microusd = microusd};

    if (reviewer->has_job)
        add_event(reviewer->all, &event);
}

const struct reviewer_event *
reviewers_event(const struct reviewers *reviewers)
{
    return reviewers->events;
}

void
reviewers_drop_event(struct reviewers *reviewers)
{
    struct reviewer_event *event = reviewers->events;

    reviewers->events = event->next;
    if (!reviewers->events)
        reviewers->events_end = &reviewers->events;
    event_free(event);
}
