/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/text.h"
#include "server/http_internal.h"
#include "server/util.h"

/* What is read of a body that is too long, so that the client hears why; then it is cut off. */
#define MAX_DISCARDED ((size_t)8 << 20)

/* Of all bodies of a kind of peer that are being read or waited for: more than that would be
 * somebody's mistake, or worse. */
#define MAX_BODIES ((size_t)64 << 20)

/* From the connection, or the answer before, to a whole request, as a multiple of the time that
 * it may be idle. */
#define REQUEST_IDLE_TIMES 2

static void
make_pending(struct request *request)
{
    struct http *http = request->http;

    request->state = REQUEST_PENDING;
    request->next = NULL;
    *http->pending_end = request;
    http->pending_end = &request->next;
}

/* ---- waiting requests ---- */

static void
stop_waiting(struct request *request)
{
    struct request **place = &request->http->waiting;

    while (*place != request)
        place = &(*place)->next;
    *place = request->next;
    request->waited = true;
    make_pending(request);
}

/* libmicrohttpd does not look at suspended connections, so a client that left would be kept
 * waiting for. */
static void
client_hung_up(struct source *source, uint32_t events)
{
    struct request *request = SOURCE_OWNER(source, struct request, hangup);

    (void)events;
    (void)loop_remove(request->http->epoll_fd, source);
    if (request->state == REQUEST_WAITING)
        stop_waiting(request);
}

void
http_wait(struct request *request, char *flow_id, int64_t until_ns)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    free(request->wait_flow);
    request->wait_flow = flow_id;
    request->wait_until_ns = until_ns;
    request->state = REQUEST_WAITING;
    request->next = request->http->waiting;
    request->http->waiting = request;
    if (info)
        (void)loop_add(request->http->epoll_fd, &request->hangup, info->connect_fd, EPOLLRDHUP);
}

void
http_wake(struct http *http, const char *flow_id)
{
    for (struct request *request = http->waiting, *next; request; request = next) {
        next = request->next;
        if (strcmp(request->wait_flow, flow_id) == 0)
            stop_waiting(request);
    }
}

void
http_expire(struct http *http, int64_t now_ns)
{
    visitors_expire(http, now_ns);
    for (struct request *request = http->waiting, *next; request; request = next) {
        next = request->next;
        if (request->wait_until_ns <= now_ns)
            stop_waiting(request);
    }
}

/* ---- requests and answers ---- */

static void
drop_body(struct request *request)
{
    request->http->body_len[request->peer] -= request->body.len;
    buf_fini(&request->body);
}

static void
request_free(struct request *request)
{
    if (!request)
        return;
    (void)loop_remove(request->http->epoll_fd, &request->hangup);
    drop_body(request);
    free(request->method);
    free(request->path);
    free(request->wait_sec_text);
    free(request->repo_root);
    free(request->authorization);
    free(request->host);
    free(request->origin);
    free(request->answer);
    free(request->shown_flow);
    free(request->wait_flow);
    free(request);
}

/* A value of the query or a header; false when out of memory. */
static bool
copy_value(struct MHD_Connection *connection, enum MHD_ValueKind kind, const char *name,
           char **ret)
{
    const char *value = MHD_lookup_connection_value(connection, kind, name);

    *ret = value ? strdup(value) : NULL;
    return !value || *ret;
}

/* Our own clients say which version they are. */
static void
see_version(struct http *http, struct MHD_Connection *connection)
{
    static const char name[] = PACKAGE_NAME "/";
    const char *agent =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_USER_AGENT);

    if (agent && strncmp(agent, name, sizeof name - 1) == 0 &&
        util_is_newer(agent + sizeof name - 1, PACKAGE_VERSION))
        http->outdated = true;
}

static struct request *
request_new(struct http *http, struct MHD_Connection *connection, const char *url,
            const char *method)
{
    struct request *request = calloc(1, sizeof *request);
    bool ok;

    if (!request)
        return NULL;
    request->http = http;
    request->connection = connection;
    request->hangup = (struct source){.fd = -1, .ready = client_hung_up};
    request->body = BUF_INIT(HTTP_MAX_BODY);
    request->method = strdup(method);
    request->path = strdup(url);
    ok = copy_value(connection, MHD_GET_ARGUMENT_KIND, "wait_sec", &request->wait_sec_text) &&
         copy_value(connection, MHD_GET_ARGUMENT_KIND, "repo_root", &request->repo_root);
    request->peer = visitor_peer(connection);
    if (request->peer == HTTP_PEER_LOCAL)
        see_version(http, connection);
    if (request->peer == HTTP_PEER_TCP)
        ok = ok &&
             copy_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION,
                        &request->authorization) &&
             copy_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST, &request->host) &&
             copy_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ORIGIN, &request->origin);
    if (!request->method || !request->path || !ok) {
        request_free(request);
        return NULL;
    }
    return request;
}

static enum MHD_Result
send_answer(struct request *request)
{
    char *body = request->answer;
    struct MHD_Response *response;
    enum MHD_Result result;

    request->answer = NULL;
    if (!body) {
        request->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
        response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    } else {
        response = MHD_create_response_from_buffer(strlen(body), body, MHD_RESPMEM_MUST_FREE);
    }
    if (!response) {
        free(body);
        return MHD_NO;
    }
    if (request->answer_type)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                      request->answer_type);
    (void)MHD_add_response_header(response, "X-Kcap-Server-Version", PACKAGE_VERSION);
    if (request->http->outdated) /* its next request is for the next daemon */
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    result = MHD_queue_response(request->connection, (unsigned)request->status, response);
    MHD_destroy_response(response);
    return result;
}

void
http_answer(struct request *request, int status, char *body, const char *type)
{
    struct http *http = request->http;

    (void)loop_remove(http->epoll_fd, &request->hangup);
    request->status = status;
    request->answer = body;
    request->answer_type = type;
    request->state = REQUEST_ANSWERED;
    request->next = http->answered;
    http->answered = request;
}

/* Lets go of the body: what still comes is thrown away. */
static void
refuse_body(struct request *request)
{
    drop_body(request);
    request->body.max = MAX_DISCARDED; /* from now on: what may still be thrown away */
    request->has_no_body = true;
}

static void
set_too_large(struct request *request)
{
    refuse_body(request);
    request->status = MHD_HTTP_CONTENT_TOO_LARGE;
    request->answer =
        strdup("{\"error\":\"request_too_large\",\"message\":\"The body is longer "
               "than 4 MiB; shorten the context or point to a file.\"}");
    request->answer_type = "application/json";
}

static void
set_busy(struct request *request)
{
    refuse_body(request);
    request->status = MHD_HTTP_SERVICE_UNAVAILABLE;
    request->answer = strdup("{\"error\":\"server_busy\",\"message\":\"Too many long "
                             "requests at once; send it again.\"}");
    request->answer_type = "application/json";
}

/* Takes a piece of the body, or throws it away. False when there is no end to it. */
static bool
take_piece(struct request *request, const char *piece, size_t len)
{
    if (!request->has_no_body) {
        size_t *all = &request->http->body_len[request->peer], before = request->body.len;
        buf_add(&request->body, piece, len);
        *all += request->body.len - before;
        if (!buf_ok(&request->body))
            set_too_large(request);
        else if (*all > MAX_BODIES)
            set_busy(request);
        return true;
    }
    if (len > request->body.max)
        return false;
    request->body.max -= len;
    return true;
}

/* What the headers say of the body's length; HTTP_MAX_BODY + MAX_DISCARDED and more is all one.
 */
static size_t
announced_len(struct MHD_Connection *connection)
{
    const char *text = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                                   MHD_HTTP_HEADER_CONTENT_LENGTH);
    int64_t most = (int64_t)(HTTP_MAX_BODY + MAX_DISCARDED), len = 0;

    if (text && !text_to_int(text, 0, most, &len))
        len = most;
    return (size_t)len;
}

/* Called once when the headers are there, then for each piece of the body, then once more; and
 * again when an answered request was resumed. */
static enum MHD_Result
handle(void *arg, struct MHD_Connection *connection, const char *url, const char *method,
       const char *version, const char *piece, size_t *piece_len, void **con_cls)
{
    struct http *http = arg;
    struct request *request = *con_cls;

    (void)version;
    if (!request) {
        request = request_new(http, connection, url, method);
        if (!request)
            return MHD_NO;
        *con_cls = request;
        if (announced_len(connection) > HTTP_MAX_BODY)
            set_too_large(request);
        else if (!http->may_send(http->may_send_arg, request))
            refuse_body(request); /* it hears why when it has said all */
        /* an answer before the end of the body reaches few clients, but there is a limit */
        return announced_len(connection) < HTTP_MAX_BODY + MAX_DISCARDED ? MHD_YES
                                                                         : send_answer(request);
    }
    if (*piece_len > 0) {
        if (!take_piece(request, piece, *piece_len))
            return MHD_NO;
        *piece_len = 0;
        return MHD_YES;
    }
    if (request->status != 0)
        return send_answer(request);
    if (http->is_closing) /* one that were suspended now would make MHD abort */
        return MHD_NO;
    visitor_set_deadline(connection, UTIL_NEVER);
    make_pending(request);
    MHD_suspend_connection(connection);
    return MHD_YES;
}

static void
completed(void *arg, struct MHD_Connection *connection, void **con_cls,
          enum MHD_RequestTerminationCode code)
{
    struct http *http = arg;
    struct request *request = *con_cls;
    struct shown *shown;

    visitor_set_deadline(connection, util_now_ns() + http->request_ns);
    *con_cls = NULL;
    if (request && request->shown_flow && code == MHD_REQUEST_TERMINATED_COMPLETED_OK) {
        shown = calloc(1, sizeof *shown);
        if (shown) { /* else the outcome is shown once more: harmless */
            shown->flow_id = request->shown_flow;
            request->shown_flow = NULL;
            *http->shown_end = shown;
            http->shown_end = &shown->next;
        }
    }
    request_free(request);
}

/* Segments are decoded by whoever splits the path: a %2F is not a slash. */
static size_t
keep_escapes(void *arg, struct MHD_Connection *connection, char *text)
{
    (void)arg;
    (void)connection;
    return strlen(text);
}

/* ---- the daemon ---- */

static void
daemon_ready(struct source *source, uint32_t events)
{
    (void)source; /* http_run follows every wait */
    (void)events;
}

int
http_new(int epoll_fd, unsigned idle_connection_sec,
         bool (*may_send)(void *arg, const struct request *request), void *arg,
         struct http **ret)
{
    struct http *http = calloc(1, sizeof *http);
    const union MHD_DaemonInfo *info;
    int r;

    if (!http)
        return -ENOMEM;
    http->epoll_fd = epoll_fd;
    http->may_send = may_send;
    http->may_send_arg = arg;
    http->request_ns = REQUEST_IDLE_TIMES * idle_connection_sec * UTIL_SEC_NS;
    http->pending_end = &http->pending;
    http->shown_end = &http->shown;
    http->daemon_source = (struct source){.fd = -1, .ready = daemon_ready};
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        handle, http, MHD_OPTION_NOTIFY_COMPLETED, completed, http,
        MHD_OPTION_NOTIFY_CONNECTION, visitor_changed, http, MHD_OPTION_UNESCAPE_CALLBACK,
        keep_escapes, NULL, MHD_OPTION_CONNECTION_LIMIT, HTTP_MAX_CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, idle_connection_sec, MHD_OPTION_END);
    info = http->daemon ? MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    r = info ? loop_add(epoll_fd, &http->daemon_source, info->epoll_fd, EPOLLIN) : -ENOMEM;
    if (r < 0) {
        http_free(http);
        return r;
    }
    *ret = http;
    return 0;
}

static void
refuse_all(struct http *http)
{
    struct request *request;

    while (http->waiting)
        stop_waiting(http->waiting);
    while ((request = http_take_pending(http)) != NULL)
        http_answer(request, MHD_HTTP_SERVICE_UNAVAILABLE,
                    strdup("{\"error\":\"server_stopping\",\"message\":\"kcap-flowd is "
                           "stopping; ask again, it is started anew when needed.\"}"),
                    "application/json");
}

void
http_free(struct http *http)
{
    char *flow_id;

    if (!http)
        return;
    http->is_closing = true;
    if (http->daemon) { /* a connection that is suspended at the stop makes MHD abort */
        refuse_all(http);
        http_run(http);
        refuse_all(http);
        http_run(http);
        (void)loop_remove(http->epoll_fd, &http->daemon_source);
        MHD_stop_daemon(http->daemon);
    }
    while ((flow_id = http_take_shown(http)) != NULL)
        free(flow_id);
    free(http);
}

void
http_add_connection(struct http *http, int fd, enum http_peer peer)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in tcp = {.sin_family = AF_INET};

    if (http_is_full(http, peer)) { /* theirs; there is no telling before it is accepted */
        (void)close(fd);
        return;
    }
    if (peer == HTTP_PEER_REVIEWER)
        local.sun_path[0] = 'r';
    if (peer == HTTP_PEER_TCP)
        (void)MHD_add_connection(http->daemon, fd, (struct sockaddr *)&tcp, sizeof tcp);
    else
        (void)MHD_add_connection(http->daemon, fd, (struct sockaddr *)&local, sizeof local);
}

void
http_run(struct http *http)
{
    while (http->answered) {
        struct request *request = http->answered;
        http->answered = request->next;
        request->next = NULL;
        MHD_resume_connection(request->connection);
    }
    (void)MHD_run(http->daemon);
}

int64_t
http_deadline_ns(struct http *http)
{
    MHD_UNSIGNED_LONG_LONG left_ms;
    int64_t until_ns = UTIL_NEVER;

    if (http->answered)
        return 0;
    if (MHD_get_timeout(http->daemon, &left_ms) == MHD_YES)
        until_ns = util_now_ns() + (int64_t)left_ms * 1000000;
    for (const struct request *request = http->waiting; request; request = request->next) {
        if (request->wait_until_ns < until_ns)
            until_ns = request->wait_until_ns;
    }
    return util_earlier(until_ns, visitors_deadline_ns(http));
}

bool
http_is_full(struct http *http, enum http_peer peer)
{
    return http_connection_count(http) >= HTTP_MAX_CONNECTIONS ||
           (peer != HTTP_PEER_LOCAL && http->peers[peer] >= HTTP_MAX_OF_A_KIND);
}

bool
http_is_outdated(const struct http *http)
{
    return http->outdated;
}

unsigned
http_connection_count(struct http *http)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

    return info ? info->num_connections : 0;
}

struct request *
http_take_pending(struct http *http)
{
    struct request *request = http->pending;

    if (!request)
        return NULL;
    http->pending = request->next;
    if (!http->pending)
        http->pending_end = &http->pending;
    request->next = NULL;
    return request;
}

bool
http_has_pending(const struct http *http)
{
    return http->pending != NULL;
}

char *
http_take_shown(struct http *http)
{
    struct shown *shown = http->shown;
    char *flow_id;

    if (!shown)
        return NULL;
    http->shown = shown->next;
    if (!http->shown)
        http->shown_end = &http->shown;
    flow_id = shown->flow_id;
    free(shown);
    return flow_id;
}

bool
http_has_shown(const struct http *http)
{
    return http->shown != NULL;
}
