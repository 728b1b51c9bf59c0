/* SPDX-License-Identifier: Apache-2.0 */
/* http.so: the extension kcap.http/1, the one object that is linked with libcurl. */
#include "config.h"

#include "lib/service.h"

#include <curl/curl.h>
#include <kcap/http.h>
#include <stddef.h>
#include <stdlib.h>

#include "exchange.h"
#include "routes.h"
#include "server.h"

struct service {
    struct kcap_http table; /* first: a plugin's pointer to it is a pointer to us */
    const struct kcap_host *host;
    uint32_t trust_class;
    struct http_server server;
};

static const struct service *
service_of(const struct kcap_http *http)
{
    return (const struct service *)(const void *)http;
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

static int32_t
http_request(const struct kcap_http *http, struct kcap_call *call,
             const struct kcap_http_request *request, struct kcap_http_response **ret)
{
    const struct service *s = service_of(http);
    const char *path;

    *ret = NULL;
    if (!KCAP_HAS(request, max_body_len) || !request->method || !request->path)
        return KCAP_E_INVALID;
    if (!routes_allow(s->trust_class, request->method, request->path))
        return KCAP_E_REFUSED;
    if (s->server.kind == KCAP_HTTP_SERVER_UNUSABLE)
        return KCAP_E_INVALID;
    path = s->server.capability ? routes_capability_path(request->path) : request->path;
    return exchange_run(s->host, &s->server, call, request, path, ret);
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
    };
    s->host = host;
    s->trust_class = trust_class;
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
