/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/paths.h"
#include "lib/spawn.h"
#include "lib/text.h"
#include "server/engine.h"
#include "server/log.h"
#include "server/prompt.h"
#include "server/util.h"
#include "server/workspace.h"

#define MAX_PROMPT    ((size_t)32 << 20)
#define MAX_ENV_NAMES ((size_t)16 << 10)

#define COPY_SEC       120
#define MAX_COPY_FAULT 4096

enum copy_state { COPY_NONE, COPY_RUNS, COPY_READY, COPY_FAILED };

struct queued {
    struct queued *next;
    char *round_id, *agent_id, *session_id;
    enum copy_state copy; /* of the checkout, made by a child before the turn */
    pid_t copy_pid;
    int copy_errors; /* its standard error, -1 for none */
    int64_t copy_until_ns;
    struct buf copy_fault;
};

/* A turn that has begun. */
struct launch_entry {
    struct launch_entry *next;
    char *round_id;
    const char *memory;
    struct participant where; /* what was settled about its place */
    struct launch launch;     /* agent_id NULL: no process was started for it */
    char *env_names;
};

/* ---- the queue ---- */

void
launcher_init(struct launcher *launcher, const char *settings_path, const char *work_dir,
              const struct settings_override *override)
{
    *launcher = (struct launcher){.settings_path = settings_path,
                                  .work_dir = work_dir,
                                  .override = override,
                                  .max_turns = 1};
    launcher->queue_end = &launcher->queue;
}

static void
queued_free(struct queued *queued)
{
    free(queued->round_id);
    free(queued->agent_id);
    free(queued->session_id);
    if (queued->copy == COPY_RUNS)
        (void)kill(-queued->copy_pid, SIGKILL);
    if (queued->copy_errors >= 0)
        (void)close(queued->copy_errors);
    buf_fini(&queued->copy_fault);
    free(queued);
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
    while (launcher->queue) {
        struct queued *next = launcher->queue->next;
        queued_free(launcher->queue);
        launcher->queue = next;
    }
    while (launcher->first) {
        struct launch_entry *next = launcher->first->next;
        entry_free(launcher->first);
        launcher->first = next;
    }
}

static void
note_failure(struct reviewers *reviewers, const char *round_id, const char *code,
             const char *reason)
{
    log_line("round %s: %s", round_id, reason);
    reviewers_note_lost(
        reviewers, round_id,
        &(struct loss){.result_text = ROUND_TEXT_DIED, .code = code, .reason = reason});
}

void
launch_add(struct launcher *launcher, struct store *store, struct reviewers *reviewers,
           const char *round_id)
{
    struct queued *queued = calloc(1, sizeof *queued);
    struct assignment job = {.prompt = NULL};
    int r = queued ? store_get_round(store, round_id, &job.round) : -ENOMEM;

    if (r == 0)
        r = store_get_flow(store, job.round.flow_id, &job.flow);
    if (r == 0)
        r = store_get_participant(store, job.round.flow_id, job.round.role, &job.who);
    if (queued)
        queued->copy_errors = -1;
    if (r == 0) {
        queued->round_id = strdup(round_id);
        queued->agent_id = strdup(job.who.agent_id);
        queued->session_id = strdup(job.flow.session_id ? job.flow.session_id : "");
        r = queued->round_id && queued->agent_id && queued->session_id ? 0 : -ENOMEM;
    }
    assignment_fini(&job);
    if (r == 0) {
        *launcher->queue_end = queued;
        launcher->queue_end = &queued->next;
        return;
    }
    if (queued)
        queued_free(queued);
    note_failure(reviewers, round_id, "internal_error", strerror(-r));
}

/* The place of the round to be begun next: of the sessions that have the fewest turns in hand
 * the one that has waited longest. A reviewer that is still busy with its last turn is passed
 * over. NULL: none can be begun. */
static struct queued **
choose(struct launcher *launcher, const struct reviewers *reviewers)
{
    struct queued **best = NULL;
    size_t fewest = 0;

    for (struct queued **place = &launcher->queue; *place; place = &(*place)->next) {
        size_t turns;
        if ((*place)->copy == COPY_RUNS ||
            reviewers_place(reviewers, (*place)->agent_id) == REVIEWER_BUSY)
            continue;
        turns = reviewers_turns_of(reviewers, (*place)->session_id);
        if (best && turns >= fewest)
            continue;
        best = place;
        fewest = turns;
    }
    return best;
}

static struct queued *
take(struct launcher *launcher, struct queued **place)
{
    struct queued *queued = *place;

    *place = queued->next;
    if (!*place)
        launcher->queue_end = place;
    return queued;
}

size_t
launch_count(const struct launcher *launcher)
{
    size_t count = 0;

    for (const struct queued *queued = launcher->queue; queued; queued = queued->next)
        count++;
    return count;
}

bool
launch_is_idle(const struct launcher *launcher)
{
    return !launcher->queue && !launcher->first;
}

bool
launch_is_queued(const struct launcher *launcher, const char *round_id)
{
    for (const struct queued *queued = launcher->queue; queued; queued = queued->next) {
        if (strcmp(queued->round_id, round_id) == 0)
            return true;
    }
    return false;
}

/* ---- copies of checkouts ---- */

static int
start_copy(struct queued *queued, const char *source, const char *dir)
{
    AUTO_FREE char *self = paths_program("kcap-flowd");
    const char *const argv[] = {self, WORKSPACE_COPY_WORD, source, dir, NULL};
    AUTO_CLOSE int theirs = -1;
    struct spawn spawn = {.argv = argv, .stdin_fd = -1, .stdout_fd = -1, .new_group = true};
    int ends[2], r;

    if (!self)
        return -ENOENT;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    queued->copy_errors = ends[0];
    spawn.stderr_fd = theirs = ends[1];
    r = spawn_start(&spawn, &queued->copy_pid, NULL);
    if (r < 0)
        return r;
    queued->copy = COPY_RUNS;
    queued->copy_until_ns = util_now_ns() + COPY_SEC * UTIL_SEC_NS;
    buf_init(&queued->copy_fault, MAX_COPY_FAULT);
    return 0;
}

static void
read_copy_fault(struct queued *queued)
{
    char space[MAX_COPY_FAULT / 8];
    ssize_t n = read(queued->copy_errors, space, sizeof space);

    buf_adds(&queued->copy_fault, "the checkout could not be copied");
    if (n > 0) {
        buf_adds(&queued->copy_fault, ": ");
        text_add_line(&queued->copy_fault, space, (size_t)n);
    }
}

bool
launch_child_ended(struct launcher *launcher, pid_t pid, int status)
{
    for (struct queued *queued = launcher->queue; queued; queued = queued->next) {
        if (queued->copy != COPY_RUNS || queued->copy_pid != pid)
            continue;
        queued->copy = status == 0 ? COPY_READY : COPY_FAILED;
        if (status != 0)
            read_copy_fault(queued);
        return true;
    }
    return false;
}

void
launch_tick(struct launcher *launcher, int64_t now_ns)
{
    for (struct queued *queued = launcher->queue; queued; queued = queued->next) {
        if (queued->copy == COPY_RUNS && queued->copy_until_ns <= now_ns) {
            (void)kill(-queued->copy_pid, SIGKILL);
            queued->copy_until_ns = UTIL_NEVER;
        }
    }
}

int64_t
launch_deadline_ns(const struct launcher *launcher)
{
    int64_t until_ns = UTIL_NEVER;

    for (const struct queued *queued = launcher->queue; queued; queued = queued->next) {
        if (queued->copy == COPY_RUNS)
            until_ns = util_earlier(until_ns, queued->copy_until_ns);
    }
    return until_ns;
}

static size_t
count_copies(const struct launcher *launcher)
{
    size_t count = 0;

    for (const struct queued *queued = launcher->queue; queued; queued = queued->next)
        count += queued->copy == COPY_RUNS ? 1 : 0;
    return count;
}

/* ---- one turn ---- */

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

static const char *
memory_of(const struct vendor *vendor, const struct round *round, enum reviewer_place place)
{
    if (place == REVIEWER_FREE)
        return ROUND_MEMORY_KEPT;
    if (round->number == 1)
        return ROUND_MEMORY_FIRST;
    return vendor->keeps ? ROUND_MEMORY_LOST : ROUND_MEMORY_NONE;
}

/* What was said last by the same role, for one that does not remember. */
static int
find_last_result(struct store *store, const struct assignment *job, char **ret)
{
    struct round last = {0};
    int r = store_get_answered_round(store, job->flow.id, &last);

    if (r == 0 && strcmp(last.role, job->round.role) == 0) {
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
    entry->memory = memory_of(vendor, &job->round, place);
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

    if (r > 0 && queued->copy == COPY_NONE) {
        r = start_copy(queued, job->flow.cwd, job->who.dir);
        return r < 0 ? r : 1;
    }
    if (queued->copy == COPY_FAILED) {
        buf_adds(error, buf_str(&queued->copy_fault));
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
    note_failure(reviewers, queued->round_id, "start_failed", buf_str(&error));
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
                         "the store could not be written when the reviewer was started");
            reviewers_end(reviewers, entry->launch.agent_id);
        }
        entry_free(entry);
    }
}

static size_t
count_turns(const struct launcher *launcher, const struct reviewers *reviewers)
{
    return reviewers_turns(reviewers) + count_copies(launcher);
}

void
launch_run(struct launcher *launcher, struct store *store, struct reviewers *reviewers)
{
    AUTO_BUF struct buf error = BUF_INIT(8192);
    struct settings settings;
    struct queued **place;
    int r;

    if (!launcher->queue || count_turns(launcher, reviewers) >= launcher->max_turns ||
        !choose(launcher, reviewers))
        return;
    r = settings_read(launcher->settings_path, launcher->override, &settings, &error);
    launcher->max_turns = (size_t)settings.max_reviewers;
    while (count_turns(launcher, reviewers) < launcher->max_turns &&
           (place = choose(launcher, reviewers)) != NULL) {
        if (r < 0)
            note_failure(reviewers, (*place)->round_id, "settings", buf_str(&error));
        else if (begin_round(launcher, store, reviewers, &settings, *place) == 1)
            continue;
        queued_free(take(launcher, place));
    }
    settings_fini(&settings);
    feed_all(launcher, store, reviewers);
}
