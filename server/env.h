/* SPDX-License-Identifier: Apache-2.0 */
/* The environment is an allow-list: whoever starts kcap-flowd may be in the middle of a session
 * of any harness, and neither its variables nor its secrets are for reviewers. What a reviewer
 * needs besides stands in flowd.env. */
#ifndef KCAP_SERVER_ENV_H
#define KCAP_SERVER_ENV_H

#include "lib/buf.h"
#include "lib/json.h"

/* Drops everything else from our own environment, and wipes what /proc shows of it. Before any
 * use of setenv. */
void env_scrub(void);

struct env_wish {
    const char *env_path;            /* flowd.env */
    const char *const *vendor_names; /* or NULL: which of it the vendor may need */
    const cJSON *more_names;         /* or NULL: likewise, as the user says */
    const char *url;
    const char *agent_id; /* or NULL: not for this process */
    const char *mark;
    char *const *more; /* NAME=VALUE, ended by NULL */
};

/* The environment of a reviewer; free it with env_free. names gets the names, for people.
 * Returns 0 or negative, with a line for people in error. */
int env_for_reviewer(const struct env_wish *wish, char ***ret, struct buf *names,
                     struct buf *error);
void env_free(char **env);

#endif
