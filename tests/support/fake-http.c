/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <assert.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fake-private.h"

#define MAX_REPLIES 64

struct fake_http {
    struct kcap_http table; /* first */
    struct fake_host *fake;
    uint32_t kind;
    const char *url, *error;
    struct fake_reply replies[MAX_REPLIES];
    size_t n_replies;
    struct fake_request *requests;
    size_t n_requests;
};

static struct fake_http *
http_of(const struct kcap_http *http)
{
    return (struct fake_http *)(uintptr_t)http;
}

static void
http_server(const struct kcap_http *http, struct kcap_http_server *ret)
{
    ret->kind = http_of(http)->kind;
    ret->url = http_of(http)->url;
    ret->source = ret->kind == KCAP_HTTP_SERVER_LOCAL ? "local kcap-flowd" : "KCAP_URL";
    ret->error = http_of(http)->error;
}

static const struct fake_reply *
pick(struct fake_http *http, const struct kcap_http_request *request)
{
    static const struct fake_reply none = {.status = 404};

    for (size_t i = 0; i < http->n_replies; i++) {
        struct fake_reply *reply = &http->replies[i];
        if ((reply->method && strcmp(reply->method, request->method) != 0) ||
            (reply->path && fnmatch(reply->path, request->path, 0) != 0) ||
            reply->times == UINT_MAX)
            continue;
        if (reply->times > 0 && --reply->times == 0)
            reply->times = UINT_MAX; /* used up */
        return reply;
    }
    return &none;
}

static size_t
record(struct fake_http *http, const struct kcap_http_request *request)
{
    struct fake_request *all =
        realloc(http->requests, (http->n_requests + 1) * sizeof *http->requests);

    assert(all);
    http->requests = all;
    all[http->n_requests] = (struct fake_request){
        .method = strdup(request->method),
        .path = strdup(request->path),
        .body = request->body ? strndup(request->body, request->body_len) : NULL,
        .at_ms = fake_host_now_ms(http->fake),
    };
    return http->n_requests++;
}

static struct kcap_http_response *
make_response(const struct fake_reply *reply, bool timed_out)
{
    struct kcap_http_response *response = calloc(1, sizeof *response);
    const char *body = reply->body ? reply->body : "";
    size_t len = reply->body_len ? reply->body_len : strlen(body);
    char *copy = calloc(1, len + 1);

    assert(response && copy);
    memcpy(copy, body, len);
    *response = (struct kcap_http_response){
        .struct_size = sizeof *response,
        .outcome = timed_out ? KCAP_HTTP_UNKNOWN : reply->outcome,
        .body = copy,
        .content_type = "application/json",
        .retry_after_ms = reply->retry_after_sec ? reply->retry_after_sec * 1000 : -1,
    };
    if (response->outcome == KCAP_HTTP_ANSWER) {
        response->status = reply->status ? reply->status : 200;
        response->body_len = len;
        response->error = response->status == 401 ? reply->error : NULL;
    } else {
        response->error = timed_out ? "the server did not answer in time" : reply->error;
    }
    return response;
}

/* In pieces that end anywhere. */
static void
hand_over(const struct kcap_http_request *request, struct kcap_http_response *response)
{
    size_t at = 0, piece = 7;

    (void)request->receive(request->receive_arg, NULL, 0);
    for (; at < response->body_len; at += piece) {
        piece = piece * 3 % 1021 + 1;
        if (piece > response->body_len - at)
            piece = response->body_len - at;
        if (request->receive(request->receive_arg, response->body + at, piece) != 0) {
            response->outcome = KCAP_HTTP_UNKNOWN;
            response->status = 0;
            response->error = "its answer is longer than allowed";
            break;
        }
    }
    response->body_len = 0;
}

static int32_t
http_request(const struct kcap_http *table, struct kcap_call *call,
             const struct kcap_http_request *request, struct kcap_http_response **ret)
{
    struct fake_http *http = http_of(table);
    const struct fake_reply *reply;
    int64_t ready_ns;
    bool late;
    size_t at;
    int32_t r;

    *ret = NULL;
    if (fake_host_fails(http->fake))
        return KCAP_E_NOMEM;
    at = record(http, request);
    reply = pick(http, request);
    if (reply->returns)
        return reply->returns;
    ready_ns = reply->delay_ms == FAKE_NEVER
                   ? FAKE_NEVER
                   : (fake_host_now_ms(http->fake) + reply->delay_ms) * FAKE_NS_PER_MS;
    late = ready_ns > request->until_ns;
    r = fake_wait(call, KCAP_SEQ_NONE, NULL, 0, late ? request->until_ns : ready_ns);
    if (r != KCAP_WAIT_TIMEOUT) {
        http->requests[at].aborted = true;
        return r;
    }
    *ret = make_response(reply, late);
    if (request->receive)
        hand_over(request, *ret);
    return 0;
}

static void
http_response_free(const struct kcap_http *http, struct kcap_http_response *response)
{
    (void)http;
    if (!response)
        return;
    free((void *)(uintptr_t)response->body);
    free(response);
}

struct fake_http *
fake_http_new(struct fake_host *fake)
{
    struct fake_http *http = calloc(1, sizeof *http);

    assert(http);
    http->table = (struct kcap_http){
        .struct_size = sizeof http->table,
        .server = http_server,
        .request = http_request,
        .response_free = http_response_free,
    };
    http->fake = fake;
    http->kind = KCAP_HTTP_SERVER_CONFIGURED;
    http->url = "http://127.0.0.1:1";
    return http;
}

void
fake_http_free(struct fake_http *http)
{
    for (size_t i = 0; i < http->n_requests; i++) {
        free(http->requests[i].method);
        free(http->requests[i].path);
        free(http->requests[i].body);
    }
    free(http->requests);
    free(http);
}

const struct kcap_http *
fake_http_table(struct fake_http *http)
{
    return &http->table;
}

void
fake_http_set_server(struct fake_http *http, uint32_t kind, const char *url, const char *error)
{
    http->kind = kind;
    http->url = url;
    http->error = error;
}

void
fake_http_script(struct fake_http *http, const struct fake_reply *replies, size_t n)
{
    assert(n <= MAX_REPLIES);
    if (n > 0)
        memcpy(http->replies, replies, n * sizeof *replies);
    http->n_replies = n;
}

const struct fake_request *
fake_http_requests(struct fake_http *http, size_t *ret_n)
{
    *ret_n = http->n_requests;
    return http->requests;
}
