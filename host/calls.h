/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to a call, from the line that asked for it to what became of its answer.
 *
 * Each call ends in exactly one of: answered (by the plugin, or by the host when the plugin
 * gave no result or overran its window), or cancelled. Which one is decided under the host's
 * lock, and the answer is queued under the same hold, so that an answer never follows a cancel
 * that was read before it.
 */
#ifndef KCAP_HOST_CALLS_H
#define KCAP_HOST_CALLS_H

#include <cjson/cJSON.h>
#include <kcap/plugin.h>
#include <stdbool.h>

#include "host/host.h"
#include "host/session.h"
#include "lib/span.h"

#define CALLS_MAX_IN_FLIGHT 128
#define CALLS_GRACE_NS \
    (2 * (int64_t)NS_PER_S) /* past its window the host answers for the plugin */

enum call_kind { CALL_TOOL, CALL_COMMAND, CALL_BACKGROUND };

struct kcap_call {
    struct host *host;
    struct kcap_call *next, **place; /* host->calls */
    struct kcap_call *next_serial;   /* waiting for a SERIAL plugin */
    struct kcap_call *next_in_line;  /* answered by the same line of the wire: a batch */
    enum call_kind kind;
    uint64_t serial;
    unsigned refs;

    /* What was asked; set once. */
    char *id;             /* raw JSON token; NULL when nobody waits on the wire */
    bool stateless;       /* the request's era */
    struct batch *batch;  /* where the answer goes instead of the wire; NULL once it went */
    char *capabilities;   /* the client's, as JSON text, or NULL */
    char *progress_token; /* raw JSON token, or NULL */
    const struct kcap_tool *tool;
    const cJSON *schema; /* the tool's input schema */
    char *args;
    size_t args_len;
    bool may_hold_nul; /* a string of it may hold \u0000 */
    struct caller caller;
    int64_t deadline_ns; /* KCAP_TIME_NEVER without a window */

    /* Background jobs. */
    void (*bg_run)(struct kcap_call *call, void *arg);
    void (*bg_drop)(void *arg);
    void *bg_arg;

    /* How it goes; under host->lock. */
    bool over; /* the plugin returned: a handle that is used from here on is stale */
    bool cancelled, answered, returned;
    bool entered;       /* the plugin has been called, so it is told the outcome */
    bool host_answered; /* the answer was not the plugin's */
    int32_t ended;      /* the KCAP_WAIT_* end that was told, which stays the end */
    uint32_t outcome;   /* KCAP_SETTLED_*, 0 while not known */
    bool outcome_told;
    double progress_done;
    int64_t progress_ns;
    int wake_fd;       /* ours of the eventfd a plugin asked for, or -1 */
    int given_wake_fd; /* the plugin's descriptor of the same */
    int poll_fd;       /* ours, while it waits in poll, or -1 */
    bool polling;

    /* A call from the shell keeps its answer here instead of writing it to the wire. */
    bool is_error;
    char *text;
    size_t text_len;
};

/* A call with one reference, not yet running; NULL when out of memory. */
struct kcap_call *call_new(struct host *host, enum call_kind kind);
void call_unref(struct kcap_call *call);

/* Hands the call to a worker (or, for a SERIAL plugin, puts it in line). Takes over the
 * reference. Returns 0, or a negative code when it cannot run: nothing was answered and the
 * call is gone. */
int call_start(struct kcap_call *call);

/* Registers a call that runs on the caller's own thread, for as long as the process lives. */
void call_adopt(struct kcap_call *call);

/* Whether a call with this raw id is running and not answered. */
bool calls_has_id(struct host *host, struct span id);
unsigned calls_in_flight(struct host *host);

/* The client gave up on this id: running, the call is told; answered a moment ago, the plugin
 * is told, if also_answered; unknown, nothing happens. */
void calls_cancel(struct host *host, struct span id, bool also_answered);
void call_cancel(struct kcap_call *call);

/* What a call is answered with. */
struct answer {
    bool by_host; /* instead of the plugin, whose own result counts as dropped */
    bool is_error;
    const char *text; /* for the model; with is_content a JSON array of content blocks */
    size_t text_len;
    bool is_content;
    const char *json; /* structured content, or NULL */
    size_t json_len;
    const char
        *missing_capability; /* set: a protocol error that names it, instead of a result */
};

/* The answer, from the plugin or the host; the first one counts. */
int32_t call_answer(struct kcap_call *call, const struct answer *answer);

/* The same with an error text of the host's own. */
void call_answer_error(struct kcap_call *call, const char *text);

/* The last byte of the call's answer left (true), or never will (false). */
void call_written(struct kcap_call *call, bool written);

/* Wakes what waits for deadlines, answers for plugins that overran. Main thread, each turn.
 * Returns when to call again. */
int64_t calls_tick(struct host *host, int64_t now_ns);

/* Tells every call that the host leaves. */
void calls_shut_down(struct host *host);

#endif
