/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One turn of the loop's work: all requests and events that are there, in one transaction;
 * then, when it is on disk, what follows from it, and the answers.
 */
#ifndef KCAP_SERVER_TURN_H
#define KCAP_SERVER_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "server/api.h"
#include "server/engine.h"
#include "server/http.h"
#include "server/launch.h"
#include "server/reviewer.h"

struct turn {
    int epoll_fd;
    struct engine engine;
    struct http *http;
    struct reviewers *reviewers;
    struct launcher launcher;
    struct api_site site;
    bool sweep_due;      /* a run or a reviewer has ended: its workspace may go */
    bool stopping;       /* no reviewer is started any more */
    int64_t retry_at_ns; /* after a failed commit; 0: none failed */
};

/* Whether the request may be read to its end; arg: the turn. */
bool turn_admits(void *arg, const struct request *request);
bool turn_has_work(const struct turn *turn);
int64_t turn_deadline_ns(const struct turn *turn);
void turn_run(struct turn *turn);
/* Carries out the effects of what is on disk. */
void turn_carry_out(struct turn *turn);

#endif
