/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: who is at the other end, how many there are, and until when they may take. */
#include "config.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "server/http_internal.h"
#include "server/util.h"

/* The address that a connection was added with is not where it came from but from whom. */
enum http_peer
visitor_peer(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr_un *address =
        info ? (const struct sockaddr_un *)(const void *)info->client_addr : NULL;

    if (!address || address->sun_family != AF_UNIX)
        return HTTP_PEER_TCP;
    return address->sun_path[0] == '\0' ? HTTP_PEER_LOCAL : HTTP_PEER_REVIEWER;
}

void
visitor_set_deadline(struct MHD_Connection *connection, int64_t until_ns)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct visitor *visitor = info ? info->socket_context : NULL;

    if (visitor)
        visitor->until_ns = until_ns;
}

void
visitor_changed(void *arg, struct MHD_Connection *connection, void **socket_context,
                enum MHD_ConnectionNotificationCode code)
{
    struct http *http = arg;
    struct visitor *visitor = *socket_context;
    const union MHD_ConnectionInfo *info;

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (!visitor)
            return;
        *visitor->place = visitor->next;
        if (visitor->next)
            visitor->next->place = visitor->place;
        http->peers[visitor->peer]--;
        free(visitor);
        *socket_context = NULL;
        return;
    }
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    visitor = info ? calloc(1, sizeof *visitor) : NULL;
    if (!visitor)
        return; /* it is trusted to be quick */
    visitor->peer = visitor_peer(connection);
    http->peers[visitor->peer]++;
    visitor->fd = info->connect_fd;
    visitor->until_ns = util_now_ns() + http->request_ns;
    visitor->next = http->visitors;
    visitor->place = &http->visitors;
    if (visitor->next)
        visitor->next->place = &visitor->next;
    http->visitors = visitor;
    *socket_context = visitor;
}

void
visitors_expire(struct http *http, int64_t now_ns)
{
    for (struct visitor *visitor = http->visitors; visitor; visitor = visitor->next) {
        if (visitor->until_ns <= now_ns) {
            (void)shutdown(visitor->fd, SHUT_RDWR); /* libmicrohttpd then closes it */
            visitor->until_ns = UTIL_NEVER;
        }
    }
}

int64_t
visitors_deadline_ns(const struct http *http)
{
    int64_t until_ns = UTIL_NEVER;

    for (const struct visitor *visitor = http->visitors; visitor; visitor = visitor->next)
        until_ns = util_earlier(until_ns, visitor->until_ns);
    return until_ns;
}
