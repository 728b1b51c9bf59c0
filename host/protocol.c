/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/protocol.h"

#include <string.h>

#include "host/batch.h"
#include "host/calls.h"
#include "host/log.h"
#include "host/methods.h"
#include "host/reply.h"
#include "host/windows.h"
#include "host/wire.h"
#include "lib/text.h"

#define MAX_BATCH 1000       /* messages */
#define MAX_REPLY (8u << 20) /* of the answers written here; tools/list is the longest */

/* ---- answers ---- */

void
protocol_send(struct protocol *protocol, struct buf *line)
{
    struct host *host = protocol->host;
    bool sent;

    if (protocol->batch) {
        (void)pthread_mutex_lock(&host->lock);
        sent = batch_deliver(protocol->batch, line, NULL);
        (void)pthread_mutex_unlock(&host->lock);
    } else {
        sent = wire_queue(host->wire, line, NULL);
        wire_flush(host->wire);
    }
    if (!sent)
        log_line(KCAP_LOG_ERROR, "out of memory: an answer could not be sent");
}

void
protocol_send_result(struct protocol *protocol, const struct request *request,
                     const char *members, bool cacheable)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_REPLY);

    reply_result(&line, request->rpc->id, members,
                 request->era.stateless ? protocol->host->server_info : NULL, cacheable);
    protocol_send(protocol, &line);
}

static void
send_error_line(struct protocol *protocol, struct span id, bool null_id, int code,
                const char *text, const char *data)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_REPLY);

    if (!id.p && null_id)
        id = (struct span){"null", 4};
    reply_error(&line, id, code, text, data);
    protocol_send(protocol, &line);
}

void
protocol_send_error(struct protocol *protocol, struct span id, int code, const char *text,
                    const char *data)
{
    /* Without an id to answer to: null up to 2025-06-18 (as JSON-RPC says), absent since
     * 2025-11-25 and in the stateless era (as their schemas say). */
    bool absent = protocol->revision ? strcmp(protocol->revision, "2025-11-25") == 0
                                     : protocol->stateless_seen;

    send_error_line(protocol, id, !absent, code, text, data);
}

static void
send_idless(struct protocol *protocol, const char *text)
{
    protocol_send_error(protocol, (struct span){NULL, 0}, RPC_INVALID_REQUEST, text, NULL);
}

/* ---- dispatch ---- */

static void
refuse_era(struct protocol *protocol, struct span id, int code, const char *text,
           struct span requested)
{
    AUTO_BUF struct buf data = BUF_INIT(MAX_REPLY);

    if (code == RPC_UNSUPPORTED_VERSION) {
        buf_adds(&data, "{\"supported\":" ERA_STATELESS_LIST ",\"requested\":");
        buf_add(&data, requested.p, requested.len);
        buf_adds(&data, "}");
    } else {
        buf_adds(&data, "{\"supported\":" ERA_STATELESS_LIST "}");
    }
    protocol_send_error(protocol, id, code, text, buf_ok(&data) ? buf_str(&data) : NULL);
}

static void
handle_request(struct protocol *protocol, const struct rpc *rpc, int64_t arrived_ns)
{
    struct request request = {.rpc = rpc, .arrived_ns = arrived_ns};
    const struct method *method = method_find(rpc->method);
    struct span requested = {NULL, 0};
    const char *text = NULL;
    int code;

    code = era_read(rpc->params, &request.era, &text, &requested);
    protocol->stateless_seen = protocol->stateless_seen || request.era.stateless;
    if (calls_has_id(protocol->host, rpc->id) || listen_has(&protocol->listen, rpc->id)) {
        /* with the id, the client would take this for the first one's answer */
        send_error_line(
            protocol, (struct span){NULL, 0},
            !request.era.stateless &&
                (!protocol->revision || strcmp(protocol->revision, "2025-11-25") != 0),
            RPC_INVALID_REQUEST, "Invalid request: this id is already in use", NULL);
        return;
    }
    if (code != 0 && (method || code == RPC_UNSUPPORTED_VERSION)) {
        refuse_era(protocol, rpc->id, code, text, requested);
        return;
    }
    if (method && !request.era.stateless && !protocol->revision && !method->before_initialize) {
        protocol_send_error(
            protocol, rpc->id, RPC_INVALID_PARAMS,
            "Not initialized: send initialize first, or name the protocol version in _meta",
            "{\"supported\":" ERA_ALL_LIST "}");
        return;
    }
    if (!method || !(request.era.stateless ? method->stateless : method->handshake)) {
        protocol_send_error(protocol, rpc->id, RPC_METHOD_NOT_FOUND, "Method not found", NULL);
        return;
    }
    if (rpc->params.p && span_type(rpc->params) != '{') {
        protocol_send_error(protocol, rpc->id, RPC_INVALID_PARAMS,
                            "Invalid params: params must be an object", NULL);
        return;
    }
    if (protocol->batch && strcmp(method->name, "initialize") == 0) {
        protocol_send_error(protocol, rpc->id, RPC_INVALID_REQUEST,
                            "Invalid request: initialize must not be part of a batch", NULL);
        return;
    }
    method->run(protocol, &request);
}

static void
handle_notification(struct protocol *protocol, const struct rpc *rpc)
{
    struct span id = span_get(rpc->params, "requestId");
    struct span reason = span_get(rpc->params, "reason");

    if (!span_is(rpc->method, "notifications/cancelled") || !id.p ||
        listen_cancel(&protocol->listen, id))
        return;
    calls_cancel(
        protocol->host, id,
        span_type(reason) != '"' ||
            !windows_cancels_anyway(protocol->client_name, reason.p + 1, reason.len - 1));
}

/* Whether this message is owed an answer. */
static bool
wants_answer(const struct rpc *rpc)
{
    return rpc->kind == RPC_REQUEST || rpc->kind == RPC_BAD;
}

static void
handle_message(struct protocol *protocol, const struct rpc *rpc, int64_t arrived_ns)
{
    switch (rpc->kind) {
    case RPC_REQUEST:
        handle_request(protocol, rpc, arrived_ns);
        break;
    case RPC_NOTIFICATION:
        handle_notification(protocol, rpc);
        break;
    case RPC_BAD:
        protocol_send_error(protocol, rpc->id, rpc->code, rpc->text, NULL);
        break;
    case RPC_IGNORE:
    case RPC_BATCH:
        log_line(KCAP_LOG_WARN,
                 "a message that is neither request nor notification was ignored");
        break;
    }
}

static bool
is_too_long(struct span array)
{
    struct span_iter iter;
    struct span member;
    size_t n = 0;

    span_elements(array, &iter);
    while (span_next_element(&iter, &member) && n <= MAX_BATCH)
        n++;
    return n > MAX_BATCH;
}

static void
handle_batch(struct protocol *protocol, struct span array, bool has_nul, int64_t arrived_ns)
{
    struct host *host = protocol->host;
    struct span_iter iter;
    struct batch *batch;
    struct span member;
    struct rpc rpc;

    if (is_too_long(array)) {
        send_idless(protocol, "Invalid request: a batch is limited to 1000 messages");
        return;
    }
    (void)pthread_mutex_lock(&host->lock);
    batch = batch_new(host);
    (void)pthread_mutex_unlock(&host->lock);
    if (!batch) {
        send_idless(protocol, "Invalid request: out of memory for a batch");
        return;
    }
    protocol->batch = batch;
    span_elements(array, &iter);
    while (span_next_element(&iter, &member)) {
        rpc_read_member(member, &rpc);
        rpc.has_nul = has_nul;
        if (wants_answer(&rpc)) {
            (void)pthread_mutex_lock(&host->lock);
            batch_expect(batch);
            (void)pthread_mutex_unlock(&host->lock);
        }
        handle_message(protocol, &rpc, arrived_ns);
    }
    protocol->batch = NULL;
    (void)pthread_mutex_lock(&host->lock);
    batch_seal(batch);
    (void)pthread_mutex_unlock(&host->lock);
    wire_flush(host->wire);
}

void
protocol_line(struct protocol *protocol, const char *line, size_t len, int64_t arrived_ns)
{
    bool allow_batch = protocol->revision && strcmp(protocol->revision, "2025-03-26") == 0;
    struct rpc rpc;

    rpc_read(line, len, allow_batch, &rpc);
    if (rpc.kind == RPC_BATCH)
        handle_batch(protocol, rpc.params, rpc.has_nul, arrived_ns);
    else
        handle_message(protocol, &rpc, arrived_ns);
}

void
protocol_line_too_long(struct protocol *protocol)
{
    send_idless(protocol, "Invalid request: a line is limited to 16 MiB");
}

void
protocol_end(struct protocol *protocol)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_REPLY);

    while (listen_close_one(&protocol->listen, &line, protocol->host->server_info))
        protocol_send(protocol, &line);
}

int
protocol_init(struct protocol *protocol, struct host *host)
{
    const struct kcap_plugin *plugin = &host->plugin.desc;
    AUTO_BUF struct buf tools = BUF_INIT(MAX_REPLY), info = BUF_INIT(4096);

    *protocol = (struct protocol){.host = host};
    reply_tools(&tools, plugin);
    protocol->tools = buf_take(&tools, NULL);
    buf_addf(&info, "{\"name\":\"kcap-%s\",\"version\":", plugin->name);
    text_add_json(&info, plugin->version, strlen(plugin->version));
    buf_addc(&info, '}');
    host->server_info = buf_take(&info, NULL);
    return protocol->tools && host->server_info ? 0 : -1;
}
