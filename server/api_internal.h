/* SPDX-License-Identifier: Apache-2.0 */
/* What the handlers in api_*.c share with api.c. */
#ifndef KCAP_SERVER_API_INTERNAL_H
#define KCAP_SERVER_API_INTERNAL_H

#include "lib/buf.h"
#include "lib/json.h"
#include "server/api.h"

/* Besides the engine's codes: the request is at fault, api_fail said how. */
#define API_REJECTED (-2001)

struct api_call {
    struct engine *engine;
    const struct api_request *request;
    const char *id; /* the path's variable segment, decoded; else NULL */
    cJSON *body;    /* an object on routes that take one; else NULL */
    cJSON *result;  /* an object, to be filled, or replaced by another value */
    struct api_answer *answer;

    int fail_status;       /* set by api_fail */
    const char *fail_code; /* NULL: a plain text */
    struct buf fail_message;
};

struct api_route {
    const char *method;
    const char *path; /* one segment may be "*" */
    bool takes_body;
    /* 0, API_REJECTED, or a code of the engine */
    int (*handle)(struct api_call *call);
};

/* Each file's own, ended by a row without a method. */
extern const struct api_route api_admin_routes[];
extern const struct api_route api_start_routes[];
extern const struct api_route api_driver_routes[];
extern const struct api_route api_reviewer_routes[];
extern const struct api_route api_server_routes[];

/* Returns API_REJECTED. */
int api_fail(struct api_call *call, int status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The body's member as text; API_REJECTED with the member's name when it is no string, or
 * absent although required. *ret is NULL when it is absent. */
int api_text(struct api_call *call, const char *name, bool required, const char **ret);

/* API_REJECTED unless the member is absent, or true or false. */
int api_check_bool(struct api_call *call, const char *name);
int api_check_int(struct api_call *call, const char *name);

/* A path segment, or a value of the query, without its escapes. NULL when it is not UTF-8 text
 * without control characters, or out of memory. */
char *api_decode(const char *segment, size_t len);

/* api_gate.c: API_REJECTED unless the request may be looked at. */
int api_check_gate(struct api_call *call);

/* ---- api_parts.c: parts of answers; false or -ENOMEM when out of memory ---- */

bool api_add_int(cJSON *object, const char *name, int64_t value);
bool api_add_time(cJSON *object, const char *name, int64_t wall_ms);
/* What was asked for and what was done about it, who takes part, what waits to be read. */
int api_add_audit(struct api_call *call, cJSON *object, const struct flow *flow);
int api_add_participants(struct api_call *call, cJSON *object, const struct flow *flow);
int api_add_messages(struct api_call *call, cJSON *object, const struct flow *flow);
/* A round that has just begun, or a run without one. */
int api_add_begun(struct api_call *call, const struct flow *flow, const struct round *round);
/* Everything about a round. */
int api_add_round(struct api_call *call, cJSON *object, const struct round *round);
/* What a run is, in its own status as in a list. */
int api_add_run(struct api_call *call, cJSON *object, const struct flow *flow);

#endif
