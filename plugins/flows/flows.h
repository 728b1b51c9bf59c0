/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of flows.so share. */
#ifndef KCAP_FLOWS_FLOWS_H
#define KCAP_FLOWS_FLOWS_H

#include <kcap/plugin.h>
#include <pthread.h>
#include <stdbool.h>

#include "family.h"
#include "lib/json.h"
#include "runs.h"

#define NS_PER_MS  INT64_C(1000000)
#define NS_PER_SEC INT64_C(1000000000)

/* How often a client that asked for it hears that a call is alive. */
#define PROGRESS_NS (15 * NS_PER_SEC)

/* How many messages are recognised when they come again. */
#define MAX_SEEN 512

struct job;
struct shown;
struct ack;

struct seen_message {
    uint64_t serial; /* of the call that showed it; 0: none */
    uint64_t mark;
};

struct flows {
    const struct kcap_host *host;
    char *journal_dir; /* NULL: no journal, and journal_error says why */
    char *journal_error;

    pthread_mutex_t lock; /* guards what follows */
    struct runs memory;   /* of all sessions, by their key */
    struct job *jobs;     /* posts in flight, and failed ones nobody has heard of */
    struct ack *acks;     /* messages shown in answers whose fate is not known yet */
    struct shown *shown;  /* answers given whose fate is not known yet */
    struct seen_message seen[MAX_SEEN];
    size_t n_seen;
};

/* Who asks. */
struct session {
    char *key;        /* names the journal */
    char *id;         /* what servers know it by; NULL: only the fallback key */
    char *source;     /* where that came from, for people */
    char *project;    /* the directory the reviewer is to see */
    char *repository; /* its work tree's root, or NULL */
};

void session_fini(struct session *session);
#define AUTO_SESSION __attribute__((cleanup(session_fini)))

/* What a call works on. note is further text for its answer, lines with their ends, or NULL. */
struct subject {
    struct flows *flows;
    struct kcap_call *call;
    const struct family *family; /* of the tool that was called */
    struct session *session;     /* empty until session_find */
    int64_t began_ns;            /* of this call */
    const char *note;
    int64_t offset; /* of the reviewer's words: show them from that byte on */
};

/* Fills the subject's session; argument: the caller's own word for it, or NULL. Returns 0 or
 * KCAP_E_NOMEM. */
int session_find(const struct subject *subject, const char *argument);

/* The tools. args is an object; each returns what kcap_plugin.call returns. */
int32_t start_review_flow(struct subject *subject, const cJSON *args);
int32_t start_flow(struct subject *subject, const cJSON *args);
int32_t submit_review_round(struct subject *subject, const cJSON *args);
int32_t send_to_participant(struct subject *subject, const cJSON *args);
int32_t get_status(struct subject *subject, const cJSON *args); /* of either family */
int32_t close_flow(struct subject *subject, const cJSON *args); /* of either family */
int32_t list_reviewer_vendors(struct subject *subject, const cJSON *args);

#endif
