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
    char *error;        /* one line when UNUSABLE, else NULL */
};

/* Fills *ret for the life of the process. Returns 0 or KCAP_E_NOMEM. */
int server_find(const struct kcap_host *host, uint32_t trust_class, struct http_server *ret);

#endif
