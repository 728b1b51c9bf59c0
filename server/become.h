/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child that becomes an agent: it composes the agent's start so that of all MCP servers it
 * sees ours alone, which takes questions to the agent's own program, and then turns into it.
 * The daemon never waits for any of that, and the process has one pid from the first moment.
 *
 * Before that its standard output has lines {"kcap_launch": {...}}: "step", what is asked now;
 * "refused", a list of reasons, and it ends; "server", the name of our server, and what follows
 * is the agent's.
 */
#ifndef KCAP_SERVER_BECOME_H
#define KCAP_SERVER_BECOME_H

#include "server/vendor.h"

/* The words of the plan, for a vendor of launch/compose.h in one of its modes. */
int become_plan(const struct settings *settings, const struct assignment *job, const char *url,
                const char *vendor, const char *mode, struct vendor_plan *ret,
                struct buf *error);

/* Why the vendor's program cannot be run, for people, or NULL. */
const char *become_missing(const struct settings *settings, const char *vendor);

/* What every agent that talks to a provider may need of flowd.env. */
#define BECOME_NET_ENV                                                                 \
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", \
        "all_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"

#define BECOME_WORD "--become" /* argv[1] of such a child */
/* Returns the exit status when it became nothing. */
int become(int argc, char **argv);

/* ---- the daemon's side ---- */

enum become_line {
    BECOME_OTHER, /* a line of the agent */
    BECOME_STEP,
    BECOME_DONE,   /* *ret_server, owned, is our server's name */
    BECOME_REFUSED /* reviewer_refuse was called */
};
enum become_line become_read(struct reviewer *reviewer, const char *line, size_t len,
                             char **ret_server);

#endif
