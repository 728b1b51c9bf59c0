/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of reviewers: started, fed, watched and ended here, each the leader of its own
 * process group. Two clocks run for each: silence (any output is a sign of life) and total.
 */
#ifndef KCAP_SERVER_REVIEWER_H
#define KCAP_SERVER_REVIEWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/vendor.h"

struct clocks {
    int64_t hard_ceiling_sec;
    int64_t idle_sec;
};

/* What happened to a reviewer, to be told to the engine. */
struct reviewer_event {
    struct reviewer_event *next;
    bool gone;               /* its process has ended; else it was only given up */
    const char *result_text; /* ROUND_TEXT_*, or NULL: no further try can do better */
    char *round_id;
    char *reason;
};

struct reviewers;

/* url: of this server. Returns 0 or -errno. */
int reviewers_new(int epoll_fd, const char *url, const struct clocks *clocks,
                  struct reviewers **ret);
/* Only when none is left or everything is given up: kills what still runs. */
void reviewers_free(struct reviewers *reviewers);

/* Starts a reviewer, which gets no input before reviewers_feed: if we die in between it reads
 * an end of file and leaves. Takes plan's input. Returns 0 or -errno. */
int reviewers_start(struct reviewers *reviewers, const struct flow *flow,
                    const struct round *round, struct vendor_plan *plan, pid_t *ret_pid);
void reviewers_feed(struct reviewers *reviewers, const char *round_id);

/* The round is answered: a reviewer that does not leave by itself soon is ended. */
void reviewers_finish(struct reviewers *reviewers, const char *round_id);
void reviewers_end(struct reviewers *reviewers, const char *round_id);
void reviewers_end_all(struct reviewers *reviewers);

/* What the round's reviewer has for the driver so far, NULL for nothing; lives until the next
 * event. */
const char *reviewers_note(struct reviewers *reviewers, const char *round_id);

/* After SIGCHLD. */
void reviewers_reap(struct reviewers *reviewers);
/* Looks at the clocks. */
void reviewers_tick(struct reviewers *reviewers, int64_t now_ns);
int64_t reviewers_deadline_ns(const struct reviewers *reviewers);
size_t reviewers_count(const struct reviewers *reviewers);

/* A round whose reviewer could not be started or kept; reason is copied. */
void reviewers_note_lost(struct reviewers *reviewers, const char *round_id,
                         const char *result_text, bool gone, const char *reason);
/* The oldest event, or NULL; it stays until it is dropped. */
const struct reviewer_event *reviewers_event(const struct reviewers *reviewers);
void reviewers_drop_event(struct reviewers *reviewers);

#endif
