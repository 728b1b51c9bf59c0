/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/buf.h"
#include "lib/paths.h"
#include "lib/text.h"
#include "profile.h"

#define MAX_URL_LEN 4096
#define MAX_LINE    8192

static void
free_curl_url(CURLU **place)
{
    curl_url_cleanup(*place);
}

static void
free_curl_text(char **place)
{
    curl_free(*place);
}

#define AUTO_CURLU     __attribute__((cleanup(free_curl_url)))
#define AUTO_CURL_TEXT __attribute__((cleanup(free_curl_text)))

static int
set_unusable(struct http_server *server, const char *why)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_LINE);

    buf_addf(&line, "the flow server named by %s cannot be used: %s", server->source, why);
    server->kind = KCAP_HTTP_SERVER_UNUSABLE;
    server->error = buf_take(&line, NULL);
    return server->error ? 0 : KCAP_E_NOMEM;
}

bool
server_is_loopback(const char *host)
{
    size_t len = strlen(host);
    struct in_addr v4;

    if (strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0)
        return true;
    if (len > 10 && strcasecmp(host + len - 10, ".localhost") == 0)
        return true;
    return inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

static int
use_socket(struct http_server *server, const char *path)
{
    AUTO_BUF struct buf shown = BUF_INIT(MAX_LINE);
    struct sockaddr_un address;
    size_t len = strlen(path);

    while (len > 1 && path[len - 1] == '/')
        len--;
    buf_adds(&shown, "unix://");
    text_add_line(&shown, path, len);
    server->shown = buf_take(&shown, NULL);
    server->socket_path = strndup(path, len);
    server->base = strdup("http://localhost");
    if (!server->shown || !server->socket_path || !server->base)
        return KCAP_E_NOMEM;
    server->is_local = true;
    if (path[0] != '/')
        return set_unusable(server, "unix:// must be followed by an absolute path, such as "
                                    "unix:///run/user/1000/flowd.sock");
    if (len >= sizeof address.sun_path)
        return set_unusable(server, "the path of its socket is longer than the system allows "
                                    "(107 bytes); choose a shorter one, for kcap-flowd by "
                                    "setting KCAP_STATE_DIR");
    return 0;
}

/* The URL without user, password and, for a capability, the path that is its secret. */
static int
show_url(struct http_server *server, CURLU *url)
{
    AUTO_CURL_TEXT char *text = NULL;
    AUTO_CURLU CURLU *copy = curl_url_dup(url);
    size_t len;

    if (!copy || curl_url_set(copy, CURLUPART_USER, NULL, 0) != CURLUE_OK ||
        curl_url_set(copy, CURLUPART_PASSWORD, NULL, 0) != CURLUE_OK)
        return KCAP_E_NOMEM;
    if (server->capability && curl_url_set(copy, CURLUPART_PATH, NULL, 0) != CURLUE_OK)
        return KCAP_E_NOMEM;
    if (curl_url_get(copy, CURLUPART_URL, &text, 0) != CURLUE_OK)
        return KCAP_E_NOMEM;
    for (len = strlen(text); len > 0 && text[len - 1] == '/';)
        len--;
    server->shown = strndup(text, len);
    return server->shown ? 0 : KCAP_E_NOMEM;
}

static int
use_http(struct http_server *server, const char *text)
{
    AUTO_CURLU CURLU *url = curl_url();
    AUTO_CURL_TEXT char *host = NULL, *query = NULL, *fragment = NULL, *whole = NULL;
    size_t len;
    int r;

    if (!url)
        return KCAP_E_NOMEM;
    if (curl_url_set(url, CURLUPART_URL, text, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK || !host[0])
        return set_unusable(server, "it is not a valid URL; write it as https://HOST[:PORT]");
    r = show_url(server, url);
    if (r < 0)
        return r;
    (void)curl_url_get(url, CURLUPART_QUERY, &query, 0);
    (void)curl_url_get(url, CURLUPART_FRAGMENT, &fragment, 0);
    if (query || fragment)
        return set_unusable(server, "it has a '?' or '#' part; give the base address alone");
    if (curl_url_get(url, CURLUPART_URL, &whole, 0) != CURLUE_OK)
        return KCAP_E_NOMEM;
    for (len = strlen(whole); len > 0 && whole[len - 1] == '/';)
        len--;
    server->base = strndup(whole, len);
    server->is_local = server_is_loopback(host);
    return server->base ? 0 : KCAP_E_NOMEM;
}

static int
use_url(struct http_server *server, const char *text)
{
    server->kind = KCAP_HTTP_SERVER_CONFIGURED;
    if (strlen(text) > MAX_URL_LEN)
        return set_unusable(server, "it is longer than 4096 bytes");
    if (strncasecmp(text, "unix://", 7) == 0)
        return use_socket(server, text + 7);
    if (strncasecmp(text, "http://", 7) != 0 && strncasecmp(text, "https://", 8) != 0)
        return set_unusable(server, "it must begin with https://, http:// or unix:///");
    return use_http(server, text);
}

static int
use_flowd(const struct kcap_host *host, struct http_server *server)
{
    AUTO_FREE char *dir = NULL, *path = NULL;
    AUTO_BUF struct buf why = BUF_INIT(MAX_LINE);
    int r = paths_state_dir(host->env(host, "KCAP_STATE_DIR"), host->env(host, "HOME"), &dir);

    if (r < 0) {
        buf_adds(&why, "its state directory ");
        text_add_line(&why, dir ? dir : "(no home directory)",
                      strlen(dir ? dir : "(no home directory)"));
        buf_addf(&why,
                 ": %s; make it a directory of yours that others cannot write, set "
                 "KCAP_STATE_DIR to another absolute path, or name a server in KCAP_URL",
                 strerror(-r));
        return set_unusable(server, buf_str(&why));
    }
    path = paths_join(dir, "flowd.sock");
    if (!path)
        return KCAP_E_NOMEM;
    server->kind = KCAP_HTTP_SERVER_LOCAL;
    return use_socket(server, path);
}

/* None was named anywhere: a driver has its own, a reviewer would report to a stranger. */
static int
use_default(const struct kcap_host *host, uint32_t trust_class, struct http_server *server)
{
    if (trust_class == KCAP_CLASS_REVIEWER) {
        server->source = "the environment";
        server->kind = KCAP_HTTP_SERVER_UNUSABLE;
        server->error =
            strdup("no flow server is named: whoever starts the reviewer has to set "
                   "KCAP_URL or KCAP_FLOW_CAPABILITY_URL");
        return server->error ? 0 : KCAP_E_NOMEM;
    }
    server->source = "local kcap-flowd";
    return use_flowd(host, server);
}

static int
use_profile(const struct kcap_host *host, uint32_t trust_class, const struct profile *profile,
            struct http_server *server)
{
    server->source = profile->source;
    if (profile->error) {
        server->kind = KCAP_HTTP_SERVER_UNUSABLE;
        server->error = strdup(profile->error);
        return server->error ? 0 : KCAP_E_NOMEM;
    }
    return profile->server_url ? use_url(server, profile->server_url)
                               : use_default(host, trust_class, server);
}

/* What an address was given for by option or environment, and by which; NULL: none was. */
static const char *
named_url(const struct kcap_host *host, const char **ret_source)
{
    const char *url = host->option(host, "server-url");

    *ret_source = "server-url=";
    if (!text_is_blank(url))
        return url;
    *ret_source = "KCAP_URL";
    url = host->env(host, "KCAP_URL");
    return text_is_blank(url) ? NULL : url;
}

static int
use_configured(const struct kcap_host *host, uint32_t trust_class, struct userconfig *config,
               struct profile *profile, struct http_server *server)
{
    const char *url = named_url(host, &server->source);
    AUTO_FREE char *dir = url ? NULL : getcwd(NULL, 0);
    int r = url ? profile_active(config, profile)
                : profile_select(host, config, dir ? dir : "/", profile);

    if (r == 0)
        r = url ? use_url(server, url) : use_profile(host, trust_class, profile, server);
    server->has_login = server->kind == KCAP_HTTP_SERVER_CONFIGURED && !server->socket_path;
    server->update_check_off = profile->update_check_off;
    server->profile = take_ptr(profile->name);
    server->profile_is_active =
        server->profile && strcmp(server->profile, userconfig_active(config)) == 0;
    server->config_dir = take_ptr(config->dir);
    return r;
}

static int
use_capability(struct http_server *server, const char *url)
{
    int r;

    server->source = "KCAP_FLOW_CAPABILITY_URL";
    server->capability = true;
    r = use_url(server, url);
    if (r == 0 && server->kind == KCAP_HTTP_SERVER_CONFIGURED && !server->is_local)
        r = set_unusable(server, "it must be a loopback address or a unix:/// socket");
    return r;
}

static int
find(const struct kcap_host *host, uint32_t trust_class, struct http_server *ret)
{
    const char *capability = host->env(host, "KCAP_FLOW_CAPABILITY_URL");
    struct profile profile = {.name = NULL};
    struct userconfig config;
    int r;

    if (trust_class == KCAP_CLASS_REVIEWER && !text_is_blank(capability))
        return use_capability(ret, capability);
    r = userconfig_load(host, &config);
    if (r == 0)
        r = use_configured(host, trust_class, &config, &profile, ret);
    profile_fini(&profile);
    userconfig_fini(&config);
    return r;
}

int
server_find(const struct kcap_host *host, uint32_t trust_class, struct http_server *ret)
{
    AUTO_BUF struct buf label = BUF_INIT(MAX_LINE);
    int r;

    *ret = (struct http_server){.source = ""};
    r = find(host, trust_class, ret);
    if (r == 0 && !ret->shown)
        ret->shown = strdup("(unusable)");
    if (r < 0 || !ret->shown)
        return KCAP_E_NOMEM;
    buf_addf(&label, "flow server %s (from %s)", ret->shown, ret->source);
    ret->label = buf_take(&label, NULL);
    return ret->label ? 0 : KCAP_E_NOMEM;
}
