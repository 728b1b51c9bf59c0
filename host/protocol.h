/* SPDX-License-Identifier: Apache-2.0 */
/* MCP itself: which method, in which era, answered how. Main thread only; never waits for a
 * tool. */
#ifndef KCAP_HOST_PROTOCOL_H
#define KCAP_HOST_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#include "host/host.h"
#include "host/listen.h"

struct protocol {
    struct host *host;
    const char *revision; /* negotiated by initialize; NULL before */
    bool stateless_seen;  /* a request of that era came */
    char *client_name, *client_version, *client_capabilities; /* of initialize */
    char *tools; /* member "tools" of a tools/list result */
    struct listen listen;
    struct batch *batch; /* the one whose members are being read, or NULL */
};

/* Returns 0, or -1 when out of memory. */
int protocol_init(struct protocol *protocol, struct host *host);

/* One line that arrived at arrived_ns: the windows of calls run from then. */
void protocol_line(struct protocol *protocol, const char *line, size_t len, int64_t arrived_ns);

/* A line over the reader's limit. */
void protocol_line_too_long(struct protocol *protocol);

/* The end of input: closes what only the client's presence kept open. */
void protocol_end(struct protocol *protocol);

#endif
