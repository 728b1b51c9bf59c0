/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/batch.h"

#include <stdlib.h>

#include "host/calls.h"
#include "host/reply.h"
#include "host/wire.h"

struct batch {
    struct host *host;
    unsigned open; /* answers still to come, and one for "not sealed" */
    struct buf array;
    struct kcap_call *answered; /* by next_in_line */
};

struct batch *
batch_new(struct host *host)
{
    struct batch *batch = calloc(1, sizeof *batch);

    if (batch) {
        batch->host = host;
        batch->open = 1;
        buf_init(&batch->array, REPLY_MAX_LEN);
    }
    return batch;
}

void
batch_expect(struct batch *batch)
{
    batch->open++;
}

static void
one_less(struct batch *batch)
{
    if (--batch->open > 0)
        return;
    if (batch->array.len > 0) { /* notifications alone are not answered at all */
        buf_adds(&batch->array, "]\n");
        (void)wire_queue(batch->host->wire, &batch->array, batch->answered);
    }
    buf_fini(&batch->array);
    free(batch);
}

bool
batch_deliver(struct batch *batch, struct buf *line, struct kcap_call *call)
{
    size_t before = batch->array.len;
    bool kept;

    buf_addc(&batch->array, before == 0 ? '[' : ',');
    if (line->len > 0)
        buf_add(&batch->array, line->data, line->len - 1);
    kept = buf_ok(line) && buf_ok(&batch->array) && line->len > 0;
    if (!kept) {
        batch->array.len = before;
        batch->array.failed = false;
    } else if (call) {
        call->next_in_line = batch->answered;
        batch->answered = call;
    }
    buf_clear(line);
    one_less(batch);
    return kept;
}

void
batch_skip(struct batch *batch)
{
    one_less(batch);
}

void
batch_seal(struct batch *batch)
{
    one_less(batch);
}
