/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "api.h"

#include <kcap/http.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "daemon.h"
#include "lib/auto.h"
#include "lib/text.h"
#include "shorten.h"

#define MAX_EXCERPT_LEN 400u
#define MAX_MESSAGE_LEN 2000u
#define MAX_LINE        16384u
#define MAX_PATH_LEN    2048u
#define MAX_STARTS      3
#define LONG_BODY_LEN   (1 << 20)

/* Our note in a server's object: which of its members were shortened. */
#define CUTS "(cuts)"

void
api_answer_fini(struct api_answer *answer)
{
    cJSON_Delete(answer->json);
    free(answer->text);
    *answer = (struct api_answer){.kind = API_REFUSED};
}

void
api_add_encoded(struct buf *to, const char *text)
{
    for (; *text; text++) {
        if ((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
            (*text >= '0' && *text <= '9') || strchr("-._~", *text))
            buf_addc(to, *text);
        else
            buf_addf(to, "%%%02X", (unsigned)(unsigned char)*text);
    }
}

char *
api_path(const char *before, const char *id, const char *after)
{
    struct buf path = BUF_INIT(MAX_PATH_LEN);

    buf_adds(&path, before);
    buf_addc(&path, '/');
    api_add_encoded(&path, id);
    buf_adds(&path, after);
    return buf_take(&path, NULL);
}

static const struct kcap_http *
find_http(struct flows *flows)
{
    return flows->host->extension(flows->host, KCAP_HTTP_EXTENSION);
}

static struct kcap_http_server
find_server(struct flows *flows)
{
    const struct kcap_http *http = find_http(flows);
    struct kcap_http_server server = {.struct_size = sizeof server};

    if (http)
        http->server(http, &server);
    return server;
}

const char *
api_server(struct flows *flows)
{
    const char *url = find_server(flows).url;

    return url ? url : "";
}

bool
api_server_is_local(struct flows *flows)
{
    return find_server(flows).kind == KCAP_HTTP_SERVER_LOCAL;
}

const char *
api_server_fault(struct flows *flows)
{
    struct kcap_http_server server = find_server(flows);

    if (server.kind != KCAP_HTTP_SERVER_UNUSABLE)
        return NULL;
    return server.error ? server.error : "no usable server";
}

static int32_t
set_text(struct api_answer *answer, enum api_kind kind, const char *text)
{
    answer->kind = kind;
    answer->text = strdup(text);
    return answer->text ? 0 : KCAP_E_NOMEM;
}

/* "HTTP 502: beginning of the body" */
static int32_t
set_excerpt(struct api_answer *answer, enum api_kind kind, const char *lead,
            const struct shortener *body)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_LINE);
    size_t len = text_prefix(buf_str(&body->out), body->out.len, MAX_EXCERPT_LEN);

    buf_addf(&line, "HTTP %d%s", answer->status, lead);
    if (len > 0) {
        buf_adds(&line, ": ");
        text_add_line(&line, buf_str(&body->out), len);
        if (len < body->out.len)
            buf_adds(&line, " [cut]");
    }
    return buf_ok(&line) ? set_text(answer, kind, line.data) : KCAP_E_NOMEM;
}

static int32_t
note_cuts(cJSON *json, const struct shortener *body)
{
    cJSON *cuts;

    if (!cJSON_IsObject(json))
        return 0;
    cJSON_DeleteItemFromObjectCaseSensitive(json, CUTS); /* none of theirs */
    cuts = body->n_cuts > 0 ? cJSON_AddObjectToObject(json, CUTS) : NULL;
    for (size_t i = 0; cuts && i < body->n_cuts; i++) {
        cJSON *one = cJSON_AddObjectToObject(cuts, body->cuts[i].name);
        if (!one || !cJSON_AddNumberToObject(one, "from", (double)body->cuts[i].from) ||
            !cJSON_AddNumberToObject(one, "total", (double)body->cuts[i].total))
            return KCAP_E_NOMEM;
    }
    return cuts || body->n_cuts == 0 ? 0 : KCAP_E_NOMEM;
}

struct api_text
api_text(const cJSON *json, const char *name)
{
    struct api_text text = {.text = json_str(json, name)};
    const cJSON *cut = json_get(json_get(json, CUTS), name);

    text.total = text.text ? (int64_t)strlen(text.text) : 0;
    if (text.text && cut) {
        (void)json_int(cut, "from", &text.from);
        (void)json_int(cut, "total", &text.total);
    }
    return text;
}

/* What a 2xx is that is no answer of a flow server. */
static int32_t
set_bad(struct api_answer *answer, const struct shortener *body, const char *fault)
{
    AUTO_BUF struct buf lead = BUF_INIT(MAX_LINE);

    buf_addf(&lead, ", but not the answer of a flow server (%s)",
             body->received == 0 ? "empty"
             : body->too_long    ? "longer than allowed"
                                 : fault);
    return set_excerpt(answer, API_BAD, buf_str(&lead), body);
}

/* Rejections that are certain whatever the status. Other servers, and proxies in front of them,
 * give their failures the same shape. */
static bool
is_verdict(const char *code)
{
    static const char *const codes[] = {"flow_settlement_busy",
                                        "reviewer_launch_incarnation_superseded",
                                        "participant_unreachable",
                                        "server_catching_up",
                                        "reviewer_vendor_unavailable",
                                        "client_upgrade_required",
                                        "budget_unverifiable",
                                        "store_unavailable",
                                        "server_busy",
                                        "server_stopping",
                                        "invalid_settings",
                                        NULL};

    for (const char *const *known = codes; *known; known++) {
        if (strcmp(*known, code) == 0)
            return true;
    }
    return false;
}

/* Whether the body says that the request was turned down and had no effect. */
static bool
is_coded(int status, const cJSON *json)
{
    const char *code = json_str(json, "error");

    if (text_is_blank(code) || !json_str(json, "message"))
        return false;
    if (status >= 500)
        return is_verdict(code);
    return status >= 300 || !json_str(json, "flow_run_id");
}

static int32_t
read_answer(const struct kcap_http_response *response, const struct shortener *body,
            bool wants_list, struct api_answer *ret)
{
    const char *fault = "not a JSON object";
    bool is_2xx = response->status >= 200 && response->status < 300;

    ret->status = response->status;
    ret->retry_after_ms = response->retry_after_ms;
    if (!body->too_long)
        ret->json = json_parse(buf_str(&body->out), body->out.len, &fault);
    if (is_coded(ret->status, ret->json)) {
        ret->kind = API_CODED;
        ret->code = json_str(ret->json, "error");
        ret->message = json_str(ret->json, "message");
        return 0;
    }
    if (is_2xx && (wants_list ? cJSON_IsArray(ret->json) : cJSON_IsObject(ret->json))) {
        ret->kind = API_OK;
        return note_cuts(ret->json, body);
    }
    cJSON_Delete(take_ptr(ret->json));
    if (is_2xx)
        return set_bad(ret, body, fault);
    if (response->status >= 300 && response->status < 400)
        return set_excerpt(ret, API_STATUS,
                           ", a redirect, which is not followed; check the server's address",
                           body);
    if (response->status == 401) {
        AUTO_BUF struct buf lead = BUF_INIT(MAX_LINE);
        /* the http service knows whose login it is and who can mend it */
        buf_addf(&lead, ", %s",
                 response->error ? response->error : "the server asks for a login");
        return set_excerpt(ret, API_STATUS, buf_str(&lead), body);
    }
    return set_excerpt(ret, API_STATUS, "", body);
}

static int32_t
receive(void *arg, const char *bytes, size_t len)
{
    struct shortener *body = arg;

    if (!bytes) {
        shorten_clear(body);
        return 0;
    }
    /* every thread's pool keeps what its last long answer took, and there are many threads */
    if (body->received < LONG_BODY_LEN && body->received + (int64_t)len >= LONG_BODY_LEN)
        (void)malloc_trim(0);
    return shorten_add(body, bytes, len) ? 0 : -1;
}

/* Whether a lost answer may simply be asked for again: a local server that was killed has
 * dropped the connections it had not got to. */
static bool
may_ask_again(const struct kcap_host *host, const struct kcap_http_request *request,
              const struct kcap_http_response *response)
{
    return response->outcome == KCAP_HTTP_UNKNOWN && strcmp(request->method, "GET") == 0 &&
           host->now_ns(host) < request->until_ns;
}

/* Sends once; to a local server again after it had to be started (nothing had been sent then),
 * and a lost GET once more. */
static int32_t
exchange(struct flows *flows, struct kcap_call *call, const struct kcap_http *http,
         bool is_local, struct kcap_http_request *request, struct kcap_http_response **ret,
         char **ret_error)
{
    int starts = 0, repeats = 0;

    for (;;) {
        int32_t r = http->request(http, call, request, ret);
        if (r != 0 || !is_local)
            return r;
        if (may_ask_again(flows->host, request, *ret)) {
            if (repeats++ == 1)
                return 0;
        } else {
            if ((*ret)->outcome != KCAP_HTTP_NOT_SENT || starts++ == MAX_STARTS ||
                flows->host->now_ns(flows->host) >= request->until_ns)
                return 0;
            r = daemon_start(flows->host, call, ret_error);
            if (r != 0 || *ret_error)
                return r;
        }
        http->response_free(http, *ret);
        *ret = NULL;
    }
}

static int32_t
refuse(struct api_answer *ret, int32_t r)
{
    if (r == KCAP_E_REFUSED)
        return set_text(ret, API_REFUSED,
                        "this id cannot be part of a request; give it exactly as it was shown");
    return r == KCAP_E_NOMEM ? r : set_text(ret, API_REFUSED, "the request could not be made");
}

/* With a server that can be asked; body collects its answer. */
static int32_t
request_from(struct flows *flows, struct kcap_call *call, const struct kcap_http *http,
             bool is_local, const struct api_request *request, struct shortener *body,
             struct api_answer *ret)
{
    struct kcap_http_response *response = NULL;
    AUTO_FREE char *error = NULL;
    struct kcap_http_request wire = {
        .struct_size = sizeof wire,
        .method = request->method,
        .path = request->path,
        .body = request->body,
        .body_len = request->body_len,
        .until_ns = flows->host->now_ns(flows->host) + request->limit_ms * NS_PER_MS,
        .receive = receive,
        .receive_arg = body,
    };
    int32_t r = exchange(flows, call, http, is_local, &wire, &response, &error);

    if (r < 0)
        r = refuse(ret, r);
    else if (r == 0 && error)
        r = set_text(ret, API_NOT_SENT, error);
    else if (r == 0 && response->outcome == KCAP_HTTP_ANSWER)
        r = read_answer(response, body, request->wants_list, ret);
    else if (r == 0)
        r = set_text(ret, response->outcome == KCAP_HTTP_NOT_SENT ? API_NOT_SENT : API_UNKNOWN,
                     response->error ? response->error : "the request failed");
    http->response_free(http, response);
    return r;
}

int32_t
api_request(struct flows *flows, struct kcap_call *call, const struct api_request *request,
            struct api_answer *ret)
{
    const struct kcap_http *http = find_http(flows);
    struct kcap_http_server server = {.struct_size = sizeof server};
    struct shortener body;
    int32_t r;

    *ret = (struct api_answer){.kind = API_REFUSED, .retry_after_ms = -1};
    if (!http)
        return set_text(ret, API_REFUSED,
                        "kcap-host's HTTP service (http.so) could not be loaded; its log has "
                        "the reason");
    http->server(http, &server);
    if (server.kind == KCAP_HTTP_SERVER_UNUSABLE)
        return set_text(ret, API_REFUSED, server.error ? server.error : "no usable server");
    shorten_init(&body, API_MAX_TEXT, request->text_offset);
    r = request_from(flows, call, http, server.kind == KCAP_HTTP_SERVER_LOCAL, request, &body,
                     ret);
    shorten_fini(&body);
    if (r != 0)
        api_answer_fini(ret);
    return r;
}

void
api_add_error(struct buf *to, const struct api_answer *answer)
{
    if (answer->kind != API_CODED) {
        buf_adds(to, "Error: ");
        buf_adds(to, answer->text);
        return;
    }
    buf_adds(to, "Error (");
    text_add_line(to, answer->code, text_prefix(answer->code, strlen(answer->code), 200));
    buf_adds(to, "): ");
    text_add_line(to, answer->message,
                  text_prefix(answer->message, strlen(answer->message), MAX_MESSAGE_LEN));
    if (strcmp(answer->code, "server_catching_up") == 0)
        buf_adds(to, " (temporary: wait some minutes, or ask the user)");
}
