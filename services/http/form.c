/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "form.h"

#include <curl/curl.h>
#include <string.h>
#include <strings.h>

#include "lib/buf.h"
#include "lib/text.h"
#include "server.h"

#define MAX_BODY_LEN   ((size_t)256 << 10)
#define MAX_ANSWER_LEN ((uint64_t)256 << 10)

static bool
is_loopback(const char *text)
{
    CURLU *url = curl_url();
    char *host = NULL;
    bool loopback = url && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
                    curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
                    server_is_loopback(host);

    curl_free(host);
    curl_url_cleanup(url);
    return loopback;
}

const char *
form_endpoint(const struct kcap_host *host, const char *fallback)
{
    const char *url = host->env(host, "KCAP_WORKOS_TOKEN_URL");

    if (text_is_blank(url))
        return fallback;
    if (strncasecmp(url, "https://", 8) == 0 ||
        (strncasecmp(url, "http://", 7) == 0 && is_loopback(url)))
        return url;
    return NULL;
}

static bool
add_value(struct buf *to, const char *value)
{
    char *escaped = curl_easy_escape(NULL, value, (int)strlen(value));

    if (escaped)
        buf_adds(to, escaped);
    curl_free(escaped);
    return escaped != NULL;
}

int32_t
form_post(const struct kcap_host *host, struct kcap_call *call, const char *endpoint,
          const char *const *pairs, int64_t until_ns, struct kcap_http_response **ret)
{
    AUTO_BUF struct buf body = BUF_INIT(MAX_BODY_LEN);
    struct exchange_to to = {
        .url = endpoint,
        .label = "the login server's token endpoint",
        .content_type = "application/x-www-form-urlencoded",
        .is_local = is_loopback(endpoint),
        .is_bare = true,
    };
    struct kcap_http_request request = {
        .struct_size = sizeof request,
        .method = "POST",
        .until_ns = until_ns,
        .max_body_len = MAX_ANSWER_LEN,
    };

    for (; pairs[0]; pairs += 2) {
        buf_addf(&body, "%s%s=", body.len > 0 ? "&" : "", pairs[0]);
        if (!add_value(&body, pairs[1]))
            return KCAP_E_NOMEM;
    }
    if (!buf_ok(&body))
        return KCAP_E_NOMEM;
    request.body = buf_str(&body);
    request.body_len = body.len;
    return exchange_run(host, &to, call, &request, ret);
}
