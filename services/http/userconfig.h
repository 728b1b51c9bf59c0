/* SPDX-License-Identifier: Apache-2.0 */
/* The user's kcap configuration, config.json: read, never written. */
#ifndef KCAP_SERVICES_HTTP_USERCONFIG_H
#define KCAP_SERVICES_HTTP_USERCONFIG_H

#include <kcap/plugin.h>

#include "lib/json.h"

struct userconfig {
    char *dir;   /* the configuration directory; NULL when there is no home */
    cJSON *root; /* NULL: no file, or not readable as JSON (a warning was logged) */
};

/* Reads the file. Returns 0 or KCAP_E_NOMEM. */
int userconfig_load(const struct kcap_host *host, struct userconfig *ret);
void userconfig_fini(struct userconfig *config);

/* A JSON file of the configuration as an object; NULL when there is none, or it is no such
 * thing (then *ret_damaged). */
cJSON *userconfig_read(const char *path, bool *ret_damaged);

/* The profile of that name, or NULL. A file of the first version is the profile "default". */
const cJSON *userconfig_profile(const struct userconfig *config, const char *name);

/* "default" unless the file says otherwise. Borrowed. */
const char *userconfig_active(const struct userconfig *config);

#endif
