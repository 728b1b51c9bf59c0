/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "machine.h"

#include <stdio.h>
#include <string.h>

#include "form.h"
#include "lib/json.h"
#include "lib/text.h"
#include "token.h"

#define NS_PER_MS        INT64_C(1000000)
#define ASK_LIMIT_NS     (10000 * NS_PER_MS)
#define UNKNOWN_LIFE_SEC 300
#define MAX_LIFE_SEC     (10 * 365 * 86400)
#define TOKEN_URL        "https://signin.kcap.ai/oauth2/token"

#define ID     "KCAP_CLIENT_ID"
#define SECRET "KCAP_CLIENT_SECRET"

bool
machine_is_meant(const struct kcap_host *host)
{
    return !text_is_blank(host->env(host, ID)) || !text_is_blank(host->env(host, SECRET));
}

static int32_t
fail(char **ret_why, const char *why)
{
    *ret_why = strdup(why);
    return *ret_why ? 0 : KCAP_E_NOMEM;
}

static int32_t
take_answer(const struct kcap_host *host, const struct kcap_http_response *answer,
            char **ret_token, int64_t *ret_expires_ms, char **ret_why)
{
    AUTO_JSON cJSON *json = NULL;
    const char *token;
    int64_t life_sec;
    char line[200];

    if (answer->outcome != KCAP_HTTP_ANSWER)
        return fail(ret_why, answer->error);
    (void)snprintf(line, sizeof line,
                   "the login server refused " ID " and " SECRET
                   " (HTTP %d): check both values",
                   answer->status);
    if (answer->status < 200 || answer->status > 299)
        return fail(ret_why, line);
    json = json_parse(answer->body, answer->body_len, NULL);
    token = json_str(json, "access_token");
    if (!token_is_sound(token))
        return fail(ret_why, "what the login server answered to " ID " holds no token");
    if (!json_int(json, "expires_in", &life_sec) || life_sec <= 0 || life_sec > MAX_LIFE_SEC)
        life_sec = UNKNOWN_LIFE_SEC;
    *ret_expires_ms = host->wall_ms(host) + life_sec * 1000;
    *ret_token = strdup(token);
    return *ret_token ? 0 : KCAP_E_NOMEM;
}

int32_t
machine_get(const struct kcap_host *host, struct kcap_call *call, int64_t until_ns,
            char **ret_token, int64_t *ret_expires_ms, char **ret_why)
{
    const char *id = host->env(host, ID), *secret = host->env(host, SECRET);
    const char *const pairs[] = {
        "grant_type", "client_credentials", "client_id", id, "client_secret", secret, NULL};
    int64_t limit_ns = host->now_ns(host) + ASK_LIMIT_NS;
    const char *endpoint = form_endpoint(host, TOKEN_URL);
    struct kcap_http_response *answer = NULL;
    int32_t r;

    *ret_token = *ret_why = NULL;
    if (text_is_blank(id))
        return fail(ret_why, SECRET " is set but " ID " is not: set both");
    if (text_is_blank(secret))
        return fail(ret_why, ID " is set but " SECRET " is not: set both");
    if (!endpoint)
        return fail(ret_why, "KCAP_WORKOS_TOKEN_URL must be an https address, or http on "
                             "loopback: the secret is sent nowhere else");
    r = form_post(host, call, endpoint, pairs, limit_ns < until_ns ? limit_ns : until_ns,
                  &answer);
    if (r == 0)
        r = take_answer(host, answer, ret_token, ret_expires_ms, ret_why);
    exchange_response_free(answer);
    return r;
}
