/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void
queue_init(struct queue *queue)
{
    queue->first = NULL;
    queue->end = &queue->first;
}

void
queued_free(struct queued *queued)
{
    free(queued->round_id);
    free(queued->agent_id);
    free(queued->session_id);
    copy_fini(&queued->copy);
    free(queued);
}

void
queue_fini(struct queue *queue)
{
    while (queue->first) {
        struct queued *next = queue->first->next;
        queued_free(queue->first);
        queue->first = next;
    }
    queue->end = &queue->first;
}

int
queue_add(struct queue *queue, const char *round_id, const char *agent_id,
          const char *session_id)
{
    struct queued *queued = calloc(1, sizeof *queued);

    if (!queued)
        return -ENOMEM;
    copy_init(&queued->copy);
    queued->round_id = strdup(round_id);
    queued->agent_id = strdup(agent_id);
    queued->session_id = strdup(session_id ? session_id : "");
    if (!queued->round_id || !queued->agent_id || !queued->session_id) {
        queued_free(queued);
        return -ENOMEM;
    }
    *queue->end = queued;
    queue->end = &queued->next;
    return 0;
}

struct queued **
queue_choose(struct queue *queue, const struct reviewers *reviewers)
{
    struct queued **best = NULL;
    size_t fewest = 0;

    for (struct queued **place = &queue->first; *place; place = &(*place)->next) {
        size_t turns;
        if ((*place)->copy.state == COPY_RUNS ||
            reviewers_place(reviewers, (*place)->agent_id) == REVIEWER_BUSY)
            continue;
        turns = reviewers_turns_of(reviewers, (*place)->session_id);
        if (best && turns >= fewest)
            continue;
        best = place;
        fewest = turns;
    }
    return best;
}

struct queued *
queue_take(struct queue *queue, struct queued **place)
{
    struct queued *queued = *place;

    *place = queued->next;
    if (!*place)
        queue->end = place;
    return queued;
}

void
queue_drop(struct queue *queue, const char *agent_id)
{
    struct queued **place = &queue->first;

    while (*place) {
        if (strcmp((*place)->agent_id, agent_id) == 0)
            queued_free(queue_take(queue, place));
        else
            place = &(*place)->next;
    }
}

size_t
queue_count(const struct queue *queue)
{
    size_t count = 0;

    for (const struct queued *queued = queue->first; queued; queued = queued->next)
        count++;
    return count;
}

size_t
queue_count_copies(const struct queue *queue)
{
    size_t count = 0;

    for (const struct queued *queued = queue->first; queued; queued = queued->next)
        count += queued->copy.state == COPY_RUNS ? 1 : 0;
    return count;
}

bool
queue_has(const struct queue *queue, const char *round_id)
{
    for (const struct queued *queued = queue->first; queued; queued = queued->next) {
        if (strcmp(queued->round_id, round_id) == 0)
            return true;
    }
    return false;
}

struct queued *
queue_find_copy(const struct queue *queue, pid_t pid)
{
    struct queued *queued = queue->first;

    while (queued && (queued->copy.state != COPY_RUNS || queued->copy.pid != pid))
        queued = queued->next;
    return queued;
}

bool
queue_copies_for(const struct queue *queue, const char *agent_id)
{
    for (const struct queued *queued = queue->first; queued; queued = queued->next) {
        if (queued->copy.state != COPY_NONE && strcmp(queued->agent_id, agent_id) == 0)
            return true;
    }
    return false;
}
