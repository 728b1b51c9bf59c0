/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/methods.h"

#include <stdlib.h>
#include <string.h>

#include "host/calls.h"
#include "host/reply.h"
#include "host/windows.h"
#include "host/wire.h"
#include "lib/auto.h"
#include "lib/text.h"

#define MAX_CAPABILITIES (64u << 10) /* copied for each call; a longer list counts as none */
#define MAX_CLIENT_LEN   256         /* of a name or version in its raw spelling */

/* A client's name or version, to be freed; NULL when absent or beyond belief. */
static char *
client_text(struct span value)
{
    return span_type(value) == '"' && value.len <= MAX_CLIENT_LEN ? span_string(value, NULL)
                                                                  : NULL;
}

static char *
raw_text(struct span value)
{
    return value.p ? strndup(value.p, value.len) : NULL;
}

static void
run_initialize(struct protocol *protocol, const struct request *request)
{
    struct span params = request->rpc->params;
    struct span version = span_get(params, "protocolVersion");
    struct span client = span_get(params, "clientInfo");
    struct span capabilities = span_get(params, "capabilities");
    AUTO_BUF struct buf members = BUF_INIT(8192);

    if (span_type(version) != '"') {
        protocol_send_error(protocol, request->rpc->id, RPC_INVALID_PARAMS,
                            "Invalid params: protocolVersion must be a string",
                            "{\"supported\":" ERA_HANDSHAKE_LIST "}");
        return;
    }
    protocol->revision = era_negotiate(version);
    free(protocol->client_name);
    free(protocol->client_version);
    free(protocol->client_capabilities);
    protocol->client_capabilities = NULL;
    protocol->client_name = client_text(span_get(client, "name"));
    protocol->client_version = client_text(span_get(client, "version"));
    if (capabilities.len <= MAX_CAPABILITIES)
        protocol->client_capabilities = raw_text(capabilities);
    buf_addf(&members,
             "\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{}},\"serverInfo\":%s",
             protocol->revision, protocol->host->server_info);
    protocol_send_result(protocol, request, buf_str(&members), false);
}

static void
run_ping(struct protocol *protocol, const struct request *request)
{
    protocol_send_result(protocol, request, "", false);
}

static void
run_discover(struct protocol *protocol, const struct request *request)
{
    if (protocol->host->cli->no_discover)
        protocol_send_error(protocol, request->rpc->id, RPC_METHOD_NOT_FOUND,
                            "Method not found", NULL);
    else
        protocol_send_result(protocol, request,
                             "\"supportedVersions\":" ERA_STATELESS_LIST
                             ",\"capabilities\":{\"tools\":{}}",
                             true);
}

static void
run_listen(struct protocol *protocol, const struct request *request)
{
    AUTO_BUF struct buf line = BUF_INIT(1u << 20);

    if (listen_open(&protocol->listen, request->rpc->id, &line))
        protocol_send(protocol, &line);
    else
        protocol_send_error(protocol, request->rpc->id, RPC_INTERNAL_ERROR,
                            "Too many subscriptions are open", NULL);
}

static void
run_tools_list(struct protocol *protocol, const struct request *request)
{
    struct span cursor = span_get(request->rpc->params, "cursor");

    if (cursor.p && span_type(cursor) != 'n')
        protocol_send_error(protocol, request->rpc->id, RPC_INVALID_PARAMS,
                            "Invalid params: unknown cursor (the list has one page)", NULL);
    else
        protocol_send_result(protocol, request, protocol->tools, true);
}

/* ---- tools/call ---- */

/* Who calls, by the request itself or by initialize, and what it asks for. */
static bool
fill_call(const struct protocol *protocol, const struct request *request,
          struct kcap_call *call)
{
    const struct era *era = &request->era;
    struct span arguments = span_get(request->rpc->params, "arguments");
    struct span token = span_get(era->meta, "progressToken");

    call->stateless = era->stateless;
    call->id = raw_text(request->rpc->id);
    call->args = span_type(arguments) == '{' ? raw_text(arguments) : strdup("{}");
    if (token.len <= RPC_MAX_ID && (span_type(token) == '"' || span_is_integer(token)))
        call->progress_token = raw_text(token);
    if (era->stateless) {
        call->caller.name = client_text(span_get(era->client, "name"));
        call->caller.version = client_text(span_get(era->client, "version"));
        call->capabilities = raw_text(era->capabilities);
    } else {
        call->caller.name = protocol->client_name ? strdup(protocol->client_name) : NULL;
        call->caller.version =
            protocol->client_version ? strdup(protocol->client_version) : NULL;
        call->capabilities =
            protocol->client_capabilities ? strdup(protocol->client_capabilities) : NULL;
    }
    call->caller.meta = raw_text(era->meta);
    (void)session_find(era->meta, &call->caller);
    if (!call->id || !call->args)
        return false;
    call->args_len = strlen(call->args);
    call->may_hold_nul = request->rpc->has_nul;
    return true;
}

/* A call that could not become one: the agent, not the protocol, has to hear of it. */
static void
send_call_error(struct protocol *protocol, const struct request *request, const char *text)
{
    AUTO_BUF struct buf members = BUF_INIT(4096);

    buf_adds(&members, "\"content\":[{\"type\":\"text\",\"text\":");
    text_add_json(&members, text, strlen(text));
    buf_adds(&members, "}],\"isError\":true");
    protocol_send_result(protocol, request, buf_str(&members), false);
}

static void
start_call(struct protocol *protocol, const struct request *request, size_t tool)
{
    static const char too_many[] = "Too many calls are in flight, so this one was not started. "
                                   "Wait for one to end, then call again.";
    static const char no_memory[] =
        "The host is out of memory or threads, so this call was not started. Try again later.";
    struct host *host = protocol->host;
    struct kcap_call *call;
    struct window window;

    if (calls_in_flight(host) >= CALLS_MAX_IN_FLIGHT ||
        wire_pending(host->wire) >= WIRE_CALLS_MAX) {
        send_call_error(protocol, request, too_many);
        return;
    }
    call = call_new(host, CALL_TOOL);
    if (!call || !fill_call(protocol, request, call)) {
        if (call)
            call_unref(call);
        send_call_error(protocol, request, no_memory);
        return;
    }
    window = windows_pick(call->caller.name, call->caller.version, call->progress_token != NULL,
                          host->cli->call_window_ns);
    call->tool = host->plugin.desc.tools[tool];
    call->schema = host->plugin.schemas[tool];
    call->caller.harness = window.harness;
    call->deadline_ns = request->arrived_ns + window.ns;
    call->batch = protocol->batch;
    if (call_start(call) != KCAP_OK)
        send_call_error(protocol, request, no_memory);
}

static void
run_tools_call(struct protocol *protocol, const struct request *request)
{
    const struct kcap_tool *const *tools = protocol->host->plugin.desc.tools;
    struct span params = request->rpc->params;
    struct span name = span_get(params, "name"), arguments = span_get(params, "arguments");
    AUTO_BUF struct buf text = BUF_INIT(1024);
    size_t tool = 0;

    while (tools && tools[tool] && !span_is(name, tools[tool]->name))
        tool++;
    if (span_type(name) != '"') {
        buf_adds(&text, "Invalid params: name must be a string");
    } else if (!tools || !tools[tool]) {
        AUTO_FREE char *word = client_text(name);
        buf_adds(&text, "Unknown tool: ");
        text_add_line(&text, word ? word : "?", word ? strlen(word) : 1);
    } else if (arguments.p && span_type(arguments) != '{' && span_type(arguments) != 'n') {
        buf_adds(&text, "Invalid params: arguments must be an object");
    } else {
        start_call(protocol, request, tool);
        return;
    }
    protocol_send_error(protocol, request->rpc->id, RPC_INVALID_PARAMS, buf_str(&text), NULL);
}

/* ---- the table ---- */

static const struct method methods[] = {
    {"initialize", true, false, true, run_initialize},
    {"ping", true, false, true, run_ping},
    {"tools/list", true, true, false, run_tools_list},
    {"tools/call", true, true, false, run_tools_call},
    {"server/discover", false, true, false, run_discover},
    {"subscriptions/listen", false, true, false, run_listen},
};

const struct method *
method_find(struct span name)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (span_is(name, methods[i].name))
            return &methods[i];
    }
    return NULL;
}
