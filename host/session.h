/* SPDX-License-Identifier: Apache-2.0 */
/* Who is calling: the client's name, its harness, its session. */
#ifndef KCAP_HOST_SESSION_H
#define KCAP_HOST_SESSION_H

#include <stdbool.h>

#include "lib/span.h"

/* Owned strings, NULL when unknown. */
struct caller {
    char *name, *version;
    const char *harness; /* constant: a row of the window table */
    char *session_id;
    const char *session_source; /* constant */
    char *meta;
};

/* Fills session_id and session_source from params._meta (may be absent), else from the
 * environment. False when there is none. */
bool session_find(struct span meta, struct caller *ret);

void caller_fini(struct caller *caller);

#endif
