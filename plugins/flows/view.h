/* SPDX-License-Identifier: Apache-2.0 */
/* A strict look at what the server says about a run. */
#ifndef KCAP_FLOWS_VIEW_H
#define KCAP_FLOWS_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "api.h"

/* Text is borrowed from doc; NULL and 0 are "not told". */
struct view {
    const cJSON *doc;
    const char *run_id, *status;
    int64_t round;
    const char *round_status, *round_role;
    const char *result_kind, *previous_kind; /* of that round; of an earlier one */
    struct api_text result, previous; /* their words; of the run, when no round is named */
    const char *marker; /* why a round ended without a result: participant_died and such */
    const char *reason; /* what happened, in the server's words */
    const char *note;   /* what a reviewer without findings had to say */
    bool run_ended;     /* closed or failed: no further round */
    bool round_ended;
    bool no_round; /* it was never given any work */
};

/* The answer to a start or a round. NULL when all is well, else what is wrong with it. */
const char *view_read_round(const cJSON *doc, struct view *ret);

/* The answer to a status request for run_id. */
const char *view_read_status(const cJSON *doc, const char *run_id, struct view *ret);

bool view_is_run_end(const char *status);

#endif
