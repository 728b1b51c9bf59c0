/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "journal.h"
#include "lib/auto.h"
#include "lib/buf.h"

#define MAX_SHOWN     64
#define MAX_LINE      4096
#define SERVER_LAG_MS 10000
#define LOCK_LIMIT_NS (2 * NS_PER_SEC)
#define LOCK_PAUSE_NS (10 * NS_PER_MS)

struct shown {
    struct shown *next;
    uint64_t serial;
    char *session, *run_id;
    int64_t round;
    bool ended;
};

static void
shown_free(struct shown *shown)
{
    if (!shown)
        return;
    free(shown->session);
    free(shown->run_id);
    free(shown);
}

void
ledger_fini(struct flows *flows)
{
    struct shown *next;

    for (; flows->shown; flows->shown = next) {
        next = flows->shown->next;
        shown_free(flows->shown);
    }
    runs_fini(&flows->memory);
}

static void
set_fault(struct flows *flows, int error)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_LINE);
    const char *what =
        error == -EWOULDBLOCK ? "another process keeps it locked" : strerror(-error);
    bool first;

    buf_addf(&line, "%s: %s", flows->journal_dir, what);
    (void)pthread_mutex_lock(&flows->lock);
    first = !flows->journal_error;
    if (first)
        flows->journal_error = buf_take(&line, NULL);
    (void)pthread_mutex_unlock(&flows->lock);
    if (first)
        kcap_logf(flows->host, KCAP_LOG_WARN,
                  "flows: the journal in %s cannot be used (%s): runs are remembered by this "
                  "process only",
                  flows->journal_dir, what);
}

char *
ledger_fault(struct flows *flows)
{
    char *copy;

    (void)pthread_mutex_lock(&flows->lock);
    copy = flows->journal_error ? strdup(flows->journal_error) : NULL;
    (void)pthread_mutex_unlock(&flows->lock);
    return copy;
}

/* The lock of another process is waited for, but neither for long nor beyond the call. */
static int
append(struct flows *flows, struct kcap_call *call, const struct event *event,
       const struct runs *passed, struct runs *ret_found)
{
    const struct kcap_host *host = flows->host;
    int64_t until_ns = host->now_ns(host) + LOCK_LIMIT_NS;
    int r;

    for (;;) {
        r = ret_found ? journal_claim(flows->journal_dir, event, passed, ret_found)
                      : journal_append(flows->journal_dir, event->session, event);
        if (r != -EWOULDBLOCK || !call || host->now_ns(host) >= until_ns ||
            host->wait(call, KCAP_SEQ_NONE, NULL, 0, host->now_ns(host) + LOCK_PAUSE_NS) !=
                KCAP_WAIT_TIMEOUT)
            return r;
    }
}

static int
note(struct flows *flows, struct kcap_call *call, const struct event *event)
{
    struct event now = *event;
    int r;

    now.wall_ms = flows->host->wall_ms(flows->host);
    (void)pthread_mutex_lock(&flows->lock);
    r = runs_apply(&flows->memory, &now);
    (void)pthread_mutex_unlock(&flows->lock);
    if (r < 0)
        flows->host->log(flows->host, KCAP_LOG_ERROR, "flows: out of memory");
    return flows->journal_dir ? append(flows, call, &now, NULL, NULL) : 0;
}

void
ledger_note(struct flows *flows, struct kcap_call *call, const struct event *event)
{
    int r = note(flows, call, event);

    if (r < 0)
        set_fault(flows, r);
}

/* What memory knows counts where the journal may lack it. */
static int
claim_in_memory(struct flows *flows, const struct event *order, const struct runs *passed,
                struct runs *ret_found)
{
    AUTO_FREE char *fault = ledger_fault(flows);
    int r;

    (void)pthread_mutex_lock(&flows->lock);
    r = fault ? runs_take_double(&flows->memory, order, passed, ret_found) : 0;
    if (r == 0)
        r = runs_apply(&flows->memory, order);
    (void)pthread_mutex_unlock(&flows->lock);
    return r;
}

int
ledger_claim(struct flows *flows, struct kcap_call *call, const struct event *order,
             const struct runs *passed, struct runs *ret_found)
{
    struct event now = *order;
    int r = 0;

    now.wall_ms = flows->host->wall_ms(flows->host);
    if (flows->journal_dir)
        r = append(flows, call, &now, passed, ret_found);
    if (r == -EEXIST || r == -ENOMEM)
        return r;
    if (r < 0)
        set_fault(flows, r);
    r = claim_in_memory(flows, &now, passed, ret_found);
    if (r < 0 && flows->journal_dir) { /* the order is not sent: the line must not stand */
        now.kind = now.kind == EVENT_START ? EVENT_START_FAILED : EVENT_NOT_TAKEN;
        (void)append(flows, call, &now, NULL, NULL);
    }
    return r;
}

/* While the journal works it knows all that memory does, and what other processes did. */
static int
load(struct flows *flows, const char *session, struct runs *ret)
{
    AUTO_FREE char *fault = NULL;
    int r = flows->journal_dir ? journal_load(flows->journal_dir, session, ret) : 0;

    if (r == -ENOMEM)
        return r;
    if (r < 0)
        set_fault(flows, r);
    fault = ledger_fault(flows);
    if (!fault)
        return 0;
    (void)pthread_mutex_lock(&flows->lock);
    r = runs_merge(ret, &flows->memory, session);
    (void)pthread_mutex_unlock(&flows->lock);
    return r;
}

int
ledger_list(struct flows *flows, const char *session, struct runs *ret)
{
    int64_t now_ms = flows->host->wall_ms(flows->host);
    int r = load(flows, session, ret);

    for (size_t i = 0; r == 0 && i < ret->n;) {
        if (ret->items[i].ended && run_is_delivered(&ret->items[i], now_ms))
            runs_remove(ret, i);
        else
            i++;
    }
    return r;
}

int64_t
ledger_round(struct flows *flows, const char *session, const char *run_id)
{
    AUTO_RUNS struct runs runs = {.items = NULL};
    const struct run *run;

    if (load(flows, session, &runs) < 0)
        return -1;
    run = runs_find(&runs, run_id);
    return run ? run->round : -1;
}

int
ledger_find(struct flows *flows, const char *session, const char *run_id,
            struct runs *ret_found)
{
    AUTO_RUNS struct runs runs = {.items = NULL};
    const struct run *run;

    if (load(flows, session, &runs) == -ENOMEM)
        return -ENOMEM;
    run = runs_find(&runs, run_id);
    return run ? runs_copy(ret_found, run) : 0;
}

bool
ledger_is_fresh(struct flows *flows, const char *session, const char *run_id)
{
    AUTO_RUNS struct runs runs = {.items = NULL};
    const struct run *run;

    if (load(flows, session, &runs) < 0)
        return false;
    run = runs_find(&runs, run_id);
    return run && flows->host->wall_ms(flows->host) - run->started_ms < SERVER_LAG_MS;
}

void
ledger_name(struct flows *flows, struct kcap_call *call, const char *session,
            const char *run_id)
{
    AUTO_RUNS struct runs runs = {.items = NULL};
    const struct run *run;

    if (load(flows, session, &runs) < 0)
        return;
    run = runs_find(&runs, run_id);
    if (run && run->shown_ms > 0 && !run->named)
        ledger_note(flows, call,
                    &(struct event){.kind = EVENT_NAMED, .session = session, .run_id = run_id});
}

/* ---- what became of answers ---- */

static void
drop_oldest(struct flows *flows)
{
    struct shown **place = &flows->shown;
    int n = 0;

    for (; *place && n < MAX_SHOWN; n++)
        place = &(*place)->next;
    if (*place) {
        shown_free(*place);
        *place = NULL;
    }
}

void
ledger_expect(struct flows *flows, uint64_t serial, const char *session, const char *run_id,
              int64_t round, bool ended)
{
    struct shown *shown = calloc(1, sizeof *shown);

    if (!shown)
        return; /* it will be shown once more */
    shown->serial = serial;
    shown->session = strdup(session);
    shown->run_id = strdup(run_id);
    shown->round = round;
    shown->ended = ended;
    if (!shown->session || !shown->run_id) {
        shown_free(shown);
        return;
    }
    (void)pthread_mutex_lock(&flows->lock);
    shown->next = flows->shown;
    flows->shown = shown;
    drop_oldest(flows);
    (void)pthread_mutex_unlock(&flows->lock);
}

static struct shown *
take(struct flows *flows, uint64_t serial)
{
    struct shown **place = &flows->shown, *found;

    (void)pthread_mutex_lock(&flows->lock);
    while (*place && (*place)->serial != serial)
        place = &(*place)->next;
    found = *place;
    if (found)
        *place = found->next;
    (void)pthread_mutex_unlock(&flows->lock);
    return found;
}

static void
put_back(struct flows *flows, struct shown *shown)
{
    (void)pthread_mutex_lock(&flows->lock);
    shown->next = flows->shown;
    flows->shown = shown;
    (void)pthread_mutex_unlock(&flows->lock);
}

struct unshown {
    struct flows *flows;
    struct shown *shown;
};

static void
drop_unshown(void *arg)
{
    struct unshown *unshown = arg;

    shown_free(unshown->shown);
    free(unshown);
}

static void
note_unshown(struct kcap_call *bg_call, void *arg)
{
    struct unshown *unshown = arg;

    ledger_note(unshown->flows, bg_call,
                &(struct event){.kind = EVENT_UNSHOWN,
                                .session = unshown->shown->session,
                                .run_id = unshown->shown->run_id,
                                .round = unshown->shown->round});
    drop_unshown(unshown);
}

/* Takes shown. An outcome that nobody saw must not be forgotten, so this waits for the lock. */
static void
note_unshown_later(struct flows *flows, struct shown *shown)
{
    struct unshown *unshown = malloc(sizeof *unshown);

    if (!unshown) {
        shown_free(shown);
        return;
    }
    *unshown = (struct unshown){.flows = flows, .shown = shown};
    if (flows->host->background(flows->host, note_unshown, drop_unshown, unshown) < 0)
        drop_unshown(unshown);
}

void
ledger_settled(struct flows *flows, uint64_t serial, uint32_t outcome)
{
    struct shown *shown = take(flows, serial);
    bool written = outcome == KCAP_SETTLED_WRITTEN;
    int r = 0;

    if (!shown)
        return;
    if (written || outcome == KCAP_SETTLED_LATE_CANCEL)
        r = note(flows, NULL,
                 &(struct event){.kind = written ? EVENT_SHOWN : EVENT_UNSHOWN,
                                 .session = shown->session,
                                 .run_id = shown->run_id,
                                 .round = shown->round,
                                 .ended = shown->ended});
    if (r < 0 && r != -EWOULDBLOCK) /* at worst it is shown once more */
        set_fault(flows, r);
    if (written)
        put_back(flows, shown); /* a late cancel may follow */
    else if (r == -EWOULDBLOCK)
        note_unshown_later(flows, shown);
    else
        shown_free(shown);
}
