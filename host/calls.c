/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/calls.h"

#include <stdlib.h>
#include <string.h>

#include "host/arguments.h"
#include "host/batch.h"
#include "host/log.h"
#include "host/reply.h"
#include "host/settled.h"
#include "host/waits.h"
#include "host/wire.h"

/* ---- life ---- */

struct kcap_call *
call_new(struct host *host, enum call_kind kind)
{
    struct kcap_call *call = calloc(1, sizeof *call);

    if (call) {
        call->host = host;
        call->kind = kind;
        call->refs = 1;
        call->deadline_ns = KCAP_TIME_NEVER;
        call->progress_done = -1;
        call->wake_fd = call->given_wake_fd = call->poll_fd = -1;
    }
    return call;
}

/* Under lock. True when the caller must free it; from here on nobody may take a reference. */
static bool
drop_ref(struct kcap_call *call)
{
    call->over = call->over || call->refs == 1;
    return --call->refs == 0;
}

/* Empties a call that is over. Its shell stays for a while, so that a plugin which uses a
 * handle after its call returned is refused instead of writing into freed memory. */
static void
call_free(struct kcap_call *call)
{
    struct host *host = call->host;
    struct kcap_call *oldest;

    (void)pthread_mutex_lock(&host->lock);
    waits_close(call);
    free(call->id);
    free(call->progress_token);
    free(call->capabilities);
    free(call->args);
    free(call->text);
    caller_fini(&call->caller);
    call->id = call->progress_token = call->capabilities = call->args = call->text = NULL;
    oldest = host->over[host->next_over % HOST_OVER];
    host->over[host->next_over++ % HOST_OVER] = call;
    (void)pthread_mutex_unlock(&host->lock);
    free(oldest);
}

void
call_unref(struct kcap_call *call)
{
    bool last;

    (void)pthread_mutex_lock(&call->host->lock);
    last = drop_ref(call);
    (void)pthread_mutex_unlock(&call->host->lock);
    if (last)
        call_free(call);
}

static void
link_call(struct kcap_call *call)
{
    struct host *host = call->host;

    call->serial = ++host->next_serial;
    call->next = host->calls;
    call->place = &host->calls;
    if (call->next)
        call->next->place = &call->next;
    host->calls = call;
    if (call->kind == CALL_TOOL)
        host->n_tool_calls++;
}

static void
unlink_call(struct kcap_call *call)
{
    *call->place = call->next;
    if (call->next)
        call->next->place = call->place;
    if (call->kind == CALL_TOOL)
        call->host->n_tool_calls--;
    (void)pthread_cond_broadcast(&call->host->changed); /* somebody may wait for the last one */
}

/* Told once: after the plugin returned, when the outcome is known. Under lock. */
static void
settle(struct kcap_call *call)
{
    if (!call->entered || call->outcome_told || !call->returned || call->outcome == 0)
        return;
    call->outcome_told = true;
    settled_queue(call);
}

void
call_written(struct kcap_call *call, bool written)
{
    struct host *host = call->host;
    bool last;

    (void)pthread_mutex_lock(&host->lock);
    if (call->outcome == 0)
        call->outcome =
            written && !call->host_answered ? KCAP_SETTLED_WRITTEN : KCAP_SETTLED_DROPPED;
    settle(call);
    last = drop_ref(call);
    (void)pthread_mutex_unlock(&host->lock);
    if (last)
        call_free(call);
}

/* ---- running ---- */

static void run_call(void *arg);

/* Gives the next waiting call of a SERIAL plugin its turn. Under lock. */
static void
next_serial_call(struct host *host)
{
    struct kcap_call *call = host->serial_first;

    host->serial_busy = false;
    if (!call)
        return;
    host->serial_first = call->next_serial;
    if (!host->serial_first)
        host->serial_last = NULL;
    host->serial_busy = workers_submit(&host->workers, run_call, call) == KCAP_OK;
    if (!host->serial_busy) { /* out of memory: put it back, the next call's end tries again */
        call->next_serial = host->serial_first;
        host->serial_first = call;
        if (!host->serial_last)
            host->serial_last = call;
    }
}

static void
run_tool(struct kcap_call *call)
{
    static const char no_result[] = "The plugin ended this call without a result. Nothing is "
                                    "known about what it did; this is a "
                                    "defect of the plugin.";
    struct host *host = call->host;
    AUTO_BUF struct buf why = BUF_INIT(64u << 10);
    bool over, answered;
    int32_t r;

    (void)pthread_mutex_lock(&host->lock);
    over = call->cancelled || call->answered; /* while it waited for its turn */
    (void)pthread_mutex_unlock(&host->lock);
    if (!over && !arguments_prepare(call, call->schema, &why)) {
        call_answer_error(call, buf_str(&why));
    } else if (!over) {
        (void)pthread_mutex_lock(&host->lock);
        call->entered = true;
        (void)pthread_mutex_unlock(&host->lock);
        r = host->plugin.desc.call(host->ctx, call, call->tool, call->args, call->args_len);
        if (r < 0)
            log_linef(KCAP_LOG_WARN, "tool %s returned %d", call->tool->name, r);
    }
    (void)pthread_mutex_lock(&host->lock);
    answered = call->answered || call->cancelled;
    (void)pthread_mutex_unlock(&host->lock);
    if (!answered)
        call_answer_error(call, no_result);
}

static void
run_call(void *arg)
{
    struct kcap_call *call = arg;
    struct host *host = call->host;
    bool last, leaving;

    if (call->kind == CALL_BACKGROUND) {
        (void)pthread_mutex_lock(&host->lock);
        leaving = host->shutdown;
        (void)pthread_mutex_unlock(&host->lock);
        if (!leaving)
            call->bg_run(call, call->bg_arg);
        else if (call->bg_drop)
            call->bg_drop(call->bg_arg);
    } else {
        run_tool(call);
    }

    (void)pthread_mutex_lock(&host->lock);
    call->returned = call->over = true;
    if (call->cancelled && !call->answered && call->outcome == 0)
        call->outcome = KCAP_SETTLED_CANCELLED;
    settle(call);
    unlink_call(call);
    if (call->kind == CALL_TOOL && host->plugin.desc.threads == KCAP_THREADS_SERIAL)
        next_serial_call(host);
    last = drop_ref(call);
    (void)pthread_mutex_unlock(&host->lock);
    if (last)
        call_free(call);
}

int
call_start(struct kcap_call *call)
{
    struct host *host = call->host;
    int r = KCAP_OK;

    (void)pthread_mutex_lock(&host->lock);
    link_call(call);
    if (call->kind == CALL_TOOL && host->plugin.desc.threads == KCAP_THREADS_SERIAL &&
        host->serial_busy) {
        if (host->serial_last)
            host->serial_last->next_serial = call;
        else
            host->serial_first = call;
        host->serial_last = call;
    } else {
        r = workers_submit(&host->workers, run_call, call);
        if (r == KCAP_OK && call->kind == CALL_TOOL)
            host->serial_busy = host->plugin.desc.threads == KCAP_THREADS_SERIAL;
    }
    if (r != KCAP_OK)
        unlink_call(call);
    (void)pthread_mutex_unlock(&host->lock);
    if (r != KCAP_OK)
        call_unref(call);
    return r;
}

void
call_adopt(struct kcap_call *call)
{
    (void)pthread_mutex_lock(&call->host->lock);
    link_call(call);
    (void)pthread_mutex_unlock(&call->host->lock);
}

/* ---- answers and cancels ---- */

/* The shell's call: the answer stays here. Under lock. */
static bool
keep_answer(struct kcap_call *call, const struct answer *answer)
{
    call->text = malloc(answer->text_len + 1);
    if (!call->text)
        return false;
    memcpy(call->text, answer->text, answer->text_len);
    call->text[answer->text_len] = '\0';
    call->text_len = answer->text_len;
    call->is_error = answer->is_error;
    call->outcome = KCAP_SETTLED_WRITTEN;
    return true;
}

/* Under lock. */
static bool
queue_answer(struct kcap_call *call, struct buf *line)
{
    struct batch *batch = call->batch;
    bool queued;

    call->refs++;
    call->batch = NULL;
    queued =
        batch ? batch_deliver(batch, line, call) : wire_queue(call->host->wire, line, call);
    if (!queued)
        call->refs--;
    return queued;
}

int32_t
call_answer(struct kcap_call *call, const struct answer *answer)
{
    struct host *host = call->host;
    AUTO_BUF struct buf line = BUF_INIT(REPLY_MAX_LEN);
    bool last, usable;

    (void)pthread_mutex_lock(&host->lock);
    usable = call->kind == CALL_TOOL && !call->over;
    if (usable)
        call->refs++; /* the line is made without the lock */
    (void)pthread_mutex_unlock(&host->lock);
    if (!usable)
        return KCAP_E_INVALID;
    if (host->wire)
        reply_call(&line, call, answer);

    (void)pthread_mutex_lock(&host->lock);
    if (!call->answered && !call->cancelled) {
        call->answered = host->wire ? queue_answer(call, &line) : keep_answer(call, answer);
        call->host_answered = answer->by_host;
        if (call->answered && call->entered)
            settled_remember(call);
    }
    last = drop_ref(call);
    (void)pthread_cond_broadcast(&host->changed);
    (void)pthread_mutex_unlock(&host->lock);
    if (last)
        call_free(call);
    if (host->wire)
        wire_flush(host->wire);
    return KCAP_OK;
}

void
call_answer_error(struct kcap_call *call, const char *text)
{
    struct answer answer = {
        .by_host = true, .is_error = true, .text = text, .text_len = strlen(text)};

    (void)call_answer(call, &answer);
}

bool
calls_has_id(struct host *host, struct span id)
{
    bool found = false;

    (void)pthread_mutex_lock(&host->lock);
    for (struct kcap_call *call = host->calls; call && !found; call = call->next)
        found = call->id && !call->answered && !call->cancelled &&
                span_same(id, (struct span){call->id, strlen(call->id)});
    found = found || batch_has_id(host, id);
    (void)pthread_mutex_unlock(&host->lock);
    return found;
}

unsigned
calls_in_flight(struct host *host)
{
    unsigned n;

    (void)pthread_mutex_lock(&host->lock);
    n = host->n_tool_calls;
    (void)pthread_mutex_unlock(&host->lock);
    return n;
}

static void
cancel_locked(struct kcap_call *call)
{
    if (call->answered || call->cancelled)
        return;
    call->cancelled = true;
    if (call->batch) {
        batch_skip(call->batch);
        call->batch = NULL;
    }
    waits_wake(call);
}

void
call_cancel(struct kcap_call *call)
{
    (void)pthread_mutex_lock(&call->host->lock);
    cancel_locked(call);
    (void)pthread_mutex_unlock(&call->host->lock);
}

/* A member of a batch that was answered, but whose array waits for others, can still be taken
 * back. */
static bool
cancel_in_batch(struct host *host, struct span id, struct kcap_call **ret_free)
{
    struct kcap_call *call = batch_cancel(host, id);

    if (!call)
        return false;
    call->cancelled = true;
    call->outcome = KCAP_SETTLED_CANCELLED;
    settled_forget(call);
    settle(call);
    *ret_free = drop_ref(call) ? call : NULL;
    return true;
}

void
calls_cancel(struct host *host, struct span id, bool also_answered)
{
    struct kcap_call *call, *last = NULL;

    (void)pthread_mutex_lock(&host->lock);
    for (call = host->calls; call; call = call->next) {
        if (call->id && !call->answered && !call->cancelled &&
            span_same(id, (struct span){call->id, strlen(call->id)}))
            break;
    }
    if (call)
        cancel_locked(call);
    else if (also_answered && !cancel_in_batch(host, id, &last))
        settled_late_cancel(host, id);
    (void)pthread_mutex_unlock(&host->lock);
    if (last)
        call_free(last);
}

int64_t
calls_tick(struct host *host, int64_t now_ns)
{
    static const char overrun[] = "This call did not finish in time: the plugin went on past "
                                  "the end of its window. What it started "
                                  "may still be going on.";
    int64_t next_ns = KCAP_TIME_NEVER;
    static const char not_started[] =
        "This call was not started: the calls before it took the whole of "
        "its window. Call again.";
    struct kcap_call *late = NULL;
    bool late_entered = false;

    (void)pthread_mutex_lock(&host->lock);
    for (struct kcap_call *call = host->calls; call; call = call->next) {
        int64_t at_ns = call->deadline_ns;

        if (call->kind != CALL_TOOL || call->answered || call->cancelled ||
            at_ns == KCAP_TIME_NEVER)
            continue;
        if (at_ns <= now_ns) {
            if (!call->ended)
                waits_wake(call);
            at_ns += call->entered ? CALLS_GRACE_NS : 0;
            if (at_ns <= now_ns) {
                late = call;
                late_entered = call->entered;
                late->refs++;
                next_ns = now_ns; /* one a turn */
                break;
            }
        }
        if (at_ns < next_ns)
            next_ns = at_ns;
    }
    (void)pthread_mutex_unlock(&host->lock);
    if (late) {
        log_linef(KCAP_LOG_WARN, "tool %s %s its window", late->tool->name,
                  late_entered ? "overran" : "was not started in");
        call_answer_error(late, late_entered ? overrun : not_started);
        call_unref(late);
    }
    return next_ns;
}

void
calls_shut_down(struct host *host)
{
    (void)pthread_mutex_lock(&host->lock);
    host->shutdown = true;
    for (struct kcap_call *call = host->calls; call; call = call->next)
        waits_wake(call);
    (void)pthread_cond_broadcast(&host->changed);
    (void)pthread_mutex_unlock(&host->lock);
}
