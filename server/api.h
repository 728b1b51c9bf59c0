/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to the rules and back to an answer: routes, strict bodies, coded errors. */
#ifndef KCAP_SERVER_API_H
#define KCAP_SERVER_API_H

#include <stdbool.h>
#include <stddef.h>

#include "server/engine.h"
#include "server/launch.h"
#include "server/reviewer.h"
#include "server/settings.h"

/* What answers are made of besides the store. */
struct api_site {
    const char *config_dir;
    const char *settings_path;
    const char *definitions_dir;
    const struct settings_override *override;
    const struct reviewers *reviewers;
    const struct launcher *launcher;
    const char *token; /* "": nobody comes over TCP */
    int64_t began_ns;
};

/* How a request came. */
struct api_remote {
    bool is_tcp;
    bool is_reviewer;                          /* from a process of one of our reviewers */
    const char *authorization, *host, *origin; /* headers, or NULL */
};

struct api_request {
    const char *method;
    const char *path; /* percent-encoded, no query */
    const char *body;
    size_t body_len;
    const char *wait_sec_text; /* or NULL */
    const char *repo_root;     /* or NULL */
    bool may_wait;             /* false: answer with what there is now */
    const struct api_site *site;
    struct api_remote remote;
};

struct api_answer {
    int status;
    char *body; /* owned; NULL: out of memory */
    const char *type;
    char *shown_flow; /* owned or NULL: this answer shows how that run ended */
    char *wait_flow; /* owned or NULL: there is no answer yet, something must happen to that run
                      */
    int wait_sec;
};

/* Handles one request inside the store's transaction. Returns whether its changes are to be
 * kept. */
bool api_handle(struct engine *engine, const struct api_request *request,
                struct api_answer *ret);

/* Whether the one who asks may ask for that: what can be said before there is a body. */
bool api_is_admitted(const struct api_request *request);

/* The answer to whatever could not be put on disk. */
void api_answer_unavailable(struct api_answer *ret);

#endif
