/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the user's profiles counts here. */
#ifndef KCAP_SERVICES_HTTP_PROFILE_H
#define KCAP_SERVICES_HTTP_PROFILE_H

#include "userconfig.h"

struct profile {
    char *name;         /* whose login is used; NULL: none */
    char *server_url;   /* NULL: none named */
    const char *source; /* what chose it, constant: "KCAP_PROFILE", ".kcap.json", ... */
    char *error;        /* why there is no server although one was asked for; else NULL */
    bool update_check_off;
};

/* First hit wins: KCAP_PROFILE, .kcap.json in the root of the repository around dir, a match of
 * its remotes, profile_bindings, active_profile. A name that leads nowhere is an error and
 * never passed over. Returns 0 or KCAP_E_NOMEM. */
int profile_select(const struct kcap_host *host, const struct userconfig *config,
                   const char *dir, struct profile *ret);

/* Only what belongs to the active profile, for a server that was named otherwise. */
int profile_active(const struct userconfig *config, struct profile *ret);

void profile_fini(struct profile *profile);

#endif
