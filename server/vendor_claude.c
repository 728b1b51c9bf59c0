/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claude Code with stream-json both ways: one process for a whole run. It cannot be asked
 * before it is started which servers it will have, so it is asked before the first turn, and
 * what it says of itself at the beginning of each turn is looked at too.
 */
#include "config.h"

#include "server/vendor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/auto.h"
#include "lib/jscan.h"
#include "lib/json.h"
#include "server/become.h"

#define MAX_TOOLS 256
#define MAX_ID    64

#define CONNECT_MS 100 /* from one question whether it is connected to the next */

enum stage { STAGE_LAUNCH, STAGE_INITIALIZE, STAGE_SERVERS, STAGE_READY, STAGE_UNFIT };

/* A tool that was called and has not answered. */
struct open_tool {
    char id[MAX_ID + 1];
    bool is_mcp_call; /* else a command */
};

struct claude {
    enum stage stage;
    char *server; /* the name of our MCP server */
    int64_t last_id;
    char asked_id[32]; /* the control request of this stage */
    bool in_turn;
    struct open_tool tools[MAX_TOOLS];
    size_t tool_count;
    double cost_usd, cost_before_usd; /* of the process: so far, and when the round began */
};

static struct claude *
claude_of(const struct reviewer *reviewer)
{
    return reviewer_state(reviewer);
}

/* ---- sending ---- */

static void
send_json(struct reviewer *reviewer, const cJSON *message)
{
    AUTO_FREE char *text = json_print(message);

    if (!text) {
        reviewer_refuse(reviewer, "out_of_memory", NULL);
        return;
    }
    reviewer_send(reviewer, text, strlen(text));
    reviewer_send(reviewer, "\n", 1);
}

static void
send_control(struct reviewer *reviewer, const char *subtype)
{
    struct claude *claude = claude_of(reviewer);
    AUTO_JSON cJSON *message = cJSON_CreateObject();
    cJSON *request;

    (void)snprintf(claude->asked_id, sizeof claude->asked_id, "kcap-%lld",
                   (long long)++claude->last_id);
    (void)json_add_str(message, "type", "control_request");
    (void)json_add_str(message, "request_id", claude->asked_id);
    request = cJSON_AddObjectToObject(message, "request");
    (void)json_add_str(request, "subtype", subtype);
    send_json(reviewer, message);
}

static void
turn(struct reviewer *reviewer, const struct assignment *job, const char *text)
{
    struct claude *claude = claude_of(reviewer);
    AUTO_JSON cJSON *line = cJSON_CreateObject();
    cJSON *message, *content, *part = cJSON_CreateObject();

    if (text == job->prompt) /* else it is the reminder, of the same round */
        claude->cost_before_usd = claude->cost_usd;
    (void)json_add_str(line, "type", "user");
    message = cJSON_AddObjectToObject(line, "message");
    (void)json_add_str(message, "role", "user");
    content = cJSON_AddArrayToObject(message, "content");
    if (!part || !cJSON_AddItemToArray(content, part)) {
        cJSON_Delete(part);
        part = NULL;
    }
    (void)json_add_str(part, "type", "text");
    (void)json_add_str(part, "text", text);
    claude->in_turn = true;
    claude->tool_count = 0;
    send_json(reviewer, line);
}

static bool
interrupt(struct reviewer *reviewer)
{
    struct claude *claude = claude_of(reviewer);

    if (!claude || !claude->in_turn)
        return false;
    send_control(reviewer, "interrupt");
    return true;
}

/* ---- which servers it has ---- */

static char *
text_of(struct span value)
{
    size_t len;

    return span_type(value) == '"' ? span_string(value, &len) : NULL;
}

static void
refuse_servers(struct reviewer *reviewer, const char *fault)
{
    struct claude *claude = claude_of(reviewer);

    claude->stage = STAGE_UNFIT;
    claude->in_turn = false;
    reviewer_refuse(reviewer, "isolation_violation", fault);
}

/* Exactly ours is allowed. Without its tools the turn would be for nothing, so it must be
 * connected before the first, and still be at each. Returns 1 when it is connecting. */
static int
check_servers(struct reviewer *reviewer, struct span servers)
{
    AUTO_BUF struct buf fault = BUF_INIT(8192);
    struct claude *claude = claude_of(reviewer);
    struct span_iter iter;
    struct span server, status = {NULL, 0};
    bool found = false, is_connecting;

    span_elements(servers, &iter);
    while (fault.len == 0 && span_next_element(&iter, &server)) {
        AUTO_FREE char *name = text_of(span_get(server, "name"));
        if (found || !name || strcmp(name, claude->server) != 0)
            buf_addf(&fault, "it also has the MCP server \"%s\"", name ? name : "?");
        found = true;
        status = span_get(server, "status");
    }
    is_connecting = span_is(status, "pending") && claude->stage == STAGE_SERVERS;
    if (!found)
        buf_adds(&fault, span_type(servers) == '['
                             ? "it has not got our result server"
                             : "the list of its MCP servers cannot be read");
    else if (fault.len == 0 && !span_is(status, "connected") && !is_connecting)
        buf_addf(&fault, "our result server is not connected (%.*s)",
                 status.len < 100 ? (int)status.len : 0, status.p ? status.p : "");
    if (fault.len == 0)
        return is_connecting ? 1 : 0;
    refuse_servers(reviewer, buf_str(&fault));
    return -1;
}

/* Asked before the first turn. */
static void
servers_answered(struct reviewer *reviewer, struct span servers)
{
    int r = check_servers(reviewer, servers);

    if (r > 0) {
        reviewer_later(reviewer, CONNECT_MS);
    } else if (r == 0) {
        claude_of(reviewer)->stage = STAGE_READY;
        reviewer_ready(reviewer);
    }
}

static void
ask_for_servers(struct reviewer *reviewer)
{
    send_control(reviewer, "mcp_status");
}

static void
answered(struct reviewer *reviewer, struct span response)
{
    struct claude *claude = claude_of(reviewer);
    struct span body = span_get(response, "response");
    bool good = span_is(span_get(response, "subtype"), "success");

    if (!span_is(span_get(response, "request_id"), claude->asked_id))
        return;
    if (claude->stage == STAGE_INITIALIZE && good) {
        reviewer_step(reviewer, "its MCP servers (mcp_status)", 0);
        claude->stage = STAGE_SERVERS;
        ask_for_servers(reviewer);
    } else if (claude->stage == STAGE_SERVERS && good) {
        servers_answered(reviewer, span_get(body, "mcpServers"));
    } else if (claude->stage != STAGE_READY) {
        claude->stage = STAGE_UNFIT;
        reviewer_refuse(reviewer, "protocol_error",
                        "it does not understand our control requests");
    }
}

/* ---- tools ---- */

static void
tell_open_tools(struct reviewer *reviewer)
{
    const struct claude *claude = claude_of(reviewer);
    unsigned mcp_calls = 0, commands = 0;

    for (size_t i = 0; i < claude->tool_count; i++)
        ++*(claude->tools[i].is_mcp_call ? &mcp_calls : &commands);
    reviewer_waits(reviewer, mcp_calls, commands);
}

static void
open_tool(struct claude *claude, struct span part)
{
    AUTO_FREE char *id = text_of(span_get(part, "id"));
    AUTO_FREE char *name = text_of(span_get(part, "name"));
    struct open_tool *tool = &claude->tools[claude->tool_count];

    if (!id || !name || strlen(id) > MAX_ID || claude->tool_count == MAX_TOOLS)
        return;
    (void)snprintf(tool->id, sizeof tool->id, "%s", id);
    tool->is_mcp_call = strncmp(name, "mcp__", 5) == 0;
    claude->tool_count++;
}

static void
close_tool(struct claude *claude, struct span id)
{
    for (size_t i = 0; i < claude->tool_count; i++) {
        if (span_is(id, claude->tools[i].id)) {
            claude->tools[i] = claude->tools[--claude->tool_count];
            return;
        }
    }
}

static void
see_content(struct reviewer *reviewer, struct span message)
{
    struct claude *claude = claude_of(reviewer);
    struct span_iter iter;
    struct span part;

    span_elements(span_get(span_get(message, "message"), "content"), &iter);
    while (span_next_element(&iter, &part)) {
        struct span type = span_get(part, "type");
        if (span_is(type, "tool_use"))
            open_tool(claude, part);
        else if (span_is(type, "tool_result"))
            close_tool(claude, span_get(part, "tool_use_id"));
    }
    tell_open_tools(reviewer);
}

/* ---- what it says ---- */

static void
tell_cost(struct reviewer *reviewer, struct span message)
{
    struct claude *claude = claude_of(reviewer);
    AUTO_JSON cJSON *json = NULL;
    struct span cost = span_get(message, "total_cost_usd");
    double usd;

    if (span_type(cost) != '0')
        return;
    json = json_parse(cost.p, cost.len, NULL);
    usd = cJSON_IsNumber(json) ? json->valuedouble : -1;
    if (usd < 0 || usd > 1e9)
        return;
    claude->cost_usd = usd;
    reviewer_cost(reviewer, (int64_t)((usd - claude->cost_before_usd) * 1e6 + 0.5));
}

static void
ended(struct reviewer *reviewer, struct span message)
{
    struct claude *claude = claude_of(reviewer);
    struct span is_error = span_get(message, "is_error"),
                subtype = span_get(message, "subtype");
    AUTO_FREE char *words = text_of(span_get(message, "result"));
    AUTO_FREE char *kind = text_of(subtype);

    claude->in_turn = false;
    claude->tool_count = 0;
    tell_cost(reviewer, message);
    if (span_is(subtype, "success") && is_error.len == 5)
        reviewer_turn_ended(reviewer, NULL, NULL);
    else
        reviewer_turn_ended(reviewer, "failed", words ? words : kind);
}

/* It tries again, for which it has a word and a count. */
static void
explain_retry(struct reviewer *reviewer, struct span message)
{
    AUTO_BUF struct buf text = BUF_INIT(4096);
    AUTO_FREE char *error = text_of(span_get(message, "error"));
    struct span attempt = span_get(message, "attempt");

    buf_addf(&text, "the provider does not answer (%s)", error ? error : "no reason given");
    if (span_is_integer(attempt) && attempt.len < 10)
        buf_addf(&text, ", attempt %.*s", (int)attempt.len, attempt.p);
    reviewer_explain(reviewer, buf_str(&text));
}

static void
system_said(struct reviewer *reviewer, struct span message)
{
    struct span subtype = span_get(message, "subtype");

    if (span_is(subtype, "init"))
        (void)check_servers(reviewer, span_get(message, "mcp_servers"));
    else if (span_is(subtype, "api_retry"))
        explain_retry(reviewer, message);
}

/* Nobody is asked anything: its permissions are settled by its command line. */
static void
requested(struct reviewer *reviewer, struct span id)
{
    AUTO_BUF struct buf line = BUF_INIT(4096);

    buf_adds(&line, "{\"type\":\"control_response\",\"response\":{\"subtype\":\"error\","
                    "\"request_id\":");
    buf_add(&line, id.p, id.len);
    buf_adds(&line, ",\"error\":\"nobody is here to answer\"}}\n");
    if (buf_ok(&line) && span_type(id) == '"')
        reviewer_send(reviewer, buf_str(&line), line.len);
}

static void
said(struct reviewer *reviewer, struct span message)
{
    struct claude *claude = claude_of(reviewer);
    struct span type = span_get(message, "type");

    if (span_is(type, "control_response")) {
        answered(reviewer, span_get(message, "response"));
    } else if (span_is(type, "control_request")) {
        requested(reviewer, span_get(message, "request_id"));
    } else if (!claude->in_turn) {
        return;
    } else if (span_is(type, "system")) {
        system_said(reviewer, message);
    } else if (span_is(type, "result")) {
        ended(reviewer, message);
    } else if (span_is(type, "stream_event") || span_is(type, "assistant") ||
               span_is(type, "user")) {
        if (!span_is(type, "stream_event"))
            see_content(reviewer, message);
        reviewer_sign(reviewer);
    }
}

static void
read_line(struct reviewer *reviewer, const char *line, size_t len)
{
    struct claude *claude = claude_of(reviewer);
    struct jscan scan;

    if (!claude || claude->stage == STAGE_UNFIT)
        return;
    if (claude->stage == STAGE_LAUNCH) {
        if (become_read(reviewer, line, len, &claude->server) != BECOME_DONE)
            return;
        claude->stage = STAGE_INITIALIZE;
        reviewer_step(reviewer, "the answer to initialize", 0);
        send_control(reviewer, "initialize");
        return;
    }
    if (jscan(line, len, &scan) == JSCAN_OK)
        said(reviewer, scan.value);
}

/* ---- life ---- */

static const char *
missing(const struct settings *settings)
{
    return become_missing(settings, "claude");
}

static int
plan(const struct settings *settings, const struct assignment *job, const char *url,
     struct vendor_plan *ret, struct buf *error)
{
    return become_plan(settings, job, url, "claude", "app-server", ret, error);
}

static int
open_session(struct reviewer *reviewer, const struct assignment *job)
{
    struct claude *claude = calloc(1, sizeof *claude);

    (void)job;
    if (!claude)
        return -ENOMEM;
    reviewer_set_state(reviewer, claude);
    return 0;
}

static void
close_session(void *state)
{
    struct claude *claude = state;

    free(claude->server);
    free(claude);
}

static const char *const env[] = {"ANTHROPIC_*", "CLAUDE_*", "AWS_*",        "GOOGLE_*",
                                  "DISABLE_*",   "ENABLE_*", BECOME_NET_ENV, NULL};

const struct vendor vendor_claude = {
    .name = "claude",
    .keeps = true,
    .has_model = true,
    .tells_cost = true,
    .knows_agent_id = true,
    .env = env,
    .missing = missing,
    .plan = plan,
    .open = open_session,
    .turn = turn,
    .line = read_line,
    .later = ask_for_servers,
    .interrupt = interrupt,
    .close = close_session,
};
