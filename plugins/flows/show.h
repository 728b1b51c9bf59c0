/* SPDX-License-Identifier: Apache-2.0 */
/* The answers the tools have in common. Each returns what kcap_plugin.call returns. */
#ifndef KCAP_FLOWS_SHOW_H
#define KCAP_FLOWS_SHOW_H

#include "job.h"
#include "render.h"
#include "waiting.h"

/* Waits for the job, then for its round. */
int32_t show_job(const struct subject *subject, struct job *job);

/* Waits for a round of the run. since_ns: when the round began, 0 when that is not known. */
int32_t show_wait(const struct subject *subject, const struct wait_goal *goal,
                  int64_t since_ns);

/* What the server says of the run; an error when a round was waited for that did not end. */
int32_t show_view(const struct subject *subject, const struct view *view, bool is_error);

/* An error about a run: what went wrong and what to do. */
int32_t show_run_error(const struct subject *subject, const struct head *head,
                       const char *error);

/* To be called with the error that the server knows no such run. */
void show_expect_gone(const struct subject *subject, const char *run_id);

/* A start or round that another process of this user has sent and waits for; run_id may be
 * NULL.
 */
int32_t show_held_elsewhere(const struct subject *subject, const char *run_id);

/* A run that was taken a moment ago and that the server does not show yet. */
int32_t show_not_shown_yet(const struct subject *subject, const char *run_id);

/* A run this session was shown is one it can ask for without an id later. */
void show_remember(const struct subject *subject, const char *run_id, int64_t round,
                   bool run_ended);

/* An error that knows no run. */
int32_t show_error(const struct subject *subject, const char *text);

/* There is no server that could be asked; run_id is what the call named, or NULL. */
int32_t show_no_server(const struct subject *subject, const char *run_id, const char *fault);

/* Whether the call is over before anything was done ("started", "submitted"): then nothing is
 * to be sent any more, and this returns what kcap_plugin.call returns; else KCAP_WAIT_TIMEOUT.
 */
int32_t show_over(const struct subject *subject, const char *done);

/* An end of the call as an answer, where one is due: r as it came from a wait. */
int32_t show_end(int32_t r);

#endif
