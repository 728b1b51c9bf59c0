/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kcap/http.h - the extension "kcap.http/1": requests to the one flow server of this process.
 *
 *     const struct kcap_http *http = host->extension(host, KCAP_HTTP_EXTENSION);
 *
 * The service finds the server and the login by itself; a plugin names paths below
 * the server's base and never sees an address it did not print or a token. What a class may ask
 * for is fixed: driver, anything but the reviewer's routes; reviewer, only the reviewer's
 * routes; setup, nothing. Rules of kcap/plugin.h apply.
 *
 * Redirects are not followed, compressed bodies not asked for, and nothing is sent twice but
 * after a 401, once, with a renewed login: the server has then refused to look at it.
 */
#ifndef KCAP_HTTP_H
#define KCAP_HTTP_H

#include <kcap/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KCAP_HTTP_EXTENSION "kcap.http/1"

/* Where requests go. */
#define KCAP_HTTP_SERVER_CONFIGURED 1u /* named by option, environment or configuration */
#define KCAP_HTTP_SERVER_LOCAL      2u /* none named: this user's kcap-flowd */
#define KCAP_HTTP_SERVER_UNUSABLE   3u /* named, but unusable: error says why */

struct kcap_http_server {
    uint32_t struct_size; /* set by the caller */
    uint32_t kind;        /* KCAP_HTTP_SERVER_* */
    const char *url;      /* for showing: credentials removed; "unix:///path" for a socket */
    const char *source;   /* what named it: "server-url=", "KCAP_URL", "KCAP_PROFILE", ... */
    const char *error;    /* UNUSABLE: one line naming the source and the cure; else NULL */
};

struct kcap_http_request {
    uint32_t struct_size; /* sizeof(struct kcap_http_request) */
    uint32_t flags;       /* 0 */
    const char *method;   /* "GET" or "POST" */
    const char *path;     /* begins with '/', each segment percent-encoded; may carry a query */
    const char *body;     /* JSON text of a POST, or NULL for an empty body */
    size_t body_len;
    int64_t until_ns; /* give up then (outcome UNKNOWN or NOT_SENT); KCAP_TIME_NEVER: the call's
                         end */
    uint64_t max_body_len; /* refuse a longer answer; 0 is 8 MiB */

    /* NULL, or where the answer's body goes, piece by piece as it comes; the response's own is
     * then empty, and max_body_len counts for nothing. A call with bytes NULL begins an answer:
     * what an earlier one brought (a 401 that is tried again) is to be forgotten. Not 0 refuses
     * the rest: the outcome is UNKNOWN. Runs on the thread of the request. */
    int32_t (*receive)(void *receive_arg, const char *bytes, size_t len);
    void *receive_arg;
};

/* How an exchange ended. NOT_SENT is certain: the server has seen nothing of it. UNKNOWN means
 * that it may have been received and acted on. */
#define KCAP_HTTP_ANSWER   0
#define KCAP_HTTP_NOT_SENT 1
#define KCAP_HTTP_UNKNOWN  2

struct kcap_http_response {
    uint32_t struct_size;
    int32_t outcome; /* KCAP_HTTP_* */
    int32_t status;  /* ANSWER: the HTTP status, 100 to 999; else 0 */
    uint32_t reserved;
    const char
        *body; /* ANSWER: the whole body, NUL after body_len, maybe not UTF-8; else NULL */
    size_t body_len;
    const char *content_type; /* lower case, without parameters; "" when absent */
    int64_t retry_after_ms;   /* from Retry-After (seconds form); -1 when absent */
    const char *error; /* one line, no secrets. Not ANSWER: what failed, where and what to
                          check. ANSWER with status 401: what is wrong with the login and
                          who can mend it. Else NULL */
};

struct kcap_http {
    uint32_t struct_size;
    uint32_t reserved;

    /* Fills *ret as far as ret->struct_size reaches; strings live as long as the process. [any]
     */
    void (*server)(const struct kcap_http *http, struct kcap_http_server *ret);

    /*
     * One exchange, waiting through call's wait. Returns:
     *
     * - 0: *ret is filled; free it with response_free. In all other cases it is NULL.
     * - KCAP_WAIT_CANCELLED, KCAP_WAIT_DEADLINE, KCAP_WAIT_SHUTDOWN: the call ended first and
     *   the connection was dropped; whatever had been sent may still be acted on.
     * - KCAP_E_REFUSED: the route is not for this class; nothing was sent.
     * - another negative code: nothing was sent.
     *
     * [worker]
     */
    int32_t (*request)(const struct kcap_http *http, struct kcap_call *call,
                       const struct kcap_http_request *request,
                       struct kcap_http_response **ret);

    /* Frees what request returned; NULL is fine. [any] */
    void (*response_free)(const struct kcap_http *http, struct kcap_http_response *response);

    /* Whether requests have a chance, without making one: asks the server how it wants to be
     * logged in to (a capability URL is only connected to), and looks for the login, renewing
     * it when it is expired. Returns as request does. *ret is an ANSWER with status 200 when
     * all is well; with status 401 and error when the login is of no use; with another status
     * and error when what answered is no flow server. [worker] */
    int32_t (*check)(const struct kcap_http *http, struct kcap_call *call, int64_t until_ns,
                     struct kcap_http_response **ret);
};

#ifdef __cplusplus
}
#endif

#endif
