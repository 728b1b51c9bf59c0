/* SPDX-License-Identifier: Apache-2.0 */
/* What the git repository around a directory is called, read without running git. */
#ifndef KCAP_SERVICES_HTTP_REPOSITORY_H
#define KCAP_SERVICES_HTTP_REPOSITORY_H

#include <stddef.h>

#define REPOSITORY_MAX_REMOTES 32

struct repository {
    char *root; /* where .git is; the directory itself outside of any */
    char *remotes[REPOSITORY_MAX_REMOTES]; /* "host/owner/repo", see repository_normalise */
    size_t n_remotes;
    char *origin; /* the first of "origin", spelled likewise; NULL: none */
};

/* Returns 0 or KCAP_E_NOMEM. Remotes in files that git's configuration includes are not seen.
 */
int repository_find(const char *dir, struct repository *ret);
void repository_fini(struct repository *repository);

/* A remote's URL as "host/owner/repo": scheme, user, port and ".git" dropped; NULL when it is
 * no address of a host, or out of memory. */
char *repository_normalise(const char *url);

#endif
