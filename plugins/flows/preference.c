/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "preference.h"

#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "lib/auto.h"
#include "lib/text.h"
#include "services/http/profile.h"

static int
take(const struct userconfig *config, const char *name, struct preference *ret)
{
    const cJSON *profile = userconfig_profile(config, name);
    const char *saved = json_str(json_get(profile, "flows"), "reviewer_vendor");

    ret->profile = strdup(name);
    ret->vendor = text_is_blank(saved) ? NULL : args_trim(saved, true);
    return ret->profile && (ret->vendor || text_is_blank(saved)) ? 0 : KCAP_E_NOMEM;
}

int
preference_find(const struct kcap_host *host, const char *dir, struct preference *ret)
{
    struct userconfig config;
    struct profile profile = {.name = NULL};
    int r = userconfig_load(host, &config);

    *ret = (struct preference){.profile = NULL};
    if (r == 0)
        r = profile_select(host, &config, dir, &profile);
    if (r == 0)
        r = take(&config, profile.name ? profile.name : userconfig_active(&config), ret);
    profile_fini(&profile);
    userconfig_fini(&config);
    return r;
}

void
preference_fini(struct preference *preference)
{
    free(preference->profile);
    free(preference->vendor);
    *preference = (struct preference){.profile = NULL};
}

static void
add_profile(struct buf *to, const struct preference *preference)
{
    buf_adds(to, " in the profile ");
    text_add_line(to, preference->profile,
                  text_prefix(preference->profile, strlen(preference->profile), 100));
}

void
preference_add_missing(struct buf *to, const struct preference *preference)
{
    buf_adds(to, "\nNo reviewer is saved");
    add_profile(to, preference);
    buf_adds(to,
             ". Ask the user which one to use (claude, codex, copilot, cursor, gemini, kiro, "
             "opencode, pi or antigravity, as far as the server has them) and start again with "
             "that vendor. The user can save it as flows.reviewer_vendor of the profile in "
             "config.json.");
}

void
preference_add_stale(struct buf *to, const struct preference *preference)
{
    buf_adds(to, "\nThe saved reviewer ");
    text_add_line(to, preference->vendor,
                  text_prefix(preference->vendor, strlen(preference->vendor), 100));
    add_profile(to, preference);
    buf_adds(to, " no longer works here. Ask the user which one to use, start again with that "
                 "vendor, and have it saved as flows.reviewer_vendor.");
}
