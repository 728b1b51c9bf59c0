/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A start or a round on its way to the server. Servers hold these posts for a minute and more,
 * and take a dropped connection for a cancel: so each is sent by a background job that outlives
 * the call, and any later call can join it.
 */
#ifndef KCAP_FLOWS_JOB_H
#define KCAP_FLOWS_JOB_H

#include "api.h"
#include "flows.h"
#include "preference.h"
#include "settle.h"
#include "view.h"

#define JOB_MAX_TITLE 300u /* bytes of a title that are kept */
/* What is noted as the definition of a start that brings its own. */
#define JOB_OWN_DEFINITION "definition_yaml"
#define JOB_MAX_BODY_LEN   ((size_t)16 << 20)

enum job_end {
    JOB_RUNNING,  /* the server took it; view has the run */
    JOB_FINISHED, /* and the result is in the answer already */
    JOB_FAILED,   /* error says why; view.run_id and may_exist say what there may be */
};

struct job {
    struct job *next;
    struct flows *flows;
    unsigned refs; /* under flows->lock, as is done */
    bool listed, done;
    int64_t started_ns;

    /* the order; all owned, fixed once it runs */
    char *session, *start_id, *run_id; /* run_id: a round for that run; NULL: a start */
    char *title;
    char *vendor, *model;
    char *role;      /* of a round: who is to work on it; NULL: the reviewer */
    char *project;   /* of a start: where its session is */
    bool is_dynamic; /* a start that brings its definition along */
    char *body;      /* of a start: without its last member and brace (see start-job.c) */

    /* the outcome; fixed once done */
    enum job_end end;
    cJSON *doc;
    struct view view; /* borrowed from doc */
    bool may_exist;   /* FAILED without an id: the server may have acted all the same */
    char *error;
    bool run_unknown;             /* FAILED: the server knows no such run */
    bool is_unwanted;             /* FAILED: the run should have been closed and was not */
    struct settling settling;     /* posts made because the server asked for it */
    struct preference preference; /* of a start that named no vendor and had to */
};

/* A job for that order; every string is given (freed also on failure). NULL when out of memory.
 */
struct job *job_new(struct flows *flows, const struct job *order);
void job_unref(struct job *job);
static inline void
auto_job(struct job **place)
{
    job_unref(*place);
}
#define AUTO_JOB __attribute__((cleanup(auto_job)))

/* Runs it in the background. Returns 0 or a negative code. */
int32_t job_start(struct job *job);

/* Waits until it is done: 0, or what ended the call, which began at began_ns. */
int32_t job_await(struct job *job, struct kcap_call *call, int64_t began_ns);

bool job_is_done(struct job *job);

/* One more reference to the start of the ledger if it is one of our own jobs, else NULL. */
struct job *job_find_start(struct flows *flows, const char *start_id);

/* One more reference to a round of that run that is on its way (or failed unheard), NULL when
 * there is none. */
struct job *job_find_round(struct flows *flows, const char *run_id);

/* The same for the starts of a session: fills ret, the newest first, and returns how many. */
size_t job_find_starts(struct flows *flows, const char *session, struct job **ret, size_t max);

/* Drops the starts (and the references to them) whose run is among runs, and from runs what
 * the server lists of starts that are still on their way: each review is to count once. Returns
 * how many starts are left. */
size_t job_join_starts(struct job **starts, size_t n, struct runs *runs);

/* Its outcome has been told. */
void job_forget(struct job *job);

/* What the background runs: fill the outcome (start-job.c, round.c). */
void job_fail(struct job *job, bool may_exist, const char *error);
int32_t job_run_start(struct job *job, struct kcap_call *bg_call);
int32_t job_run_round(struct job *job, struct kcap_call *bg_call);

/* Reads the server's answer to either post into the outcome. */
void job_take_answer(struct job *job, struct api_answer *answer);

/* Frees what is left at the end. */
void job_fini_all(struct flows *flows);

/* Whether kept is what is kept of whole: texts are noted up to JOB_MAX_TITLE. */
bool job_kept(const char *kept, const char *whole);

#endif
