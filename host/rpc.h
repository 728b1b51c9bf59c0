/* SPDX-License-Identifier: Apache-2.0 */
/* One line from the client, taken apart: is it a request, a notification, an answer, or wrong?
 */
#ifndef KCAP_HOST_RPC_H
#define KCAP_HOST_RPC_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/span.h"

#define RPC_PARSE_ERROR      (-32700)
#define RPC_INVALID_REQUEST  (-32600)
#define RPC_METHOD_NOT_FOUND (-32601)
#define RPC_INVALID_PARAMS   (-32602)
#define RPC_INTERNAL_ERROR   (-32603)

/* of the stateless era */
#define RPC_MISSING_CAPABILITY  (-32021)
#define RPC_UNSUPPORTED_VERSION (-32022)

#define RPC_MAX_ID 1024 /* bytes of raw text of an id or a progress token */

enum rpc_kind {
    RPC_REQUEST,      /* id and method */
    RPC_NOTIFICATION, /* method, no id */
    RPC_IGNORE, /* must not be answered: an answer we did not ask for, a malformed notification
                 */
    RPC_BATCH,  /* params is the array */
    RPC_BAD,    /* to be answered with code and text, with id when that is set */
};

struct rpc {
    enum rpc_kind kind;
    struct span id, method, params; /* raw text within the line; absent: p is NULL */
    bool has_nul;                   /* a string of the line holds \\u0000 */
    int code;
    const char *text;
};

/* Reads line[0..len), which need not end in NUL. A non-empty array is RPC_BATCH if batches are
 * allowed. */
void rpc_read(const char *line, size_t len, bool allow_batch, struct rpc *ret);

/* Reads one member of a batch. */
void rpc_read_member(struct span member, struct rpc *ret);

#endif
