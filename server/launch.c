/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/launch.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/auto.h"
#include "server/engine.h"
#include "server/log.h"
#include "server/prompt.h"
#include "server/util.h"
#include "server/workspace.h"

#define MAX_PROMPT    ((size_t)32 << 20)
#define MAX_ENV_NAMES ((size_t)16 << 10)

/* A turn that has begun. */
struct launch_entry {
    struct launch_entry *next;
    char *round_id;
    const char *memory;
    struct participant where; /* what was settled about its place */
    struct launch launch;     /* agent_id NULL: no process was started for it */
    char *env_names;
};

void
launcher_init(struct launcher *launcher, const char *settings_path, const char *work_dir,
              const struct settings_override *override)
{
    *launcher = (struct launcher){.settings_path = settings_path,
                                  .work_dir = work_dir,
                                  .override = override,
                                  .max_turns = 1};
    queue_init(&launcher->queue);
}

static void
entry_free(struct launch_entry *entry)
{
    launch_fini(&entry->launch);
    participant_fini(&entry->where);
    free(entry->env_names);
    free(entry->round_id);
    free(entry);
}

void
launcher_fini(struct launcher *launcher)
{
    queue_fini(&launcher->queue);
    while (launcher->first) {
        struct launch_entry *next = launcher->first->next;
        entry_free(launcher->first);
        launcher->first = next;
    }
}

static void
note_failure(struct reviewers *reviewers, const char *round_id, const char *code,
             const char *reason, bool is_hopeless)
{
    log_line("round %s: %s", round_id, reason);
    reviewers_note_lost(reviewers, round_id,
                        &(struct loss){.result_text = is_hopeless ? NULL : ROUND_TEXT_DIED,
                                       .code = code,
                                       .reason = reason});
}

static int
load(struct store *store, const char *round_id, struct assignment *job)
{
    int r = store_get_round(store, round_id, &job->round);

    if (r == 0)
        r = store_get_flow(store, job->round.flow_id, &job->flow);
    if (r == 0)
        r = store_get_participant(store, job->round.flow_id, job->round.role, &job->who);
    return r;
}

/* ---- the queue ---- */

void
launch_add(struct launcher *launcher, struct store *store, struct reviewers *reviewers,
           const char *round_id)
{
    struct assignment job = {.prompt = NULL};
    int r = load(store, round_id, &job);

    launcher->max_turns = SIZE_MAX; /* it may have been raised meanwhile */
    if (r == 0)
        r = queue_add(&launcher->queue, round_id, job.who.agent_id, job.flow.session_id);
    assignment_fini(&job);
    if (r < 0)
        note_failure(reviewers, round_id, "internal_error", strerror(-r), false);
}

size_t
launch_count(const struct launcher *launcher)
{
    return queue_count(&launcher->queue);
}

bool
launch_is_idle(const struct launcher *launcher)
{
    return !launcher->queue.first && !launcher->first;
}

bool
launch_is_queued(const struct launcher *launcher, const char *round_id)
{
    return queue_has(&launcher->queue, round_id);
}

bool
launch_child_ended(struct launcher *launcher, pid_t pid, int status)
{
    struct queued *queued = queue_find_copy(&launcher->queue, pid);

    if (queued)
        copy_ended(&queued->copy, status);
    return queued != NULL;
}

void
launch_tick(struct launcher *launcher, int64_t now_ns)
{
    for (struct queued *queued = launcher->queue.first; queued; queued = queued->next)
        copy_tick(&queued->copy, now_ns);
}

int64_t
launch_deadline_ns(const struct launcher *launcher)
{
    int64_t until_ns = UTIL_NEVER;

    for (const struct queued *queued = launcher->queue.first; queued; queued = queued->next) {
        if (queued->copy.state == COPY_RUNS)
            until_ns = util_earlier(until_ns, queued->copy.until_ns);
    }
    return until_ns;
}

/* ---- one turn ---- */

static int
set_clocks(const struct settings *settings, struct assignment *job)
{
    struct definition definition = {0};
    int r = definition_from_json(job->flow.definition, &definition);

    job->clocks = settings->clocks;
    if (r == 0)
        clocks_overlay(&job->clocks, &definition.clocks);
    definition_fini(&definition);
    return r;
}

/* Returns 0 or -EIO. */
static int
find_memory(struct store *store, const struct vendor *vendor, const struct round *round,
            enum reviewer_place place, const char **ret)
{
    int r = store_has_earlier_round(store, round);

    if (place == REVIEWER_FREE)
        *ret = ROUND_MEMORY_KEPT;
    else if (r == 0)
        *ret = ROUND_MEMORY_FIRST;
    else
        *ret = vendor->keeps ? ROUND_MEMORY_LOST : ROUND_MEMORY_NONE;
    return r < 0 ? r : 0;
}

/* What was said last by the same role, for one that does not remember. */
static int
find_last_result(struct store *store, const struct assignment *job, char **ret)
{
    struct round last = {0};
    int r = store_get_answered_round_of(store, job->flow.id, job->round.role, &last);

    if (r == 0) {
        *ret = last.result_text;
        last.result_text = NULL;
    }
    round_fini(&last);
    return r == -ENOENT ? 0 : r;
}

static int
write_prompts(struct store *store, const struct vendor *vendor, bool remembers,
              struct assignment *job)
{
    AUTO_BUF struct buf prompt = BUF_INIT(MAX_PROMPT), reminder = BUF_INIT(MAX_PROMPT);
    AUTO_FREE char *last_result = NULL;
    struct prompt_parts parts = {.flow = &job->flow,
                                 .round = &job->round,
                                 .who = &job->who,
                                 .says_verdict = vendor->max_output > 0,
                                 .remembers = remembers};
    int r = remembers ? 0 : find_last_result(store, job, &last_result);

    if (r < 0)
        return r;
    parts.last_result = last_result;
    prompt_write(&parts, &prompt);
    prompt_write_reminder(&job->round, &reminder);
    job->prompt = buf_take(&prompt, NULL);
    job->reminder = buf_take(&reminder, NULL);
    return job->prompt && job->reminder ? 0 : -ENOMEM;
}

static int
start_process(struct reviewers *reviewers, const struct settings *settings,
              struct assignment *job, struct launch_entry *entry, struct buf *error)
{
    struct reviewer_started started = {.env_names = BUF_INIT(MAX_ENV_NAMES)};
    struct launch *launch = &entry->launch;
    char boot_id[40];
    int r;

    util_boot_id(boot_id);
    launch->agent_id = strdup(job->who.agent_id);
    launch->boot_id = strdup(boot_id);
    if (!launch->agent_id || !launch->boot_id)
        return -ENOMEM;
    log_line("round %s: starting the %s, %s, in %s", job->round.id, job->who.role,
             job->who.vendor, job->who.dir);
    r = reviewers_start(reviewers, settings, job, &started, error);
    if (r == 0) {
        launch->pid = started.pid;
        launch->start_ticks = util_start_ticks(started.pid);
        launch->mark = strdup(started.mark);
        entry->env_names = buf_take(&started.env_names, NULL);
        log_line("round %s: process %ld; its environment has %s", entry->round_id,
                 (long)started.pid, entry->env_names ? entry->env_names : "");
    }
    buf_fini(&started.env_names);
    return r;
}

static int
begin(struct store *store, struct reviewers *reviewers, const struct settings *settings,
      struct assignment *job, struct launch_entry *entry, struct buf *error)
{
    const struct vendor *vendor = vendor_find(job->who.vendor);
    enum reviewer_place place = reviewers_place(reviewers, job->who.agent_id);
    int r;

    if (!vendor) {
        buf_addf(error, "this kcap-flowd has no vendor \"%s\"", job->who.vendor);
        return -ENOENT;
    }
    r = find_memory(store, vendor, &job->round, place, &entry->memory);
    if (r == 0)
        r = set_clocks(settings, job);
    if (r == 0)
        r = write_prompts(store, vendor, place == REVIEWER_FREE, job);
    if (r < 0)
        return r;
    if (place != REVIEWER_FREE)
        return start_process(reviewers, settings, job, entry, error);
    log_line("round %s: the %s goes on, %s", job->round.id, job->who.role, job->who.vendor);
    reviewers_give(reviewers, job);
    return 0;
}

/* Settles where it works. Returns 1 when a copy is being made and the turn has to wait. */
static int
settle_place(struct launcher *launcher, struct assignment *job, struct launch_entry *entry,
             struct queued *queued, struct buf *error)
{
    struct participant *where = &entry->where;
    int r = workspace_settle(launcher->work_dir, job->flow.cwd, &job->who);

    if (r > 0 && queued->copy.state == COPY_NONE) {
        r = copy_start(&queued->copy, job->flow.cwd, job->who.dir);
        return r < 0 ? r : 1;
    }
    if (queued->copy.state == COPY_FAILED) {
        buf_adds(error, buf_str(&queued->copy.fault));
        return -EIO;
    }
    if (r < 0)
        return r;
    where->agent_id = strdup(job->who.agent_id);
    where->applied_workspace = strdup(job->who.applied_workspace);
    where->fallback_reason = job->who.fallback_reason ? strdup(job->who.fallback_reason) : NULL;
    where->dir = strdup(job->who.dir);
    return where->agent_id && where->applied_workspace && where->dir ? 0 : -ENOMEM;
}

/* Returns 1 when the turn has to wait for a copy. */
static int
begin_round(struct launcher *launcher, struct store *store, struct reviewers *reviewers,
            const struct settings *settings, struct queued *queued)
{
    AUTO_BUF struct buf error = BUF_INIT(8192);
    struct launch_entry *entry = calloc(1, sizeof *entry);
    struct assignment job = {.prompt = NULL};
    int r = entry ? load(store, queued->round_id, &job) : -ENOMEM;
    bool wanted = r == 0 && strcmp(job.round.status, ROUND_RUNNING) == 0;

    if (wanted) {
        entry->round_id = strdup(queued->round_id);
        r = entry->round_id ? settle_place(launcher, &job, entry, queued, &error) : -ENOMEM;
        if (r == 0)
            r = begin(store, reviewers, settings, &job, entry, &error);
    }
    assignment_fini(&job);
    if (wanted && r == 0) {
        entry->next = launcher->first;
        launcher->first = entry;
        return 0;
    }
    if (entry)
        entry_free(entry);
    if (r >= 0 || (r == -ENOENT && !wanted))
        return r; /* it has to wait, or was closed or forgotten meanwhile */
    if (error.len == 0)
        buf_addf(&error, "the reviewer could not be started: %s",
                 r == -EIO ? store_error(store) : strerror(-r));
    /* what is not there, or may not be run, will not be at another try */
    note_failure(reviewers, queued->round_id, "start_failed", buf_str(&error),
                 r == -ENOENT || r == -EACCES || r == -ENOEXEC || r == -EINVAL);
    return r;
}

/* ---- on record ---- */

static int
record(struct store *store, const struct launch_entry *entry)
{
    int r = store_set_round_memory(store, entry->round_id, entry->memory);

    if (r == 0)
        r = store_set_workspace(store, &entry->where);
    if (r == 0 && entry->launch.agent_id)
        r = store_add_launch(store, &entry->launch);
    if (r == 0 && entry->launch.agent_id)
        r = store_set_env_names(store, entry->launch.agent_id, entry->env_names);
    return r;
}

static int
record_all(const struct launcher *launcher, struct store *store)
{
    int r = store_begin(store);

    for (const struct launch_entry *entry = launcher->first; entry && r == 0;
         entry = entry->next)
        r = record(store, entry);
    if (r == 0)
        r = store_commit(store);
    if (r < 0)
        store_rollback(store);
    return r;
}

/* Records what was begun, in one transaction, and feeds the new ones. */
static void
feed_all(struct launcher *launcher, struct store *store, struct reviewers *reviewers)
{
    bool on_disk;

    if (!launcher->first)
        return;
    on_disk = record_all(launcher, store) == 0;
    while (launcher->first) {
        struct launch_entry *entry = launcher->first;
        launcher->first = entry->next;
        if (entry->launch.agent_id && on_disk) {
            reviewers_feed(reviewers, entry->launch.agent_id);
        } else if (entry->launch.agent_id) {
            note_failure(reviewers, entry->round_id, "store_unavailable",
                         "the store could not be written when the reviewer was started", false);
            reviewers_end(reviewers, entry->launch.agent_id);
        }
        entry_free(entry);
    }
}

static size_t
count_turns(const struct launcher *launcher, const struct reviewers *reviewers)
{
    return reviewers_turns(reviewers) + queue_count_copies(&launcher->queue);
}

void
launch_run(struct launcher *launcher, struct store *store, struct reviewers *reviewers)
{
    AUTO_BUF struct buf error = BUF_INIT(8192);
    struct settings settings;
    struct queued **place;
    int r;

    if (!launcher->queue.first || count_turns(launcher, reviewers) >= launcher->max_turns ||
        !queue_choose(&launcher->queue, reviewers))
        return;
    r = settings_read(launcher->settings_path, launcher->override, &settings, &error);
    launcher->max_turns = (size_t)settings.max_reviewers;
    while (count_turns(launcher, reviewers) < launcher->max_turns &&
           (place = queue_choose(&launcher->queue, reviewers)) != NULL) {
        if (r < 0)
            note_failure(reviewers, (*place)->round_id, "settings", buf_str(&error), true);
        else if (begin_round(launcher, store, reviewers, &settings, *place) == 1)
            continue;
        queued_free(queue_take(&launcher->queue, place));
    }
    settings_fini(&settings);
    feed_all(launcher, store, reviewers);
}
