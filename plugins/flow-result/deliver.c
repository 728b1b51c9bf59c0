/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "deliver.h"

#include <stdlib.h>
#include <string.h>

#include "lib/json.h"
#include "lib/text.h"

#define NS_PER_MS      INT64_C(1000000)
#define RETRY_PAUSE_NS (3000 * NS_PER_MS)
#define MAX_RESERVE_MS 1000 /* of the window, to say what came of it */
#define MAX_ANSWER_LEN ((uint64_t)1 << 20)
#define MAX_DETAIL_LEN 4096u

static const char *const routes[N_ERRANDS] = {
    [ERRAND_RESULT] = "/api/flows/reviewer/result",
    [ERRAND_MESSAGE] = "/api/flows/participant/message",
};

void
delivery_fini(struct delivery *delivery)
{
    free(delivery->detail);
    free(delivery->login);
    delivery->detail = delivery->login = NULL;
}

static void
set_detail(struct delivery *delivery, const char *text, size_t len)
{
    AUTO_BUF struct buf clean = BUF_INIT(MAX_DETAIL_LEN * 4);

    free(delivery->detail);
    text_add_clean(&clean, text, text_prefix(text, len, MAX_DETAIL_LEN));
    delivery->detail = buf_take(&clean, NULL);
}

static void
set_detail_line(struct delivery *delivery, const char *line)
{
    set_detail(delivery, line, strlen(line));
}

/* A code decides whatever the status is; the rest goes by status. */
static enum verdict
judge_code(enum errand_kind kind, const char *code)
{
    static const struct {
        enum errand_kind kind;
        const char *code;
        enum verdict verdict;
    } codes[] = {
        {ERRAND_RESULT, "no_open_round", VERDICT_NO_OPEN_ROUND},
        {ERRAND_RESULT, "no_active_flow", VERDICT_NO_OPEN_ROUND},
        {ERRAND_RESULT, "stale_round_token", VERDICT_STALE},
        {ERRAND_RESULT, "server_catching_up", VERDICT_CATCHING_UP},
        {ERRAND_MESSAGE, "no_active_flow", VERDICT_NO_OPEN_ROUND},
        {ERRAND_MESSAGE, "concurrent_update", VERDICT_NO_OPEN_ROUND},
        {ERRAND_MESSAGE, "run_closed", VERDICT_CLOSED},
        {ERRAND_MESSAGE, "server_catching_up", VERDICT_CATCHING_UP},
    };

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i].kind == kind && strcmp(code, codes[i].code) == 0)
            return codes[i].verdict;
    }
    return VERDICT_STATUS;
}

/* Success is an empty body or a JSON object without an error: a login page with status 200 has
 * recorded nothing. */
static enum verdict
judge(enum errand_kind kind, const struct kcap_http_response *answer, const cJSON *json)
{
    const char *code = json_str(json, "error");
    const cJSON *error = json_get(json, "error");

    if (answer->status == 401)
        return VERDICT_LOGIN;
    if (code && code[0])
        return judge_code(kind, code);
    if (answer->status >= 500)
        return VERDICT_SERVER_FAULT;
    if (answer->status < 200 || answer->status > 299)
        return VERDICT_STATUS;
    return answer->body_len == 0 || (cJSON_IsObject(json) && (!error || cJSON_IsNull(error)))
               ? VERDICT_RECORDED
               : VERDICT_NOT_AN_ANSWER;
}

static void
take_answer(enum errand_kind kind, const struct kcap_http_response *answer,
            struct delivery *delivery)
{
    AUTO_JSON cJSON *json = json_parse(answer->body, answer->body_len, NULL);
    const char *message = json_str(json, "message");

    delivery->verdict = judge(kind, answer, json);
    delivery->status = answer->status;
    if (message)
        set_detail_line(delivery, message);
    else
        set_detail(delivery, answer->body, answer->body_len);
    if (answer->error)
        delivery->login = strdup(answer->error);
}

/* One request. *may_be_there is raised when the server may have acted without our knowing. */
static int32_t
attempt(struct kcap_call *call, const struct kcap_http *http, const struct errand *errand,
        int64_t until_ns, bool *may_be_there, struct delivery *delivery)
{
    struct kcap_http_request request = {
        .struct_size = sizeof request,
        .method = "POST",
        .path = routes[errand->kind],
        .body = errand->body,
        .body_len = errand->body_len,
        .until_ns = until_ns,
        .max_body_len = MAX_ANSWER_LEN,
    };
    struct kcap_http_response *answer = NULL;
    int32_t r = http->request(http, call, &request, &answer);

    if (r == KCAP_WAIT_DEADLINE)
        *may_be_there = true;
    if (r > 0)
        return r;
    delivery->attempts++;
    if (r < 0) {
        delivery->verdict = VERDICT_INTERNAL;
        set_detail_line(delivery, r == KCAP_E_NOMEM ? "out of memory" : "no request was made");
    } else if (answer->outcome == KCAP_HTTP_ANSWER) {
        take_answer(errand->kind, answer, delivery);
    } else {
        *may_be_there = *may_be_there || answer->outcome == KCAP_HTTP_UNKNOWN;
        delivery->verdict = VERDICT_TRANSPORT;
        delivery->status = 0;
        set_detail_line(delivery, answer->error);
    }
    http->response_free(http, answer);
    return 0;
}

/* The moment at which the call must have been answered. */
static int64_t
end_of(const struct kcap_host *host, struct kcap_call *call)
{
    int64_t left_ms = host->remaining_ms(call), reserve_ms = left_ms / 10;

    if (left_ms == INT64_MAX)
        return KCAP_TIME_NEVER;
    if (reserve_ms > MAX_RESERVE_MS)
        reserve_ms = MAX_RESERVE_MS;
    return host->now_ns(host) + (left_ms - reserve_ms) * NS_PER_MS;
}

static bool
is_retried(enum verdict verdict)
{
    return verdict == VERDICT_NO_OPEN_ROUND || verdict == VERDICT_TRANSPORT;
}

/* What is known in the end. Only a refusal proves that this attempt recorded nothing, and it
 * says nothing about an earlier one whose answer was lost. */
static enum outcome
outcome_of(enum verdict verdict, bool may_be_there)
{
    switch (verdict) {
    case VERDICT_RECORDED:
        return OUTCOME_DELIVERED;
    case VERDICT_SERVER_FAULT:
    case VERDICT_NOT_AN_ANSWER:
    case VERDICT_PROBABLY_RECORDED:
        return OUTCOME_UNKNOWN;
    default:
        return may_be_there ? OUTCOME_UNKNOWN : OUTCOME_NOT_DELIVERED;
    }
}

int32_t
deliver(const struct kcap_host *host, struct kcap_call *call, const struct kcap_http *http,
        const struct errand *errand, struct delivery *ret)
{
    bool may_be_there = errand->may_be_there;
    int64_t end_ns = end_of(host, call);
    int32_t r;

    *ret = (struct delivery){.verdict = VERDICT_INTERNAL};
    for (;;) {
        int64_t until_ns = host->now_ns(host) + errand->attempt_limit_ns;
        r = attempt(call, http, errand, until_ns < end_ns ? until_ns : end_ns, &may_be_there,
                    ret);
        if (r != 0 || ret->attempts == errand->max_attempts || !is_retried(ret->verdict) ||
            host->now_ns(host) + RETRY_PAUSE_NS >= end_ns)
            break;
        r = host->wait(call, KCAP_SEQ_NONE, NULL, 0, host->now_ns(host) + RETRY_PAUSE_NS);
        if (r != KCAP_WAIT_TIMEOUT)
            break;
        r = 0;
    }
    if (r == KCAP_WAIT_CANCELLED || r == KCAP_WAIT_SHUTDOWN) {
        delivery_fini(ret);
        return r;
    }
    if (r == KCAP_WAIT_DEADLINE) {
        ret->verdict = VERDICT_WINDOW;
    } else if (r < 0) {
        ret->verdict = VERDICT_INTERNAL;
        set_detail_line(ret, "the host could not wait");
    } else if (may_be_there && errand->kind == ERRAND_RESULT &&
               (ret->verdict == VERDICT_NO_OPEN_ROUND || ret->verdict == VERDICT_STALE)) {
        /* what closed the round was most likely the request whose answer was lost */
        ret->verdict = VERDICT_PROBABLY_RECORDED;
    }
    ret->outcome = outcome_of(ret->verdict, may_be_there);
    return 0;
}

bool
delivery_is_final(const struct delivery *delivery)
{
    static const int never[] = {400, 410, 413, 422};

    if (delivery->verdict == VERDICT_STALE || delivery->verdict == VERDICT_CLOSED ||
        delivery->verdict == VERDICT_PROBABLY_RECORDED)
        return true;
    for (size_t i = 0; delivery->verdict == VERDICT_STATUS && i < sizeof never / sizeof *never;
         i++) {
        if (delivery->status == never[i])
            return true;
    }
    return false;
}
