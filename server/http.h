/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP over accepted connections: collects whole requests and keeps their connections suspended
 * until they are answered. Knows no route.
 */
#ifndef KCAP_SERVER_HTTP_H
#define KCAP_SERVER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "server/loop.h"

#define HTTP_MAX_BODY        ((size_t)4 << 20)
#define HTTP_MAX_CONNECTIONS 512u /* one more would be closed at once */
#define HTTP_MAX_OF_A_KIND \
    128u /* of reviewers, and over TCP: the drivers here are not kept out */

struct http;
struct MHD_Connection;

/* Who is at the other end. */
enum http_peer { HTTP_PEER_LOCAL, HTTP_PEER_REVIEWER, HTTP_PEER_TCP, HTTP_PEERS };

enum request_state { REQUEST_READING, REQUEST_PENDING, REQUEST_WAITING, REQUEST_ANSWERED };

struct request {
    struct request *next;
    struct http *http;
    struct MHD_Connection *connection;
    enum request_state state;
    char *method;
    char *path;          /* as sent, percent-encoded, without the query */
    char *wait_sec_text; /* the query's wait_sec, or NULL */
    char *repo_root;     /* likewise */
    enum http_peer peer;
    char *authorization, *host, *origin; /* headers of a request over TCP, or NULL */
    struct buf body;
    bool has_no_body; /* it is thrown away as it comes */

    int status; /* the answer */
    char *answer;
    const char *answer_type;
    char *shown_flow; /* reported by http_take_shown once the answer was written */

    char *wait_flow; /* WAITING: until something happens to this flow */
    int64_t wait_until_ns;
    bool waited; /* answer now, whatever there is */
    struct source hangup;
};

/* may_send is asked once the headers are there; the body of a request it says no to is not
 * kept. Returns 0 or -errno. */
int http_new(int epoll_fd, unsigned idle_connection_sec,
             bool (*may_send)(void *arg, const struct request *request), void *arg,
             struct http **ret);
/* Answers everything with 503, closes all connections, frees. */
void http_free(struct http *http);

/* Takes over an accepted, non-blocking descriptor; closes it when there are too many of its
 * kind.
 */
void http_add_connection(struct http *http, int fd, enum http_peer peer);

/* Reads, writes, collects. Call after every wait and after http_answer. */
void http_run(struct http *http);
/* When http_run wants to be called even if nothing happens. */
int64_t http_deadline_ns(struct http *http);
/* Whether a kcap-host of a later version than ours has asked. */
bool http_is_outdated(const struct http *http);
unsigned http_connection_count(struct http *http);
bool http_is_full(struct http *http, enum http_peer peer);

/* The first complete request that was not taken yet, or NULL. Each one taken must be given to
 * http_answer or http_wait before the next http_run. */
struct request *http_take_pending(struct http *http);
bool http_has_pending(const struct http *http);

/* body is given (NULL: out of memory, a bare 500); type is a constant. */
void http_answer(struct request *request, int status, char *body, const char *type);
/* Keeps the request until http_wake(flow_id), until_ns or the client's hang-up; then it is
 * pending again, with waited set. flow_id is given. */
void http_wait(struct request *request, char *flow_id, int64_t until_ns);
void http_wake(struct http *http, const char *flow_id);
/* Ends waits that are over, and connections that take too long to say what they want. */
void http_expire(struct http *http, int64_t now_ns);

/* A flow named in a shown_flow whose answer has been written to its client; the caller frees.
 * NULL when there is none. */
char *http_take_shown(struct http *http);
bool http_has_shown(const struct http *http);

#endif
