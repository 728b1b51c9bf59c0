/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/settled.h"

#include <stdlib.h>
#include <string.h>

struct settled {
    struct settled *next;
    uint64_t serial;
    uint32_t outcome;
};

static void
tell_settled(void *arg)
{
    struct host *host = arg;
    struct settled *event;

    (void)pthread_mutex_lock(&host->lock);
    while ((event = host->settled_first)) {
        host->settled_first = event->next;
        if (!host->settled_first)
            host->settled_last = NULL;
        (void)pthread_mutex_unlock(&host->lock);
        host->plugin.desc.settled(host->ctx, event->serial, event->outcome);
        free(event);
        (void)pthread_mutex_lock(&host->lock);
    }
    host->settling = false;
    (void)pthread_cond_broadcast(&host->changed);
    (void)pthread_mutex_unlock(&host->lock);
}

static void
queue(struct host *host, uint64_t serial, uint32_t outcome)
{
    struct settled *event = malloc(sizeof *event);

    if (!event)
        return;
    *event = (struct settled){.serial = serial, .outcome = outcome};
    if (host->settled_last)
        host->settled_last->next = event;
    else
        host->settled_first = event;
    host->settled_last = event;
    if (!host->settling) {
        host->settling = workers_submit(&host->workers, tell_settled, host) == KCAP_OK;
        host_wake_main(host); /* it adds the thread that this may need */
    }
}

static struct answered *
slot_of(struct kcap_call *call)
{
    struct answered *slot = &call->host->answered[call->serial % HOST_ANSWERED];

    return slot->serial == call->serial ? slot : NULL;
}

void
settled_queue(struct kcap_call *call)
{
    struct host *host = call->host;
    struct answered *slot = slot_of(call);

    if (!host->plugin.desc.settled)
        return;
    queue(host, call->serial, call->outcome);
    if (slot)
        slot->told = true;
    if (slot && slot->cancelled)
        queue(host, call->serial, KCAP_SETTLED_LATE_CANCEL);
}

void
settled_remember(struct kcap_call *call)
{
    struct host *host = call->host;
    struct answered *slot = &host->answered[call->serial % HOST_ANSWERED];

    if (!host->plugin.desc.settled || !call->id)
        return;
    free(slot->id);
    *slot = (struct answered){.id = strdup(call->id), .serial = call->serial};
}

void
settled_forget(struct kcap_call *call)
{
    struct answered *slot = slot_of(call);

    if (slot) {
        free(slot->id);
        *slot = (struct answered){.id = NULL};
    }
}

void
settled_late_cancel(struct host *host, struct span id)
{
    for (unsigned i = 0; i < HOST_ANSWERED; i++) {
        struct answered *slot = &host->answered[i];

        if (!slot->id || !span_same(id, (struct span){slot->id, strlen(slot->id)}))
            continue;
        free(slot->id);
        slot->id = NULL;
        if (slot->told)
            queue(host, slot->serial, KCAP_SETTLED_LATE_CANCEL);
        else
            slot->cancelled = true; /* the plugin hears of the answer first */
        return;
    }
}
