/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in reviewer: no model, no network. */
#include "config.h"

#include "server/vendor.h"

#include <errno.h>

#include "lib/auto.h"
#include "lib/json.h"
#include "lib/paths.h"

#define EXIT_HOPELESS 3 /* see kcap-checklist(1) */

/* A context and instructions of 4 MiB together, each byte as \u00XX at worst. */
#define MAX_INPUT ((size_t)32 << 20)

static int
plan(const struct flow *flow, const struct round *round, struct vendor_plan *ret,
     struct buf *error)
{
    AUTO_JSON cJSON *job = cJSON_CreateObject();
    AUTO_FREE char *text = NULL;

    ret->input = BUF_INIT(MAX_INPUT);
    ret->program = paths_program("kcap-checklist");
    if (!ret->program) {
        buf_adds(error, "kcap-checklist is not beside kcap-flowd: install it there");
        return -ENOENT;
    }
    ret->argv[0] = ret->program;
    ret->argv[1] = "--job";
    ret->argv[2] = NULL;
    ret->has_note = true;
    ret->hopeless_status = EXIT_HOPELESS;

    if (!json_add_str(job, "round_token", round->token) ||
        !json_add_str(job, "dir", flow->cwd) ||
        !json_add_str(job, "target_kind", flow->target_kind) ||
        !json_add_str(job, "target_ref", flow->target_ref) ||
        !json_add_str(job, "context", round->context) ||
        !json_add_str(job, "instructions", round->instructions) || !(text = json_print(job)))
        return -ENOMEM;
    buf_adds(&ret->input, text);
    return buf_ok(&ret->input) ? 0 : -ENOMEM;
}

const struct vendor vendor_checklist = {.name = "checklist", .plan = plan};
