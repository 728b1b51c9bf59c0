/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two eras of MCP. Handshake (2024-11-05 to 2025-11-25): version and client belong to the
 * process, from initialize on. Stateless (2026-07-28): every request says its version,
 * capabilities and client in _meta. The era is a property of each request; a process serves
 * both and is never pinned to one.
 */
#ifndef KCAP_HOST_ERA_H
#define KCAP_HOST_ERA_H

#include <stdbool.h>

#include "lib/span.h"

#define ERA_STATELESS_VERSION "2026-07-28"
#define ERA_HANDSHAKE_LATEST  "2025-11-25"
/* JSON lists for error data */
#define ERA_STATELESS_LIST "[\"" ERA_STATELESS_VERSION "\"]"
#define ERA_ALL_LIST                                                                        \
    "[\"2024-11-05\",\"2025-03-26\",\"2025-06-18\",\"2025-11-25\",\"" ERA_STATELESS_VERSION \
    "\"]"
#define ERA_HANDSHAKE_LIST "[\"2024-11-05\",\"2025-03-26\",\"2025-06-18\",\"2025-11-25\"]"

struct era {
    bool stateless;
    struct span meta;         /* params._meta; absent when it is no object */
    struct span client;       /* stateless: its clientInfo */
    struct span capabilities; /* stateless: its clientCapabilities */
};

/* Reads a request's era from its params. Returns 0, or a JSON-RPC error code with *ret_text,
 * and for an unsupported version *ret_requested, its raw token. */
int era_read(struct span params, struct era *ret, const char **ret_text,
             struct span *ret_requested);

/* The handshake revision that answers to a client that asks for version: itself when it is
 * known, else the newest. A constant. */
const char *era_negotiate(struct span version);

#endif
