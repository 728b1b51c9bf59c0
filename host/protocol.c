/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/protocol.h"

#include <stdlib.h>
#include <string.h>

#include "host/calls.h"
#include "host/descriptor.h"
#include "host/log.h"
#include "host/reply.h"
#include "host/rpc.h"
#include "host/windows.h"
#include "host/wire.h"
#include "lib/auto.h"
#include "lib/text.h"

#define MAX_REPLY      (8u << 20) /* of the answers written here; tools/list is the longest */
#define MAX_CLIENT_LEN 256

/* Newest last. An unknown revision is answered with the newest, as the specification wants. */
static const char *const revisions[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};
#define N_REVISIONS (sizeof revisions / sizeof revisions[0])
#define SUPPORTED \
    "{\"supported\":[\"2024-11-05\",\"2025-03-26\",\"2025-06-18\",\"2025-11-25\"]}"

/* ---- answers ---- */

static void
send_line(struct protocol *protocol, struct buf *line)
{
    if (wire_queue(protocol->host->wire, line, NULL))
        wire_flush(protocol->host->wire);
    else
        log_line(KCAP_LOG_ERROR, "out of memory: an answer could not be sent");
}

static void
send_result(struct protocol *protocol, struct span id, const char *result)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_REPLY);

    reply_result(&line, id.p, id.len, result, strlen(result));
    send_line(protocol, &line);
}

static void
send_error(struct protocol *protocol, struct span id, int code, const char *text,
           const char *data)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_REPLY);

    /* Without an id to answer to: null up to 2025-06-18 (as JSON-RPC says), absent since
     * 2025-11-25 (as its schema says). */
    if (!id.p && (!protocol->revision || strcmp(protocol->revision, "2025-11-25") != 0))
        id = (struct span){"null", 4};
    reply_error(&line, id.p, id.len, code, text, data);
    send_line(protocol, &line);
}

/* A call that could not become one: the agent, not the protocol, has to hear of it. */
static void
send_call_error(struct protocol *protocol, struct span id, const char *text)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_REPLY);
    AUTO_FREE char *raw = strndup(id.p, id.len);

    reply_call(&line, raw, true, text, strlen(text), NULL, 0);
    send_line(protocol, &line);
}

/* ---- methods ---- */

/* A client's name or version, to be freed; NULL when absent or beyond belief. */
static char *
client_text(struct span value)
{
    return span_type(value) == '"' && value.len <= MAX_CLIENT_LEN ? span_string(value, NULL)
                                                                  : NULL;
}

static void
do_initialize(struct protocol *protocol, const struct rpc *rpc)
{
    const struct kcap_plugin *plugin = &protocol->host->plugin.desc;
    struct span version = span_get(rpc->params, "protocolVersion");
    struct span client = span_get(rpc->params, "clientInfo");
    AUTO_BUF struct buf result = BUF_INIT(4096);

    if (span_type(version) != '"') {
        send_error(protocol, rpc->id, RPC_INVALID_PARAMS,
                   "Invalid params: protocolVersion must be a string", SUPPORTED);
        return;
    }
    protocol->revision = revisions[N_REVISIONS - 1];
    for (size_t i = 0; i < N_REVISIONS; i++) {
        if (span_is(version, revisions[i]))
            protocol->revision = revisions[i];
    }
    free(protocol->client_name);
    free(protocol->client_version);
    protocol->client_name = client_text(span_get(client, "name"));
    protocol->client_version = client_text(span_get(client, "version"));

    buf_addf(&result,
             "{\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{}},"
             "\"serverInfo\":{\"name\":\"kcap-%s\",\"version\":",
             protocol->revision, plugin->name);
    text_add_json(&result, plugin->version, strlen(plugin->version));
    buf_adds(&result, "}}");
    send_result(protocol, rpc->id, buf_str(&result));
}

static void
do_ping(struct protocol *protocol, const struct rpc *rpc)
{
    send_result(protocol, rpc->id, "{}");
}

static void
do_tools_list(struct protocol *protocol, const struct rpc *rpc)
{
    struct span cursor = span_get(rpc->params, "cursor");

    if (cursor.p && span_type(cursor) != 'n')
        send_error(protocol, rpc->id, RPC_INVALID_PARAMS,
                   "Invalid params: unknown cursor (the list has one page)", NULL);
    else
        send_result(protocol, rpc->id, protocol->tools);
}

static bool
fill_call(struct protocol *protocol, struct kcap_call *call, const struct rpc *rpc,
          struct span arguments)
{
    struct span meta = span_get(rpc->params, "_meta");
    struct span token = span_get(meta, "progressToken");
    bool has_token = span_type(token) == '"' || span_is_integer(token);

    call->id = strndup(rpc->id.p, rpc->id.len);
    call->args = arguments.p ? strndup(arguments.p, arguments.len) : strdup("{}");
    if (has_token)
        call->progress_token = strndup(token.p, token.len);
    if (protocol->client_name)
        call->caller.name = strdup(protocol->client_name);
    if (protocol->client_version)
        call->caller.version = strdup(protocol->client_version);
    if (span_type(meta) == '{')
        call->caller.meta = strndup(meta.p, meta.len);
    (void)session_find(meta, &call->caller);
    if (!call->id || !call->args || (has_token && !call->progress_token))
        return false;
    call->args_len = strlen(call->args);
    return true;
}

static void
start_call(struct protocol *protocol, const struct rpc *rpc, size_t tool, struct span arguments,
           int64_t arrived_ns)
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
        send_call_error(protocol, rpc->id, too_many);
        return;
    }
    call = call_new(host, CALL_TOOL);
    if (!call || !fill_call(protocol, call, rpc, arguments)) {
        if (call)
            call_unref(call);
        send_call_error(protocol, rpc->id, no_memory);
        return;
    }
    window = windows_pick(call->caller.name, call->caller.version, call->progress_token != NULL,
                          host->cli->call_window_ns);
    call->tool = host->plugin.desc.tools[tool];
    call->schema = host->plugin.schemas[tool];
    call->caller.harness = window.harness;
    call->deadline_ns = arrived_ns + window.ns;
    if (call_start(call) != KCAP_OK)
        send_call_error(protocol, rpc->id, no_memory);
}

static void
do_tools_call(struct protocol *protocol, const struct rpc *rpc, int64_t arrived_ns)
{
    const struct kcap_tool *const *tools = protocol->host->plugin.desc.tools;
    struct span name = span_get(rpc->params, "name"),
                arguments = span_get(rpc->params, "arguments");
    size_t tool = 0;

    if (span_type(arguments) == 'n')
        arguments = (struct span){NULL, 0};
    if (span_type(name) != '"') {
        send_error(protocol, rpc->id, RPC_INVALID_PARAMS,
                   "Invalid params: name must be a string", NULL);
        return;
    }
    while (tools && tools[tool] && !span_is(name, tools[tool]->name))
        tool++;
    if (!tools || !tools[tool]) {
        AUTO_BUF struct buf text = BUF_INIT(1024);
        AUTO_FREE char *word = name.len < 200 ? span_string(name, NULL) : NULL;

        buf_adds(&text, "Unknown tool: ");
        text_add_line(&text, word ? word : "?", word ? strlen(word) : 1);
        send_error(protocol, rpc->id, RPC_INVALID_PARAMS, buf_str(&text), NULL);
        return;
    }
    if (arguments.p && span_type(arguments) != '{') {
        send_error(protocol, rpc->id, RPC_INVALID_PARAMS,
                   "Invalid params: arguments must be an object", NULL);
        return;
    }
    start_call(protocol, rpc, tool, arguments, arrived_ns);
}

/* ---- dispatch ---- */

enum method { METHOD_INITIALIZE, METHOD_PING, METHOD_TOOLS_LIST, METHOD_TOOLS_CALL };

static const struct {
    const char *name;
    enum method method;
    bool before_initialize;
} methods[] = {
    {"initialize", METHOD_INITIALIZE, true},
    {"ping", METHOD_PING, true},
    {"tools/list", METHOD_TOOLS_LIST, false},
    {"tools/call", METHOD_TOOLS_CALL, false},
};
#define N_METHODS (sizeof methods / sizeof methods[0])

static void
handle_request(struct protocol *protocol, const struct rpc *rpc, int64_t arrived_ns)
{
    size_t m = 0;

    if (calls_has_id(protocol->host, rpc->id)) {
        /* with the id, the client would take this for the first call's answer */
        send_error(protocol, (struct span){NULL, 0}, RPC_INVALID_REQUEST,
                   "Invalid request: this id is already in use", NULL);
        return;
    }
    while (m < N_METHODS && !span_is(rpc->method, methods[m].name))
        m++;
    if (m == N_METHODS) {
        send_error(protocol, rpc->id, RPC_METHOD_NOT_FOUND, "Method not found", NULL);
        return;
    }
    if (!protocol->revision && !methods[m].before_initialize) {
        send_error(protocol, rpc->id, RPC_INVALID_PARAMS,
                   "Not initialized: send initialize first", SUPPORTED);
        return;
    }
    if (rpc->params.p && span_type(rpc->params) != '{') {
        send_error(protocol, rpc->id, RPC_INVALID_PARAMS,
                   "Invalid params: params must be an object", NULL);
        return;
    }
    switch (methods[m].method) {
    case METHOD_INITIALIZE:
        do_initialize(protocol, rpc);
        break;
    case METHOD_PING:
        do_ping(protocol, rpc);
        break;
    case METHOD_TOOLS_LIST:
        do_tools_list(protocol, rpc);
        break;
    case METHOD_TOOLS_CALL:
        do_tools_call(protocol, rpc, arrived_ns);
        break;
    }
}

void
protocol_line(struct protocol *protocol, const char *line, size_t len, int64_t arrived_ns)
{
    struct span request_id;
    struct rpc rpc;

    rpc_read(line, len, &rpc);
    switch (rpc.kind) {
    case RPC_REQUEST:
        handle_request(protocol, &rpc, arrived_ns);
        break;
    case RPC_NOTIFICATION:
        request_id = span_get(rpc.params, "requestId");
        if (span_is(rpc.method, "notifications/cancelled") && request_id.p)
            calls_cancel(protocol->host, request_id);
        break;
    case RPC_BAD:
        send_error(protocol, rpc.id, rpc.code, rpc.text, NULL);
        break;
    case RPC_IGNORE:
        log_line(KCAP_LOG_WARN,
                 "a message that is neither request nor notification was ignored");
        break;
    }
}

void
protocol_line_too_long(struct protocol *protocol)
{
    send_error(protocol, (struct span){NULL, 0}, RPC_INVALID_REQUEST,
               "Invalid request: a line is limited to 16 MiB", NULL);
}

int
protocol_init(struct protocol *protocol, struct host *host)
{
    AUTO_BUF struct buf tools = BUF_INIT(MAX_REPLY);

    *protocol = (struct protocol){.host = host};
    reply_tools(&tools, &host->plugin.desc);
    protocol->tools = buf_take(&tools, NULL);
    return protocol->tools ? 0 : -1;
}
