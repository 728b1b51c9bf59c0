/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/rpc.h"

#include "lib/jscan.h"

static void
bad(struct rpc *rpc, int code, const char *text)
{
    rpc->kind = RPC_BAD;
    rpc->code = code;
    rpc->text = text;
}

/* A string or an integer, and nothing else; not so long that echoing it is a burden. */
static bool
is_usable_id(struct span id)
{
    if (id.len > RPC_MAX_ID)
        return false;
    return span_type(id) == '"' || span_is_integer(id);
}

void
rpc_read_member(struct span member, struct rpc *ret)
{
    struct span version = {NULL, 0}, result = {NULL, 0}, error = {NULL, 0}, key, value;
    struct span_iter iter;

    *ret = (struct rpc){.kind = RPC_REQUEST};
    if (span_type(member) != '{') {
        bad(ret, RPC_INVALID_REQUEST, "Invalid request: a message is a JSON object");
        return;
    }
    span_members(member, &iter);
    while (span_next_member(&iter, &key, &value)) {
        if (span_is(key, "jsonrpc"))
            version = value;
        else if (span_is(key, "id"))
            ret->id = value;
        else if (span_is(key, "method"))
            ret->method = value;
        else if (span_is(key, "params"))
            ret->params = value;
        else if (span_is(key, "result"))
            result = value;
        else if (span_is(key, "error"))
            error = value;
    }

    if (!ret->method.p && (result.p || error.p)) {
        ret->kind = RPC_IGNORE; /* we never ask the client anything */
        return;
    }
    if (ret->id.p && !is_usable_id(ret->id)) {
        ret->id = (struct span){NULL, 0};
        bad(ret, RPC_INVALID_REQUEST,
            "Invalid request: id must be a string or an integer of at most 1 KiB");
        return;
    }
    if (!span_is(version, "2.0") || span_type(ret->method) != '"') {
        if (ret->id.p)
            bad(ret, RPC_INVALID_REQUEST,
                span_is(version, "2.0") ? "Invalid request: method must be a string"
                                        : "Invalid request: jsonrpc must be \"2.0\"");
        else
            ret->kind = RPC_IGNORE;
        return;
    }
    if (!ret->id.p)
        ret->kind = RPC_NOTIFICATION;
    if (span_type(ret->params) == 'n')
        ret->params = (struct span){NULL, 0};
}

void
rpc_read(const char *line, size_t len, bool allow_batch, struct rpc *ret)
{
    struct jscan scan;
    int r = jscan(line, len, &scan);

    *ret = (struct rpc){.kind = RPC_BATCH, .params = scan.value};
    if (r == JSCAN_DUPLICATE)
        bad(ret, RPC_INVALID_REQUEST, "Invalid request: duplicate member name");
    else if (r < 0)
        bad(ret, RPC_PARSE_ERROR, jscan_message(r));
    else if (!allow_batch || !span_has_elements(scan.value))
        rpc_read_member(scan.value, ret);
    ret->has_nul = scan.has_nul;
}
