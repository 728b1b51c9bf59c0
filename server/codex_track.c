/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/codex_track.h"

#include <stdlib.h>
#include <string.h>

#include "lib/auto.h"

/* Only what shows that the turn itself goes on. That the server lives, retries or tells a
 * status is none of it, and a method that is not here is none of it either. */
static const char *const proofs[] = {
    "turn/started",
    "item/started",
    "item/completed",
    "item/agentMessage/delta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/textDelta",
    "item/plan/delta",
    "item/commandExecution/outputDelta",
    "item/commandExecution/terminalInteraction",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/mcpToolCall/progress",
    "turn/plan/updated",
    "turn/diff/updated",
    "thread/tokenUsage/updated",
    "item/autoApprovalReview/started",
    "item/autoApprovalReview/completed",
    "autoApprovalReview/strictReviewRequired",
    "hook/started",
    "hook/completed",
    "model/rerouted",
    "model/verification",
    "model/safetyBuffering/updated",
    "turn/moderationMetadata",
    "thread/compacted",
};

static bool
is_proof(const char *method)
{
    for (size_t i = 0; i < sizeof proofs / sizeof *proofs; i++) {
        if (strcmp(proofs[i], method) == 0)
            return true;
    }
    return false;
}

/* An id into its place; false when it is none, or too long. */
static bool
copy_id(struct span id, char to[TRACK_MAX_ID + 1])
{
    size_t len = 0;
    AUTO_FREE char *text = span_type(id) == '"' ? span_string(id, &len) : NULL;

    if (!text || len == 0 || len > TRACK_MAX_ID || strlen(text) != len)
        return false;
    memcpy(to, text, len + 1);
    return true;
}

static bool
is_id(struct span id, const char *expected)
{
    return expected[0] && span_is(id, expected);
}

/* ---- threads ---- */

bool
track_set_root(struct codex_track *track, struct span thread_id)
{
    track->thread_count = copy_id(thread_id, track->threads[0].id) ? 1 : 0;
    return track->thread_count == 1;
}

void
track_begin_turn(struct codex_track *track)
{
    track->threads[0].turn[0] = '\0';
    track->thread_count = 1; /* those it starts are its own */
    track->item_count = 0;
}

void
track_set_turn(struct codex_track *track, struct span turn_id)
{
    if (track->threads[0].turn[0] == '\0')
        (void)copy_id(turn_id, track->threads[0].turn);
}

const char *
track_root(const struct codex_track *track)
{
    return track->threads[0].id;
}

const char *
track_turn(const struct codex_track *track)
{
    return track->threads[0].turn;
}

static struct track_thread *
find_thread(struct codex_track *track, struct span id)
{
    for (size_t i = 0; i < track->thread_count; i++) {
        if (is_id(id, track->threads[i].id))
            return &track->threads[i];
    }
    return NULL;
}

static struct track_thread *
add_thread(struct codex_track *track, struct span id)
{
    struct track_thread *thread = find_thread(track, id);

    if (thread || track->thread_count == 0 || track->thread_count == TRACK_MAX_THREADS)
        return thread;
    thread = &track->threads[track->thread_count];
    if (!copy_id(id, thread->id))
        return NULL;
    thread->turn[0] = '\0';
    track->thread_count++;
    return thread;
}

/* A turn begins: of ours, or of a thread that ours has started. */
static void
see_turn(struct codex_track *track, struct span params)
{
    struct span turn = span_get(params, "turn");
    struct track_thread *thread = find_thread(track, span_get(params, "threadId"));

    if (!thread && is_id(span_get(turn, "rootTurnId"), track_turn(track)))
        thread = add_thread(track, span_get(params, "threadId"));
    if (thread == &track->threads[0])
        track_set_turn(track, span_get(turn, "id"));
    else if (thread)
        (void)copy_id(span_get(turn, "id"), thread->turn);
}

static void
see_children(struct codex_track *track, struct span item)
{
    struct span_iter iter;
    struct span id;

    if (!span_is(span_get(item, "type"), "collabAgentToolCall"))
        return;
    span_elements(span_get(item, "receiverThreadIds"), &iter);
    while (span_next_element(&iter, &id))
        (void)add_thread(track, id);
}

/* ---- items ---- */

static void
open_item(struct codex_track *track, size_t thread, struct span item)
{
    struct track_item *place = &track->items[track->item_count];
    struct span type = span_get(item, "type");
    bool is_mcp_call = span_is(type, "mcpToolCall");
    bool is_command = span_is(type, "commandExecution");

    if ((!is_mcp_call && !is_command) || track->item_count == TRACK_MAX_ITEMS ||
        !copy_id(span_get(item, "id"), place->id))
        return;
    place->thread = thread;
    place->is_mcp_call = is_mcp_call;
    track->item_count++;
}

static void
close_item(struct codex_track *track, size_t thread, struct span item)
{
    for (size_t i = 0; i < track->item_count; i++) {
        if (track->items[i].thread == thread &&
            is_id(span_get(item, "id"), track->items[i].id)) {
            track->items[i] = track->items[--track->item_count];
            return;
        }
    }
}

/* What is open when a turn is interrupted is never completed. */
static void
close_items_of(struct codex_track *track, size_t thread)
{
    for (size_t i = track->item_count; i-- > 0;) {
        if (track->items[i].thread == thread)
            track->items[i] = track->items[--track->item_count];
    }
}

void
track_count_open(const struct codex_track *track, unsigned *ret_mcp_calls,
                 unsigned *ret_commands)
{
    *ret_mcp_calls = *ret_commands = 0;
    for (size_t i = 0; i < track->item_count; i++)
        ++*(track->items[i].is_mcp_call ? ret_mcp_calls : ret_commands);
}

/* ---- notifications ---- */

/* Whether the message is of a tracked thread and of the turn that is tracked for it: what comes
 * late of an earlier turn is none of ours. */
static bool
is_ours(struct codex_track *track, struct span params)
{
    const struct track_thread *thread = find_thread(track, span_get(params, "threadId"));
    struct span turn_id = span_get(params, "turnId");

    if (!thread)
        return false;
    if (!turn_id.p)
        turn_id = span_get(span_get(params, "turn"), "id");
    /* some of a turn name the thread alone */
    return !turn_id.p || span_type(turn_id) == 'n' || is_id(turn_id, thread->turn);
}

static bool
is_our_thread(const struct codex_track *track, struct span params)
{
    return is_id(span_get(params, "threadId"), track_root(track));
}

enum track_sign
track_read(struct codex_track *track, const char *method, struct span params)
{
    struct span item = span_get(params, "item");
    size_t thread;

    if (strcmp(method, "turn/started") == 0)
        see_turn(track, params);
    if (strcmp(method, "thread/closed") == 0 || strcmp(method, "thread/deleted") == 0 ||
        strcmp(method, "thread/archived") == 0)
        return is_our_thread(track, params) ? TRACK_CLOSED : TRACK_NOTHING;
    if (!is_ours(track, params))
        return TRACK_NOTHING;
    thread = (size_t)(find_thread(track, span_get(params, "threadId")) - track->threads);
    if (strcmp(method, "turn/completed") == 0) {
        close_items_of(track, thread);
        if (!is_our_thread(track, params))
            return TRACK_ALIVE; /* a thread of it came to its end */
        return track_turn(track)[0] ? TRACK_ENDED : TRACK_NOTHING;
    }
    if (strcmp(method, "error") == 0) {
        struct span will_retry = span_get(params, "willRetry");
        bool retries = will_retry.len == 4 && memcmp(will_retry.p, "true", 4) == 0;
        return retries ? TRACK_RETRYING : TRACK_BROKEN;
    }
    if (strcmp(method, "item/started") == 0) {
        see_children(track, item);
        open_item(track, thread, item);
    } else if (strcmp(method, "item/completed") == 0) {
        see_children(track, item);
        close_item(track, thread, item);
    }
    return is_proof(method) ? TRACK_ALIVE : TRACK_NOTHING;
}
