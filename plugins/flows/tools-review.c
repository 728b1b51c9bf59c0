/* SPDX-License-Identifier: Apache-2.0 */
/* The tools for reviews: one reviewer, round after round. */
#include "config.h"

#include "tools.h"

#define BLOCKS TOOL_BLOCKS("get_review_flow_status")

static const char start_description[] = BLOCKS
    "Starts a review of your work by a second, unattended agent and waits for its first "
    "result. It costs money: call it only when the user has asked for such a review; to "
    "review something yourself, just do it. One flow per task; further rounds go through "
    "submit_review_round. Keep the flow_run_id of the answer. The reviewer " TOOL_MIRROR
    "vendor chooses the reviewer (it need not be your own); without it the flow's own or the "
    "user's saved one is taken. model needs vendor and is passed on as it is. " TOOL_REPEAT
    "Long rounds are normal.";

/* clang-format off */
static const char start_schema[] = TOOL_OBJECT(
    TOOL_TEXT("kind", "What kind of review: code-review, spec-review, or another of the "
        "server's.") ","
    TOOL_TARGET ","
    TOOL_TEXT("context", "All the reviewer needs to know: what was done and why, what "
        "to look at, where the changes live (name the commit range), and anything "
        "uncommitted.") ","
    TOOL_ANY_TEXT("instructions", "What the reviewer should pay attention to.") ","
    TOOL_ANY_TEXT("mode", "context-only: the reviewer is to judge by the context alone "
        "and not by the repository.") ","
    TOOL_REVIEWER,
    "\"kind\",\"target_kind\",\"target_ref\",\"target_title\",\"context\"");
/* clang-format on */

const struct flows_tool tools_start_review = {
    .tool = {.struct_size = sizeof(struct kcap_tool),
             .name = "start_review_flow",
             .title = "Start a review by another agent",
             .description = start_description,
             .input_schema = start_schema,
             .output_schema = tools_run_output,
             .hints = KCAP_HINT_OPEN_WORLD},
    .family = &family_review,
    .run = start_review_flow,
};

static const char round_description[] = BLOCKS
    "Hands your changes back to the reviewer of an open flow and waits for the round's "
    "result. Address the findings first, then say in context what was changed, finding by "
    "finding, and why anything was not. Also the way to go on when a round ended without a "
    "result (unclear, failed): the flow stays open. " TOOL_MESSAGES "Long rounds are normal.";

/* clang-format off */
static const char round_schema[] = TOOL_OBJECT(
    TOOL_TEXT("context", "What was changed since the last round, and anything "
        "uncommitted the reviewer must see.") ","
    TOOL_ID("The flow, as its start answered.") ","
    TOOL_ANY_TEXT("instructions", "What to pay attention to in this round."),
    "\"flow_run_id\",\"context\"");
/* clang-format on */

const struct flows_tool tools_submit_round = {
    .tool = {.struct_size = sizeof(struct kcap_tool),
             .name = "submit_review_round",
             .title = "Submit the next round of a review",
             .description = round_description,
             .input_schema = round_schema,
             .output_schema = tools_run_output,
             .hints = KCAP_HINT_OPEN_WORLD},
    .family = &family_review,
    .run = submit_review_round,
};

static const char status_description[] = BLOCKS
    "Without wait it answers at once with the state of the flow and its last result. With "
    "wait: true it returns as soon as the round is done, or before your harness loses "
    "patience. Without flow_run_id it finds the flow of this session, also one whose start "
    "you never saw answered; when there are several it lists them and chooses "
    "none. " TOOL_MESSAGES
    "Reads only: it starts, changes and closes nothing (messages it shows are reported as "
    "delivered), and may be called as often as you like.";

const struct flows_tool tools_review_status = {
    .tool = {.struct_size = sizeof(struct kcap_tool),
             .name = "get_review_flow_status",
             .title = "See a review, or wait for it",
             .description = status_description,
             .input_schema = TOOL_STATUS_ARGS,
             .output_schema = tools_run_output,
             .hints = TOOL_STATUS_HINTS},
    .family = &family_review,
    .run = get_status,
};

static const char close_description[] =
    "Ends a flow for good and frees its reviewer; a round in progress is lost. Call it "
    "after a clean result, or when the user wants the review to end. Do not call it "
    "because a call timed out: the flow goes on, and get_review_flow_status finds it. The "
    "answer shows the flow's final state, and messages that were still on their way.";

const struct flows_tool tools_close_review = {
    .tool = {.struct_size = sizeof(struct kcap_tool),
             .name = "close_review_flow",
             .title = "Close a review",
             .description = close_description,
             .input_schema = TOOL_CLOSE_ARGS,
             .output_schema = tools_run_output,
             .hints = KCAP_HINT_DESTRUCTIVE | KCAP_HINT_IDEMPOTENT | KCAP_HINT_OPEN_WORLD},
    .family = &family_review,
    .run = close_flow,
};
