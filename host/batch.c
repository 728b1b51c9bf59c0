/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/batch.h"

#include <stdlib.h>
#include <string.h>

#include "host/calls.h"
#include "host/log.h"
#include "host/reply.h"
#include "host/settled.h"
#include "host/wire.h"

/* One answer, waiting for the others. */
struct member {
    struct member *next;
    char *text; /* the line without its LF */
    size_t len;
    struct kcap_call *call; /* or NULL */
};

struct batch {
    struct batch *next; /* host->batches */
    struct host *host;
    unsigned open; /* answers still to come, and one for "not sealed" */
    struct member *members, **end;
};

struct batch *
batch_new(struct host *host)
{
    struct batch *batch = calloc(1, sizeof *batch);

    if (batch) {
        batch->host = host;
        batch->open = 1;
        batch->end = &batch->members;
        batch->next = host->batches;
        host->batches = batch;
    }
    return batch;
}

void
batch_expect(struct batch *batch)
{
    batch->open++;
}

static void
unlink_batch(struct batch *batch)
{
    struct batch **place = &batch->host->batches;

    while (*place != batch)
        place = &(*place)->next;
    *place = batch->next;
}

static void
one_less(struct batch *batch)
{
    struct buf array = BUF_INIT(SIZE_MAX / 2);
    struct kcap_call *calls = NULL;

    if (--batch->open > 0)
        return;
    while (batch->members) {
        struct member *member = batch->members;

        batch->members = member->next;
        buf_addc(&array, array.len == 0 ? '[' : ',');
        buf_add(&array, member->text, member->len);
        if (member->call) {
            member->call->next_in_line = calls;
            calls = member->call;
        }
        free(member->text);
        free(member);
    }
    if (array.len > 0) { /* notifications alone are not answered at all */
        buf_adds(&array, "]\n");
        if (!wire_queue(batch->host->wire, &array, calls))
            log_line(KCAP_LOG_ERROR, "out of memory: the answers to a batch are lost");
    }
    buf_fini(&array);
    unlink_batch(batch);
    free(batch);
}

bool
batch_deliver(struct batch *batch, struct buf *line, struct kcap_call *call)
{
    struct member *member = calloc(1, sizeof *member);

    if (member)
        member->text = buf_take(line, &member->len);
    if (!member || !member->text || member->len == 0) {
        if (member)
            free(member->text);
        free(member);
        one_less(batch);
        return false;
    }
    member->len--; /* the LF */
    member->call = call;
    *batch->end = member;
    batch->end = &member->next;
    one_less(batch);
    return true;
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

static struct member **
find(struct host *host, struct span id, struct batch **ret_batch)
{
    for (struct batch *batch = host->batches; batch; batch = batch->next) {
        for (struct member **place = &batch->members; *place; place = &(*place)->next) {
            const struct kcap_call *call = (*place)->call;

            *ret_batch = batch;
            if (call && span_same(id, (struct span){call->id, strlen(call->id)}))
                return place;
        }
    }
    return NULL;
}

bool
batch_has_id(struct host *host, struct span id)
{
    struct batch *batch;

    return find(host, id, &batch) != NULL;
}

struct kcap_call *
batch_cancel(struct host *host, struct span id)
{
    struct batch *batch;
    struct member **place = find(host, id, &batch), *member;
    struct kcap_call *call;

    if (!place)
        return NULL;
    member = *place;
    *place = member->next;
    if (batch->end == &member->next)
        batch->end = place;
    call = member->call;
    free(member->text);
    free(member);
    return call;
}
