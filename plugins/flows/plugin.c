/* SPDX-License-Identifier: Apache-2.0 */
/* flows.so: the driver's side. Starts reviews, waits for them, and finds them again. */
#include "config.h"

#include <errno.h>
#include <kcap/plugin.h>
#include <stdlib.h>
#include <string.h>

#include "flows.h"
#include "job.h"
#include "journal.h"
#include "ledger.h"
#include "lib/auto.h"
#include "lib/paths.h"

#define BLOCKS                                                                                \
    "This call blocks for minutes. If your harness reports that it timed out, the flow goes " \
    "on: "                                                                                    \
    "do not start it again, do not investigate, call get_review_flow_status with {\"wait\": " \
    "true} (no id needed). "
#define STRING(description) "{\"type\":\"string\",\"description\":\"" description "\"}"
#define FILLED(description) \
    "{\"type\":\"string\",\"minLength\":1,\"description\":\"" description "\"}"
#define OBJECT(properties, required)                                               \
    "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required \
    "],\"additionalProperties\":false}"

static const char output_schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"flow_run_id\":{\"type\":\"string\"},\"status\":{\"type\":\"string\"},"
    "\"round\":{\"type\":\"integer\"},\"result_kind\":{\"type\":\"string\"},"
    "\"next_step\":{\"type\":\"string\"},"
    "\"text\":{\"type\":\"string\",\"description\":\"the whole answer\"},"
    "\"candidates\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}},"
    "\"required\":[\"text\"]}";

struct flows_tool {
    struct kcap_tool tool; /* first: the host hands back a pointer to it */
    int32_t (*run)(struct flows *flows, struct kcap_call *call, const cJSON *args);
};

static const struct
    flows_tool
        start_tool =
            {
                .tool =
                    {
                        .struct_size = sizeof(struct kcap_tool),
                        .name = "start_review_flow",
                        .title = "Start a review by another agent",
                        .description = BLOCKS
                        "Starts a review of your work by a second, unattended agent and waits "
                        "for "
                        "its "
                        "first result. It costs money: call it only when the user has asked "
                        "for "
                        "such a "
                        "review; to review something yourself, just do it. One flow per task; "
                        "further "
                        "rounds go through submit_review_round. Keep the flow_run_id of the "
                        "answer. The "
                        "reviewer sees a mirror of the session's project directory, not of "
                        "your "
                        "current "
                        "directory, and uncommitted work only when the answer says workspace: "
                        "borrowed; so "
                        "put what matters into context. vendor chooses the reviewer (it need "
                        "not "
                        "be your "
                        "own); model needs vendor and is passed on as it is. A flow that "
                        "several "
                        "participants share starts without a round. Long rounds are normal.",
                        .input_schema =
                            OBJECT(
                                "\"kind\":" FILLED(
                                    "What kind of review, such as code-review or "
                                    "spec-review.") ","
                                                    "\""
                                                    "ta"
                                                    "rg"
                                                    "et"
                                                    "_k"
                                                    "in"
                                                    "d"
                                                    "\""
                                                    ":" FILLED(
                                                        "What is reviewed: commit, "
                                                        "branch, pull_request, "
                                                        "working_tree, document, "
                                                        "...") ","
                                                               "\"target_"
                                                               "ref\":" STRING("Which one: a "
                                                                               "commit, range, "
                                                                               "branch, number "
                                                                               "or path.") ","
                                                                                           "\"t"
                                                                                           "a"
                                                                                           "rge"
                                                                                           "t"
                                                                                           "_ti"
                                                                                           "t"
                                                                                           "le"
                                                                                           "\""
                                                                                           ":" STRING("A short title for people.") ","
                                                                                                                                   "\"context\":" FILLED("All the reviewer needs to know: what was done and why, "
                                                                                                                                                         "what to look at, and anything uncommitted.") ","
                                                                                                                                                                                                       "\"instructions\":" STRING("What the reviewer should pay attention to.") ","
                                                                                                                                                                                                                                                                                "\"mode\":" STRING("A mode of that kind of review, if it has any.") ","
                                                                                                                                                                                                                                                                                                                                                    "\"vendor\":" FILLED("Which reviewer, if the user named one.") ","
                                                                                                                                                                                                                                                                                                                                                                                                                   "\"model\":" FILLED(
                                                                                                                                                                                                                                                                                                                                                                                                                       "Which of the vendor's models, if the user named one."),
                                "\"kind\",\"target_kind\",\"target_ref\",\"target_"
                                "title\","
                                "\"context\""),
                        .output_schema = output_schema,
                        .hints = KCAP_HINT_OPEN_WORLD,
                    },
                .run = start_review_flow,
};

static const struct flows_tool round_tool = {
    .tool =
        {
            .struct_size = sizeof(struct kcap_tool),
            .name = "submit_review_round",
            .title = "Submit the next round of a review",
            .description = BLOCKS
            "Hands your changes back to the reviewer of an open flow and waits for the round's "
            "result. Address the findings first, then say in context what was changed, finding "
            "by finding, and why anything was not. Also the way to go on when a round ended "
            "without a result (unclear, failed): the flow stays open. Long rounds are normal.",
            .input_schema = OBJECT(
                "\"flow_run_id\":" FILLED(
                    "The flow, as its start answered.") ","
                                                        "\"context\":" FILLED(
                                                            "What was changed since the last "
                                                            "round, and anything "
                                                            "uncommitted the reviewer must "
                                                            "see.") ","
                                                                    "\"instructions\":" STRING(
                                                                        "What to pay attention "
                                                                        "to in this round."),
                "\"flow_run_id\",\"context\""),
            .output_schema = output_schema,
            .hints = KCAP_HINT_OPEN_WORLD,
        },
    .run = submit_review_round,
};

static const struct flows_tool status_tool = {
    .tool =
        {
            .struct_size = sizeof(struct kcap_tool),
            .name = "get_review_flow_status",
            .title = "See a review, or wait for it",
            .description = BLOCKS
            "Without wait it answers at once with the state of the flow and its last result. "
            "With wait: true it returns as soon as the round is done, or before your harness "
            "loses patience. Without flow_run_id it finds the flow of this session, also one "
            "whose start you never saw answered; when there are several it lists them and "
            "chooses none. Reads only: it starts, changes and closes nothing, and may be "
            "called "
            "as often as you like.",
            .input_schema = OBJECT(
                "\"flow_run_id\":" FILLED(
                    "The flow; leave it out to have it found.") ","
                                                                "\"wait\":{\"type\":"
                                                                "\"boolean\",\"description\":"
                                                                "\"Wait until the round is "
                                                                "done.\"},"
                                                                "\"session_id\":" FILLED(
                                                                    "Another session whose "
                                                                    "flow is meant; leave it "
                                                                    "out for "
                                                                    "this one."),
                ""),
            .output_schema = output_schema,
            .hints = KCAP_HINT_READ_ONLY | KCAP_HINT_IDEMPOTENT | KCAP_HINT_OPEN_WORLD,
        },
    .run = get_review_flow_status,
};

static const struct flows_tool close_tool = {
    .tool =
        {
            .struct_size = sizeof(struct kcap_tool),
            .name = "close_review_flow",
            .title = "Close a review",
            .description = "Ends a flow for good and frees its reviewer; a round in progress "
                           "is lost. Call "
                           "it after a clean result, or when the user wants the review to end. "
                           "Do not call "
                           "it because a call timed out: the flow goes on, and "
                           "get_review_flow_status finds "
                           "it. The answer shows the flow's final state.",
            .input_schema =
                OBJECT("\"flow_run_id\":" FILLED("The flow to close."), "\"flow_run_id\""),
            .output_schema = output_schema,
            .hints = KCAP_HINT_DESTRUCTIVE | KCAP_HINT_IDEMPOTENT | KCAP_HINT_OPEN_WORLD,
        },
    .run = close_review_flow,
};

static const struct kcap_tool *const tools[] = {&start_tool.tool, &round_tool.tool,
                                                &status_tool.tool, &close_tool.tool, NULL};

static const struct kcap_option server_url = {
    .struct_size = sizeof(struct kcap_option),
    .name = "server-url",
    .summary =
        "the flow server: https://HOST, http://HOST or unix:///PATH (wins over KCAP_URL)",
};
static const struct kcap_option driver = {
    .struct_size = sizeof(struct kcap_option),
    .name = "driver",
    .summary = "which agent drives, such as claude or codex, where the client does not tell",
};
static const struct kcap_option *const options[] = {&server_url, &driver, NULL};

/* Where the journal is kept; without one the plugin still serves. */
static void
open_journal(struct flows *flows)
{
    const struct kcap_host *host = flows->host;
    AUTO_FREE char *state = NULL, *dir = NULL;
    int r = paths_state_dir(host->env(host, "KCAP_STATE_DIR"), host->env(host, "HOME"), &state);

    if (r == 0) {
        dir = paths_join(state, "journal");
        r = dir ? paths_make_dir(dir) : -ENOMEM;
    }
    if (r == 0) {
        flows->journal_dir = take_ptr(dir);
        journal_prune(flows->journal_dir);
        return;
    }
    flows->journal_error = strdup(strerror(-r));
    kcap_logf(host, KCAP_LOG_WARN,
              "flows: no journal in %s (%s): runs are remembered by this process only; set "
              "KCAP_STATE_DIR to a directory of yours",
              state ? state : "the home directory", strerror(-r));
}

static int32_t
flows_init(const struct kcap_host *host, void **ret_ctx)
{
    struct flows *flows = calloc(1, sizeof *flows);

    if (!flows || pthread_mutex_init(&flows->lock, NULL) != 0) {
        free(flows);
        return KCAP_E_NOMEM;
    }
    flows->host = host;
    open_journal(flows);
    *ret_ctx = flows;
    return KCAP_OK;
}

static int32_t
flows_call(void *ctx, struct kcap_call *call, const struct kcap_tool *tool, const char *args,
           size_t args_len)
{
    const struct flows_tool *flows_tool = (const struct flows_tool *)(const void *)tool;
    AUTO_JSON cJSON *json = json_parse(args, args_len, NULL);

    return flows_tool->run(ctx, call, json);
}

static void
flows_settled(void *ctx, uint64_t serial, uint32_t outcome)
{
    ledger_settled(ctx, serial, outcome);
}

static void
flows_fini(void *ctx)
{
    struct flows *flows = ctx;

    job_fini_all(flows);
    ledger_fini(flows);
    (void)pthread_mutex_destroy(&flows->lock);
    free(flows->journal_dir);
    free(flows->journal_error);
    free(flows);
}

KCAP_REGISTER(KCAP_CLASS_DRIVER, .threads = KCAP_THREADS_PARALLEL, .name = "flows",
              .version = PACKAGE_VERSION,
              .summary = "the driver's side: reviews by a second agent, round after round",
              .tools = tools, .options = options, .init = flows_init, .call = flows_call,
              .settled = flows_settled, .fini = flows_fini);
