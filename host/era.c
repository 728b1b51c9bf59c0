/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/era.h"

#include <stddef.h>
#include <string.h>

#include "host/rpc.h"

#define PREFIX "io.modelcontextprotocol/"

static const char *const handshake[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};
static const char *const log_levels[] = {"debug", "info",     "notice", "warning",
                                         "error", "critical", "alert",  "emergency"};

static bool
is_one_of(struct span value, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (span_is(value, words[i]))
            return true;
    }
    return false;
}

static int
bad(const char *text, const char **ret_text)
{
    *ret_text = text;
    return RPC_INVALID_PARAMS;
}

int
era_read(struct span params, struct era *ret, const char **ret_text, struct span *ret_requested)
{
    struct span meta = span_get(params, "_meta"), version, level, client, capabilities;

    *ret = (struct era){.stateless = false};
    if (!meta.p || span_type(meta) == 'n')
        return 0;
    if (span_type(meta) != '{')
        return bad("Invalid params: _meta must be an object", ret_text);
    ret->meta = meta;
    version = span_get(meta, PREFIX "protocolVersion");
    client = span_get(meta, PREFIX "clientInfo");
    capabilities = span_get(meta, PREFIX "clientCapabilities");
    if (!version.p) {
        if (client.p || capabilities.p)
            return bad("Invalid params: _meta lacks " PREFIX "protocolVersion", ret_text);
        return 0;
    }
    if (span_type(version) != '"')
        return bad("Invalid params: " PREFIX "protocolVersion must be a string", ret_text);
    if (!span_is(version, ERA_STATELESS_VERSION)) {
        *ret_text = "Unsupported protocol version";
        *ret_requested = version;
        return RPC_UNSUPPORTED_VERSION;
    }
    if (span_type(capabilities) != '{')
        return bad("Invalid params: _meta lacks " PREFIX "clientCapabilities, an object",
                   ret_text);
    if (client.p && (span_type(span_get(client, "name")) != '"' ||
                     span_type(span_get(client, "version")) != '"'))
        return bad("Invalid params: " PREFIX "clientInfo needs a name and a version", ret_text);
    level = span_get(meta, PREFIX "logLevel");
    if (level.p && !is_one_of(level, log_levels, sizeof log_levels / sizeof log_levels[0]))
        return bad("Invalid params: unknown " PREFIX "logLevel", ret_text);
    ret->stateless = true;
    ret->client = client;
    ret->capabilities = capabilities;
    return 0;
}

const char *
era_negotiate(struct span version)
{
    for (size_t i = 0; i < sizeof handshake / sizeof handshake[0]; i++) {
        if (span_is(version, handshake[i]))
            return handshake[i];
    }
    return ERA_HANDSHAKE_LATEST;
}
