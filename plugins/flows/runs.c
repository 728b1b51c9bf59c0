/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A client that gives up at the moment an answer is ready crosses it; its cancel arrives within
 * this. */
#define DELIVERED_AFTER_MS 30000

static void
run_fini(struct run *run)
{
    free(run->session);
    free(run->start_id);
    free(run->run_id);
    free(run->server);
    free(run->definition);
    free(run->target_kind);
    free(run->target_ref);
    free(run->target_title);
    free(run->args_mark);
    free(run->target_mark);
    free(run->status);
    free(run->round_status);
}

void
runs_fini(struct runs *runs)
{
    for (size_t i = 0; i < runs->n; i++)
        run_fini(&runs->items[i]);
    free(runs->items);
    *runs = (struct runs){.items = NULL};
}

void
runs_remove(struct runs *runs, size_t at)
{
    run_fini(&runs->items[at]);
    memmove(&runs->items[at], &runs->items[at + 1], (runs->n - at - 1) * sizeof *runs->items);
    runs->n--;
}

int
run_set(char **place, const char *text)
{
    char *copy;

    if (!text)
        return 0;
    copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    free(*place);
    *place = copy;
    return 0;
}

static struct run *
add(struct runs *runs)
{
    if (runs->n == runs->cap) {
        size_t cap = runs->cap ? runs->cap * 2 : 8;
        struct run *items = realloc(runs->items, cap * sizeof *items);
        if (!items)
            return NULL;
        runs->items = items;
        runs->cap = cap;
    }
    runs->items[runs->n] = (struct run){.session = NULL};
    return &runs->items[runs->n++];
}

static bool
same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

struct run *
runs_find(const struct runs *runs, const char *run_id)
{
    for (size_t i = 0; i < runs->n; i++) {
        if (same(runs->items[i].run_id, run_id))
            return &runs->items[i];
    }
    return NULL;
}

static struct run *
find(const struct runs *runs, const char *start_id, const char *run_id)
{
    struct run *run = runs_find(runs, run_id);

    for (size_t i = 0; i < runs->n && !run; i++) {
        if (same(runs->items[i].start_id, start_id))
            run = &runs->items[i];
    }
    return run;
}

static int
describe(struct run *run, const struct event *event)
{
    bool is_start = event->kind == EVENT_START || event->kind == EVENT_RUN;
    int r = 0;

    r |= run_set(&run->session, event->session);
    r |= run_set(&run->start_id, event->start_id);
    r |= run_set(&run->run_id, event->run_id);
    r |= run_set(&run->server, event->server);
    r |= run_set(&run->definition, event->definition);
    r |= run_set(&run->target_kind, event->target_kind);
    r |= run_set(&run->target_ref, event->target_ref);
    r |= run_set(&run->target_title, event->target_title);
    if (is_start)
        r |= run_set(&run->args_mark, event->args_mark);
    r |= run_set(&run->target_mark, event->target_mark);
    return r < 0 ? -ENOMEM : 0;
}

const struct submission *
run_submission(const struct run *run, const char *mark)
{
    for (size_t i = 0; mark && i < run->n_rounds; i++) {
        if (strcmp(run->rounds[i].mark, mark) == 0)
            return &run->rounds[i];
    }
    return NULL;
}

const struct submission *
run_pending(const struct run *run)
{
    for (size_t i = run->n_rounds; i > 0; i--) {
        if (run->rounds[i - 1].round == 0)
            return &run->rounds[i - 1];
    }
    return NULL;
}

static void
drop_submission(struct run *run, const struct submission *submission)
{
    size_t at = (size_t)(submission - run->rounds);

    memmove(&run->rounds[at], &run->rounds[at + 1],
            (run->n_rounds - at - 1) * sizeof run->rounds[0]);
    run->n_rounds--;
}

static void
add_submission(struct run *run, const struct event *event)
{
    const struct submission *old = run_submission(run, event->args_mark);
    struct submission *added;

    if (old)
        drop_submission(run, old);
    else if (run->n_rounds == MAX_SUBMISSIONS)
        drop_submission(run, &run->rounds[0]);
    added = &run->rounds[run->n_rounds++];
    *added = (struct submission){.at_ms = event->wall_ms,
                                 .base = event->round > 0 ? event->round : run->round};
    (void)snprintf(added->mark, sizeof added->mark, "%s", event->args_mark);
    (void)snprintf(added->holder, sizeof added->holder, "%s",
                   event->holder ? event->holder : "");
}

/* The outcome of that round was written; wall_ms 0: not after all. */
static void
note_shown(struct run *run, int64_t round, int64_t wall_ms)
{
    for (size_t i = 0; i < run->n_rounds; i++) {
        if (round > 0 && run->rounds[i].round == round)
            run->rounds[i].shown_ms = wall_ms;
    }
}

static void
note_round(struct run *run, const struct event *event)
{
    for (size_t i = 0; event->args_mark && i < run->n_rounds; i++) {
        if (strcmp(run->rounds[i].mark, event->args_mark) == 0)
            run->rounds[i].round = event->round;
    }
}

/* What the event says of rounds. */
static void
apply_round(struct run *run, const struct event *event)
{
    if (event->kind == EVENT_SUBMIT) {
        if (event->args_mark)
            add_submission(run, event);
        return;
    }
    if (event->kind == EVENT_ROUND)
        note_round(run, event);
    if (event->kind == EVENT_SHOWN) {
        run->shown_ms = event->wall_ms;
        run->ended = event->ended;
        note_shown(run, event->round, event->wall_ms);
    } else if (event->kind == EVENT_UNSHOWN || event->kind == EVENT_ROUND) {
        run->shown_ms = 0;
        run->ended = run->named = false;
        if (event->kind == EVENT_UNSHOWN)
            note_shown(run, event->round, 0);
    } else if (event->kind == EVENT_NAMED) {
        run->named = run->shown_ms > 0;
    }
    run->is_guess = false;
    run->unwanted = run->unwanted || event->unwanted;
    if (event->round > run->round)
        run->round = event->round;
}

/* The submission that was noted has come to nothing. */
static void
forget_submission(struct runs *runs, struct run *run, const char *mark)
{
    const struct submission *submission = run ? run_submission(run, mark) : NULL;

    if (submission)
        drop_submission(run, submission);
    if (run && run->is_guess && run->n_rounds == 0)
        runs_remove(runs, (size_t)(run - runs->items));
}

/* A run that was known by its id alone turns out to be what a start of ours made. */
static int
unite(struct runs *runs, const struct event *event)
{
    struct run *run = runs_find(runs, event->run_id), *start = NULL;
    int r;

    for (size_t i = 0; run && i < runs->n && !start; i++) {
        if (same(runs->items[i].start_id, event->start_id) && &runs->items[i] != run)
            start = &runs->items[i];
    }
    if (!start)
        return 0;
    r = run_set(&run->args_mark, start->args_mark) < 0 ||
                run_set(&run->target_mark, start->target_mark) < 0
            ? -ENOMEM
            : 0;
    runs_remove(runs, (size_t)(start - runs->items));
    return r;
}

int
runs_apply(struct runs *runs, const struct event *event)
{
    int r = event->kind == EVENT_RUN ? unite(runs, event) : 0;
    struct run *run = find(runs, event->start_id, event->run_id);

    if (r < 0)
        return r;
    if (event->kind == EVENT_CLOSED || event->kind == EVENT_START_FAILED) {
        if (run)
            runs_remove(runs, (size_t)(run - runs->items));
        return 0;
    }
    if (event->kind == EVENT_NOT_TAKEN) {
        forget_submission(runs, run, event->args_mark);
        return 0;
    }
    if (!run) {
        if (!event->run_id && !event->start_id)
            return 0;
        run = add(runs);
        if (!run)
            return -ENOMEM;
        run->started_ms = event->wall_ms;
        run->is_guess = event->kind == EVENT_SUBMIT;
        (void)snprintf(run->holder, sizeof run->holder, "%s",
                       event->kind == EVENT_START && event->holder ? event->holder : "");
    }
    if (event->wall_ms > run->updated_ms)
        run->updated_ms = event->wall_ms;
    apply_round(run, event);
    return describe(run, event);
}

static int
copy(struct runs *to, const struct run *from)
{
    struct run *run = add(to);
    struct event event = {
        .kind = EVENT_RUN,
        .session = from->session,
        .start_id = from->start_id,
        .run_id = from->run_id,
        .server = from->server,
        .definition = from->definition,
        .target_kind = from->target_kind,
        .target_ref = from->target_ref,
        .target_title = from->target_title,
        .args_mark = from->args_mark,
        .target_mark = from->target_mark,
    };

    if (!run)
        return -ENOMEM;
    run->started_ms = from->started_ms;
    run->updated_ms = from->updated_ms;
    run->round = from->round;
    run->shown_ms = from->shown_ms;
    run->ended = from->ended;
    run->named = from->named;
    run->unwanted = from->unwanted;
    memcpy(run->holder, from->holder, sizeof run->holder);
    memcpy(run->rounds, from->rounds, sizeof run->rounds);
    run->n_rounds = from->n_rounds;
    run->is_guess = from->is_guess;
    return describe(run, &event);
}

int
runs_copy(struct runs *to, const struct run *from)
{
    return copy(to, from);
}

int
runs_merge(struct runs *to, const struct runs *from, const char *session)
{
    for (size_t i = 0; i < from->n; i++) {
        const struct run *run = &from->items[i];
        if (same(run->session, session) && !find(to, run->start_id, run->run_id) &&
            copy(to, run) < 0)
            return -ENOMEM;
    }
    return 0;
}

static bool
may_double(const struct run *run, const struct event *start, const struct runs *passed)
{
    bool other_server = start->server && start->server[0] && !same(run->server, start->server);

    if (!same(run->session, start->session) || other_server ||
        find(passed, run->start_id, run->run_id))
        return false;
    return run->run_id ? !run_is_delivered(run, start->wall_ms)
                       : start->wall_ms - run->started_ms < START_FORGOTTEN_MS;
}

/* Whether an outcome of the run that was written then has arrived. */
static bool
has_arrived(const struct run *run, int64_t shown_ms, int64_t now_ms)
{
    return shown_ms > 0 && (run->named || now_ms - shown_ms >= DELIVERED_AFTER_MS);
}

static int
take_equal_round(const struct runs *runs, const struct event *submit, const struct runs *passed,
                 struct runs *ret_found)
{
    const struct run *run = runs_find(runs, submit->run_id);
    const struct submission *submission = run ? run_submission(run, submit->args_mark) : NULL;

    if (!submission || runs_find(passed, submit->run_id) ||
        !same(run->session, submit->session) ||
        has_arrived(run, submission->shown_ms, submit->wall_ms))
        return 0;
    return copy(ret_found, run) < 0 ? -ENOMEM : -EEXIST;
}

int
runs_take_double(const struct runs *runs, const struct event *order, const struct runs *passed,
                 struct runs *ret_found)
{
    const struct run *equal = NULL, *related = NULL;

    if (order->kind == EVENT_SUBMIT)
        return take_equal_round(runs, order, passed, ret_found);

    for (size_t i = 0; i < runs->n; i++) {
        const struct run *run = &runs->items[i];
        if (!may_double(run, order, passed))
            continue;
        if (same(run->args_mark, order->args_mark))
            equal = run;
        else if (!order->beside && same(run->target_mark, order->target_mark))
            related = run;
    }
    if (!equal && !related)
        return 0;
    return copy(ret_found, equal ? equal : related) < 0 ? -ENOMEM : -EEXIST;
}

bool
run_is_delivered(const struct run *run, int64_t now_ms)
{
    const struct submission *pending = run_pending(run);
    bool has_newer = pending && pending->at_ms >= run->shown_ms;

    return !has_newer && has_arrived(run, run->shown_ms, now_ms);
}
