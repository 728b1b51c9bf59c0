/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "deliver.h"

#include <stdlib.h>
#include <string.h>

#include "lib/json.h"
#include "lib/text.h"

#define ROUTE            "/api/flows/reviewer/result"
#define MAX_ATTEMPTS     5
#define NS_PER_MS        INT64_C(1000000)
#define RETRY_PAUSE_NS   (3000 * NS_PER_MS)
#define ATTEMPT_LIMIT_NS (30000 * NS_PER_MS)
#define MAX_ANSWER_LEN   ((uint64_t)1 << 20)
#define MAX_DETAIL_LEN   4096u

void
delivery_fini(struct delivery *delivery)
{
    free(delivery->detail);
    delivery->detail = NULL;
}

static void
set_detail(struct delivery *delivery, const char *text, size_t len)
{
    AUTO_BUF struct buf clean = BUF_INIT(MAX_DETAIL_LEN * 4);

    delivery_fini(delivery);
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
judge_code(const char *code)
{
    static const struct {
        const char *code;
        enum verdict verdict;
    } codes[] = {
        {"no_open_round", VERDICT_NO_OPEN_ROUND},
        {"no_active_flow", VERDICT_NO_OPEN_ROUND},
        {"stale_round_token", VERDICT_STALE},
        {"server_catching_up", VERDICT_CATCHING_UP},
    };

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (strcmp(code, codes[i].code) == 0)
            return codes[i].verdict;
    }
    return VERDICT_STATUS;
}

/* Success is an empty body or a JSON object without an error: a login page with status 200 has
 * recorded nothing. */
static void
judge_answer(const struct kcap_http_response *answer, struct delivery *delivery)
{
    AUTO_JSON cJSON *json = json_parse(answer->body, answer->body_len, NULL);
    const char *code = json_str(json, "error"), *message = json_str(json, "message");
    const cJSON *error = json_get(json, "error");
    bool is_2xx = answer->status >= 200 && answer->status < 300;

    delivery->status = answer->status;
    if (message)
        set_detail_line(delivery, message);
    else
        set_detail(delivery, answer->body, answer->body_len);

    if (answer->status == 401)
        delivery->verdict = VERDICT_LOGIN;
    else if (code && code[0])
        delivery->verdict = judge_code(code);
    else if (!is_2xx)
        delivery->verdict = VERDICT_STATUS;
    else if (answer->body_len == 0 || (cJSON_IsObject(json) && (!error || cJSON_IsNull(error))))
        delivery->verdict = VERDICT_RECORDED;
    else
        delivery->verdict = VERDICT_NOT_AN_ANSWER;
}

/* One request. *may_be_there is raised when the server may have acted without our knowing. */
static int32_t
attempt(const struct kcap_host *host, struct kcap_call *call, const struct kcap_http *http,
        const char *body, size_t body_len, bool *may_be_there, struct delivery *delivery)
{
    struct kcap_http_request request = {
        .struct_size = sizeof request,
        .method = "POST",
        .path = ROUTE,
        .body = body,
        .body_len = body_len,
        .until_ns = host->now_ns(host) + ATTEMPT_LIMIT_NS,
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
        judge_answer(answer, delivery);
    } else {
        *may_be_there = *may_be_there || answer->outcome == KCAP_HTTP_UNKNOWN;
        delivery->verdict = VERDICT_TRANSPORT;
        delivery->status = 0;
        set_detail_line(delivery, answer->error);
    }
    http->response_free(http, answer);
    return 0;
}

int32_t
deliver(const struct kcap_host *host, struct kcap_call *call, const struct kcap_http *http,
        const char *body, size_t body_len, struct delivery *ret)
{
    bool may_be_there = false;
    int32_t r;

    *ret = (struct delivery){.verdict = VERDICT_INTERNAL};
    for (;;) {
        r = attempt(host, call, http, body, body_len, &may_be_there, ret);
        if (r != 0 || ret->attempts == MAX_ATTEMPTS ||
            (ret->verdict != VERDICT_NO_OPEN_ROUND && ret->verdict != VERDICT_TRANSPORT))
            break;
        r = host->wait(call, KCAP_SEQ_NONE, NULL, 0, host->now_ns(host) + RETRY_PAUSE_NS);
        if (r != KCAP_WAIT_TIMEOUT)
            break;
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
    } else if (may_be_there &&
               (ret->verdict == VERDICT_NO_OPEN_ROUND || ret->verdict == VERDICT_STALE)) {
        /* what closed the round was most likely the request whose answer was lost */
        ret->verdict = VERDICT_PROBABLY_RECORDED;
    }
    return 0;
}
