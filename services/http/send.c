/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "send.h"

#include "lib/buf.h"

#define MAX_URL_LEN 8192

static struct exchange_to
address_of(const struct http_server *server, const char *url)
{
    return (struct exchange_to){
        .url = url,
        .socket_path = server->socket_path,
        .label = server->label,
        .is_local = server->is_local,
        .is_bare = server->capability,
        .update_check_off = server->update_check_off,
    };
}

int32_t
send_request(const struct kcap_host *host, const struct http_server *server,
             struct kcap_call *call, const struct kcap_http_request *request, const char *path,
             const char *bearer, struct kcap_http_response **ret)
{
    AUTO_BUF struct buf url = BUF_INIT(MAX_URL_LEN);
    struct exchange_to to;

    buf_adds(&url, server->base);
    buf_adds(&url, path);
    if (!buf_ok(&url))
        return KCAP_E_NOMEM;
    to = address_of(server, buf_str(&url));
    to.bearer = bearer;
    return exchange_run(host, &to, call, request, ret);
}

int32_t
send_nothing(const struct kcap_host *host, const struct http_server *server,
             struct kcap_call *call, int64_t until_ns, struct kcap_http_response **ret)
{
    struct exchange_to to = address_of(server, server->base);
    struct kcap_http_request request = {
        .struct_size = sizeof request, .method = "GET", .until_ns = until_ns};

    to.connect_only = true;
    return exchange_run(host, &to, call, &request, ret);
}
