/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tools.h"

const char tools_run_output[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"flow_run_id\":{\"type\":\"string\"},"
    "\"status\":{\"type\":\"string\"},"
    "\"round\":{\"type\":\"integer\"},"
    "\"result_kind\":{\"type\":\"string\"},"
    "\"next_step\":{\"type\":\"string\"},"
    "\"text\":{\"type\":\"string\",\"description\":\"the whole answer\"},"
    "\"candidates\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}},"
    "\"required\":[\"text\"]}";

static const char vendors_description[] =
    "Lists the reviewers that could review this repository right now, without supervision: "
    "those of the machines that are connected and have it. Reads only and starts nothing, so "
    "it is safe before offering a review; prefer a reviewer other than driver_vendor, which is "
    "the agent of this session (absent: not known, so claim no difference). An empty list has "
    "its reason in diagnostics.reason. It is a snapshot: a start can still be told that a "
    "vendor listed here has gone.";

static const char vendors_output[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"repo\":{\"type\":\"object\",\"properties\":{\"identity\":{\"type\":\"string\"},"
    "\"resolved\":{\"type\":\"boolean\"}},\"required\":[\"resolved\"]},"
    "\"driver_vendor\":{\"type\":\"string\"},"
    "\"reviewers\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
    "\"vendor\":{\"type\":\"string\"},\"daemons\":{\"type\":\"integer\"},"
    "\"model_override\":{\"type\":\"boolean\"}},"
    "\"required\":[\"vendor\",\"daemons\",\"model_override\"]}},"
    "\"diagnostics\":{\"type\":\"object\"}},"
    "\"required\":[\"repo\",\"reviewers\",\"diagnostics\"]}";

static const struct flows_tool vendors_tool = {
    .tool = {.struct_size = sizeof(struct kcap_tool),
             .name = "list_reviewer_vendors",
             .title = "Which reviewers there are",
             .description = vendors_description,
             .input_schema = "{\"type\":\"object\",\"additionalProperties\":false}",
             .output_schema = vendors_output,
             .hints = KCAP_HINT_READ_ONLY | KCAP_HINT_IDEMPOTENT | KCAP_HINT_OPEN_WORLD},
    .family = &family_review,
    .run = list_reviewer_vendors,
};

const struct kcap_tool *const tools_list[] = {
    &tools_start_review.tool,  &tools_submit_round.tool,
    &tools_review_status.tool, &tools_close_review.tool,
    &tools_start_flow.tool,    &tools_send.tool,
    &tools_flow_status.tool,   &tools_close_flow.tool,
    &vendors_tool.tool,        NULL,
};
