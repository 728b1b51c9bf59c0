/* SPDX-License-Identifier: Apache-2.0 */
/* The environment is an allow-list: whoever starts kcap-flowd may be in the middle of a session
 * of any harness, and neither its variables nor its secrets are for reviewers. */
#ifndef KCAP_SERVER_ENV_H
#define KCAP_SERVER_ENV_H

/* Drops everything else from our own environment, and wipes what /proc shows of it. Before any
 * use of setenv. */
void env_scrub(void);

/* The environment of a reviewer: what env_scrub kept, the server and who it is. Free with
 * env_free; NULL when out of memory. */
char **env_for_reviewer(const char *server_url, const char *agent_id);
void env_free(char **env);

#endif
