/* SPDX-License-Identifier: Apache-2.0 */
/* The methods a client can call, one function each. Main thread. */
#ifndef KCAP_HOST_METHODS_H
#define KCAP_HOST_METHODS_H

#include "host/era.h"
#include "host/protocol.h"
#include "host/rpc.h"

struct request {
    const struct rpc *rpc;
    struct era era;
    int64_t arrived_ns;
};

struct method {
    const char *name;
    bool handshake, stateless; /* the eras that know it */
    bool before_initialize;
    void (*run)(struct protocol *protocol, const struct request *request);
};

/* NULL: unknown in every era. */
const struct method *method_find(struct span name);

/* Answers go to the wire, or to the batch that is being read. */
void protocol_send(struct protocol *protocol, struct buf *line);
void protocol_send_result(struct protocol *protocol, const struct request *request,
                          const char *members, bool cacheable);
void protocol_send_error(struct protocol *protocol, struct span id, int code, const char *text,
                         const char *data);

#endif
