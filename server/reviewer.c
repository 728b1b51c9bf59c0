/* SPDX-License-Identifier: Apache-2.0 */
/* Processes: their start, their streams, their end. */
#include "config.h"

#include "server/reviewer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/spawn.h"
#include "lib/text.h"
#include "server/env.h"
#include "server/log.h"
#include "server/reviewer_internal.h"

#define MAX_EXPLAINED 1000

int
reviewers_new(int epoll_fd, const char *url, const char *env_path, struct reviewers **ret)
{
    struct reviewers *reviewers = calloc(1, sizeof *reviewers);

    if (!reviewers)
        return -ENOMEM;
    reviewers->epoll_fd = epoll_fd;
    reviewers->url = url;
    reviewers->env_path = env_path;
    reviewers->events_end = &reviewers->events;
    *ret = reviewers;
    return 0;
}

struct reviewer *
reviewer_find(const struct reviewers *reviewers, const char *agent_id)
{
    struct reviewer *reviewer = reviewers->first;

    while (reviewer && strcmp(reviewer->agent_id, agent_id) != 0)
        reviewer = reviewer->next;
    return reviewer;
}

/* ---- streams ---- */

/* Hands out whole lines. The clocks are looked at after each, so that a flood starves none. */
static void
take_lines(struct reviewer *reviewer, const char *bytes, size_t len)
{
    while (len > 0 && !reviewer->pipes.refused) {
        const char *end = memchr(bytes, '\n', len);
        size_t part = end ? (size_t)(end - bytes) : len;
        buf_add(&reviewer->output, bytes, part);
        if (!buf_ok(&reviewer->output)) {
            reviewer->pipes.refused = true;
            reviewer_refuse(reviewer, "protocol_error", "it wrote a line over 16 MiB");
            return;
        }
        bytes += part + (end ? 1 : 0);
        len -= part + (end ? 1 : 0);
        if (!end)
            return;
        reviewer->vendor->line(reviewer, buf_str(&reviewer->output), reviewer->output.len);
        buf_clear(&reviewer->output);
        reviewer_look(reviewer, util_now_ns());
    }
}

static void
got_output(struct pipes *pipes, const char *bytes, size_t len)
{
    struct reviewer *reviewer =
        (struct reviewer *)(void *)((char *)pipes - offsetof(struct reviewer, pipes));

    if (reviewer->vendor->line && len > 0) {
        take_lines(reviewer, bytes, len);
    } else if (reviewer->vendor->line) {
        if (!reviewer->exited) /* its end is near, or it is of no use any more */
            ladder_begin_close(reviewer, &(struct loss){.result_text = ROUND_TEXT_DIED,
                                                        .code = "server_exit",
                                                        .reason = "it closed its output"});
    } else if (len > 0) {
        reviewer_sign(reviewer);
        if (reviewer->output.max > 0)
            buf_add(&reviewer->output, bytes, len);
    }
}

static void
got_complaint(struct pipes *pipes)
{
    struct reviewer *reviewer =
        (struct reviewer *)(void *)((char *)pipes - offsetof(struct reviewer, pipes));

    if (!reviewer->vendor->line)
        reviewer_sign(reviewer);
}

/* ---- starting ---- */

static void
reviewer_free(struct reviewer *reviewer)
{
    reviewer_drop_turn(reviewer);
    if (reviewer->state && reviewer->vendor->close)
        reviewer->vendor->close(reviewer->state);
    pipes_close(&reviewer->pipes);
    buf_fini(&reviewer->output);
    buf_fini(&reviewer->explained);
    buf_fini(&reviewer->end_reason);
    free(reviewer);
}

static int
start_process(struct reviewer *reviewer, const struct settings *settings,
              const struct vendor_plan *plan, struct reviewer_started *ret, struct buf *error)
{
    const struct env_wish wish = {
        .env_path = reviewer->all->env_path,
        .vendor_names = reviewer->vendor->env,
        .more_names = json_get(settings_vendor(settings, reviewer->vendor->name), "env"),
        .url = reviewer->all->url,
        .agent_id = reviewer->vendor->knows_agent_id ? reviewer->agent_id : NULL,
        .mark = reviewer->mark,
        .more = plan->env};
    struct spawn spawn = {.argv = (const char *const *)plan->argv,
                          .dir = reviewer->job.who.dir,
                          .new_group = true};
    int theirs[3] = {-1, -1, -1};
    char **env = NULL;
    int r = env_for_reviewer(&wish, &env, &ret->env_names, error);

    if (r == 0)
        r = pipes_open(&reviewer->pipes, reviewer->all->epoll_fd, theirs);
    if (r == 0) {
        spawn.envp = (const char *const *)env;
        spawn.stdin_fd = theirs[0];
        spawn.stdout_fd = theirs[1];
        spawn.stderr_fd = theirs[2];
        r = spawn_start(&spawn, &reviewer->pid, NULL);
        if (r < 0)
            buf_addf(error, "%s cannot be started in %s: %s", plan->argv[0],
                     reviewer->job.who.dir, strerror(-r));
    }
    for (int i = 0; i < 3; i++) {
        if (theirs[i] >= 0)
            (void)close(theirs[i]);
    }
    env_free(env);
    return r;
}

static struct reviewer *
reviewer_new(struct reviewers *reviewers, const struct vendor *vendor, struct assignment *job)
{
    struct reviewer *reviewer = calloc(1, sizeof *reviewer);

    if (!reviewer) {
        assignment_fini(job);
        return NULL;
    }
    reviewer->all = reviewers;
    reviewer->vendor = vendor;
    reviewer->job = *job;
    reviewer->has_job = true;
    *job = (struct assignment){.prompt = NULL};
    (void)snprintf(reviewer->agent_id, sizeof reviewer->agent_id, "%s",
                   reviewer->job.who.agent_id);
    pipes_init(&reviewer->pipes, got_output, got_complaint);
    reviewer->output = BUF_INIT(vendor->line ? PIPES_MAX_LINE : vendor->max_output);
    reviewer->explained = BUF_INIT(MAX_EXPLAINED);
    reviewer->linger_until_ns = reviewer->later_ns = UTIL_NEVER;
    watch_begin(&reviewer->watch, &reviewer->job.clocks, util_now_ns());
    reviewer->watch.in_handshake = vendor->open != NULL;
    reviewer->step = "its launch, in which the agent is asked for its MCP servers";
    reviewer->watch.ceilings_only = vendor->shows_nothing;
    return reviewer;
}

int
reviewers_start(struct reviewers *reviewers, const struct settings *settings,
                struct assignment *job, struct reviewer_started *ret, struct buf *error)
{
    const struct vendor *vendor = vendor_find(job->who.vendor);
    struct vendor_plan plan = {.argc = 0};
    struct reviewer *reviewer;
    int r;

    if (!vendor) {
        buf_addf(error, "this kcap-flowd has no vendor \"%s\"", job->who.vendor);
        assignment_fini(job);
        return -ENOENT;
    }
    reviewer = reviewer_new(reviewers, vendor, job);
    if (!reviewer)
        return -ENOMEM;
    r = util_new_id(reviewer->mark);
    if (r == 0)
        r = vendor->plan(settings, &reviewer->job, reviewers->url, &plan, error);
    if (r == 0 && plan.failed)
        r = -ENOMEM;
    if (r == 0)
        r = start_process(reviewer, settings, &plan, ret, error);
    vendor_plan_fini(&plan);
    if (r < 0) {
        reviewer_free(reviewer);
        return r;
    }
    reviewer->next = reviewers->first;
    reviewers->first = reviewer;
    ret->pid = reviewer->pid;
    (void)snprintf(ret->mark, sizeof ret->mark, "%s", reviewer->mark);
    return 0;
}

void
reviewers_feed(struct reviewers *reviewers, const char *agent_id)
{
    struct reviewer *reviewer = reviewer_find(reviewers, agent_id);

    if (!reviewer)
        return;
    pipes_feed(&reviewer->pipes);
    if (!reviewer->vendor->open)
        reviewer_ready(reviewer);
    else if (reviewer->vendor->open(reviewer, &reviewer->job) < 0)
        reviewer_refuse(reviewer, "out_of_memory", NULL);
}

/* Whether its end is known to the kernel and not yet to us: a turn would be lost on it. */
static bool
is_dead(const struct reviewer *reviewer)
{
    siginfo_t info = {.si_pid = 0};

    return waitid(P_PID, (id_t)reviewer->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
           info.si_pid != 0;
}

enum reviewer_place
reviewers_place(const struct reviewers *reviewers, const char *agent_id)
{
    const struct reviewer *reviewer = reviewer_find(reviewers, agent_id);

    if (!reviewer)
        return REVIEWER_NONE;
    return !reviewer->has_job && reviewer->ready && reviewer->vendor->keeps &&
                   reviewer->rung == RUNG_NONE && !is_dead(reviewer)
               ? REVIEWER_FREE
               : REVIEWER_BUSY;
}

void
reviewers_give(struct reviewers *reviewers, struct assignment *job)
{
    struct reviewer *reviewer = reviewer_find(reviewers, job->who.agent_id);

    if (!reviewer || reviewer->has_job) {
        assignment_fini(job);
        return;
    }
    reviewer->job = *job;
    reviewer->has_job = true;
    reviewer->explained = BUF_INIT(MAX_EXPLAINED);
    *job = (struct assignment){.prompt = NULL};
    watch_begin(&reviewer->watch, &reviewer->job.clocks, util_now_ns());
    reviewer_begin_turn(reviewer);
}

const char *
reviewers_note(struct reviewers *reviewers, const char *round_id)
{
    struct reviewer *reviewer = reviewers->first;

    while (reviewer && (!reviewer->has_job || strcmp(reviewer->job.round.id, round_id) != 0))
        reviewer = reviewer->next;
    if (!reviewer || !reviewer->vendor->has_note)
        return NULL;
    pipes_look(&reviewer->pipes); /* it was written before what we are asked for came */
    return pipes_said(&reviewer->pipes.said);
}

/* ---- counting ---- */

size_t
reviewers_turns(const struct reviewers *reviewers)
{
    size_t count = 0;

    for (const struct reviewer *reviewer = reviewers->first; reviewer;
         reviewer = reviewer->next)
        count += reviewer->has_job ? 1 : 0;
    return count;
}

size_t
reviewers_turns_of(const struct reviewers *reviewers, const char *session_id)
{
    size_t count = 0;

    for (const struct reviewer *reviewer = reviewers->first; reviewer;
         reviewer = reviewer->next) {
        const char *theirs = reviewer->has_job ? reviewer->job.flow.session_id : NULL;
        if (reviewer->has_job &&
            strcmp(theirs ? theirs : "", session_id ? session_id : "") == 0)
            count++;
    }
    return count;
}

size_t
reviewers_count(const struct reviewers *reviewers)
{
    size_t count = 0;

    for (const struct reviewer *reviewer = reviewers->first; reviewer;
         reviewer = reviewer->next)
        count++;
    return count;
}

/* ---- ending ---- */

void
reviewers_end(struct reviewers *reviewers, const char *agent_id)
{
    struct reviewer *reviewer = reviewer_find(reviewers, agent_id);

    if (!reviewer)
        return;
    reviewer->may_live = false; /* also when only its turn was to end */
    ladder_begin(reviewer, &(struct loss){.result_text = ROUND_TEXT_STOPPED,
                                          .code = "closed",
                                          .reason = "the run was closed"});
}

void
reviewers_end_all(struct reviewers *reviewers)
{
    for (struct reviewer *reviewer = reviewers->first; reviewer; reviewer = reviewer->next) {
        reviewer->may_live = false;
        ladder_begin(reviewer, &(struct loss){.result_text = ROUND_TEXT_STOPPED,
                                              .code = "server_stop",
                                              .reason = "kcap-flowd was told to stop"});
    }
}

static void
free_dead(struct reviewers *reviewers)
{
    while (reviewers->dead) {
        struct reviewer *next = reviewers->dead->next;
        reviewer_free(reviewers->dead);
        reviewers->dead = next;
    }
}

void
reviewers_tick(struct reviewers *reviewers, int64_t now_ns)
{
    free_dead(reviewers);
    for (struct reviewer *reviewer = reviewers->first; reviewer; reviewer = reviewer->next)
        reviewer_look(reviewer, now_ns);
}

int64_t
reviewers_deadline_ns(const struct reviewers *reviewers)
{
    int64_t until_ns = reviewers->dead ? 0 : UTIL_NEVER;

    for (const struct reviewer *reviewer = reviewers->first; reviewer;
         reviewer = reviewer->next)
        until_ns = util_earlier(until_ns, reviewer_until_ns(reviewer));
    return until_ns;
}

/* ---- the end of a process ---- */

static void
lose_to_exit(struct reviewer *reviewer, int status)
{
    AUTO_BUF struct buf reason = BUF_INIT(8 * PIPES_MAX_SAID);
    const char *words = pipes_said(&reviewer->pipes.complained);
    bool hopeless = reviewer->vendor->hopeless_status != 0 && WIFEXITED(status) &&
                    WEXITSTATUS(status) == reviewer->vendor->hopeless_status && words;

    if (WIFSIGNALED(status))
        buf_addf(&reason, "the reviewer was ended by signal %d", WTERMSIG(status));
    else if (!hopeless)
        buf_addf(&reason, "the reviewer left without submitting, exit status %d",
                 WEXITSTATUS(status));
    if (words) {
        buf_adds(&reason, hopeless ? "" : ": ");
        text_add_line(&reason, words, strlen(words));
    }
    reviewer_lose(reviewer, &(struct loss){.result_text = hopeless ? NULL : ROUND_TEXT_DIED,
                                           .code = hopeless ? "refused" : "server_exit",
                                           .reason = buf_str(&reason)});
}

/* Whether we are ending it for a reason of our own. */
static bool
is_being_ended(const struct reviewer *reviewer)
{
    return reviewer->rung != RUNG_NONE &&
           !(reviewer->end.code && strcmp(reviewer->end.code, "server_exit") == 0);
}

static void
reviewer_ended(struct reviewer *reviewer)
{
    struct reviewer **place = &reviewer->all->first;
    int status = 0;

    /* while its leader is not reaped, the group's number cannot be anybody else's */
    (void)kill(-reviewer->pid, SIGKILL);
    while (waitpid(reviewer->pid, &status, 0) < 0 && errno == EINTR)
        ;
    reviewer->exited = true;
    pipes_drain(&reviewer->pipes);
    if (reviewer->has_job && reviewer->in_turn && reviewer->vendor->exited)
        reviewer->vendor->exited(reviewer, status);
    if (is_being_ended(reviewer)) {
        struct loss loss = reviewer->end;
        loss.reason = buf_str(&reviewer->end_reason);
        reviewer_lose(reviewer, &loss);
    } else {
        lose_to_exit(reviewer, status);
    }
    reviewer_note_gone(reviewer);

    while (*place != reviewer)
        place = &(*place)->next;
    *place = reviewer->next;
    pipes_close(&reviewer->pipes);
    reviewer->next = reviewer->all->dead;
    reviewer->all->dead = reviewer;
}

void
reviewers_reap(struct reviewers *reviewers, void (*other)(void *arg, pid_t pid, int status),
               void *arg)
{
    for (;;) {
        siginfo_t info = {.si_pid = 0};
        struct reviewer *reviewer = reviewers->first;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
            return;
        while (reviewer && reviewer->pid != info.si_pid)
            reviewer = reviewer->next;
        if (reviewer) {
            reviewer_ended(reviewer);
        } else { /* a helper, or a process of a dead reviewer, given to us as the subreaper */
            int status = 0;
            (void)waitpid(info.si_pid, &status, 0);
            other(arg, info.si_pid, status);
        }
    }
}

void
reviewers_free(struct reviewers *reviewers)
{
    if (!reviewers)
        return;
    for (struct reviewer *reviewer = reviewers->first; reviewer; reviewer = reviewer->next)
        (void)kill(-reviewer->pid, SIGKILL);
    while (reviewers->first)
        reviewer_ended(reviewers->first);
    free_dead(reviewers);
    while (reviewers->events)
        reviewers_drop_event(reviewers);
    free(reviewers);
}
