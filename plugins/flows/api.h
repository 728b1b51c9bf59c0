/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the flow server and a strict reading of its answers. Texts that are longer than
 * an answer of ours may be are shortened while they come in; api_text tells what is there. */
#ifndef KCAP_FLOWS_API_H
#define KCAP_FLOWS_API_H

#include "flows.h"
#include "lib/buf.h"

enum api_kind {
    API_OK,       /* 2xx with one JSON object, or with the list that was wanted */
    API_CODED,    /* a rejection with code and message: certain to have had no effect */
    API_STATUS,   /* another status, uncoded */
    API_BAD,      /* 2xx with anything else: no answer of a flow server */
    API_NOT_SENT, /* certain: the server has seen nothing */
    API_UNKNOWN,  /* no answer; the server may have acted */
    API_REFUSED,  /* nothing was tried: no usable server, no service, no such route */
};

struct api_request {
    const char *method, *path;
    const char *body; /* or NULL */
    size_t body_len;
    bool wants_list;     /* the answer is to be an array */
    int64_t text_offset; /* of a long text show what is from that byte on */
    int64_t limit_ms;
};

struct api_answer {
    enum api_kind kind;
    int status;                 /* of an answer, else 0 */
    cJSON *json;                /* OK and CODED; an object, but for lists */
    const char *code, *message; /* CODED, borrowed from json */
    char *text;                 /* the others: one line saying what went wrong */
    int64_t retry_after_ms;     /* -1 when not told */
};

#define API_MAX_TEXT ((size_t)256 << 10) /* bytes that stay of a text */

/* A text of a server's answer: of its total bytes those from that one on, as many as stay. */
struct api_text {
    const char *text; /* NULL: not given. Borrowed. */
    int64_t from, total;
};

/* The member of an answer's object. */
struct api_text api_text(const cJSON *json, const char *name);

/* Sends one request; a local server that is not there is started first. Returns 0 with *ret
 * filled, KCAP_WAIT_CANCELLED, _DEADLINE or _SHUTDOWN, or KCAP_E_NOMEM. */
int32_t api_request(struct flows *flows, struct kcap_call *call,
                    const struct api_request *request, struct api_answer *ret);
void api_answer_fini(struct api_answer *answer);
#define AUTO_ANSWER __attribute__((cleanup(api_answer_fini)))

/* Appends what is wrong with an answer that is not OK, as one line. */
void api_add_error(struct buf *to, const struct api_answer *answer);

/* All but the unreserved characters as %XX. */
void api_add_encoded(struct buf *to, const char *text);

/* "BEFORE/id/AFTER" with the id as one encoded segment; NULL when out of memory. */
char *api_path(const char *before, const char *id, const char *after);

/* The server's name for people; "" when there is none. Lives as long as the process. */
const char *api_server(struct flows *flows);

/* Whether that is this user's own kcap-flowd. */
bool api_server_is_local(struct flows *flows);

/* Why no server can be asked, whatever is called; NULL when one can be. Lives as long. */
const char *api_server_fault(struct flows *flows);

#endif
