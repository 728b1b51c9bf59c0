/* SPDX-License-Identifier: Apache-2.0 */
/* Which reviewer the user has saved for starts that name none. */
#ifndef KCAP_FLOWS_PREFERENCE_H
#define KCAP_FLOWS_PREFERENCE_H

#include <kcap/plugin.h>

#include "lib/buf.h"

struct preference {
    char *profile; /* whose it is, or would be */
    char *vendor;  /* NULL: none saved */
};

/* Reads the configuration afresh; dir is where the session is. Returns 0 or KCAP_E_NOMEM. */
int preference_find(const struct kcap_host *host, const char *dir, struct preference *ret);
void preference_fini(struct preference *preference);

/* Adds what to do when there is none, or when the server does not take it (any more). */
void preference_add_missing(struct buf *to, const struct preference *preference);
void preference_add_stale(struct buf *to, const struct preference *preference);

#endif
