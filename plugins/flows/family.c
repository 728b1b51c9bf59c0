/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "family.h"

#define FAMILY(START, ROUND, STATUS, CLOSE, WITH)                                              \
    {                                                                                          \
        .start = START, .round = ROUND, .status = STATUS, .close = CLOSE,                      \
        .next = {                                                                              \
            [NEXT_WAIT] = "call " STATUS " with {\"wait\": true}; it needs no id and "         \
                          "returns when the round is done",                                    \
            [NEXT_FIND] = "call " STATUS " without an id to see this session's flows",         \
            [NEXT_LOOK] = "call " STATUS " with this flow_run_id",                             \
            [NEXT_LOOK_OR_ASK] =                                                               \
                "call " STATUS " with this flow_run_id again, or ask the user",                \
            [NEXT_LOOK_LONGER] = "call " STATUS " with this flow_run_id and \"wait\": true",   \
            [NEXT_CHOOSE] = "call " STATUS " with the flow_run_id of the one you mean",        \
            [NEXT_ADDRESS] = "give its participants their work, one after the other: call "    \
                             "send_to_participant with this flow_run_id and a participant's "  \
                             "role",                                                           \
            [NEXT_FIX] = "address the findings, then call " ROUND " with " WITH,               \
            [NEXT_ANSWER] = "answer what the reviewer asks: call " ROUND " with " WITH,        \
            [NEXT_MEND] = "read round_reason and mend what it names, then call " ROUND         \
                          " with " WITH "; if it is the flow's target that is at fault, "      \
                          "close the flow and start another with a target that fits",          \
            [NEXT_READ] = "the flow is open. Read what happened first: if it names "           \
                          "something that will be the same next time, mend that or tell the "  \
                          "user; else call " ROUND " with " WITH " to have the round done "    \
                          "again",                                                             \
            [NEXT_REDO] =                                                                      \
                "the flow is open: call " ROUND " with " WITH " to have the round done again", \
            [NEXT_CLOSE] = "call " CLOSE " with this flow_run_id",                             \
        },                                                                                     \
    }

const struct family family_review =
    FAMILY("start_review_flow", "submit_review_round", "get_review_flow_status",
           "close_review_flow", "this flow_run_id");

const struct family family_flow = FAMILY("start_flow", "send_to_participant", "get_flow_status",
                                         "close_flow", "this flow_run_id and the participant");
