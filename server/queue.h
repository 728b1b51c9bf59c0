/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds whose turn has not begun. Fair: nobody waits behind all that one session asked for. */
#ifndef KCAP_SERVER_QUEUE_H
#define KCAP_SERVER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "server/copy.h"
#include "server/reviewer.h"

struct queued {
    struct queued *next;
    char *round_id, *agent_id, *session_id;
    struct copy copy; /* of the checkout, where the turn needs one */
};

struct queue {
    struct queued *first, **end; /* the oldest first */
};

void queue_init(struct queue *queue);
void queue_fini(struct queue *queue);
void queued_free(struct queued *queued);

/* session_id may be NULL. Returns 0 or -ENOMEM. */
int queue_add(struct queue *queue, const char *round_id, const char *agent_id,
              const char *session_id);

/* The place of the round to be begun next: of the sessions that have the fewest turns in hand
 * the one that has waited longest. One whose reviewer is still busy, or whose copy is being
 * made, is passed over. NULL: none can be begun. */
struct queued **queue_choose(struct queue *queue, const struct reviewers *reviewers);
struct queued *queue_take(struct queue *queue, struct queued **place);
/* Forgets an agent's rounds, and kills what copies for them. */
void queue_drop(struct queue *queue, const char *agent_id);

size_t queue_count(const struct queue *queue);
size_t queue_count_copies(const struct queue *queue); /* that are being made */
bool queue_has(const struct queue *queue, const char *round_id);
/* The round that the process makes a copy for, or NULL. */
struct queued *queue_find_copy(const struct queue *queue, pid_t pid);
/* Whether the agent has a copy in hand. */
bool queue_copies_for(const struct queue *queue, const char *agent_id);

#endif
