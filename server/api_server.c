/* SPDX-License-Identifier: Apache-2.0 */
/* What this server is and can. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/paths.h"
#include "server/api_internal.h"
#include "server/vendor.h"

static int
show_auth(struct api_call *call)
{
    const char *provider = call->request->remote.is_tcp ? "GitHubApp" : "None";

    return json_add_str(call->result, "provider", provider) ? 0 : -ENOMEM;
}

/* ---- who can review here ---- */

static bool
add_text(cJSON *list, const char *text)
{
    cJSON *item = cJSON_CreateString(text);

    if (item && cJSON_AddItemToArray(list, item))
        return true;
    cJSON_Delete(item);
    return false;
}

static bool
add_capability(cJSON *list, const struct vendor *vendor)
{
    cJSON *item = cJSON_CreateObject();

    if (!item || !cJSON_AddItemToArray(list, item)) {
        cJSON_Delete(item);
        return false;
    }
    return json_add_str(item, "vendor", vendor->name) &&
           cJSON_AddBoolToObject(item, "supports_reviewer_model_resolution",
                                 vendor->has_model) != NULL;
}

static bool
add_vendors(cJSON *daemon, const struct settings *settings)
{
    cJSON *supported = cJSON_AddArrayToObject(daemon, "supported_vendors");
    cJSON *unattended = cJSON_AddArrayToObject(daemon, "unattended_vendors");
    cJSON *capabilities = cJSON_AddArrayToObject(daemon, "unattended_vendor_capabilities");
    const struct vendor *vendor;
    bool ok = supported && unattended && capabilities;

    for (size_t i = 0; ok && (vendor = vendor_at(i)) != NULL; i++) {
        ok = add_text(supported, vendor->name);
        if (ok && !vendor_missing(vendor, settings))
            ok = add_text(unattended, vendor->name) && add_capability(capabilities, vendor);
    }
    return ok;
}

/* The machine's id, as the clients of this user know it; absent when there is none yet. */
static bool
add_machine(cJSON *daemon, const char *config_dir)
{
    AUTO_FREE char *path = paths_join(config_dir, "machine.json");
    AUTO_BUF struct buf text = BUF_INIT(4096);
    AUTO_JSON cJSON *machine = NULL;

    if (path && atomic_read(path, &text) == 0)
        machine = json_parse(buf_str(&text), text.len, NULL);
    return json_add_str(daemon, "machine_id", json_str(machine, "id"));
}

struct paths_seen {
    cJSON *list;
};

static int
add_path(void *arg, const struct flow *flow)
{
    struct paths_seen *seen = arg;
    const cJSON *item;

    cJSON_ArrayForEach(item, seen->list)
    {
        if (strcmp(item->valuestring, flow->cwd) == 0)
            return 0;
    }
    return add_text(seen->list, flow->cwd) ? 0 : -ENOMEM;
}

/* Any directory of this machine can be reviewed. A client that looks for its own in the list
 * finds it when it says so, or has been here before. */
static int
add_repo_paths(struct api_call *call, cJSON *daemon)
{
    const char *raw = call->request->repo_root;
    AUTO_FREE char *asked = raw ? api_decode(raw, strlen(raw)) : NULL;
    struct paths_seen seen = {.list = cJSON_AddArrayToObject(daemon, "repo_paths")};
    struct stat st;

    if (!seen.list || !cJSON_AddTrueToObject(daemon, "any_repo"))
        return -ENOMEM;
    if (asked && asked[0] == '/' && stat(asked, &st) == 0 && S_ISDIR(st.st_mode) &&
        !add_text(seen.list, asked))
        return -ENOMEM;
    return store_each_flow(call->engine->store, true, 100, add_path, &seen);
}

static int
list_daemons(struct api_call *call)
{
    AUTO_BUF struct buf error = BUF_INIT(8192);
    const struct api_site *site = call->request->site;
    cJSON *daemon = cJSON_CreateObject();
    struct settings settings;
    int r = settings_read(site->settings_path, site->override, &settings, &error);

    if (r < 0)
        r = api_fail(call, 500, "invalid_settings", "%s", buf_str(&error));
    cJSON_Delete(call->result);
    call->result = cJSON_CreateArray();
    if (!daemon || !call->result || !cJSON_AddItemToArray(call->result, daemon)) {
        cJSON_Delete(daemon);
        r = -ENOMEM;
    }
    if (r == 0 && (!add_machine(daemon, site->config_dir) || !add_vendors(daemon, &settings)))
        r = -ENOMEM;
    if (r == 0)
        r = add_repo_paths(call, daemon);
    settings_fini(&settings);
    return r;
}

const struct api_route api_server_routes[] = {
    {"GET", "/auth/config", false, show_auth},
    {"GET", "/api/daemons", false, list_daemons},
    {NULL, NULL, false, NULL},
};
