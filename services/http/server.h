/* SPDX-License-Identifier: Apache-2.0 */
/* Which server this process talks to: found once, then fixed. */
#ifndef KCAP_SERVICES_HTTP_SERVER_H
#define KCAP_SERVICES_HTTP_SERVER_H

#include <kcap/http.h>
#include <stdbool.h>

struct http_server {
    uint32_t kind;      /* KCAP_HTTP_SERVER_* */
    bool capability;    /* a reviewer's one-launch address: its own paths, no version header */
    bool is_local;      /* loopback or socket: never through a proxy */
    char *base;         /* what requests begin with, no trailing slash; may hold credentials */
    char *socket_path;  /* or NULL */
    char *shown;        /* for people: without credentials */
    const char *source; /* constant */
    char *label;        /* both, for messages */
    char *profile;      /* whose login is used, or NULL */
    bool profile_is_active; /* the one that logins from before profiles belong to */
    char *config_dir;       /* where the logins are, or NULL */
    bool has_login;         /* not a capability, not a socket: who asks is told by a token */
    bool update_check_off;
    char *error; /* one line when UNUSABLE, else NULL */
};

/* Whether that is an address of this machine alone; host as a URL has it. */
bool server_is_loopback(const char *host);

/* Fills *ret for the life of the process. Returns 0 or KCAP_E_NOMEM. */
int server_find(const struct kcap_host *host, uint32_t trust_class, struct http_server *ret);

#endif
