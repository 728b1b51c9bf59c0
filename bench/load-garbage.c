/* SPDX-License-Identifier: Apache-2.0 */
/* The scenario that sends what no client should. */
#include "bench/load.h"

#include <stdio.h>
#include <string.h>

void
sc_garbage(void)
{
    static const struct {
        const char *name, *line;
    } G[] = {
        {"not_json", "hello"},
        {"truncated", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":"},
        {"empty_line", ""},
        {"array_empty", "[]"},
        {"number", "42"},
        {"null", "null"},
        {"no_method", "{\"jsonrpc\":\"2.0\",\"id\":5}"},
        {"method_number", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":7}"},
        {"id_null", "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}"},
        {"id_object", "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}"},
        {"id_big", "{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"ping\"}"},
        {"id_string", "{\"jsonrpc\":\"2.0\",\"id\":\"a-b\",\"method\":\"ping\"}"},
        {"unknown_method", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"no/such\"}"},
        {"unknown_notification", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/no_such\"}"},
        {"call_no_params", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\"}"},
        {"call_params_array",
         "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":[]}"},
        {"call_name_number",
         "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":3}}"},
        {"call_args_string", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/"
                             "call\",\"params\":{\"name\":\"echo\",\"arguments\":\"x\"}}"},
        {"call_unknown_tool", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/"
                              "call\",\"params\":{\"name\":\"nope\",\"arguments\":{}}}"},
        {"no_jsonrpc", "{\"id\":5,\"method\":\"ping\"}"},
        {"batch", "[{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"},{\"jsonrpc\":\"2.0\","
                  "\"id\":6,\"method\":\"ping\"}]"},
        {"bad_utf8", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\",\"x\":\"\xff\xfe\"}"},
        {"crlf", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\r"},
        {"dup_key", "{\"jsonrpc\":\"2.0\",\"id\":5,\"id\":6,\"method\":\"ping\"}"},
    };
    out_head("garbage");
    long lived = 0, total = (long)(sizeof G / sizeof *G);
    printf(",\"cases\":{");
    for (long i = 0; i < total; i++) {
        struct server s;
        struct buf b = BUF_INIT(LOAD_MAX);
        size_t off = 0;
        bool alive = false, timeout = false;
        char first[200] = "";
        server_spawn(&s);
        if (handshake(&s, NULL, NULL) == 1) {
            char *line0;
            size_t len0; /* drop what a server says unasked after the handshake */
            double quiet = now() + 0.03;
            while (server_io(&s, NULL, NULL, quiet, &line0, &len0, false) == 1)
                server_take(&s, len0);
            buf_adds(&b, G[i].line);
            buf_adds(&b, "\n");
            req_ping(&b, 777777);
            double dl = now() + 1.0;
            for (;;) {
                char *line;
                size_t len;
                struct top t;
                int r = server_io(&s, &b, &off, dl, &line, &len, false);
                if (r != 1) {
                    timeout = r == 0;
                    break;
                }
                look(line, len, &t);
                if (t.id == 777777 && (t.has_result || t.is_error)) {
                    alive = true;
                    server_take(&s, len);
                    break;
                }
                if (!first[0]) {
                    size_t k = len < 90 ? len : 90, w = 0;
                    for (size_t j = 0; j < k && w < sizeof first - 2; j++) {
                        unsigned char c = (unsigned char)line[j];
                        if (c == '"')
                            first[w++] = '\'';
                        else
                            first[w++] = (c < 32 || c > 126 || c == '\\') ? '.' : (char)c;
                    }
                    first[w] = 0;
                }
                server_take(&s, len);
            }
        }
        int st = 0;
        server_stop(&s, &st);
        buf_fini(&b);
        if (alive)
            lived++;
        printf("%s\"%s\":{\"alive\":%s%s,\"reply\":\"%s\"}", i ? "," : "", G[i].name,
               alive ? "true" : "false", timeout ? ",\"hung\":true" : "", first);
    }
    printf("},\"alive\":%ld,\"of\":%ld}\n", lived, total);
    fflush(stdout);
}
