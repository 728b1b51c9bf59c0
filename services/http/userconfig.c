/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "userconfig.h"

#include <errno.h>
#include <string.h>

#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/buf.h"
#include "lib/paths.h"
#include "lib/text.h"

#define MAX_FILE_LEN ((size_t)1 << 20)

cJSON *
userconfig_read(const char *path, bool *ret_damaged)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_FILE_LEN);
    AUTO_JSON cJSON *root = NULL;
    const char *bytes;
    size_t len;
    int r = atomic_read(path, &text);

    *ret_damaged = r < 0 && r != -ENOENT && r != -ENOTDIR;
    if (r < 0)
        return NULL;
    bytes = buf_str(&text);
    len = text.len;
    if (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) { /* some editors put it there */
        bytes += 3;
        len -= 3;
    }
    root = json_parse(bytes, len, NULL);
    *ret_damaged = !cJSON_IsObject(root);
    return *ret_damaged ? NULL : take_ptr(root);
}

int
userconfig_load(const struct kcap_host *host, struct userconfig *ret)
{
    AUTO_FREE char *path = NULL;
    bool damaged;

    *ret = (struct userconfig){
        .dir = paths_config_dir(host->env(host, "KCAP_CONFIG_DIR"), host->env(host, "HOME"))};
    if (!ret->dir)
        return 0;
    path = paths_join(ret->dir, "config.json");
    if (!path)
        return KCAP_E_NOMEM;
    ret->root = userconfig_read(path, &damaged);
    if (damaged)
        kcap_logf(host, KCAP_LOG_WARN,
                  "http: %s cannot be read as a JSON object and is passed over; mend it", path);
    return 0;
}

void
userconfig_fini(struct userconfig *config)
{
    free(config->dir);
    cJSON_Delete(config->root);
    *config = (struct userconfig){.dir = NULL};
}

const cJSON *
userconfig_profile(const struct userconfig *config, const char *name)
{
    const cJSON *profiles = json_get(config->root, "profiles");
    const cJSON *profile = json_get(profiles, name);

    if (cJSON_IsObject(profile))
        return profile;
    return !profiles && json_str(config->root, "server_url") && strcmp(name, "default") == 0
               ? config->root
               : NULL;
}

const char *
userconfig_active(const struct userconfig *config)
{
    const char *name = json_str(config->root, "active_profile");

    return text_is_blank(name) ? "default" : name;
}
