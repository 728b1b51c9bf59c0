/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "profile.h"

#include <fnmatch.h>
#include <string.h>

#include "lib/auto.h"
#include "lib/buf.h"
#include "lib/paths.h"
#include "lib/text.h"
#include "repository.h"

#define MAX_LINE 2048

static int
fail(struct profile *profile, struct buf *line)
{
    profile->error = buf_take(line, NULL);
    return profile->error ? 0 : KCAP_E_NOMEM;
}

static void
add_quoted(struct buf *line, const char *name)
{
    buf_addc(line, '\'');
    text_add_line(line, name, text_prefix(name, strlen(name), 128));
    buf_addc(line, '\'');
}

static int
take_profile(const char *name, const cJSON *object, struct profile *ret)
{
    const char *url = json_str(object, "server_url");

    ret->name = strdup(name);
    ret->server_url = text_is_blank(url) ? NULL : strdup(url);
    ret->update_check_off = !json_bool(object, "update_check", true);
    return ret->name && (text_is_blank(url) || ret->server_url) ? 0 : KCAP_E_NOMEM;
}

/* What source says must be there. */
static int
use_named(const struct userconfig *config, const char *name, const char *source,
          struct profile *ret)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_LINE);
    const cJSON *object = userconfig_profile(config, name);
    int r;

    ret->source = source;
    if (!object) {
        buf_addf(&line, "%s names the profile ", source);
        add_quoted(&line, name);
        buf_adds(&line, ", which config.json does not have: add it there or change the name");
        return fail(ret, &line);
    }
    r = take_profile(name, object, ret);
    if (r < 0 || ret->server_url)
        return r;
    buf_addf(&line, "%s names the profile ", source);
    add_quoted(&line, name);
    buf_adds(&line, ", which has no server_url in config.json: add one");
    return fail(ret, &line);
}

/* 1 when the repository's own file chose. */
static int
select_by_file(const struct kcap_host *host, const struct userconfig *config,
               const struct repository *repository, struct profile *ret)
{
    AUTO_FREE char *path = paths_join(repository->root, ".kcap.json");
    AUTO_JSON cJSON *file = NULL;
    const char *name, *url;
    bool damaged;
    int r;

    if (!path)
        return KCAP_E_NOMEM;
    file = userconfig_read(path, &damaged);
    name = json_str(file, "profile");
    url = json_str(file, "server_url");
    if (text_is_blank(name))
        return 0;
    r = use_named(config, name, ".kcap.json", ret);
    if (r == 0 && ret->server_url && !text_is_blank(url) && strcmp(url, ret->server_url) != 0)
        host->log(host, KCAP_LOG_WARN,
                  "http: .kcap.json names another server_url than its profile has in "
                  "config.json; the profile's is used");
    return r < 0 ? r : 1;
}

static bool
has_match(const cJSON *profile, const struct repository *repository)
{
    const cJSON *pattern;

    cJSON_ArrayForEach(pattern, json_get(profile, "remotes"))
    {
        for (size_t i = 0; cJSON_IsString(pattern) && i < repository->n_remotes; i++) {
            if (fnmatch(pattern->valuestring, repository->remotes[i],
                        FNM_PATHNAME | FNM_CASEFOLD | FNM_NOESCAPE) == 0)
                return true;
        }
    }
    return false;
}

static int
select_by_remotes(const struct userconfig *config, const struct repository *repository,
                  struct profile *ret)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_LINE);
    const cJSON *profile, *found = NULL;

    cJSON_ArrayForEach(profile, json_get(config->root, "profiles"))
    {
        if (!has_match(profile, repository))
            continue;
        if (found) {
            ret->source = "remotes";
            buf_adds(&line, "the remotes of this repository match the profiles ");
            add_quoted(&line, found->string);
            buf_adds(&line, " and ");
            add_quoted(&line, profile->string);
            buf_adds(&line, " in config.json: choose with KCAP_PROFILE or .kcap.json");
            return fail(ret, &line) < 0 ? KCAP_E_NOMEM : 1;
        }
        found = profile;
    }
    if (!found)
        return 0;
    return use_named(config, found->string, "remotes", ret) < 0 ? KCAP_E_NOMEM : 1;
}

static int
select_by_repository(const struct kcap_host *host, const struct userconfig *config,
                     const struct repository *repository, struct profile *ret)
{
    const char *bound = json_str(json_get(config->root, "profile_bindings"), repository->root);
    int r = select_by_file(host, config, repository, ret);

    if (r == 0)
        r = select_by_remotes(config, repository, ret);
    if (r == 0 && !text_is_blank(bound))
        r = use_named(config, bound, "profile_bindings", ret) < 0 ? KCAP_E_NOMEM : 1;
    return r;
}

int
profile_active(const struct userconfig *config, struct profile *ret)
{
    const char *name = userconfig_active(config);

    *ret = (struct profile){.source = "active_profile"};
    return take_profile(name, userconfig_profile(config, name), ret);
}

int
profile_select(const struct kcap_host *host, const struct userconfig *config, const char *dir,
               struct profile *ret)
{
    const char *name = host->env(host, "KCAP_PROFILE");
    struct repository repository;
    int r;

    *ret = (struct profile){.source = "KCAP_PROFILE"};
    if (!text_is_blank(name))
        return use_named(config, name, "KCAP_PROFILE", ret);
    r = repository_find(dir, &repository);
    if (r == 0)
        r = select_by_repository(host, config, &repository, ret);
    repository_fini(&repository);
    if (r != 0)
        return r < 0 ? r : 0;
    /* the name "default" promises nothing; another one does */
    name = userconfig_active(config);
    if (strcmp(name, "default") != 0)
        return use_named(config, name, "active_profile", ret);
    return profile_active(config, ret);
}

void
profile_fini(struct profile *profile)
{
    free(profile->name);
    free(profile->server_url);
    free(profile->error);
    *profile = (struct profile){.source = NULL};
}
