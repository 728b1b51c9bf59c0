/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codex where its app-server cannot be used: one "codex exec --json" for each round. Within an
 * item it shows nothing, however long that takes, so silence means nothing here and the
 * ceilings alone hold; and it remembers nothing.
 */
#include "config.h"

#include "server/vendor.h"

#include <stdlib.h>
#include <string.h>

#include "lib/auto.h"
#include "lib/json.h"
#include "server/become.h"

static const char *
missing(const struct settings *settings)
{
    return become_missing(settings, "codex");
}

static int
plan(const struct settings *settings, const struct assignment *job, const char *url,
     struct vendor_plan *ret, struct buf *error)
{
    return become_plan(settings, job, url, "codex", "exec", ret, error);
}

static int
open_session(struct reviewer *reviewer, const struct assignment *job)
{
    (void)reviewer; /* its first line is ours: see become.h */
    (void)job;
    return 0;
}

static void
turn(struct reviewer *reviewer, const struct assignment *job, const char *prompt)
{
    (void)job;
    reviewer_send(reviewer, prompt, strlen(prompt));
    reviewer_end_input(reviewer);
}

/* Why the turn failed, if it says so. */
static void
read_event(struct reviewer *reviewer, const char *line, size_t len)
{
    AUTO_JSON cJSON *event = json_parse(line, len, NULL);
    const char *type = json_str(event, "type");
    const char *message = json_str(event, "message");

    if (!type)
        return;
    if (strcmp(type, "turn.failed") == 0)
        reviewer_turn_ended(reviewer, "failed", json_str(json_get(event, "error"), "message"));
    else if (strcmp(type, "turn.completed") == 0)
        reviewer_turn_ended(reviewer, NULL, NULL);
    else if (strcmp(type, "error") == 0 && message)
        reviewer_explain(reviewer, message);
    else
        reviewer_sign(reviewer);
}

static void
read_line(struct reviewer *reviewer, const char *line, size_t len)
{
    AUTO_FREE char *server = NULL;

    switch (become_read(reviewer, line, len, &server)) {
    case BECOME_DONE:
        reviewer_ready(reviewer);
        break;
    case BECOME_OTHER:
        read_event(reviewer, line, len);
        break;
    case BECOME_STEP:
    case BECOME_REFUSED:
        break;
    }
}

static const char *const env[] = {"CODEX_*", "OPENAI_*", BECOME_NET_ENV, NULL};

const struct vendor vendor_codex_exec = {
    .name = "codex-exec",
    .has_model = true,
    .knows_agent_id = true,
    .shows_nothing = true,
    .env = env,
    .missing = missing,
    .plan = plan,
    .open = open_session,
    .turn = turn,
    .line = read_line,
};
