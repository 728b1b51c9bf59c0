/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "refresh.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "form.h"
#include "jwt.h"
#include "lib/auto.h"
#include "lib/buf.h"
#include "lib/paths.h"
#include "lib/text.h"
#include "send.h"

#define NS_PER_MS       INT64_C(1000000)
#define LOCK_LIMIT_NS   (15000 * NS_PER_MS)
#define LOCK_TICK_NS    (50 * NS_PER_MS)
#define RETRY_BUDGET_NS (5000 * NS_PER_MS)
#define RETRY_PAUSE_NS  (500 * NS_PER_MS)
#define ASK_LIMIT_NS    (10000 * NS_PER_MS)
#define UNKNOWN_LIFE_MS (5 * 60 * 1000) /* of a token that does not say */
#define MAX_LIFE_SEC    (10 * 365 * 86400)
#define MAX_ANSWER_LEN  ((uint64_t)256 << 10)
#define USER_TOKEN_URL  "https://api.workos.com/user_management/authenticate"

static int32_t
fail(char **ret_why, const char *why)
{
    *ret_why = strdup(why);
    return *ret_why ? 0 : KCAP_E_NOMEM;
}

static int64_t
earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- the lock ---- */

/* Waits for the lock; *ret_fd stays -1, with the reason, when it is not to be had. */
static int32_t
take_lock(const struct kcap_host *host, struct kcap_call *call, const struct token *token,
          int64_t until_ns, int *ret_fd, char **ret_why)
{
    AUTO_FREE char *path = strdup(token->path), *dir = strdup(token->path);
    AUTO_CLOSE int fd = -1;
    int64_t limit_ns = earlier(host->now_ns(host) + LOCK_LIMIT_NS, until_ns);
    int32_t r = KCAP_WAIT_TIMEOUT;

    if (!path || !dir)
        return KCAP_E_NOMEM;
    memcpy(path + strlen(path) - 5, ".lock", 5); /* instead of .json */
    *strrchr(dir, '/') = '\0';
    (void)paths_make_dir(dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail(ret_why, "the directory of the logins cannot be written");
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return fail(ret_why, "the lock of the login cannot be taken");
        if (host->now_ns(host) >= limit_ns)
            return fail(ret_why, "another process is renewing it and does not finish");
        r = host->wait(call, KCAP_SEQ_NONE, NULL, 0,
                       earlier(host->now_ns(host) + LOCK_TICK_NS, limit_ns));
        if (r != KCAP_WAIT_TIMEOUT)
            return r;
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

/* ---- asking ---- */

static int32_t
ask_server(const struct kcap_host *host, const struct http_server *server,
           struct kcap_call *call, const struct token *token, int64_t until_ns,
           struct kcap_http_response **ret)
{
    AUTO_BUF struct buf body = BUF_INIT((size_t)256 << 10);
    struct kcap_http_request request = {
        .struct_size = sizeof request,
        .method = "POST",
        .until_ns = until_ns,
        .max_body_len = MAX_ANSWER_LEN,
    };

    buf_adds(&body, "{\"access_token\":");
    text_add_json(&body, token->access, strlen(token->access));
    buf_addc(&body, '}');
    if (!buf_ok(&body))
        return KCAP_E_NOMEM;
    request.body = buf_str(&body);
    request.body_len = body.len;
    return send_request(host, server, call, &request, "/auth/refresh", NULL, ret);
}

static int32_t
ask_vendor(const struct kcap_host *host, struct kcap_call *call, const struct token *token,
           const char *endpoint, int64_t until_ns, struct kcap_http_response **ret)
{
    const char *const pairs[] = {
        "grant_type",    "refresh_token", "client_id", token->client_id,
        "refresh_token", token->refresh,  NULL};

    return form_post(host, call, endpoint, pairs, until_ns, ret);
}

/* Transport failures are tried again for a while; a rotating refresh token that may have been
 * used is not: the second use would count as a theft. */
static int32_t
ask(const struct kcap_host *host, const struct http_server *server, struct kcap_call *call,
    const struct token *token, const char *endpoint, int64_t until_ns,
    struct kcap_http_response **ret)
{
    int64_t budget_ns = host->now_ns(host) + RETRY_BUDGET_NS;

    for (;;) {
        int64_t limit_ns = earlier(host->now_ns(host) + ASK_LIMIT_NS, until_ns);
        int32_t r = endpoint ? ask_vendor(host, call, token, endpoint, limit_ns, ret)
                             : ask_server(host, server, call, token, limit_ns, ret);
        if (r != 0 || (*ret)->outcome == KCAP_HTTP_ANSWER ||
            (endpoint && (*ret)->outcome == KCAP_HTTP_UNKNOWN) ||
            host->now_ns(host) + RETRY_PAUSE_NS >= earlier(budget_ns, until_ns))
            return r;
        exchange_response_free(*ret);
        *ret = NULL;
        r = host->wait(call, KCAP_SEQ_NONE, NULL, 0, host->now_ns(host) + RETRY_PAUSE_NS);
        if (r != KCAP_WAIT_TIMEOUT)
            return r;
    }
}

static int32_t
take_answer(const struct kcap_host *host, const struct http_server *server, bool from_vendor,
            const struct kcap_http_response *answer, struct token *token, char **ret_why)
{
    AUTO_JSON cJSON *json = NULL;
    struct token_news news = {.access = NULL};
    int64_t now_ms = host->wall_ms(host), life_sec;
    char line[160];
    int r;

    if (answer->outcome != KCAP_HTTP_ANSWER)
        return fail(ret_why, answer->error);
    (void)snprintf(line, sizeof line, "the %s refused to renew it (HTTP %d)",
                   from_vendor ? "login server" : "flow server", answer->status);
    if (answer->status < 200 || answer->status > 299)
        return fail(ret_why, line);
    json = json_parse(answer->body, answer->body_len, NULL);
    news.access = json_str(json, "access_token");
    if (!token_is_sound(news.access))
        return fail(ret_why, "what was answered to its renewal holds no token");
    if (from_vendor) {
        news.refresh = json_str(json, "refresh_token");
        if (!jwt_expiry(news.access, &news.expires_ms))
            news.expires_ms = now_ms + UNKNOWN_LIFE_MS;
    } else {
        news.user = json_str(json, "username");
        news.expires_ms = now_ms + (json_int(json, "expires_in", &life_sec) && life_sec > 0 &&
                                            life_sec < MAX_LIFE_SEC
                                        ? life_sec * 1000
                                        : UNKNOWN_LIFE_MS);
    }
    r = token_renew(token, server, &news);
    if (r == -ENOMEM)
        return KCAP_E_NOMEM;
    if (r < 0)
        kcap_logf(host, KCAP_LOG_ERROR, "http: the renewed login cannot be saved in %s: %s",
                  token->path, strerror(-r));
    return 0;
}

/* Which way it goes: at the server (NULL) or at the vendor. False: no way. */
static bool
find_way(const struct kcap_host *host, const struct token *token, const char **ret_endpoint)
{
    *ret_endpoint = NULL;
    if (strcmp(token->provider, "GitHubApp") == 0)
        return true;
    if (strcmp(token->provider, "workos") != 0 || text_is_blank(token->refresh) ||
        text_is_blank(token->client_id))
        return false;
    *ret_endpoint = form_endpoint(host, USER_TOKEN_URL);
    return *ret_endpoint != NULL;
}

static int32_t
renew(const struct kcap_host *host, const struct http_server *server, struct kcap_call *call,
      int64_t until_ns, struct token *token, char **ret_why)
{
    struct kcap_http_response *answer = NULL;
    const char *endpoint;
    int32_t r;

    if (!find_way(host, token, &endpoint))
        return fail(ret_why, "a login of this kind cannot be renewed");
    r = ask(host, server, call, token, endpoint, until_ns, &answer);
    if (r == 0)
        r = take_answer(host, server, endpoint != NULL, answer, token, ret_why);
    exchange_response_free(answer);
    return r;
}

int32_t
refresh_run(const struct kcap_host *host, const struct http_server *server,
            struct kcap_call *call, int64_t until_ns, struct token *token, char **ret_why)
{
    AUTO_CLOSE int lock = -1;
    struct token fresh;
    bool changed;
    int32_t r;

    *ret_why = NULL;
    r = take_lock(host, call, token, until_ns, &lock, ret_why);
    if (r != 0 || lock < 0)
        return r;
    r = token_load(server, &fresh);
    if (r < 0 || !fresh.json || !token_is_for(&fresh, server)) {
        token_fini(&fresh);
        return r < 0 ? r : fail(ret_why, "it is gone");
    }
    changed = strcmp(fresh.access, token->access) != 0;
    token_fini(token);
    *token = fresh;
    if (changed && !token_is_expired(token, host->wall_ms(host)))
        return 0;
    return renew(host, server, call, until_ns, token, ret_why);
}
