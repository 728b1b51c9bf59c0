/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of this plugin share. */
#ifndef KCAP_FLOW_RESULT_REVIEWER_H
#define KCAP_FLOW_RESULT_REVIEWER_H

#include <kcap/http.h>
#include <pthread.h>
#include <stdbool.h>

#include "deliver.h"
#include "spool.h"

struct reviewer {
    const struct kcap_host *host;
    const char *agent_id;
    pthread_mutex_t lock; /* of what follows; a call and the background job share it */
    struct spool spool;
    bool is_busy;    /* the background job is delivering */
    bool is_command; /* this process only answers a question in the terminal */
    bool said_where;
    char *unsure_token; /* the round whose outcome was last unknown, or delivered for it */
};

/* The service, once it is known to have a server; else NULL and the reason in *ret. */
const struct kcap_http *reviewer_find_server(struct reviewer *self,
                                             struct kcap_http_server *server,
                                             struct delivery *ret);

/* Remembers that the round of this token may have its result, or NULL: nothing of that kind. */
void reviewer_set_unsure(struct reviewer *self, const char *round_token);

extern const struct kcap_tool *const reviewer_tools[];
extern const struct kcap_command *const reviewer_commands[];

/* ---- pending.c ---- */

/* Starts delivering what an earlier process of this reviewer left, in the background. */
void pending_start(struct reviewer *self);

/* The same within a call, before its own result; what is for the round of skip_token is let be.
 * Returns 0, or what ended the call. */
int32_t pending_run(struct reviewer *self, struct kcap_call *call, const struct kcap_http *http,
                    const struct kcap_http_server *server, const char *skip_token);

#endif
