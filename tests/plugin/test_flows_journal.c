/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of flows.so by itself: many writers, killed writers, rewrites in between. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plugins/flows/journal.h"
#include "tests/unit/files.h"
#include "tests/unit/suite.h"

#define N_WRITERS 4
#define N_EACH    60

static char dir[32];

static void
setup(void)
{
    (void)strcpy(dir, "/tmp/kcap-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void
teardown(void)
{
    files_remove(dir);
}

static void
note(enum event_kind kind, const char *run_id, const char *title)
{
    const struct event event = {
        .kind = kind, .wall_ms = 1000, .run_id = run_id, .target_title = title};
    int r;

    while ((r = journal_append(dir, "s", &event)) == -EWOULDBLOCK)
        (void)sched_yield();
    ck_assert_int_eq(r, 0);
}

/* One run after the other, each with so long a title that the file is rewritten now and then.
 */
static void
write_runs(int writer)
{
    static char title[40000];
    char run_id[32];

    memset(title, 'x', sizeof title - 1);
    for (int i = 0; i < N_EACH; i++) {
        (void)snprintf(run_id, sizeof run_id, "w%d-%d", writer, i);
        note(EVENT_RUN, run_id, NULL);
        note(EVENT_RUN, "filler", title);
        note(EVENT_CLOSED, "filler", NULL);
    }
}

START_TEST(writers_lose_nothing)
{
    struct runs runs = {.items = NULL};
    pid_t writers[N_WRITERS];
    char run_id[32];
    int status;

    for (int w = 0; w < N_WRITERS; w++) {
        writers[w] = fork();
        if (writers[w] == 0) {
            write_runs(w);
            _exit(0);
        }
    }
    for (int w = 0; w < N_WRITERS; w++) {
        ck_assert_int_eq(waitpid(writers[w], &status, 0), writers[w]);
        ck_assert_int_eq(status, 0);
    }
    ck_assert_int_eq(journal_load(dir, "s", &runs), 0);
    for (int w = 0; w < N_WRITERS; w++) {
        for (int i = 0; i < N_EACH; i++) {
            (void)snprintf(run_id, sizeof run_id, "w%d-%d", w, i);
            ck_assert_msg(runs_find(&runs, run_id) != NULL, "%s is lost", run_id);
        }
    }
    ck_assert_uint_eq(runs.n, N_WRITERS * N_EACH);
    runs_fini(&runs);
}
END_TEST

/* A writer killed anywhere: what was there before is there after, and the file still takes
 * events. The pipe tells that it is in the middle of its work. */
START_TEST(killed_writer_harms_nothing)
{
    for (int round = 0; round < 10; round++) {
        struct runs runs = {.items = NULL};
        char run_id[32], byte;
        int fds[2];
        pid_t pid;
        (void)snprintf(run_id, sizeof run_id, "before-%d", round);
        note(EVENT_RUN, run_id, NULL);
        ck_assert_int_eq(pipe(fds), 0);
        pid = fork();
        if (pid == 0) {
            write_runs(1);
            (void)!write(fds[1], "x", 1);
            for (;;)
                write_runs(2);
        }
        ck_assert_int_eq(read(fds[0], &byte, 1), 1);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        (void)close(fds[0]);
        (void)close(fds[1]);
        note(EVENT_RUN, "after", NULL);
        ck_assert_int_eq(journal_load(dir, "s", &runs), 0);
        ck_assert_ptr_nonnull(runs_find(&runs, run_id));
        ck_assert_ptr_nonnull(runs_find(&runs, "after"));
        runs_fini(&runs);
        note(EVENT_CLOSED, "after", NULL);
    }
}
END_TEST

START_TEST(old_sessions_are_pruned)
{
    struct timespec old[2] = {{.tv_sec = time(NULL) - 31 * 86400},
                              {.tv_sec = time(NULL) - 31 * 86400}};
    struct runs runs = {.items = NULL};
    struct dirent *entry;
    DIR *stream;

    note(EVENT_RUN, "u1", NULL);
    stream = opendir(dir);
    ck_assert_ptr_nonnull(stream);
    while ((entry = readdir(stream)) != NULL) {
        if (entry->d_name[0] != '.')
            ck_assert_int_eq(utimensat(dirfd(stream), entry->d_name, old, 0), 0);
    }
    (void)closedir(stream);
    ck_assert_int_eq(
        journal_append(dir, "new", &(struct event){.kind = EVENT_RUN, .run_id = "u2"}), 0);
    journal_prune(dir, (int64_t)time(NULL) * 1000);
    ck_assert_int_eq(journal_load(dir, "s", &runs), 0);
    ck_assert_uint_eq(runs.n, 0);
    ck_assert_int_eq(journal_load(dir, "new", &runs), 0);
    ck_assert_uint_eq(runs.n, 1);
    runs_fini(&runs);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, writers_lose_nothing);
    tcase_add_test(tests, killed_writer_harms_nothing);
    tcase_add_test(tests, old_sessions_are_pruned);
}

int
main(void)
{
    return suite_run("flows-journal", add);
}
