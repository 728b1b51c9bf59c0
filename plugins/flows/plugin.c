/* SPDX-License-Identifier: Apache-2.0 */
/* flows.so: the driver's side. Starts reviews, waits for them, and finds them again. */
#include "config.h"

#include <errno.h>
#include <kcap/plugin.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "job.h"
#include "journal.h"
#include "ledger.h"
#include "lib/auto.h"
#include "lib/paths.h"
#include "messages.h"
#include "show.h"
#include "tools.h"

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
        journal_prune(flows->journal_dir, host->wall_ms(host));
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
    AUTO_SESSION struct session session = {.key = NULL};
    struct flows *flows = ctx;
    struct subject subject = {.flows = flows,
                              .call = call,
                              .family = flows_tool->family,
                              .session = &session,
                              .began_ns = flows->host->now_ns(flows->host)};
    const char *fault = api_server_fault(flows);

    /* ahead of what is wrong with the arguments: whoever mends those would only come to this */
    if (fault)
        return show_no_server(&subject, json_str(json, "flow_run_id"), fault);
    return flows_tool->run(&subject, json);
}

static void
flows_settled(void *ctx, uint64_t serial, uint32_t outcome)
{
    ledger_settled(ctx, serial, outcome);
    messages_settled(ctx, serial, outcome);
}

static void
flows_fini(void *ctx)
{
    struct flows *flows = ctx;

    job_fini_all(flows);
    ledger_fini(flows);
    messages_fini(flows);
    (void)pthread_mutex_destroy(&flows->lock);
    free(flows->journal_dir);
    free(flows->journal_error);
    free(flows);
}

KCAP_REGISTER(KCAP_CLASS_DRIVER, .threads = KCAP_THREADS_PARALLEL, .name = "flows",
              .version = PACKAGE_VERSION,
              .summary = "the driver's side: reviews by a second agent, round after round",
              .tools = tools_list, .options = options, .init = flows_init, .call = flows_call,
              .settled = flows_settled, .fini = flows_fini);
