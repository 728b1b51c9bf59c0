/* SPDX-License-Identifier: Apache-2.0 */
/* A line from the client: scanner, envelope, era, and every walk over the spans they give. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "host/era.h"
#include "host/rpc.h"
#include "host/session.h"
#include "lib/jscan.h"
#include "lib/json.h"
#include "tests/fuzz/fuzz.h"

static void
look_at(const struct rpc *rpc)
{
    struct span requested = {NULL, 0};
    const char *text = NULL;
    struct caller caller = {.name = NULL};
    struct era era;

    (void)era_read(rpc->params, &era, &text, &requested);
    (void)session_find(era.meta, &caller);
    caller_fini(&caller);
    if (rpc->kind == RPC_REQUEST && span_type(rpc->id) == '"') {
        size_t len = 0;
        char *copy = span_string(rpc->id, &len);
        if (!copy || len > rpc->id.len || !span_same(rpc->id, rpc->id))
            abort();
        free(copy);
    }
}

/* What the scanner accepts, cJSON must read too, unless memory is short. */
static void
compare_with_cjson(const char *text, size_t len)
{
    const char *error = NULL;
    struct jscan scan;
    int r = jscan(text, len, &scan);
    cJSON *value = json_parse(text, len, &error);

    if ((r == JSCAN_OK && !scan.has_nul) != (value != NULL))
        abort();
    cJSON_Delete(value);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* of exactly this size, so that reading past it is seen */
    struct span_iter iter;
    struct span member;
    struct rpc rpc;

    if (!text)
        return 0;
    memcpy(text, data, size);
    rpc_read(text, size, true, &rpc);
    if (rpc.kind == RPC_BATCH) {
        span_elements(rpc.params, &iter);
        while (span_next_element(&iter, &member)) {
            struct rpc inner;
            rpc_read_member(member, &inner);
            look_at(&inner);
        }
    } else {
        look_at(&rpc);
    }
    compare_with_cjson(text, size);
    free(text);
    return 0;
}
