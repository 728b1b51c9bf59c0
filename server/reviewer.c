/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/reviewer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/spawn.h"
#include "lib/text.h"
#include "server/engine.h"
#include "server/env.h"
#include "server/log.h"
#include "server/loop.h"
#include "server/util.h"

#define LINGER_SEC 10  /* from its answer to its end, if it does not leave */
#define TERM_SEC   3   /* from SIGTERM to SIGKILL */
#define MAX_LINE   400 /* of its standard error, in a reason */

/* The last line of a stream that was not blank. */
struct last_line {
    struct buf line; /* being read */
    struct buf words;
};

struct reviewer {
    struct reviewer *next;
    struct reviewers *all;
    char round_id[UTIL_ID_LEN + 1];
    pid_t pid;
    struct source input, output, errors;
    struct buf unsent;
    struct last_line said, complained; /* on standard output and error */
    bool has_note;
    int hopeless_status;
    int64_t total_until_ns, idle_until_ns;
    int64_t term_at_ns, kill_at_ns; /* steps of the ladder, UTIL_NEVER when not due */
    bool given_up;                  /* the clocks do not count any more */
};

struct reviewers {
    int epoll_fd;
    const char *url;
    struct clocks clocks;
    struct reviewer *first;
    struct reviewer *dead; /* freed by the next tick, when no event can name them */
    struct reviewer_event *events, **events_end;
};

int
reviewers_new(int epoll_fd, const char *url, const struct clocks *clocks,
              struct reviewers **ret)
{
    struct reviewers *reviewers = calloc(1, sizeof *reviewers);

    if (!reviewers)
        return -ENOMEM;
    reviewers->epoll_fd = epoll_fd;
    reviewers->url = url;
    reviewers->clocks = *clocks;
    reviewers->events_end = &reviewers->events;
    *ret = reviewers;
    return 0;
}

/* ---- events ---- */

void
reviewers_note_lost(struct reviewers *reviewers, const char *round_id, const char *result_text,
                    bool gone, const char *reason)
{
    struct reviewer_event *event = calloc(1, sizeof *event);

    if (!event)
        return;
    event->gone = gone;
    event->result_text = result_text;
    event->round_id = strdup(round_id);
    event->reason = strdup(reason);
    if (!event->round_id || !event->reason) {
        free(event->round_id);
        free(event->reason);
        free(event);
        return;
    }
    *reviewers->events_end = event;
    reviewers->events_end = &event->next;
}

const struct reviewer_event *
reviewers_event(const struct reviewers *reviewers)
{
    return reviewers->events;
}

void
reviewers_drop_event(struct reviewers *reviewers)
{
    struct reviewer_event *event = reviewers->events;

    reviewers->events = event->next;
    if (!reviewers->events)
        reviewers->events_end = &reviewers->events;
    free(event->round_id);
    free(event->reason);
    free(event);
}

/* ---- pipes ---- */

static void
close_source(const struct reviewer *reviewer, struct source *source)
{
    int fd = loop_remove(reviewer->all->epoll_fd, source);

    if (fd >= 0)
        (void)close(fd);
}

static void
send_input(struct source *source, uint32_t events)
{
    struct reviewer *reviewer = SOURCE_OWNER(source, struct reviewer, input);
    ssize_t n = write(source->fd, buf_str(&reviewer->unsent), reviewer->unsent.len);

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n >= 0)
        buf_shift(&reviewer->unsent, (size_t)n);
    if (n < 0 || reviewer->unsent.len == 0)
        close_source(reviewer, source);
}

static void
keep_last_line(struct last_line *last, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\n') {
            if (last->line.len < last->line.max)
                buf_addc(&last->line, text[i]);
            continue;
        }
        if (!text_is_blank(buf_str(&last->line))) {
            buf_clear(&last->words);
            buf_add(&last->words, buf_str(&last->line), last->line.len);
        }
        buf_clear(&last->line);
    }
}

/* Reads what is there. Returns false at the end of the stream. */
static bool
read_output(struct reviewer *reviewer, int fd, struct last_line *last)
{
    char space[16384];
    ssize_t n = read(fd, space, sizeof space);

    if (n > 0) {
        reviewer->idle_until_ns = util_now_ns() + reviewer->all->clocks.idle_sec * UTIL_SEC_NS;
        keep_last_line(last, space, (size_t)n);
    }
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void
output_ready(struct source *source, uint32_t events)
{
    struct reviewer *reviewer = SOURCE_OWNER(source, struct reviewer, output);

    (void)events;
    if (!read_output(reviewer, source->fd, &reviewer->said))
        close_source(reviewer, source);
}

static void
errors_ready(struct source *source, uint32_t events)
{
    struct reviewer *reviewer = SOURCE_OWNER(source, struct reviewer, errors);

    (void)events;
    if (!read_output(reviewer, source->fd, &reviewer->complained))
        close_source(reviewer, source);
}

static void
reviewer_free(struct reviewer *reviewer)
{
    close_source(reviewer, &reviewer->input);
    close_source(reviewer, &reviewer->output);
    close_source(reviewer, &reviewer->errors);
    buf_fini(&reviewer->unsent);
    buf_fini(&reviewer->said.line);
    buf_fini(&reviewer->said.words);
    buf_fini(&reviewer->complained.line);
    buf_fini(&reviewer->complained.words);
    free(reviewer);
}

/* ---- starting ---- */

/* A pipe whose end for us, ours, does not block. */
static int
make_pipe(struct reviewer *reviewer, struct source *source, int ours, int *ret_theirs)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *ret_theirs = ends[1 - ours];
    if (fcntl(ends[ours], F_SETFL, O_NONBLOCK) < 0 ||
        loop_add(reviewer->all->epoll_fd, source, ends[ours],
                 source == &reviewer->input ? 0 : EPOLLIN) < 0) {
        (void)close(ends[ours]);
        return -EIO;
    }
    return 0;
}

static int
start_process(struct reviewer *reviewer, const struct flow *flow,
              const struct vendor_plan *plan)
{
    AUTO_CLOSE int in = -1, out = -1, err = -1;
    char **env = env_for_reviewer(reviewer->all->url, flow->agent_id);
    struct spawn spawn = {.argv = plan->argv,
                          .envp = (const char *const *)env,
                          .dir = flow->cwd,
                          .new_group = true};
    int r = env ? 0 : -ENOMEM;

    if (r == 0)
        r = make_pipe(reviewer, &reviewer->input, 1, &in);
    if (r == 0)
        r = make_pipe(reviewer, &reviewer->output, 0, &out);
    if (r == 0)
        r = make_pipe(reviewer, &reviewer->errors, 0, &err);
    spawn.stdin_fd = in;
    spawn.stdout_fd = out;
    spawn.stderr_fd = err;
    if (r == 0)
        r = spawn_start(&spawn, &reviewer->pid, NULL);
    env_free(env);
    return r;
}

int
reviewers_start(struct reviewers *reviewers, const struct flow *flow, const struct round *round,
                struct vendor_plan *plan, pid_t *ret_pid)
{
    struct reviewer *reviewer = calloc(1, sizeof *reviewer);
    int64_t now_ns = util_now_ns();
    int r;

    if (!reviewer)
        return -ENOMEM;
    reviewer->all = reviewers;
    (void)snprintf(reviewer->round_id, sizeof reviewer->round_id, "%s", round->id);
    reviewer->input = (struct source){.fd = -1, .ready = send_input};
    reviewer->output = (struct source){.fd = -1, .ready = output_ready};
    reviewer->errors = (struct source){.fd = -1, .ready = errors_ready};
    reviewer->said = (struct last_line){BUF_INIT(MAX_LINE), BUF_INIT(MAX_LINE)};
    reviewer->complained = reviewer->said;
    reviewer->has_note = plan->has_note;
    reviewer->hopeless_status = plan->hopeless_status;
    reviewer->total_until_ns = now_ns + reviewers->clocks.hard_ceiling_sec * UTIL_SEC_NS;
    reviewer->idle_until_ns = now_ns + reviewers->clocks.idle_sec * UTIL_SEC_NS;
    reviewer->term_at_ns = reviewer->kill_at_ns = UTIL_NEVER;
    r = start_process(reviewer, flow, plan);
    if (r < 0) {
        reviewer_free(reviewer);
        return r;
    }
    reviewer->unsent = plan->input;
    plan->input = BUF_INIT(0);
    reviewer->next = reviewers->first;
    reviewers->first = reviewer;
    *ret_pid = reviewer->pid;
    return 0;
}

static struct reviewer *
find(const struct reviewers *reviewers, const char *round_id)
{
    struct reviewer *reviewer = reviewers->first;

    while (reviewer && strcmp(reviewer->round_id, round_id) != 0)
        reviewer = reviewer->next;
    return reviewer;
}

void
reviewers_feed(struct reviewers *reviewers, const char *round_id)
{
    struct reviewer *reviewer = find(reviewers, round_id);
    int fd = reviewer ? loop_remove(reviewers->epoll_fd, &reviewer->input) : -1;

    if (fd >= 0 && loop_add(reviewers->epoll_fd, &reviewer->input, fd, EPOLLOUT) < 0)
        (void)close(fd); /* it reads the end of file and fails, which is noticed */
}

const char *
reviewers_note(struct reviewers *reviewers, const char *round_id)
{
    struct reviewer *reviewer = find(reviewers, round_id);

    if (!reviewer || !reviewer->has_note)
        return NULL;
    if (reviewer->output.fd >= 0) /* it was written before what we are asked for came */
        (void)read_output(reviewer, reviewer->output.fd, &reviewer->said);
    return reviewer->said.words.len > 0 ? buf_str(&reviewer->said.words) : NULL;
}

/* ---- ending ---- */

static void
begin_end(struct reviewer *reviewer, int64_t now_ns)
{
    if (reviewer->kill_at_ns != UTIL_NEVER)
        return;
    reviewer->given_up = true;
    reviewer->term_at_ns = UTIL_NEVER;
    reviewer->kill_at_ns = now_ns + TERM_SEC * UTIL_SEC_NS;
    close_source(reviewer, &reviewer->input);
    (void)kill(-reviewer->pid, SIGTERM);
}

void
reviewers_finish(struct reviewers *reviewers, const char *round_id)
{
    struct reviewer *reviewer = find(reviewers, round_id);

    if (reviewer && !reviewer->given_up) {
        reviewer->given_up = true;
        reviewer->term_at_ns = util_now_ns() + LINGER_SEC * UTIL_SEC_NS;
    }
}

void
reviewers_end(struct reviewers *reviewers, const char *round_id)
{
    struct reviewer *reviewer = find(reviewers, round_id);

    if (reviewer)
        begin_end(reviewer, util_now_ns());
}

void
reviewers_end_all(struct reviewers *reviewers)
{
    for (struct reviewer *reviewer = reviewers->first; reviewer; reviewer = reviewer->next) {
        if (!reviewer->given_up)
            reviewers_note_lost(reviewers, reviewer->round_id, ROUND_TEXT_STOPPED, false,
                                "kcap-flowd was told to stop");
        begin_end(reviewer, util_now_ns());
    }
}

static void
give_up(struct reviewer *reviewer, int64_t now_ns, const char *clock, int64_t sec)
{
    char reason[96];

    (void)snprintf(reason, sizeof reason, "%s (%lld s)", clock, (long long)sec);
    log_line("round %s: %s", reviewer->round_id, reason);
    reviewers_note_lost(reviewer->all, reviewer->round_id, ROUND_TEXT_STOPPED, false, reason);
    begin_end(reviewer, now_ns);
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
    const struct clocks *clocks = &reviewers->clocks;

    free_dead(reviewers);
    for (struct reviewer *reviewer = reviewers->first; reviewer; reviewer = reviewer->next) {
        if (reviewer->kill_at_ns <= now_ns) {
            (void)kill(-reviewer->pid, SIGKILL);
            reviewer->kill_at_ns = UTIL_NEVER - 1; /* done, and not to begin again */
        } else if (reviewer->term_at_ns <= now_ns) {
            log_line("round %s: the reviewer did not leave after its answer",
                     reviewer->round_id);
            begin_end(reviewer, now_ns);
        } else if (!reviewer->given_up && reviewer->total_until_ns <= now_ns) {
            give_up(reviewer, now_ns, "hard_ceiling", clocks->hard_ceiling_sec);
        } else if (!reviewer->given_up && reviewer->idle_until_ns <= now_ns) {
            give_up(reviewer, now_ns, "idle_timeout", clocks->idle_sec);
        }
    }
}

int64_t
reviewers_deadline_ns(const struct reviewers *reviewers)
{
    int64_t until_ns = reviewers->dead ? 0 : UTIL_NEVER;

    for (const struct reviewer *reviewer = reviewers->first; reviewer;
         reviewer = reviewer->next) {
        until_ns =
            util_earlier(until_ns, util_earlier(reviewer->term_at_ns, reviewer->kill_at_ns));
        if (!reviewer->given_up)
            until_ns = util_earlier(
                until_ns, util_earlier(reviewer->total_until_ns, reviewer->idle_until_ns));
    }
    return until_ns;
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

/* ---- the end of a process ---- */

/* Returns whether no further try could do better. */
static bool
describe_end(const struct reviewer *reviewer, int status, struct buf *reason)
{
    const struct buf *words = &reviewer->complained.words;
    bool hopeless = reviewer->hopeless_status != 0 && WIFEXITED(status) &&
                    WEXITSTATUS(status) == reviewer->hopeless_status && words->len > 0;

    if (WIFSIGNALED(status))
        buf_addf(reason, "the reviewer was ended by signal %d", WTERMSIG(status));
    else if (!hopeless)
        buf_addf(reason, "the reviewer left without submitting, exit status %d",
                 WEXITSTATUS(status));
    if (words->len > 0) {
        buf_adds(reason, hopeless ? "" : ": ");
        text_add_line(reason, words->data, words->len);
    }
    return hopeless;
}

static void
reviewer_ended(struct reviewer *reviewer)
{
    AUTO_BUF struct buf reason = BUF_INIT(8 * MAX_LINE);
    struct reviewer **place = &reviewer->all->first;
    int status = 0;
    bool hopeless;

    /* while its leader is not reaped, the group's number cannot be anybody else's */
    (void)kill(-reviewer->pid, SIGKILL);
    while (waitpid(reviewer->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (reviewer->errors.fd >= 0) {
        (void)read_output(reviewer, reviewer->errors.fd, &reviewer->complained);
        keep_last_line(&reviewer->complained, "\n", 1);
    }
    hopeless = describe_end(reviewer, status, &reason);
    if (!reviewer->given_up)
        log_line("round %s: %s", reviewer->round_id, buf_str(&reason));
    reviewers_note_lost(reviewer->all, reviewer->round_id, hopeless ? NULL : ROUND_TEXT_DIED,
                        true, buf_str(&reason));

    while (*place != reviewer)
        place = &(*place)->next;
    *place = reviewer->next;
    close_source(reviewer, &reviewer->input);
    close_source(reviewer, &reviewer->output);
    close_source(reviewer, &reviewer->errors);
    reviewer->next = reviewer->all->dead;
    reviewer->all->dead = reviewer;
}

void
reviewers_reap(struct reviewers *reviewers)
{
    for (;;) {
        siginfo_t info = {.si_pid = 0};
        struct reviewer *reviewer = reviewers->first;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
            return;
        while (reviewer && reviewer->pid != info.si_pid)
            reviewer = reviewer->next;
        if (reviewer)
            reviewer_ended(reviewer);
        else /* a process of a dead reviewer, given to us as the subreaper */
            (void)waitpid(info.si_pid, NULL, 0);
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
