/* SPDX-License-Identifier: Apache-2.0 */
/* One request and its answer over libcurl, waiting through the host. */
#ifndef KCAP_SERVICES_HTTP_EXCHANGE_H
#define KCAP_SERVICES_HTTP_EXCHANGE_H

#include <kcap/http.h>
#include <stdbool.h>

/* Where to and how, beyond what the request itself says. */
struct exchange_to {
    const char *url;          /* whole */
    const char *socket_path;  /* or NULL */
    const char *label;        /* names the peer in messages */
    const char *bearer;       /* token, or NULL */
    const char *content_type; /* of a body; NULL: JSON */
    bool is_local;            /* never through a proxy */
    bool is_bare;             /* no version header */
    bool update_check_off;
    bool connect_only; /* makes the connection and sends nothing; status is 0 then */
};

/* What kcap_http.request promises; request->path is not looked at. */
int32_t exchange_run(const struct kcap_host *host, const struct exchange_to *to,
                     struct kcap_call *call, const struct kcap_http_request *request,
                     struct kcap_http_response **ret);

/* Replaces the response's line; false when out of memory. */
bool exchange_set_error(struct kcap_http_response *response, const char *line);

void exchange_response_free(struct kcap_http_response *response);

#endif
