/* SPDX-License-Identifier: Apache-2.0 */
/* The tools for flows of any kind: also with several participants, or with a definition that is
 * sent along. */
#include "config.h"

#include "tools.h"

#define BLOCKS TOOL_BLOCKS("get_flow_status")

static const char start_description[] = BLOCKS
    "Starts a flow of unattended agents, from the server's catalog (definition_id) or from a "
    "definition you write (definition_yaml). It costs money: call it only when the user has "
    "asked for such a flow; it is not how you do the work yourself. One flow per task. Keep "
    "the flow_run_id of the answer. With one participant the call waits for its first result. "
    "With several the flow starts without a round: give each its work with "
    "send_to_participant; a participant is launched by its first message. A "
    "participant " TOOL_MIRROR
    "vendor and model are for catalog flows with one participant; model needs "
    "vendor and is passed on as it is. " TOOL_REPEAT "Long rounds are normal.";

/* clang-format off */
static const char start_schema[] = TOOL_OBJECT(
    TOOL_TEXT("definition_id", "A definition of the server's catalog, such as "
        "code-review. Give this or definition_yaml.") ","
    TOOL_TEXT("definition_yaml", "A whole definition in YAML, for servers that take "
        "them. Every participant needs workspace: none and a concrete model.") ","
    TOOL_TARGET ","
    TOOL_TEXT("context", "All the participant needs to know: what is to be done and "
        "why, where things live (name the commit range), and anything uncommitted.") ","
    TOOL_ANY_TEXT("instructions", "What the participant should pay attention to.") ","
    TOOL_ANY_TEXT("mode", "context-only: judge by the context alone and not by the "
        "repository.") ","
    TOOL_REVIEWER,
    "\"target_kind\",\"target_ref\",\"target_title\",\"context\"");
/* clang-format on */

const struct flows_tool tools_start_flow = {
    .tool = {.struct_size = sizeof(struct kcap_tool),
             .name = "start_flow",
             .title = "Start a flow of agents",
             .description = start_description,
             .input_schema = start_schema,
             .output_schema = tools_run_output,
             .hints = KCAP_HINT_OPEN_WORLD},
    .family = &family_flow,
    .run = start_flow,
};

static const char send_description[] = BLOCKS
    "Gives a participant of an open flow its work or your answer, and waits for what comes of "
    "it. One role at a time: a busy one refuses, and so do the others on some servers. Also "
    "the "
    "way to go on when a round ended without a result (unclear, failed): the flow stays "
    "open. " TOOL_MESSAGES "Long rounds are normal.";

/* clang-format off */
static const char send_schema[] = TOOL_OBJECT(
    TOOL_TEXT("participant", "The role, as the flow's definition names it (reviewer, "
        "where there is only one).") ","
    TOOL_BOOL("async", "Leave it out; false has the server answer only when the round "
        "is over.") ","
    TOOL_TEXT("message", "What is to be done, or what was changed since the last round.") ","
    TOOL_TEXT("flow_run_id", "The flow, as its start answered.") ","
    TOOL_ANY_TEXT("instructions", "What to pay attention to in this round."),
    "\"flow_run_id\",\"participant\",\"message\"");
/* clang-format on */

const struct flows_tool tools_send = {
    .tool = {.struct_size = sizeof(struct kcap_tool),
             .name = "send_to_participant",
             .title = "Give a participant its work",
             .description = send_description,
             .input_schema = send_schema,
             .output_schema = tools_run_output,
             .hints = KCAP_HINT_OPEN_WORLD},
    .family = &family_flow,
    .run = send_to_participant,
};

static const char status_description[] = BLOCKS
    "Without wait it answers at once with the state of the flow, its participants and its last "
    "result. With wait: true it returns as soon as the round is done, or before your harness "
    "loses patience. Without flow_run_id it finds the flow of this session, also one whose "
    "start you never saw answered; when there are several it lists them and chooses "
    "none. " TOOL_MESSAGES
    "Reads only: it starts, changes and closes nothing (messages it shows are reported as "
    "delivered), and may be called as often as you like.";

const struct flows_tool tools_flow_status = {
    .tool = {.struct_size = sizeof(struct kcap_tool),
             .name = "get_flow_status",
             .title = "See a flow, or wait for it",
             .description = status_description,
             .input_schema = TOOL_STATUS_ARGS,
             .output_schema = tools_run_output,
             .hints = TOOL_STATUS_HINTS},
    .family = &family_flow,
    .run = get_status,
};

static const char close_description[] =
    "Ends a flow for good and frees its participants; a round in progress is lost. Call it "
    "when the work is done, or when the user wants the flow to end. Do not call it because a "
    "call timed out: the flow goes on, and get_flow_status finds it. The answer shows the "
    "flow's final state, and messages that were still on their way.";

const struct flows_tool tools_close_flow = {
    .tool = {.struct_size = sizeof(struct kcap_tool),
             .name = "close_flow",
             .title = "Close a flow",
             .description = close_description,
             .input_schema = TOOL_CLOSE_ARGS,
             .output_schema = tools_run_output,
             .hints = KCAP_HINT_DESTRUCTIVE | KCAP_HINT_IDEMPOTENT | KCAP_HINT_OPEN_WORLD},
    .family = &family_flow,
    .run = close_flow,
};
