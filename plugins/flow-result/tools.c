/* SPDX-License-Identifier: Apache-2.0 */
/* What the reviewer's agent reads about the tools. */
#include "config.h"

#include "reviewer.h"

#define OUTPUT_SCHEMA                                                                          \
    "{\"type\":\"object\",\"properties\":{"                                                    \
    "\"outcome\":{\"type\":\"string\",\"enum\":[\"delivered\",\"not_delivered\",\"unknown\"]," \
    "\"description\":\"delivered: the server has it. not_delivered: it has not. unknown: it "  \
    "may have it.\"},"                                                                         \
    "\"text\":{\"type\":\"string\",\"description\":\"What happened and what to do.\"},"        \
    "\"attempts\":{\"type\":\"integer\",\"description\":\"How often it was sent.\"},"          \
    "\"http_status\":{\"type\":\"integer\",\"description\":\"Of the last answer.\"}},"         \
    "\"required\":[\"outcome\",\"text\",\"attempts\"]}"

static const struct kcap_tool submit_review_result = {
    .struct_size = sizeof(struct kcap_tool),
    .name = "submit_review_result",
    .title = "Submit the review result",
    .description =
        "Deliver the result of the review round you were asked to do. This call is the only "
        "way the result reaches anybody: text in your reply is not read. Call it once per "
        "round, when the review is finished, with the round token from the round's "
        "instructions. Use kind \"findings\" with the whole text of the findings, or kind "
        "\"clean\" when there is nothing to change. The answer begins with \"Recorded\", \"Not "
        "delivered\" or \"Outcome unknown\"; after an error, do what it says. The call may "
        "take "
        "minutes when the server is slow; it retries by itself.",
    .input_schema =
        "{\"type\":\"object\",\"properties\":{"
        "\"round_token\":{\"type\":\"string\",\"minLength\":1,\"description\":\"The round "
        "token, exactly as it stands in this round's instructions.\"},"
        "\"kind\":{\"type\":\"string\",\"enum\":[\"findings\",\"clean\"],\"description\":"
        "\"findings: something has to be changed. clean: nothing has.\"},"
        "\"findings\":{\"type\":\"string\",\"description\":\"The text of all findings, most "
        "severe first; required for kind findings, left out for kind clean.\"}},"
        "\"required\":[\"round_token\",\"kind\"]}",
    .output_schema = OUTPUT_SCHEMA,
    /* a round takes one result: the same call again changes nothing more */
    .hints = KCAP_HINT_IDEMPOTENT,
};

static const struct kcap_tool send_flow_message = {
    .struct_size = sizeof(struct kcap_tool),
    .name = "send_flow_message",
    .title = "Send a message",
    .description =
        "Send a short message to whoever asked for the review, such as a question that only "
        "they can answer, while the review goes on. It is not the result and does not end the "
        "round: for that call submit_review_result. The answer begins with \"Sent\", \"Not "
        "delivered\" or \"Outcome unknown\".",
    .input_schema = "{\"type\":\"object\",\"properties\":{"
                    "\"text\":{\"type\":\"string\",\"minLength\":1,\"description\":\"The "
                    "message; it must not be blank.\"}},"
                    "\"required\":[\"text\"]}",
    .output_schema = OUTPUT_SCHEMA,
    .hints = 0, /* the same call again sends another message */
};

const struct kcap_tool *const reviewer_tools[] = {&submit_review_result, &send_flow_message,
                                                  NULL};
