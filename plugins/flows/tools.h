/* SPDX-License-Identifier: Apache-2.0 */
/* The tools as clients see them. What two tables say in the same words stands here. */
#ifndef KCAP_FLOWS_TOOLS_H
#define KCAP_FLOWS_TOOLS_H

#include <stddef.h>

#include "flows.h"

struct flows_tool {
    struct kcap_tool tool; /* first: the host hands back a pointer to it */
    const struct family *family;
    int32_t (*run)(struct subject *subject, const cJSON *args);
};

/* Of the tools that show a run. */
extern const char tools_run_output[];

extern const struct flows_tool tools_start_review, tools_submit_round, tools_review_status,
    tools_close_review;
extern const struct flows_tool tools_start_flow, tools_send, tools_flow_status,
    tools_close_flow;

/* All of them, ended by NULL, in the order in which clients list them. */
extern const struct kcap_tool *const tools_list[];

/* What every blocking tool's description begins with: agents that know no better start again.
 */
#define TOOL_BLOCKS(STATUS)                                                              \
    "This call blocks for minutes. If your harness reports that it timed out, the flow " \
    "goes on: do not start it again, do not investigate, call " STATUS                   \
    " with {\"wait\": true} (no id needed). "

#define TOOL_OBJECT(PROPERTIES, REQUIRED)                                          \
    "{\"type\":\"object\",\"properties\":{" PROPERTIES "},\"required\":[" REQUIRED \
    "],\"additionalProperties\":false}"
#define TOOL_TEXT(NAME, DESCRIPTION) \
    "\"" NAME "\":{\"type\":\"string\",\"minLength\":1,\"description\":\"" DESCRIPTION "\"}"
/* No server's id is longer. */
#define TOOL_ID(DESCRIPTION)                                                                  \
    "\"flow_run_id\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":200,\"description\":" \
    "\"" DESCRIPTION "\"}"
/* Text that may be empty. */
#define TOOL_ANY_TEXT(NAME, DESCRIPTION) \
    "\"" NAME "\":{\"type\":\"string\",\"description\":\"" DESCRIPTION "\"}"
#define TOOL_BOOL(NAME, DESCRIPTION) \
    "\"" NAME "\":{\"type\":\"boolean\",\"description\":\"" DESCRIPTION "\"}"
#define TOOL_OFFSET(NAME, DESCRIPTION) \
    "\"" NAME "\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"" DESCRIPTION "\"}"

/* Arguments that a start has besides its definition. */
/* clang-format off */
#define TOOL_TARGET                                                                       \
    TOOL_TEXT("target_kind", "What it is about: commit, branch, pr, working_tree, file, " \
        "spec, plan, ...") ","                                                            \
    TOOL_ANY_TEXT("target_ref", "Which one: a commit, range, branch, number, URL or "     \
        "path.") ","                                                                      \
    TOOL_ANY_TEXT("target_title", "A short title for people.")
#define TOOL_REVIEWER                                                                    \
    TOOL_TEXT("vendor", "Which reviewer, if the user named one.") ","                    \
    TOOL_TEXT("model", "Which of the vendor's models, if the user named one; as it is "  \
        "spelled there.") ","                                                            \
    TOOL_BOOL("new_run", "Start another flow although there is one: only when the user " \
        "wants two.")

#define TOOL_STATUS_ARGS                                                                  \
    "{\"type\":\"object\",\"properties\":{"                                               \
    TOOL_BOOL("wait", "Wait until the round is done.") ","                                \
    TOOL_ID("The flow; leave it out to have it found.") ","                               \
    TOOL_TEXT("session_id", "Another session whose flow is meant; leave it out for this " \
        "one.") ","                                                                       \
    TOOL_OFFSET("offset", "Show the reviewer's words from this byte on; an answer that "  \
        "was cut names it.")                                                              \
    "},\"additionalProperties\":false}"
/* clang-format on */

/* Read-only although what was shown is acknowledged: that is how every mailbox is read, changes
 * no flow, and a message may come again all the same. Without the hint unattended clients
 * (Codex) refuse the very call by which a run is found again. */
#define TOOL_STATUS_HINTS (KCAP_HINT_READ_ONLY | KCAP_HINT_IDEMPOTENT | KCAP_HINT_OPEN_WORLD)

#define TOOL_CLOSE_ARGS TOOL_OBJECT(TOOL_ID("The flow to close."), "\"flow_run_id\"")

#define TOOL_REPEAT                                                                        \
    "The very same start again joins the flow that is there until its result has reached " \
    "you; until then another one for the same target is refused, unless new_run is true. " \
    "After that a start makes a new flow. "

#define TOOL_MIRROR                                                                     \
    "sees a mirror of the session's project directory, not of your current directory, " \
    "and uncommitted work only when the answer says workspace: borrowed; so put what "  \
    "matters into context. "

#define TOOL_MESSAGES "Messages in an answer may come twice: act once per message_id. "

#endif
