/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tools.h"

#include <stddef.h>

/* What every blocking tool's description begins with: agents that know no better start again.
 */
#define BLOCKS                                                                              \
    "This call blocks for minutes. If your harness reports that it timed out, the flow "    \
    "goes on: do not start it again, do not investigate, call get_review_flow_status with " \
    "{\"wait\": true} (no id needed). "

static const char output_schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"flow_run_id\":{\"type\":\"string\"},"
    "\"status\":{\"type\":\"string\"},"
    "\"round\":{\"type\":\"integer\"},"
    "\"result_kind\":{\"type\":\"string\"},"
    "\"next_step\":{\"type\":\"string\"},"
    "\"text\":{\"type\":\"string\",\"description\":\"the whole answer\"},"
    "\"candidates\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}},"
    "\"required\":[\"text\"]}";

static const char start_description[] = BLOCKS
    "Starts a review of your work by a second, unattended agent and waits for its first "
    "result. It costs money: call it only when the user has asked for such a review; to "
    "review something yourself, just do it. One flow per task; further rounds go through "
    "submit_review_round. Keep the flow_run_id of the answer. The reviewer sees a mirror "
    "of the session's project directory, not of your current directory, and uncommitted "
    "work only when the answer says workspace: borrowed; so put what matters into context. "
    "vendor chooses the reviewer (it need not be your own); model needs vendor and is "
    "passed on as it is. A flow that several participants share starts without a round. "
    "The very same start again joins the flow that is there and costs nothing; another one "
    "for the same target is refused while that is open, unless new_run is true. Long rounds "
    "are normal.";

static const char start_schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"kind\":{\"type\":\"string\",\"minLength\":1,\"description\":\"What kind of review, "
    "such as code-review or spec-review.\"},"
    "\"target_kind\":{\"type\":\"string\",\"minLength\":1,\"description\":\"What is "
    "reviewed: commit, branch, pull_request, working_tree, document, ...\"},"
    "\"target_ref\":{\"type\":\"string\",\"description\":\"Which one: a commit, range, "
    "branch, number or path.\"},"
    "\"target_title\":{\"type\":\"string\",\"description\":\"A short title for people.\"},"
    "\"context\":{\"type\":\"string\",\"minLength\":1,\"description\":\"All the reviewer "
    "needs to know: what was done and why, what to look at, and anything uncommitted.\"},"
    "\"instructions\":{\"type\":\"string\",\"description\":\"What the reviewer should pay "
    "attention to.\"},"
    "\"mode\":{\"type\":\"string\",\"description\":\"A mode of that kind of review, if it "
    "has any.\"},"
    "\"vendor\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Which reviewer, if "
    "the user named one.\"},"
    "\"model\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Which of the "
    "vendor's models, if the user named one.\"},"
    "\"new_run\":{\"type\":\"boolean\",\"description\":\"Start another flow although there "
    "is one: only when the user wants two.\"}},"
    "\"required\":[\"kind\",\"target_kind\",\"target_ref\",\"target_title\",\"context\"],"
    "\"additionalProperties\":false}";

static const struct flows_tool start_tool = {
    .tool = {.struct_size = sizeof(struct kcap_tool),
             .name = "start_review_flow",
             .title = "Start a review by another agent",
             .description = start_description,
             .input_schema = start_schema,
             .output_schema = output_schema,
             .hints = KCAP_HINT_OPEN_WORLD},
    .run = start_review_flow,
};

static const char round_description[] = BLOCKS
    "Hands your changes back to the reviewer of an open flow and waits for the round's "
    "result. Address the findings first, then say in context what was changed, finding by "
    "finding, and why anything was not. Also the way to go on when a round ended without a "
    "result (unclear, failed): the flow stays open. Messages in an answer may come twice: act "
    "once per message_id. Long rounds are normal.";

static const char round_schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"flow_run_id\":{\"type\":\"string\",\"minLength\":1,\"description\":\"The flow, as "
    "its start answered.\"},"
    "\"context\":{\"type\":\"string\",\"minLength\":1,\"description\":\"What was changed "
    "since the last round, and anything uncommitted the reviewer must see.\"},"
    "\"instructions\":{\"type\":\"string\",\"description\":\"What to pay attention to in "
    "this round.\"}},"
    "\"required\":[\"flow_run_id\",\"context\"],\"additionalProperties\":false}";

static const struct flows_tool round_tool = {
    .tool = {.struct_size = sizeof(struct kcap_tool),
             .name = "submit_review_round",
             .title = "Submit the next round of a review",
             .description = round_description,
             .input_schema = round_schema,
             .output_schema = output_schema,
             .hints = KCAP_HINT_OPEN_WORLD},
    .run = submit_review_round,
};

static const char status_description[] = BLOCKS
    "Without wait it answers at once with the state of the flow and its last result. With "
    "wait: true it returns as soon as the round is done, or before your harness loses "
    "patience. Without flow_run_id it finds the flow of this session, also one whose start "
    "you never saw answered; when there are several it lists them and chooses none. Reads "
    "only: it starts, changes and closes nothing, and may be called as often as you like.";

static const char status_schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"flow_run_id\":{\"type\":\"string\",\"minLength\":1,\"description\":\"The flow; "
    "leave it out to have it found.\"},"
    "\"wait\":{\"type\":\"boolean\",\"description\":\"Wait until the round is done.\"},"
    "\"session_id\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Another session "
    "whose flow is meant; leave it out for this one.\"},"
    "\"offset\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"Show the reviewer's "
    "words "
    "from this byte on; an answer that was cut names it.\"}},"
    "\"additionalProperties\":false}";

static const struct flows_tool status_tool = {
    .tool = {.struct_size = sizeof(struct kcap_tool),
             .name = "get_review_flow_status",
             .title = "See a review, or wait for it",
             .description = status_description,
             .input_schema = status_schema,
             .output_schema = output_schema,
             .hints = KCAP_HINT_READ_ONLY | KCAP_HINT_IDEMPOTENT | KCAP_HINT_OPEN_WORLD},
    .run = get_review_flow_status,
};

static const char close_description[] =
    "Ends a flow for good and frees its reviewer; a round in progress is lost. Call it "
    "after a clean result, or when the user wants the review to end. Do not call it "
    "because a call timed out: the flow goes on, and get_review_flow_status finds it. The "
    "answer shows the flow's final state.";

static const char close_schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"flow_run_id\":{\"type\":\"string\",\"minLength\":1,\"description\":\"The flow to "
    "close.\"}},"
    "\"required\":[\"flow_run_id\"],\"additionalProperties\":false}";

static const struct flows_tool close_tool = {
    .tool = {.struct_size = sizeof(struct kcap_tool),
             .name = "close_review_flow",
             .title = "Close a review",
             .description = close_description,
             .input_schema = close_schema,
             .output_schema = output_schema,
             .hints = KCAP_HINT_DESTRUCTIVE | KCAP_HINT_IDEMPOTENT | KCAP_HINT_OPEN_WORLD},
    .run = close_review_flow,
};

const struct kcap_tool *const tools_list[] = {&start_tool.tool, &round_tool.tool,
                                              &status_tool.tool, &close_tool.tool, NULL};
