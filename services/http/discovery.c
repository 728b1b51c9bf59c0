/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "discovery.h"

#include <string.h>

#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/json.h"
#include "lib/paths.h"
#include "send.h"
#include "userconfig.h"

#define MAX_ANSWER_LEN ((uint64_t)64 << 10)
#define FRESH_SEC      86400

int32_t
discovery_ask(const struct kcap_host *host, const struct http_server *server,
              struct kcap_call *call, int64_t until_ns, char **ret_provider,
              struct kcap_http_response **ret_answer)
{
    struct kcap_http_request request = {
        .struct_size = sizeof request,
        .method = "GET",
        .until_ns = until_ns,
        .max_body_len = MAX_ANSWER_LEN,
    };
    AUTO_JSON cJSON *json = NULL;
    const char *provider;
    int32_t r;

    *ret_provider = NULL;
    r = send_request(host, server, call, &request, "/auth/config", NULL, ret_answer);
    if (r != 0 || (*ret_answer)->outcome != KCAP_HTTP_ANSWER || (*ret_answer)->status != 200)
        return r;
    json = json_parse((*ret_answer)->body, (*ret_answer)->body_len, NULL);
    provider = json_str(json, "provider");
    if (provider && provider[0])
        *ret_provider = strdup(provider);
    return 0;
}

static char *
cache_path(const struct http_server *server, char **ret_dir)
{
    *ret_dir = server->config_dir ? paths_join(server->config_dir, "cache") : NULL;
    return *ret_dir ? paths_join(*ret_dir, "auth-providers.json") : NULL;
}

char *
discovery_recall(const struct kcap_host *host, const struct http_server *server)
{
    AUTO_FREE char *dir = NULL, *path = cache_path(server, &dir);
    AUTO_JSON cJSON *cache = NULL;
    const cJSON *entry;
    const char *provider;
    int64_t now_sec = host->wall_ms(host) / 1000, at_sec;
    bool damaged;

    cache = path ? userconfig_read(path, &damaged) : NULL;
    entry = json_get(cache, server->shown);
    provider = json_str(entry, "provider");
    /* one from the future was written under another clock: nobody knows how old it is */
    if (!provider || !provider[0] || !json_int(entry, "fetched_at", &at_sec) ||
        at_sec > now_sec || now_sec - at_sec >= FRESH_SEC)
        return NULL;
    return strdup(provider);
}

void
discovery_remember(const struct kcap_host *host, const struct http_server *server,
                   const char *provider)
{
    AUTO_FREE char *dir = NULL, *path = cache_path(server, &dir), *text = NULL;
    AUTO_JSON cJSON *cache = NULL;
    cJSON *entry;
    bool damaged;

    if (!path || paths_make_dir(dir) < 0)
        return;
    cache = userconfig_read(path, &damaged);
    if (!cache)
        cache = cJSON_CreateObject();
    cJSON_DeleteItemFromObjectCaseSensitive(cache, server->shown);
    if (provider) {
        entry = cJSON_AddObjectToObject(cache, server->shown);
        (void)json_add_str(entry, "provider", provider);
        (void)cJSON_AddNumberToObject(entry, "fetched_at",
                                      (double)(host->wall_ms(host) / 1000));
    }
    text = json_print(cache);
    if (text)
        (void)atomic_write(path, text, strlen(text), 0600);
}
