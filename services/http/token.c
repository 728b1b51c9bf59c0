/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "token.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/paths.h"
#include "lib/text.h"
#include "userconfig.h"
#include "when.h"

#define MAX_TOKEN_LEN   16384u
#define MAX_PROFILE_LEN 128u

bool
token_is_sound(const char *text)
{
    size_t len = 0;

    for (; text && text[len]; len++) {
        if (text[len] <= ' ' || text[len] >= 0x7f)
            return false;
    }
    return len > 0 && len <= MAX_TOKEN_LEN;
}

/* ---- the file ---- */

/* DIR/tokens/PROFILE.json; a name that would lead elsewhere has no file. */
static int
set_path(const struct http_server *server, struct token *token)
{
    const char *profile = server->profile;
    AUTO_BUF struct buf path = BUF_INIT(8192);

    if (!server->config_dir || !profile || profile[0] == '.' || strchr(profile, '/') ||
        !profile[0] || strlen(profile) > MAX_PROFILE_LEN)
        return 0;
    buf_addf(&path, "%s/tokens/%s.json", server->config_dir, profile);
    token->path = buf_take(&path, NULL);
    return token->path ? 0 : KCAP_E_NOMEM;
}

/* Points the members into json; false when what must be there is not. */
static bool
read_members(struct token *token)
{
    const cJSON *json = token->json;
    const char *provider = json_str(json, "provider");

    token->access = json_str(json, "access_token");
    token->refresh = json_str(json, "refresh_token");
    token->user = json_str(json, "github_username");
    token->provider = provider ? provider : "GitHubApp";
    token->client_id = json_str(json, "client_id");
    token->server_url = json_str(json, "server_url");
    return token_is_sound(token->access) &&
           when_parse(json_str(json, "expires_at"), &token->expires_ms);
}

/* The members point into it, so they go with it. */
static void
drop_json(struct token *token)
{
    struct token bare = {.path = token->path, .legacy_path = token->legacy_path};

    cJSON_Delete(token->json);
    *token = bare;
}

int
token_load(const struct http_server *server, struct token *ret)
{
    AUTO_FREE char *legacy = NULL;
    int r;

    *ret = (struct token){.path = NULL};
    r = set_path(server, ret);
    if (r < 0 || !ret->path)
        return r;
    ret->json = userconfig_read(ret->path, &ret->damaged);
    if (!ret->json && !ret->damaged && server->profile_is_active) {
        legacy = paths_join(server->config_dir, "tokens.json");
        if (!legacy)
            return KCAP_E_NOMEM;
        ret->json = userconfig_read(legacy, &ret->damaged);
        if (ret->json)
            ret->legacy_path = take_ptr(legacy);
    }
    if (ret->json && !read_members(ret)) {
        drop_json(ret);
        ret->damaged = true;
    }
    return 0;
}

void
token_fini(struct token *token)
{
    free(token->path);
    free(token->legacy_path);
    cJSON_Delete(token->json);
    *token = (struct token){.path = NULL};
}

/* ---- whether it can be used ---- */

struct place {
    CURLU *url;
    char *scheme, *host, *port, *path;
};

static bool
place_of(const char *text, struct place *ret)
{
    *ret = (struct place){.url = curl_url()};
    return ret->url && curl_url_set(ret->url, CURLUPART_URL, text, 0) == CURLUE_OK &&
           curl_url_get(ret->url, CURLUPART_SCHEME, &ret->scheme, 0) == CURLUE_OK &&
           curl_url_get(ret->url, CURLUPART_HOST, &ret->host, 0) == CURLUE_OK &&
           curl_url_get(ret->url, CURLUPART_PORT, &ret->port, CURLU_DEFAULT_PORT) ==
               CURLUE_OK &&
           curl_url_get(ret->url, CURLUPART_PATH, &ret->path, 0) == CURLUE_OK;
}

static void
place_fini(struct place *place)
{
    curl_free(place->scheme);
    curl_free(place->host);
    curl_free(place->port);
    curl_free(place->path);
    curl_url_cleanup(place->url);
}

static size_t
path_len(const char *path)
{
    size_t len = strlen(path);

    while (len > 0 && path[len - 1] == '/')
        len--;
    return len;
}

bool
token_is_for(const struct token *token, const struct http_server *server)
{
    struct place ours, its;
    bool same;

    if (text_is_blank(token->server_url))
        return true;
    same = place_of(server->base, &ours);
    same = place_of(token->server_url, &its) && same;
    same = same && strcmp(ours.scheme, its.scheme) == 0 &&
           strcasecmp(ours.host, its.host) == 0 && strcmp(ours.port, its.port) == 0 &&
           path_len(ours.path) == path_len(its.path) &&
           memcmp(ours.path, its.path, path_len(ours.path)) == 0;
    place_fini(&ours);
    place_fini(&its);
    return same;
}

bool
token_is_expired(const struct token *token, int64_t now_ms)
{
    return token->expires_ms - TOKEN_EARLY_MS <= now_ms;
}

/* ---- saving ---- */

static bool
put(cJSON *json, const char *name, const char *value)
{
    cJSON *item = value ? cJSON_CreateString(value) : NULL;

    if (!value)
        return true;
    if (!item)
        return false;
    if (cJSON_HasObjectItem(json, name) && json_get(json, name))
        return cJSON_ReplaceItemInObjectCaseSensitive(json, name, item);
    return cJSON_AddItemToObject(json, name, item);
}

static int
save(struct token *token)
{
    AUTO_FREE char *text = json_print(token->json), *dir = strdup(token->path);
    int r;

    if (!text || !dir)
        return -ENOMEM;
    *strrchr(dir, '/') = '\0';
    r = paths_make_dir(dir);
    if (r == 0 && chmod(token->path, 0600) < 0 && errno != ENOENT)
        r = -errno;
    if (r == 0)
        r = atomic_write(token->path, text, strlen(text), 0600);
    if (r == 0 && token->legacy_path)
        (void)unlink(token->legacy_path);
    return r;
}

int
token_renew(struct token *token, const struct http_server *server,
            const struct token_news *news)
{
    char expires[WHEN_TEXT_LEN];

    when_format(news->expires_ms, expires);
    if (!put(token->json, "access_token", news->access) ||
        !put(token->json, "refresh_token", news->refresh) ||
        !put(token->json, "github_username", news->user) ||
        !put(token->json, "expires_at", expires) ||
        !put(token->json, "server_url", server->shown) || !read_members(token))
        return -ENOMEM;
    return save(token);
}
