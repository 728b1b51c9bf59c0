/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/auto.h"
#include "server/engine.h"
#include "server/log.h"
#include "server/util.h"

struct launch_entry {
    struct launch_entry *next;
    struct launch launch;
};

static int
start(struct reviewers *reviewers, const struct flow *flow, const struct round *round,
      struct launch_entry *entry, struct buf *error)
{
    const struct vendor *vendor = vendor_find(flow->vendor);
    struct vendor_plan plan = {.input = BUF_INIT(0)};
    char boot_id[40];
    pid_t pid;
    int r;

    if (!vendor) {
        buf_addf(error, "this kcap-flowd has no vendor \"%s\"", flow->vendor);
        return -ENOENT;
    }
    util_boot_id(boot_id);
    entry->launch.round_id = strdup(round->id);
    entry->launch.agent_id = strdup(flow->agent_id);
    entry->launch.boot_id = strdup(boot_id);
    r = entry->launch.round_id && entry->launch.agent_id && entry->launch.boot_id ? 0 : -ENOMEM;
    if (r == 0)
        r = vendor->plan(flow, round, &plan, error);
    if (r == 0) {
        r = reviewers_start(reviewers, flow, round, &plan, &pid);
        if (r < 0)
            buf_addf(error, "%s cannot be started in %s: %s", plan.program, flow->cwd,
                     strerror(-r));
    }
    vendor_plan_fini(&plan);
    if (r == 0) {
        entry->launch.pid = pid;
        entry->launch.start_ticks = util_start_ticks(pid);
    }
    return r;
}

void
launch_prepare(struct launcher *launcher, struct store *store, struct reviewers *reviewers,
               const char *round_id)
{
    AUTO_BUF struct buf error = BUF_INIT(8192);
    struct launch_entry *entry = calloc(1, sizeof *entry);
    struct flow flow = {0};
    struct round round = {0};
    int r = entry ? 0 : -ENOMEM;

    if (r == 0)
        r = store_get_round(store, round_id, &round);
    if (r == 0)
        r = store_get_flow(store, round.flow_id, &flow);
    if (r == 0)
        r = start(reviewers, &flow, &round, entry, &error);
    if (r == 0) {
        log_line("round %s: reviewer %s started as process %lld", round_id, flow.vendor,
                 (long long)entry->launch.pid);
        entry->next = launcher->first;
        launcher->first = entry;
    } else {
        if (error.len == 0)
            buf_addf(&error, "the reviewer could not be started: %s", strerror(-r));
        log_line("round %s: %s", round_id, buf_str(&error));
        reviewers_note_lost(reviewers, round_id, ROUND_TEXT_DIED, true, buf_str(&error));
        if (entry)
            launch_fini(&entry->launch);
        free(entry);
    }
    round_fini(&round);
    flow_fini(&flow);
}

static int
record_all(const struct launcher *launcher, struct store *store)
{
    int r = store_begin(store);

    for (const struct launch_entry *entry = launcher->first; entry && r == 0;
         entry = entry->next)
        r = store_add_launch(store, &entry->launch);
    if (r == 0)
        r = store_commit(store);
    if (r < 0)
        store_rollback(store);
    return r;
}

void
launch_commit(struct launcher *launcher, struct store *store, struct reviewers *reviewers)
{
    bool on_disk;

    if (!launcher->first)
        return;
    on_disk = record_all(launcher, store) == 0;
    while (launcher->first) {
        struct launch_entry *entry = launcher->first;
        launcher->first = entry->next;
        if (on_disk) {
            reviewers_feed(reviewers, entry->launch.round_id);
        } else {
            reviewers_note_lost(reviewers, entry->launch.round_id, ROUND_TEXT_DIED, false,
                                "the store could not be written when the reviewer was started");
            reviewers_end(reviewers, entry->launch.round_id);
        }
        launch_fini(&entry->launch);
        free(entry);
    }
}
