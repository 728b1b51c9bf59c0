/* SPDX-License-Identifier: Apache-2.0 */
/* flows.so as shipped: starting the local server. What it starts is looked for beside the
 * running program, so this one has a folder of its own and puts scripts there. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/paths.h"
#include "tests/plugin/flows-rig.h"

static char *program;

static void
setup(void)
{
    char *dir = paths_exe_dir();

    rig_setup();
    fake_host_set_server(rig.fake, KCAP_HTTP_SERVER_LOCAL, "unix:///x/flowd.sock", NULL);
    program = paths_join(dir, "kcap-flowd");
    (void)unlink(program);
    free(dir);
}

static void
teardown(void)
{
    (void)unlink(program);
    free(program);
    rig_teardown();
}

/* Renamed into place: a file that is open for writing cannot be executed. */
static void
write_program(const char *script)
{
    char path[4096];
    FILE *file;

    (void)snprintf(path, sizeof path, "%.4000s.new", program);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    (void)fprintf(file, "#!/bin/sh\n%s\n", script);
    ck_assert_int_eq(fchmod(fileno(file), 0755), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(rename(path, program), 0);
}

#define REFUSED(times_)                                                        \
    {                                                                          \
        .outcome = KCAP_HTTP_NOT_SENT, .error = "no connection could be made", \
        .times = (times_)                                                      \
    }

START_TEST(started_then_asked_again)
{
    const struct fake_reply replies[] = {
        REFUSED(1),
        {"POST", "*/start/v2", .body = "{\"flow_run_id\":\"u1\",\"status\":\"clean\"}"}};

    write_program("exit 0");
    rig_has(rig_ask(START, START_ARGS, replies, 2, false), "flow_run_id: u1\n");
    ck_assert_uint_eq(fake_host_count(rig.fake, "POST", "*"), 2); /* the first was not sent */
}
END_TEST

/* Killed with our request in its queue: a lost GET is asked again, and meets nobody. */
START_TEST(killed_server_is_started_for_a_status)
{
    const struct fake_reply replies[] = {
        {"GET", "/api/flows/u1", .outcome = KCAP_HTTP_UNKNOWN, .error = "reset", .times = 1},
        REFUSED(1),
        {"GET", "/api/flows/u1", .body = STATUS_RUNNING}};

    write_program("exit 0");
    rig_has(rig_ask(STATUS, "{\"flow_run_id\":\"u1\"}", replies, 3, false),
            "flow_run_id: u1\n");
    ck_assert_uint_eq(fake_host_count(rig.fake, "GET", "*"), 3);
}
END_TEST

static const struct {
    const char *script; /* NULL: no such program */
    size_t posts;
    const char *says;
} failures[] = {
    {NULL, 1, "it is not installed beside kcap-host; name a server in KCAP_URL"},
    {"echo first >&2; printf 'the store is newer\\033[2J\\n' >&2; exit 3", 1,
     "it failed: the store is newer\xef\xbf\xbd[2J; name"},
    {"exit 4", 1, "it failed; name"},
    {"kill -9 $$", 1, "it was killed"},
    {"exit 0", 4, "no connection could be made"},
};

START_TEST(not_started_is_explained)
{
    const struct fake_reply replies[] = {REFUSED(0)};
    const char *text;

    if (failures[_i].script)
        write_program(failures[_i].script);
    else if (access(KCAP_BINDIR "/kcap-flowd", X_OK) == 0)
        return; /* an installed one would be started */
    text = rig_ask(START, START_ARGS, replies, 1, true);
    rig_has(text, failures[_i].says);
    rig_has(text, "nothing was started");
    ck_assert_uint_eq(fake_host_count(rig.fake, "POST", "*"), failures[_i].posts);
}
END_TEST

/* Only a local server is started, and only when nothing was sent. */
START_TEST(nobody_else_is_started)
{
    static const struct {
        uint32_t kind;
        int outcome;
    } cases[] = {{KCAP_HTTP_SERVER_CONFIGURED, KCAP_HTTP_NOT_SENT},
                 {KCAP_HTTP_SERVER_LOCAL, KCAP_HTTP_UNKNOWN}};
    const struct fake_reply reply = {.outcome = cases[_i].outcome, .error = "broken"};
    char canary[128], script[256];

    (void)snprintf(canary, sizeof canary, "%s/canary", rig_state_dir);
    (void)snprintf(script, sizeof script, "touch %s", canary);
    write_program(script);
    fake_host_set_server(rig.fake, cases[_i].kind, "unix:///x/flowd.sock", NULL);
    (void)rig_ask(START, START_ARGS, &reply, 1, true);
    ck_assert_uint_eq(fake_host_count(rig.fake, "POST", "*"), 1);
    ck_assert_int_ne(access(canary, F_OK), 0);
}
END_TEST

/* A call that is given up while the server starts: the starter goes on, and is reaped. */
START_TEST(abandoned_starter_is_reaped)
{
    const struct fake_reply replies[] = {REFUSED(0)};
    struct fake_call call = {.cancel_at_wait = _i == 0 ? 2 : 0, .window_ms = _i == 0 ? 0 : 100};
    char gate[128], done[128], script[512];
    siginfo_t info = {.si_pid = 0};
    int fd;

    (void)snprintf(gate, sizeof gate, "%s/gate", rig_state_dir);
    (void)snprintf(done, sizeof done, "%s/done", rig_state_dir);
    (void)snprintf(script, sizeof script, "read x <%s; echo >%s", gate, done);
    ck_assert_int_eq(mkfifo(gate, 0600), 0);
    write_program(script);
    fake_host_script(rig.fake, replies, 1);
    rig_call(STATUS, "{\"flow_run_id\":\"u1\"}", &call);
    ck_assert(call.has_result == (_i == 1));
    fd = open(gate, O_RDWR | O_CLOEXEC); /* it is still there to read this */
    ck_assert_int_eq(write(fd, "\n", 1), 1);
    fake_host_advance_ms(rig.fake, 1000);
    ck_assert_int_eq(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), -1);
    ck_assert_int_eq(errno, ECHILD);
    ck_assert_int_eq(access(done, F_OK), 0);
    (void)close(fd);
    fake_call_fini(&call);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, started_then_asked_again);
    tcase_add_test(tests, killed_server_is_started_for_a_status);
    tcase_add_loop_test(tests, not_started_is_explained, 0, N_ROWS(failures));
    tcase_add_loop_test(tests, nobody_else_is_started, 0, 2);
    tcase_add_loop_test(tests, abandoned_starter_is_reaped, 0, 2);
}

int
main(void)
{
    int pidfd = pidfd_open(getpid(), 0);

    if (pidfd < 0) { /* valgrind, or an old kernel */
        (void)printf("skipped: no pidfd here\n");
        return 77;
    }
    (void)close(pidfd);
    return suite_run("flows-daemon", add);
}
