/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/api.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/auto.h"
#include "lib/text.h"
#include "server/api_internal.h"
#include "server/log.h"

#define MAX_MESSAGE 4000

static const struct {
    int code;
    int status;
    const char *error;
    const char *message;
} refusals[] = {
    {ENGINE_UNKNOWN_FLOW, 404, "unknown_flow",
     "This server has no run of that id. List the session's runs with a status call without an "
     "id."},
    {ENGINE_RUN_CLOSED, 409, "run_closed", "The run is closed; start a new one."},
    {ENGINE_RUN_FAILED, 409, "run_failed",
     "The run has failed; its status says why. Close it and start a new one."},
    {ENGINE_TOO_MANY_MESSAGES, 429, "too_many_messages",
     "The driver has not read the last 100 messages yet. Put what is left into the result."},
    {ENGINE_MESSAGE_ID_IN_USE, 409, "message_id_in_use",
     "Another message of this run has that message_id; send this one with a new id."},
    {ENGINE_PARTICIPANT_NEEDED, 400, "participant_required",
     "The run has several participants: name the one that is meant in \"participant\"."},
    {ENGINE_ROUND_IN_PROGRESS, 409, "round_in_progress",
     "The reviewer is still at work on the round before; wait for its result first."},
    {ENGINE_NO_ACTIVE_FLOW, 409, "no_active_flow",
     "No open run belongs to this reviewer: the run was closed."},
    {ENGINE_NO_OPEN_ROUND, 409, "no_open_round", "No round of this run is open at the moment."},
    {ENGINE_STALE_ROUND_TOKEN, 409, "stale_round_token",
     "This round_token belongs to a round that has ended. Discard this result; do not send it "
     "in another way."},
};

int
api_fail(struct api_call *call, int status, const char *code, const char *format, ...)
{
    char text[MAX_MESSAGE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    call->fail_status = status;
    call->fail_code = code;
    buf_clear(&call->fail_message);
    text_add_clean(&call->fail_message, text, strlen(text));
    return API_REJECTED;
}

int
api_text(struct api_call *call, const char *name, bool required, const char **ret)
{
    const cJSON *member = json_get(call->body, name);

    *ret = cJSON_GetStringValue(member);
    if (member && !*ret)
        return api_fail(call, 400, "invalid_request", "\"%s\" must be a string.", name);
    if (!member && required)
        return api_fail(call, 400, "invalid_request", "\"%s\" is missing; it must be a string.",
                        name);
    return 0;
}

int
api_check_bool(struct api_call *call, const char *name)
{
    const cJSON *member = json_get(call->body, name);

    if (member && !cJSON_IsBool(member))
        return api_fail(call, 400, "invalid_request", "\"%s\" must be true or false.", name);
    return 0;
}

int
api_check_int(struct api_call *call, const char *name)
{
    int64_t value;

    if (json_get(call->body, name) && !json_int(call->body, name, &value))
        return api_fail(call, 400, "invalid_request", "\"%s\" must be a whole number.", name);
    return 0;
}

/* ---- routes ---- */

static int
hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

char *
api_decode(const char *segment, size_t len)
{
    AUTO_FREE char *text = malloc(len + 1);
    size_t n = 0;

    for (size_t i = 0; text && i < len; i++) {
        char c = segment[i];
        if (c == '%') {
            int high = len - i > 2 ? hex_digit(segment[i + 1]) : -1;
            int low = len - i > 2 ? hex_digit(segment[i + 2]) : -1;
            if (high < 0 || low < 0)
                return NULL;
            c = (char)(high * 16 + low);
            i += 2;
        }
        if ((unsigned char)c < 0x20 || c == 0x7f)
            return NULL;
        text[n++] = c;
    }
    if (!text || n == 0 || !text_is_utf8(text, n))
        return NULL;
    text[n] = '\0';
    return take_ptr(text);
}

/* Whether path has the route's shape; *ret_variable is what stands for "*". */
static bool
matches(const struct api_route *route, const char *path, const char **ret_variable,
        size_t *ret_len)
{
    const char *shape = route->path;

    *ret_variable = NULL;
    while (*shape && *path) {
        if (*shape == '*') {
            *ret_variable = path;
            *ret_len = strcspn(path, "/");
            path += *ret_len;
            shape++;
        } else if (*shape++ != *path++) {
            return false;
        }
    }
    return *shape == '\0' && *path == '\0' && !(*ret_variable && *ret_len == 0);
}

static const struct api_route *
find_in(const struct api_route *routes, const struct api_request *request, bool *path_known,
        char **ret_id)
{
    for (; routes->method; routes++) {
        const char *variable;
        size_t len = 0;
        if (!matches(routes, request->path, &variable, &len))
            continue;
        *path_known = true;
        if (strcmp(routes->method, request->method) != 0)
            continue;
        *ret_id = variable ? api_decode(variable, len) : NULL;
        if (variable && !*ret_id)
            *path_known = false; /* such an id cannot exist */
        return variable && !*ret_id ? NULL : routes;
    }
    return NULL;
}

static const struct api_route *
find_route(const struct api_request *request, bool *path_known, char **ret_id)
{
    static const struct api_route *const all[] = {api_start_routes, api_server_routes,
                                                  api_admin_routes, api_driver_routes,
                                                  api_reviewer_routes};
    const struct api_route *route = NULL;

    for (size_t i = 0; i < sizeof all / sizeof *all && !route; i++)
        route = find_in(all[i], request, path_known, ret_id);
    return route;
}

/* ---- answers ---- */

static void
answer_json(struct api_answer *answer, int status, const cJSON *value)
{
    answer->status = status;
    answer->type = "application/json";
    answer->body = json_print(value);
}

static void
answer_error(struct api_answer *answer, int status, const char *code, const char *message)
{
    AUTO_JSON cJSON *value = cJSON_CreateObject();

    if (json_add_str(value, "error", code) && json_add_str(value, "message", message))
        answer_json(answer, status, value);
}

/* Without a code: a client must not take it for a verdict of the rules. */
static void
answer_plain(struct api_answer *answer, int status, const char *text)
{
    answer->status = status;
    answer->type = "text/plain; charset=utf-8";
    answer->body = strdup(text);
}

void
api_answer_unavailable(struct api_answer *ret)
{
    *ret = (struct api_answer){.status = 503};
    answer_error(
        ret, 503, "store_unavailable",
        "kcap-flowd could not write to its store, so nothing was done. Free disk space "
        "or end whatever holds flowd.db locked, then try again.");
}

static void
answer_refusal(struct api_call *call, int code)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (refusals[i].code == code) {
            answer_error(call->answer, refusals[i].status, refusals[i].error,
                         refusals[i].message);
            return;
        }
    }
    if (code == API_REJECTED && !call->fail_code) {
        answer_plain(call->answer, call->fail_status, buf_str(&call->fail_message));
        return;
    }
    if (code == API_REJECTED) {
        answer_error(call->answer, call->fail_status, call->fail_code,
                     buf_str(&call->fail_message));
        return;
    }
    log_line("%s %s: %s", call->request->method, call->request->path,
             code == -EIO ? store_error(call->engine->store) : strerror(-code));
    answer_error(call->answer, 500, "internal_error",
                 "kcap-flowd could not do this; flowd.log in its state directory says why.");
}

static int
read_body(struct api_call *call)
{
    const char *error = NULL;

    call->body = json_parse(call->request->body, call->request->body_len, &error);
    if (!call->body)
        return api_fail(call, 400, "invalid_request", "The body is not JSON: %s.", error);
    if (!cJSON_IsObject(call->body))
        return api_fail(call, 400, "invalid_request", "The body must be a JSON object.");
    return 0;
}

bool
api_handle(struct engine *engine, const struct api_request *request, struct api_answer *ret)
{
    AUTO_FREE char *id = NULL;
    struct api_call call = {.engine = engine,
                            .request = request,
                            .result = cJSON_CreateObject(),
                            .answer = ret,
                            .fail_message = BUF_INIT(4 * MAX_MESSAGE)};
    const struct api_route *route;
    bool path_known = false;
    int r;

    *ret = (struct api_answer){.status = 500};
    if (api_check_gate(&call) < 0) {
        answer_refusal(&call, API_REJECTED);
        buf_fini(&call.fail_message);
        cJSON_Delete(call.result);
        return false;
    }
    route = find_route(request, &path_known, &id);
    if (!route) {
        if (path_known)
            answer_plain(ret, 405, "This path does not take that method.\n");
        else
            answer_plain(ret, 404, "kcap-flowd has no such path.\n");
        cJSON_Delete(call.result);
        return false;
    }
    call.id = id;
    r = route->takes_body ? read_body(&call) : 0;
    if (r == 0)
        r = route->handle(&call);
    if (r < 0)
        answer_refusal(&call, r);
    else if (!ret->wait_flow)
        answer_json(ret, 200, call.result);
    cJSON_Delete(call.result);
    cJSON_Delete(call.body);
    buf_fini(&call.fail_message);
    return r == 0;
}
