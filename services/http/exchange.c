/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "exchange.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/buf.h"
#include "lib/text.h"

#define DEFAULT_MAX_BODY_LEN ((uint64_t)8 << 20)
#define CONNECT_LIMIT_MS     10000L
#define KEEPALIVE_SEC        30L
#define MAX_FDS              16u
#define MAX_HEADER_LEN       32768
#define MAX_LINE             4096
#define NS_PER_MS            INT64_C(1000000)

struct exchange {
    const struct kcap_host *host;
    const struct exchange_to *to;
    const struct kcap_http_request *request;
    CURL *easy;
    CURLM *multi;
    struct curl_slist *headers;
    struct buf body;
    struct kcap_fd fds[MAX_FDS]; /* what curl wants to be told about */
    uint32_t n_fds;
    int64_t timer_ns; /* when curl wants to be called, KCAP_TIME_NEVER for not */
    int64_t retry_after_ms;
    bool body_too_long, too_many_fds;
    bool is_late; /* the time was over in the middle of a body */
};

/* ---- libcurl's callbacks ---- */

static int
on_socket(CURL *easy, curl_socket_t fd, int what, void *userp, void *socketp)
{
    struct exchange *x = userp;
    uint32_t i = 0;

    (void)easy;
    (void)socketp;
    while (i < x->n_fds && x->fds[i].fd != fd)
        i++;
    if (what == CURL_POLL_REMOVE) {
        if (i < x->n_fds)
            x->fds[i] = x->fds[--x->n_fds];
        return 0;
    }
    if (i == MAX_FDS) {
        x->too_many_fds = true;
        return -1;
    }
    if (i == x->n_fds)
        x->n_fds++;
    x->fds[i] = (struct kcap_fd){.fd = fd};
    if (what & CURL_POLL_IN)
        x->fds[i].events |= KCAP_FD_READ;
    if (what & CURL_POLL_OUT)
        x->fds[i].events |= KCAP_FD_WRITE;
    return 0;
}

static int
on_timer(CURLM *multi, long timeout_ms, void *userp)
{
    struct exchange *x = userp;

    (void)multi;
    x->timer_ns =
        timeout_ms < 0 ? KCAP_TIME_NEVER : x->host->now_ns(x->host) + timeout_ms * NS_PER_MS;
    return 0;
}

static bool
receives(const struct kcap_http_request *request)
{
    return KCAP_HAS(request, receive_arg) && request->receive;
}

static size_t
on_body(char *bytes, size_t size, size_t n, void *userp)
{
    struct exchange *x = userp;
    const struct kcap_http_request *request = x->request;

    /* a flood keeps libcurl reading, and us from looking at the clock */
    if (x->host->now_ns(x->host) >= request->until_ns) {
        x->is_late = true;
        return 0;
    }
    if (receives(request)) {
        if (request->receive(request->receive_arg, bytes, size * n) == 0)
            return size * n;
    } else {
        buf_add(&x->body, bytes, size * n);
        if (buf_ok(&x->body))
            return size * n;
    }
    x->body_too_long = true;
    return 0;
}

static size_t
on_header(char *line, size_t size, size_t n, void *userp)
{
    static const char name[] = "retry-after:";
    struct exchange *x = userp;
    size_t len = size * n, at = sizeof name - 1;
    int64_t sec = 0;

    if (len <= at || strncasecmp(line, name, at) != 0)
        return len;
    while (at < len && (line[at] == ' ' || line[at] == '\t'))
        at++;
    if (at == len || line[at] < '0' || line[at] > '9')
        return len; /* a date, or nothing we know */
    for (; at < len && line[at] >= '0' && line[at] <= '9'; at++)
        sec = sec > 86400 ? sec : sec * 10 + (line[at] - '0');
    x->retry_after_ms = sec * 1000;
    return len;
}

/* ---- setting up ---- */

static bool
add_header(struct exchange *x, const char *line)
{
    struct curl_slist *longer = curl_slist_append(x->headers, line);

    if (!longer)
        return false;
    x->headers = longer;
    return true;
}

static bool
add_header_of(struct exchange *x, const char *name, const char *value)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_HEADER_LEN);

    buf_addf(&line, "%s%s", name, value);
    return buf_ok(&line) && add_header(x, buf_str(&line));
}

static bool
set_headers(struct exchange *x)
{
    const struct exchange_to *to = x->to;
    const char *type = to->content_type ? to->content_type : "application/json";

    /* "Name:" takes out what curl would add by itself */
    return add_header(x, "Accept: application/json") && add_header(x, "Expect:") &&
           (x->request->body ? add_header_of(x, "Content-Type: ", type)
                             : add_header(x, "Content-Type:")) &&
           (to->is_bare || add_header(x, "X-Kcap-Cli-Version: " PACKAGE_VERSION)) &&
           (!to->update_check_off || add_header(x, "X-Kcap-Update-Check: off")) &&
           (!to->bearer || add_header_of(x, "Authorization: Bearer ", to->bearer));
}

static CURLcode
set_protocols(CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

static CURLcode
set_method(struct exchange *x)
{
    const struct kcap_http_request *request = x->request;
    CURLcode r;

    if (strcmp(request->method, "POST") != 0)
        return curl_easy_setopt(x->easy, CURLOPT_HTTPGET, 1L);
    r = curl_easy_setopt(x->easy, CURLOPT_POST, 1L);
    if (r == CURLE_OK)
        r = curl_easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                             (curl_off_t)(request->body ? request->body_len : 0));
    if (r == CURLE_OK)
        r = curl_easy_setopt(x->easy, CURLOPT_POSTFIELDS, request->body ? request->body : "");
    return r;
}

static bool
set_options(struct exchange *x)
{
    CURL *easy = x->easy;
    bool ok = true;

#define SET(option, value) ok = ok && curl_easy_setopt(easy, option, value) == CURLE_OK
    SET(CURLOPT_URL, x->to->url);
    SET(CURLOPT_CONNECT_ONLY, x->to->connect_only ? 1L : 0L);
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    /* On a kept connection that turns out dead curl would send again by itself. */
    SET(CURLOPT_FRESH_CONNECT, 1L);
    SET(CURLOPT_FORBID_REUSE, 1L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_LIMIT_MS);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_TCP_KEEPIDLE, KEEPALIVE_SEC);
    SET(CURLOPT_TCP_KEEPINTVL, KEEPALIVE_SEC);
    SET(CURLOPT_USERAGENT, PACKAGE_NAME "/" PACKAGE_VERSION);
    SET(CURLOPT_HTTPHEADER, x->headers);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, x);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, x);
    if (x->to->is_local)
        SET(CURLOPT_NOPROXY, "*");
    if (x->to->socket_path)
        SET(CURLOPT_UNIX_SOCKET_PATH, x->to->socket_path);
#if LIBCURL_VERSION_NUM >= 0x075700
    SET(CURLOPT_QUICK_EXIT, 1L); /* a cancel must not wait for a name look-up */
#endif
#undef SET
    return ok && set_protocols(easy) == CURLE_OK && set_method(x) == CURLE_OK;
}

static bool
prepare(struct exchange *x)
{
    uint64_t max = x->request->max_body_len;

    if (receives(x->request))
        (void)x->request->receive(x->request->receive_arg, NULL, 0);
    x->body = BUF_INIT((size_t)(max ? max : DEFAULT_MAX_BODY_LEN));
    x->easy = curl_easy_init();
    x->multi = curl_multi_init();
    return x->easy && x->multi && set_headers(x) && set_options(x) &&
           curl_multi_setopt(x->multi, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK &&
           curl_multi_setopt(x->multi, CURLMOPT_SOCKETDATA, x) == CURLM_OK &&
           curl_multi_setopt(x->multi, CURLMOPT_TIMERFUNCTION, on_timer) == CURLM_OK &&
           curl_multi_setopt(x->multi, CURLMOPT_TIMERDATA, x) == CURLM_OK &&
           curl_multi_add_handle(x->multi, x->easy) == CURLM_OK;
}

static void
fini(struct exchange *x)
{
    if (x->multi && x->easy)
        (void)curl_multi_remove_handle(x->multi, x->easy);
    curl_easy_cleanup(x->easy);
    (void)curl_multi_cleanup(x->multi);
    curl_slist_free_all(x->headers);
    buf_fini(&x->body);
}

/* ---- driving ---- */

static bool
take_outcome(struct exchange *x, CURLcode *ret_code)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(x->multi, &left)) != NULL) {
        if (message->msg == CURLMSG_DONE) {
            *ret_code = message->data.result;
            return true;
        }
    }
    return false;
}

/* Tells curl what happened. The list is copied first: curl changes it while being told. */
static CURLMcode
dispatch(struct exchange *x, bool fds_ready)
{
    struct kcap_fd ready[MAX_FDS];
    uint32_t n = fds_ready ? x->n_fds : 0;
    CURLMcode r = CURLM_OK;
    int running;

    memcpy(ready, x->fds, sizeof ready);
    for (uint32_t i = 0; i < n && r == CURLM_OK; i++) {
        int mask = 0;
        if (ready[i].revents & KCAP_FD_READ)
            mask |= CURL_CSELECT_IN;
        if (ready[i].revents & KCAP_FD_WRITE)
            mask |= CURL_CSELECT_OUT;
        if (ready[i].revents & KCAP_FD_ERROR)
            mask |= CURL_CSELECT_ERR;
        if (mask)
            r = curl_multi_socket_action(x->multi, ready[i].fd, mask, &running);
    }
    if (r == CURLM_OK && x->timer_ns <= x->host->now_ns(x->host)) {
        x->timer_ns = KCAP_TIME_NEVER;
        r = curl_multi_socket_action(x->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    return x->too_many_fds ? CURLM_INTERNAL_ERROR : r;
}

/* Returns 0 with the transfer's code (OPERATION_TIMEDOUT too when until_ns came), else what
 * ended the call, or a negative code. */
static int32_t
drive(struct exchange *x, struct kcap_call *call, CURLcode *ret_code)
{
    const struct kcap_host *host = x->host;
    int64_t until_ns = x->request->until_ns;
    int32_t woken = KCAP_WAIT_TIMEOUT;

    x->timer_ns = host->now_ns(host);
    for (;;) {
        if (dispatch(x, woken == KCAP_WAIT_FD) != CURLM_OK) {
            *ret_code = CURLE_FAILED_INIT;
            return 0;
        }
        if (take_outcome(x, ret_code)) {
            if (x->is_late)
                *ret_code = CURLE_OPERATION_TIMEDOUT;
            return 0;
        }
        for (uint32_t i = 0; i < x->n_fds; i++)
            x->fds[i].revents = 0;
        woken = host->wait(call, KCAP_SEQ_NONE, x->fds, x->n_fds,
                           x->timer_ns < until_ns ? x->timer_ns : until_ns);
        if (woken < 0 || woken >= KCAP_WAIT_CANCELLED)
            return woken;
        if (until_ns != KCAP_TIME_NEVER && host->now_ns(host) >= until_ns) {
            *ret_code = CURLE_OPERATION_TIMEDOUT;
            return 0;
        }
    }
}

/* ---- the answer ---- */

/* Only when it is certain: no byte of the request was written, and no connection (with TLS: no
 * session) stood to write it to. */
static bool
is_not_sent(struct exchange *x, CURLcode code)
{
    bool tls = strncasecmp(x->to->url, "https:", 6) == 0;
    curl_off_t connected_us = 0;
    long sent = 0;

    if (curl_easy_getinfo(x->easy, CURLINFO_REQUEST_SIZE, &sent) != CURLE_OK || sent > 0)
        return false;
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ENGINE_INITFAILED:
        return true;
    case CURLE_OPERATION_TIMEDOUT:
        return curl_easy_getinfo(x->easy,
                                 tls ? CURLINFO_APPCONNECT_TIME_T : CURLINFO_CONNECT_TIME_T,
                                 &connected_us) == CURLE_OK &&
               connected_us == 0;
    default:
        return false;
    }
}

static const char *
describe_failure(const struct exchange *x, CURLcode code, bool not_sent)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
        return "its host name cannot be resolved; check the name and the network";
    case CURLE_COULDNT_RESOLVE_PROXY:
        return "the proxy's name cannot be resolved; check http_proxy and https_proxy";
    case CURLE_COULDNT_CONNECT:
        return "no connection could be made; check that it runs and that the address is right";
    case CURLE_SSL_CONNECT_ERROR:
        return "the TLS handshake failed; check that it is an https address";
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return "its TLS certificate could not be verified; check the address and the system's "
               "certificates";
    case CURLE_OPERATION_TIMEDOUT:
        return not_sent ? "no connection was made in time; check that it runs and can be "
                          "reached"
                        : "it did not answer in time; check that it is well";
    case CURLE_GOT_NOTHING:
        return "it closed the connection without an answer; check its log";
    case CURLE_PARTIAL_FILE:
        return "its answer was cut short; check its log";
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
        return "the connection broke; check the network and the server's log";
    case CURLE_WRITE_ERROR:
        return x->body_too_long ? "its answer is longer than allowed; check what answers there"
                                : "its answer could not be read";
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        return "what answered does not speak HTTP; check the address";
    default:
        return NULL;
    }
}

static bool
fill_error(struct exchange *x, CURLcode code, struct kcap_http_response *response)
{
    struct buf line = BUF_INIT(MAX_LINE);
    bool not_sent = is_not_sent(x, code);
    const char *why = describe_failure(x, code, not_sent);

    response->outcome = not_sent ? KCAP_HTTP_NOT_SENT : KCAP_HTTP_UNKNOWN;
    buf_addf(&line, "%s: ", x->to->label);
    if (why)
        buf_adds(&line, why);
    else
        buf_addf(&line, "the request failed: %s", curl_easy_strerror(code));
    response->error = buf_take(&line, NULL);
    return response->error != NULL;
}

static char *
plain_content_type(CURL *easy)
{
    char *type = NULL, *copy;

    (void)curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
    copy = strdup(type ? type : "");
    if (!copy)
        return NULL;
    copy[strcspn(copy, "; \t")] = '\0';
    for (char *p = copy; *p; p++) {
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    }
    return copy;
}

static bool
fill_answer(struct exchange *x, struct kcap_http_response *response)
{
    long status = 0;

    (void)curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    response->outcome = KCAP_HTTP_ANSWER;
    response->status = (int32_t)status;
    response->retry_after_ms = x->retry_after_ms;
    response->content_type = plain_content_type(x->easy);
    response->body = buf_take(&x->body, &response->body_len);
    return response->content_type && response->body;
}

void
exchange_response_free(struct kcap_http_response *response)
{
    if (!response)
        return;
    /* ours all along: the table shows them as const to those who only read */
    free((void *)(uintptr_t)response->body);
    free((void *)(uintptr_t)response->content_type);
    free((void *)(uintptr_t)response->error);
    free(response);
}

static int32_t
make_response(struct exchange *x, CURLcode code, struct kcap_http_response **ret)
{
    struct kcap_http_response *response = calloc(1, sizeof *response);
    bool ok;

    if (!response)
        return KCAP_E_NOMEM;
    response->struct_size = sizeof *response;
    response->retry_after_ms = -1;
    ok = code == CURLE_OK ? fill_answer(x, response) : fill_error(x, code, response);
    if (!ok) {
        exchange_response_free(response);
        return KCAP_E_NOMEM;
    }
    *ret = response;
    return 0;
}

bool
exchange_set_error(struct kcap_http_response *response, const char *line)
{
    char *copy = strdup(line);

    free((void *)(uintptr_t)response->error);
    response->error = copy;
    return copy != NULL;
}

int32_t
exchange_run(const struct kcap_host *host, const struct exchange_to *to, struct kcap_call *call,
             const struct kcap_http_request *request, struct kcap_http_response **ret)
{
    struct exchange x = {
        .host = host,
        .to = to,
        .request = request,
        .timer_ns = KCAP_TIME_NEVER,
        .retry_after_ms = -1,
    };
    CURLcode code = CURLE_OK;
    int32_t r = KCAP_E_NOMEM;

    if (prepare(&x)) {
        r = drive(&x, call, &code);
        if (r == 0)
            r = make_response(&x, code, ret);
    }
    fini(&x);
    return r;
}
