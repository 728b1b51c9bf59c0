/* SPDX-License-Identifier: Apache-2.0 */
/* http.so: the extension kcap.http/1, the one object that is linked with libcurl. */
#include "config.h"

#include "lib/service.h"

#include <curl/curl.h>
#include <kcap/http.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "discovery.h"
#include "exchange.h"
#include "lib/buf.h"
#include "login.h"
#include "routes.h"
#include "send.h"
#include "server.h"

#define MAX_LINE 8192

struct service {
    struct kcap_http table; /* first: a plugin's pointer to it is a pointer to us */
    const struct kcap_host *host;
    uint32_t trust_class;
    struct http_server server;
    struct login login;
};

static struct service *
service_of(const struct kcap_http *http)
{
    return (struct service *)(uintptr_t)http;
}

static void
http_server(const struct kcap_http *http, struct kcap_http_server *ret)
{
    const struct http_server *server = &service_of(http)->server;

    if (KCAP_HAS(ret, kind))
        ret->kind = server->kind;
    if (KCAP_HAS(ret, url))
        ret->url = server->shown;
    if (KCAP_HAS(ret, source))
        ret->source = server->source;
    if (KCAP_HAS(ret, error))
        ret->error = server->error;
}

static bool
is_refused(const struct kcap_http_response *response)
{
    return response && response->outcome == KCAP_HTTP_ANSWER && response->status == 401;
}

/* A 401 that stays is an answer, with the line that tells what it means here. */
static int32_t
explain(const struct service *s, const struct bearer *bearer,
        struct kcap_http_response *response)
{
    char *line = login_explain(&s->login, bearer);
    bool ok = line && exchange_set_error(response, line);

    free(line);
    return ok ? 0 : KCAP_E_NOMEM;
}

/* Once more after a 401, when the login could be renewed: the server has not acted on it. */
static int32_t
send_again(struct service *s, struct kcap_call *call, const struct kcap_http_request *request,
           const char *path, struct bearer *bearer, struct kcap_http_response **ret)
{
    bool again;
    int32_t r = login_renew(&s->login, call, request->until_ns, bearer, &again);

    if (r == 0 && again) {
        exchange_response_free(*ret);
        *ret = NULL;
        r = send_request(s->host, &s->server, call, request, path, bearer->token, ret);
    }
    return r == 0 && is_refused(*ret) ? explain(s, bearer, *ret) : r;
}

static int32_t
http_request(const struct kcap_http *http, struct kcap_call *call,
             const struct kcap_http_request *request, struct kcap_http_response **ret)
{
    struct service *s = service_of(http);
    struct bearer bearer;
    const char *path;
    int32_t r;

    *ret = NULL;
    if (!KCAP_HAS(request, max_body_len) || !request->method || !request->path)
        return KCAP_E_INVALID;
    if (!routes_allow(s->trust_class, request->method, request->path))
        return KCAP_E_REFUSED;
    if (s->server.kind == KCAP_HTTP_SERVER_UNUSABLE)
        return KCAP_E_INVALID;
    path = s->server.capability ? routes_capability_path(request->path) : request->path;
    r = login_get(&s->login, call, request->until_ns, &bearer);
    if (r == 0)
        r = send_request(s->host, &s->server, call, request, path, bearer.token, ret);
    if (r == 0 && is_refused(*ret))
        r = send_again(s, call, request, path, &bearer, ret);
    bearer_fini(&bearer);
    if (r != 0) {
        exchange_response_free(*ret);
        *ret = NULL;
    }
    return r;
}

/* ---- check ---- */

/* What answered is no flow server: whatever it said, nothing would be recorded there. */
static int32_t
explain_stranger(const struct service *s, struct kcap_http_response *answer)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_LINE);

    buf_addf(&line,
             "%s: what answers there (HTTP %d to /auth/config) is not a flow server; check the "
             "address",
             s->server.label, answer->status);
    answer->status = answer->status == 200 ? 502 : answer->status;
    return exchange_set_error(answer, buf_str(&line)) ? 0 : KCAP_E_NOMEM;
}

static int32_t
check_login(struct service *s, struct kcap_call *call, int64_t until_ns, const char *provider,
            struct kcap_http_response *answer)
{
    struct bearer bearer;
    int32_t r = 0;

    if (s->server.has_login)
        discovery_remember(s->host, &s->server, provider);
    r = login_get(&s->login, call, until_ns, &bearer);
    if (r == 0 && s->server.has_login && !bearer.token && strcmp(provider, "None") != 0) {
        answer->status = 401;
        r = explain(s, &bearer, answer);
    }
    bearer_fini(&bearer);
    return r;
}

static int32_t
http_check(const struct kcap_http *http, struct kcap_call *call, int64_t until_ns,
           struct kcap_http_response **ret)
{
    struct service *s = service_of(http);
    char *provider = NULL;
    int32_t r;

    *ret = NULL;
    if (s->trust_class != KCAP_CLASS_DRIVER && s->trust_class != KCAP_CLASS_REVIEWER)
        return KCAP_E_REFUSED;
    if (s->server.kind == KCAP_HTTP_SERVER_UNUSABLE)
        return KCAP_E_INVALID;
    if (s->server.capability) { /* has two routes, and both would submit */
        r = send_nothing(s->host, &s->server, call, until_ns, ret);
        if (r == 0 && (*ret)->outcome == KCAP_HTTP_ANSWER)
            (*ret)->status = 200;
        return r;
    }
    r = discovery_ask(s->host, &s->server, call, until_ns, &provider, ret);
    if (r == 0 && (*ret)->outcome == KCAP_HTTP_ANSWER)
        r = provider ? check_login(s, call, until_ns, provider, *ret)
                     : explain_stranger(s, *ret);
    free(provider);
    if (r != 0) {
        exchange_response_free(*ret);
        *ret = NULL;
    }
    return r;
}

static void
http_response_free(const struct kcap_http *http, struct kcap_http_response *response)
{
    (void)http;
    exchange_response_free(response);
}

static const void *
http_open(const struct kcap_host *host, uint32_t trust_class)
{
    struct service *s;

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        host->log(host, KCAP_LOG_ERROR, "http: libcurl cannot be started");
        return NULL;
    }
    s = calloc(1, sizeof *s);
    if (!s || server_find(host, trust_class, &s->server) < 0) {
        host->log(host, KCAP_LOG_ERROR, "http: out of memory");
        free(s);
        return NULL;
    }
    s->table = (struct kcap_http){
        .struct_size = sizeof s->table,
        .server = http_server,
        .request = http_request,
        .response_free = http_response_free,
        .check = http_check,
    };
    s->host = host;
    s->trust_class = trust_class;
    login_init(&s->login, host, &s->server);
    return &s->table;
}

KCAP_NOTE(KCAP_CLASS_SERVICE);
KCAP_EXPORT const struct kcap_service kcap_service_v1 = {
    .magic = KCAP_MAGIC,
    .struct_size = sizeof(struct kcap_service),
    .abi_major = KCAP_ABI_MAJOR,
    .abi_minor = KCAP_ABI_MINOR,
    .provides = KCAP_HTTP_EXTENSION,
    .version = PACKAGE_VERSION,
    .open = http_open,
};
