/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in reviewer: no model, no network. */
#include "config.h"

#include "server/vendor.h"

#include <errno.h>
#include <string.h>

#include "lib/auto.h"
#include "lib/json.h"
#include "lib/paths.h"

#define EXIT_HOPELESS 3 /* see kcap-checklist(1) */

static int
plan(const struct settings *settings, const struct assignment *job, const char *url,
     struct vendor_plan *ret, struct buf *error)
{
    AUTO_FREE char *program = paths_program("kcap-checklist");

    (void)settings;
    (void)job;
    (void)url;
    if (!program) {
        buf_adds(error, "kcap-checklist is not beside kcap-flowd: install it there");
        return -ENOENT;
    }
    vendor_plan_add(ret, program);
    vendor_plan_add(ret, "--job");
    return 0;
}

static void
turn(struct reviewer *reviewer, const struct assignment *job, const char *prompt)
{
    AUTO_JSON cJSON *input = cJSON_CreateObject();
    AUTO_FREE char *text = NULL;

    (void)prompt;
    if (json_add_str(input, "round_token", job->round.token) &&
        json_add_str(input, "dir", job->who.dir) &&
        json_add_str(input, "target_kind", job->flow.target_kind) &&
        json_add_str(input, "target_ref", job->flow.target_ref) &&
        json_add_str(input, "context", job->round.context) &&
        json_add_str(input, "instructions", job->round.instructions) &&
        (text = json_print(input)) != NULL)
        reviewer_send(reviewer, text, strlen(text));
    reviewer_end_input(reviewer); /* without input it fails, which is noticed */
}

const struct vendor vendor_checklist = {
    .name = "checklist",
    .knows_agent_id = true,
    .has_note = true,
    .hopeless_status = EXIT_HOPELESS,
    .plan = plan,
    .turn = turn,
};
