/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of reviewers. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "lib/text.h"
#include "server/api_internal.h"

#define MAX_MESSAGE_ID   128
#define MAX_MESSAGE_TEXT (64 << 10)

static int
record_result(struct api_call *call)
{
    const char *agent_id, *round_token, *kind, *text;
    int r = api_text(call, "agent_id", true, &agent_id);

    if (r == 0)
        r = api_text(call, "round_token", true, &round_token);
    if (r == 0)
        r = api_text(call, "kind", true, &kind);
    if (r == 0)
        r = api_text(call, "text", false, &text);
    if (r < 0)
        return r;
    if (strcmp(kind, ROUND_FINDINGS) != 0 && strcmp(kind, ROUND_CLEAN) != 0)
        return api_fail(call, 400, "invalid_request",
                        "\"kind\" must be \"findings\" or \"clean\".");
    if (strcmp(kind, ROUND_FINDINGS) == 0 && text_is_blank(text))
        return api_fail(call, 400, "invalid_request",
                        "\"text\" must hold the findings when \"kind\" is \"findings\".");
    r = engine_result(call->engine, agent_id, round_token, kind, text);
    if (r == 0 && !json_add_str(call->result, "status", "recorded"))
        return -ENOMEM;
    return r;
}

static int
record_message(struct api_call *call)
{
    const char *agent_id, *message_id, *text;
    int r = api_text(call, "agent_id", true, &agent_id);

    if (r == 0)
        r = api_text(call, "message_id", true, &message_id);
    if (r == 0)
        r = api_text(call, "text", true, &text);
    if (r < 0)
        return r;
    if (text_is_blank(message_id) || strlen(message_id) > MAX_MESSAGE_ID)
        return api_fail(call, 400, "invalid_request",
                        "\"message_id\" must be a text of 1 to %d bytes.", MAX_MESSAGE_ID);
    if (text_is_blank(text) || strlen(text) > MAX_MESSAGE_TEXT)
        return api_fail(call, 400, "invalid_request",
                        "\"text\" must be a text of 1 to %d bytes.", MAX_MESSAGE_TEXT);
    r = engine_message(call->engine, agent_id, message_id, text);
    if (r == 0 && !json_add_str(call->result, "status", "accepted"))
        return -ENOMEM;
    return r;
}

const struct api_route api_reviewer_routes[] = {
    {"POST", "/api/flows/reviewer/result", true, record_result},
    {"POST", "/api/flows/participant/message", true, record_message},
    {NULL, NULL, false, NULL},
};
