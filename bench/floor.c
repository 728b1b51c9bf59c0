/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor under every number: the least a server written with cJSON can do. It reads lines,
 * parses them, answers initialize, ping, tools/list and tools/call (echo) in one thread, and
 * checks nothing.
 */
#define _GNU_SOURCE
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char out[1 << 16];
static size_t out_len;

static void
flush_out(void)
{
    size_t at = 0;

    while (at < out_len) {
        ssize_t n = write(STDOUT_FILENO, out + at, out_len - at);
        if (n <= 0)
            _exit(0);
        at += (size_t)n;
    }
    out_len = 0;
}

static void
put(const char *text, size_t len)
{
    if (len > sizeof out - out_len)
        flush_out();
    if (len > sizeof out) {
        if (write(STDOUT_FILENO, text, len) < 0)
            _exit(0);
        return;
    }
    memcpy(out + out_len, text, len);
    out_len += len;
}

static cJSON *
result_of(const cJSON *request)
{
    const char *method =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(request, "method"));
    const cJSON *params = cJSON_GetObjectItemCaseSensitive(request, "params");
    const cJSON *args = cJSON_GetObjectItemCaseSensitive(params, "arguments");
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(args, "text"));
    cJSON *result = cJSON_CreateObject();

    if (method && strcmp(method, "initialize") == 0) {
        cJSON_AddStringToObject(result, "protocolVersion", "2025-06-18");
        cJSON_AddObjectToObject(cJSON_AddObjectToObject(result, "capabilities"), "tools");
        cJSON_AddStringToObject(cJSON_AddObjectToObject(result, "serverInfo"), "name", "floor");
    } else if (method && strcmp(method, "tools/call") == 0) {
        cJSON *block = cJSON_CreateObject();
        cJSON_AddStringToObject(block, "type", "text");
        cJSON_AddStringToObject(block, "text", text ? text : "");
        cJSON_AddItemToArray(cJSON_AddArrayToObject(result, "content"), block);
    } else if (method && strcmp(method, "tools/list") == 0) {
        cJSON_AddArrayToObject(result, "tools");
    }
    return result;
}

static void
answer(char *line, size_t len)
{
    cJSON *request = cJSON_ParseWithLength(line, len), *response;
    cJSON *id = cJSON_DetachItemFromObjectCaseSensitive(request, "id");
    char *text;

    if (id) {
        response = cJSON_CreateObject();
        cJSON_AddStringToObject(response, "jsonrpc", "2.0");
        cJSON_AddItemToObject(response, "id", id);
        cJSON_AddItemToObject(response, "result", result_of(request));
        text = cJSON_PrintUnformatted(response);
        put(text, strlen(text));
        put("\n", 1);
        free(text);
        cJSON_Delete(response);
    }
    cJSON_Delete(request);
}

int
main(void)
{
    size_t cap = 1 << 20, len = 0;
    char *in = malloc(cap);
    ssize_t n;

    while (in && (n = read(STDIN_FILENO, in + len, cap - len)) > 0) {
        size_t begin = 0;
        char *lf;

        len += (size_t)n;
        while ((lf = memchr(in + begin, '\n', len - begin))) {
            answer(in + begin, (size_t)(lf - in) - begin);
            begin = (size_t)(lf - in) + 1;
        }
        memmove(in, in + begin, len - begin);
        len -= begin;
        flush_out();
        if (len == cap)
            in = realloc(in, cap *= 2);
    }
    return 0;
}
