/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/reply.h"

#include <string.h>

#include "host/calls.h"
#include "host/rpc.h"
#include "lib/text.h"

/* JSON text from elsewhere may be laid out over lines; between values, a line end is but a
 * space. */
static void
add_json_on_one_line(struct buf *to, const char *json, size_t len)
{
    size_t from = to->len;

    buf_add(to, json, len);
    for (size_t i = from; buf_ok(to) && i < to->len; i++) {
        if (to->data[i] == '\n' || to->data[i] == '\r')
            to->data[i] = ' ';
    }
}

static void
begin(struct buf *to, struct span id)
{
    buf_adds(to, "{\"jsonrpc\":\"2.0\"");
    if (id.p) {
        buf_adds(to, ",\"id\":");
        buf_add(to, id.p, id.len);
    }
}

static void
begin_result(struct buf *to, struct span id, const char *server_info)
{
    begin(to, id);
    buf_adds(to, ",\"result\":{");
    if (server_info)
        buf_addf(to,
                 "\"resultType\":\"complete\",\"_meta\":{\"io.modelcontextprotocol/"
                 "serverInfo\":%s},",
                 server_info);
}

/* Ends a result whose last member may have left a comma. */
static void
end_result(struct buf *to)
{
    if (buf_ok(to) && to->len > 0 && to->data[to->len - 1] == ',')
        to->data[--to->len] = '\0';
    buf_adds(to, "}}\n");
}

void
reply_result(struct buf *to, struct span id, const char *members, const char *server_info,
             bool cacheable)
{
    begin_result(to, id, server_info);
    if (server_info &&
        cacheable) /* our lists are the same for everyone and for the process's life */
        buf_adds(to, "\"ttlMs\":300000,\"cacheScope\":\"public\",");
    buf_adds(to, members);
    end_result(to);
}

void
reply_error(struct buf *to, struct span id, int code, const char *message, const char *data)
{
    begin(to, id);
    buf_addf(to, ",\"error\":{\"code\":%d,\"message\":", code);
    text_add_json(to, message, strlen(message));
    if (data)
        buf_addf(to, ",\"data\":%s", data);
    buf_adds(to, "}}\n");
}

static void
add_content(struct buf *to, const struct answer *answer)
{
    buf_adds(to, "\"content\":");
    if (answer->is_content) {
        add_json_on_one_line(to, answer->text, answer->text_len);
        return;
    }
    buf_adds(to, "[{\"type\":\"text\",\"text\":");
    text_add_json(to, answer->text, answer->text_len);
    buf_adds(to, "}]");
}

void
reply_call(struct buf *to, const struct kcap_call *call, const struct answer *answer)
{
    struct span id = {call->id, call->id ? strlen(call->id) : 0};

    if (answer->missing_capability) {
        AUTO_BUF struct buf data = BUF_INIT(1024);

        buf_adds(&data, "{\"requiredCapabilities\":{");
        text_add_json(&data, answer->missing_capability, strlen(answer->missing_capability));
        buf_adds(&data, ":{}}}");
        reply_error(to, id, RPC_MISSING_CAPABILITY, "Missing required client capability",
                    buf_str(&data));
        return;
    }
    (void)buf_reserve(to, answer->text_len + answer->json_len); /* growing holds it twice */
    begin_result(to, id, call->stateless ? call->host->server_info : NULL);
    add_content(to, answer);
    if (answer->json) {
        buf_adds(to, ",\"structuredContent\":");
        add_json_on_one_line(to, answer->json, answer->json_len);
    }
    if (answer->is_error)
        buf_adds(to, ",\"isError\":true");
    end_result(to);
}

void
reply_progress(struct buf *to, const char *token, double done, double total, const char *text)
{
    buf_adds(to, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{");
    buf_addf(to, "\"progressToken\":%s,\"progress\":%.15g", token, done);
    if (total >= 0)
        buf_addf(to, ",\"total\":%.15g", total);
    if (text) {
        buf_adds(to, ",\"message\":");
        text_add_json(to, text, strlen(text));
    }
    buf_adds(to, "}}\n");
}

static void
add_hint(struct buf *to, const char *name, uint32_t hints, uint32_t hint)
{
    buf_addf(to, ",\"%s\":%s", name, hints & hint ? "true" : "false");
}

static void
add_member(struct buf *to, const char *name, const char *text)
{
    if (!text)
        return;
    buf_addf(to, ",\"%s\":", name);
    text_add_json(to, text, strlen(text));
}

static void
add_tool(struct buf *to, const struct kcap_tool *tool)
{
    buf_adds(to, "{\"name\":");
    text_add_json(to, tool->name, strlen(tool->name));
    add_member(to, "title", tool->title);
    add_member(to, "description", tool->description);
    buf_adds(to, ",\"inputSchema\":");
    add_json_on_one_line(to, tool->input_schema, strlen(tool->input_schema));
    if (tool->output_schema) {
        buf_adds(to, ",\"outputSchema\":");
        add_json_on_one_line(to, tool->output_schema, strlen(tool->output_schema));
    }
    buf_addf(to, ",\"annotations\":{\"readOnlyHint\":%s",
             tool->hints & KCAP_HINT_READ_ONLY ? "true" : "false");
    add_hint(to, "destructiveHint", tool->hints, KCAP_HINT_DESTRUCTIVE);
    add_hint(to, "idempotentHint", tool->hints, KCAP_HINT_IDEMPOTENT);
    add_hint(to, "openWorldHint", tool->hints, KCAP_HINT_OPEN_WORLD);
    buf_adds(to, "}}");
}

void
reply_tools(struct buf *to, const struct kcap_plugin *plugin)
{
    buf_adds(to, "\"tools\":[");
    for (size_t i = 0; plugin->tools && plugin->tools[i]; i++) {
        if (i > 0)
            buf_addc(to, ',');
        add_tool(to, plugin->tools[i]);
    }
    buf_adds(to, "]");
}
