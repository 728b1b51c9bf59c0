/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/listen.h"

#include <stdlib.h>
#include <string.h>

#define SUBSCRIPTION_ID "io.modelcontextprotocol/subscriptionId"

static unsigned
find(const struct listen *listen, struct span id)
{
    unsigned i = 0;

    while (i < listen->n &&
           !span_same(id, (struct span){listen->ids[i], strlen(listen->ids[i])}))
        i++;
    return i;
}

bool
listen_open(struct listen *listen, struct span id, struct buf *line)
{
    char *copy = listen->n < LISTEN_MAX ? strndup(id.p, id.len) : NULL;

    if (!copy)
        return false;
    listen->ids[listen->n++] = copy;
    buf_addf(line,
             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/"
             "acknowledged\",\"params\":{"
             "\"_meta\":{\"" SUBSCRIPTION_ID "\":%s},\"notifications\":{}}}\n",
             copy);
    return true;
}

bool
listen_has(const struct listen *listen, struct span id)
{
    return find(listen, id) < listen->n;
}

bool
listen_cancel(struct listen *listen, struct span id)
{
    unsigned i = find(listen, id);

    if (i == listen->n)
        return false;
    free(listen->ids[i]);
    listen->ids[i] = listen->ids[--listen->n];
    return true;
}

bool
listen_close_one(struct listen *listen, struct buf *line, const char *server_info)
{
    char *id;

    if (listen->n == 0)
        return false;
    id = listen->ids[--listen->n];
    buf_addf(
        line,
        "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resultType\":\"complete\",\"_meta\":{"
        "\"" SUBSCRIPTION_ID "\":%s,\"io.modelcontextprotocol/serverInfo\":%s}}}\n",
        id, id, server_info);
    free(id);
    return true;
}
