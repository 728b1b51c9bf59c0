/* SPDX-License-Identifier: Apache-2.0 */
/* What is sent, and a look at what comes back. */
#include "bench/load.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *
skip_string(const char *p, const char *e)
{ /* p after quote */
    while (p < e) {
        const char *q = memchr(p, '"', (size_t)(e - p));
        if (!q)
            return e;
        const char *b = q;
        while (b > p && b[-1] == '\\')
            b--;
        p = q + 1;
        if (((q - b) & 1) == 0)
            return p;
    }
    return e;
}

void
look(const char *p, size_t n, struct top *t)
{
    const char *e = p + n;
    int depth = 0;
    memset(t, 0, sizeof *t);
    t->id = -1;
    while (p < e) {
        char c = *p++;
        if (c == '{' || c == '[')
            depth++;
        else if (c == '}' || c == ']')
            depth--;
        else if (c == '"') {
            const char *k = p;
            p = skip_string(p, e);
            if (depth > 2)
                continue;
            size_t kl = (size_t)(p - k) - 1;
            const char *v = p;
            while (v < e && isspace((unsigned char)*v))
                v++;
            if (v >= e || *v != ':')
                continue;
            v++;
            while (v < e && isspace((unsigned char)*v))
                v++;
            if (depth == 1) {
                if (kl == 2 && !memcmp(k, "id", 2)) {
                    if (v < e && *v == '"')
                        v++;
                    if (v < e && isdigit((unsigned char)*v)) {
                        t->id = strtol(v, NULL, 10);
                        t->has_id = true;
                    }
                } else if (kl == 5 && !memcmp(k, "error", 5))
                    t->is_error = true;
                else if (kl == 6 && !memcmp(k, "result", 6))
                    t->has_result = true;
                else if (kl == 6 && !memcmp(k, "method", 6))
                    t->has_method = true;
            } else if (kl == 7 && !memcmp(k, "isError", 7) && v < e && *v == 't')
                t->tool_error = true;
        }
    }
}

int
next_response(struct server *s, struct buf *tx, size_t *off, double deadline, struct top *t,
              size_t *bytes, double *t_line)
{
    for (;;) {
        char *line;
        size_t len;
        int rc = server_io(s, tx, off, deadline, &line, &len, false);
        if (rc <= 0)
            return rc;
        if (t_line)
            *t_line = now();
        if (bytes)
            *bytes = len;
        if (options.dump)
            fprintf(stderr, "< %.*s\n", (int)(len > 400 ? 400 : len), line);
        if (options.raw) {
            memset(t, 0, sizeof *t);
            look(line, len > 512 ? 512 : len, t);
            server_take(s, len);
            return 1;
        }
        look(line, len, t);
        server_take(s, len);
        if (t->has_method || (!t->has_result && !t->is_error)) {
            s->notes++;
            continue;
        }
        if (t->is_error)
            s->errors++;
        if (t->tool_error)
            s->tool_errors++;
        return 1;
    }
}

/* --------------------------------------------------------------- requests */
void
req_head(struct buf *b, long id, const char *method)
{
    buf_adds(b, "{\"jsonrpc\":\"2.0\",\"id\":");
    if (options.string_ids)
        buf_adds(b, "\"");
    buf_addf(b, "%ld", id);
    if (options.string_ids)
        buf_adds(b, "\"");
    buf_adds(b, ",\"method\":\"");
    buf_adds(b, method);
    buf_adds(b, "\"");
}

void
add_meta(struct buf *b, bool comma)
{
    if (!options.stateless)
        return;
    if (comma)
        buf_adds(b, ",");
    buf_adds(b, "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"");
    buf_adds(b, options.proto);
    buf_adds(b, "\",\"io.modelcontextprotocol/clientInfo\":{\"name\":\"mcp_load\","
                "\"version\":\"1\"},\"io.modelcontextprotocol/clientCapabilities\":{}}");
}

void
req_plain(struct buf *b, long id, const char *method)
{
    req_head(b, id, method);
    if (options.stateless) {
        buf_adds(b, ",\"params\":{");
        add_meta(b, false);
        buf_adds(b, "}");
    }
    buf_adds(b, "}\n");
}

/* a server that has no initialize has no ping either: discover stands in */
void
req_ping(struct buf *b, long id)
{
    req_plain(b, id, options.stateless ? "server/discover" : "ping");
}

void
req_call(struct buf *b, long id, const char *tool, const char *args)
{
    req_head(b, id, "tools/call");
    buf_adds(b, ",\"params\":{\"name\":\"");
    buf_adds(b, tool);
    buf_adds(b, "\",\"arguments\":");
    buf_adds(b, args);
    add_meta(b, true);
    buf_adds(b, "}}\n");
}

static void
req_init(struct buf *b, long id)
{
    if (options.stateless) {
        req_plain(b, id, "server/discover");
        return;
    }
    req_head(b, id, "initialize");
    buf_adds(b, ",\"params\":{\"protocolVersion\":\"");
    buf_adds(b, options.proto);
    buf_adds(
        b,
        "\",\"capabilities\":{},\"clientInfo\":{\"name\":\"mcp_load\",\"version\":\"1\"}}}\n");
}

int
handshake(struct server *s, double *first, double *last)
{
    struct buf b = BUF_INIT(LOAD_MAX);
    size_t off = 0;
    struct top t;
    if (options.raw)
        return 1;
    req_init(&b, 0);
    double lim = now() + options.timeout;
    /* first byte: push the request, then wait for readability */
    server_io(s, &b, &off, lim, NULL, NULL, true);
    struct pollfd pf = {s->out, POLLIN, 0};
    poll(&pf, 1, (int)(options.timeout * 1e3));
    if (first)
        *first = now() - s->t_spawn;
    double tl = 0;
    int rc = next_response(s, &b, &off, lim, &t, NULL, &tl);
    if (last)
        *last = tl - s->t_spawn;
    buf_fini(&b);
    if (rc == 1 && !options.stateless) {
        struct buf c = BUF_INIT(LOAD_MAX);
        size_t o2 = 0;
        buf_adds(&c, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
        while (o2 < c.len && s->in >= 0 && now() < lim)
            if (server_io(s, &c, &o2, lim, NULL, NULL, true) != 2)
                break;
        buf_fini(&c);
    }
    return rc;
}
