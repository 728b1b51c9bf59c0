/* SPDX-License-Identifier: Apache-2.0 */
/* What the handlers of api_driver.c and api_reviewer.c share with api.c. */
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
    cJSON *result;  /* an object, to be filled */
    struct api_answer *answer;

    int fail_status; /* set by api_fail */
    const char *fail_code;
    struct buf fail_message;
};

struct api_route {
    const char *method;
    const char *path; /* one segment may be "*" */
    bool takes_body;
    /* 0, API_REJECTED, or a code of the engine */
    int (*handle)(struct api_call *call);
};

extern const struct api_route api_driver_routes[];
extern const size_t api_driver_route_count;
extern const struct api_route api_reviewer_routes[];
extern const size_t api_reviewer_route_count;

/* Returns API_REJECTED. */
int api_fail(struct api_call *call, int status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The body's member as text; API_REJECTED with the member's name when it is no string, or
 * absent although required. *ret is NULL when it is absent. */
int api_text(struct api_call *call, const char *name, bool required, const char **ret);

/* API_REJECTED unless the member is absent, or true or false. */
int api_check_bool(struct api_call *call, const char *name);
int api_check_int(struct api_call *call, const char *name);

#endif
