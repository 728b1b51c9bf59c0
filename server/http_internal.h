/* SPDX-License-Identifier: Apache-2.0 */
/* What http.c and http_visitor.c share. */
#ifndef KCAP_SERVER_HTTP_INTERNAL_H
#define KCAP_SERVER_HTTP_INTERNAL_H

#include <microhttpd.h>

#include "server/http.h"

struct shown {
    struct shown *next;
    char *flow_id;
};

/* A connection. A byte now and then keeps it from being idle; what is asked must still be
 * there in time. */
struct visitor {
    struct visitor *next, **place;
    enum http_peer peer;
    int fd;
    int64_t until_ns; /* for a whole request; UTIL_NEVER while one is being worked on */
};

struct http {
    int epoll_fd;
    bool outdated, is_closing;
    int64_t request_ns; /* for a whole request to be there */
    struct visitor *visitors;
    unsigned peers[HTTP_PEERS];  /* how many visitors of each kind */
    size_t body_len[HTTP_PEERS]; /* of all their bodies together */
    bool (*may_send)(void *arg, const struct request *request);
    void *may_send_arg;
    struct MHD_Daemon *daemon;
    struct source daemon_source;
    struct request *pending, **pending_end;
    struct request *waiting;
    struct request *answered; /* to be resumed by the next http_run */
    struct shown *shown, **shown_end;
};

/* ---- http_visitor.c ---- */

/* For libmicrohttpd: a connection has begun or ended. arg: the struct http. */
void visitor_changed(void *arg, struct MHD_Connection *connection, void **socket_context,
                     enum MHD_ConnectionNotificationCode code);
enum http_peer visitor_peer(struct MHD_Connection *connection);
void visitor_set_deadline(struct MHD_Connection *connection, int64_t until_ns);
void visitors_expire(struct http *http, int64_t now_ns);
int64_t visitors_deadline_ns(const struct http *http);

#endif
