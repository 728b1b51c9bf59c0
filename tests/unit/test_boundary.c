/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/boundary.h"
#include "tests/unit/suite.h"

static char proc[64];

static void
put(int pid, const char *name, const char *bytes, size_t len)
{
    char path[256];
    int fd;

    (void)snprintf(path, sizeof path, "%s/%d", proc, pid);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof path, "%s/%d/%s", proc, pid, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
    (void)close(fd);
}

/* A process in the tree of our own. environment: NUL-separated, ended by a double NUL. */
static void
put_process(int pid, int parent, const char *comm, const char *environment)
{
    char text[128];
    size_t len = 0;

    while (environment[len])
        len += strlen(environment + len) + 1;
    put(pid, "environ", environment, len);
    (void)snprintf(text, sizeof text, "%s\n", comm);
    put(pid, "comm", text, strlen(text));
    (void)snprintf(text, sizeof text, "Name:\t%s\nState:\tS\nPPid:\t%d\nUid:\t0\n", comm,
                   parent);
    put(pid, "status", text, strlen(text));
}

static void
begin(void)
{
    (void)snprintf(proc, sizeof proc, "/tmp/kcap-test-proc.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(proc));
    put_process(10, 1, "bash", "A=1\0PATH=/bin\0");
    put_process(20, 10, "claude", "HOME=/x\0");
    put_process(30, 20, "kcap-host", "HOME=/x\0");
}

static void
end(void)
{
    char command[128];

    (void)snprintf(command, sizeof command, "rm -rf '%s'", proc);
    ck_assert_int_eq(system(command), 0);
}

static const struct {
    const char *comm, *environment;
    bool inside;
} rows[] = {
    {"claude", "HOME=/x\0", false},
    {"claude", "HOME=/x\0KCAP_REVIEWER=1\0", true},
    {"claude", "KCAP_FLOW_AGENT_ID=a\0", true},
    {"claude", "KCAP_REVIEWER=\0", true},
    {"claude", "XKCAP_REVIEWER=1\0KCAP_REVIEWERS=1\0", false},
    {"claude", "A=KCAP_REVIEWER=1\0", false},
    {"kcap-flowd", "HOME=/x\0", true},
    {"kcap-flowd-x", "HOME=/x\0", false},
};

START_TEST(ancestor_row)
{
    char why[160] = "";

    put_process(20, 10, rows[_i].comm, rows[_i].environment);
    ck_assert_int_eq(boundary_reviewer_ancestor(proc, 30, why, sizeof why), rows[_i].inside);
    ck_assert_int_eq(why[0] != '\0', rows[_i].inside);
}
END_TEST

START_TEST(unreadable_and_endless_trees_go_on)
{
    char why[160], path[256];

    (void)snprintf(path, sizeof path, "%s/20/environ", proc);
    ck_assert_int_eq(unlink(path), 0);
    put_process(10, 1, "bash", "KCAP_REVIEWER=1\0");
    ck_assert(boundary_reviewer_ancestor(proc, 30, why, sizeof why));
    ck_assert(!boundary_reviewer_ancestor(proc, 4711, why, sizeof why));
    put_process(10, 30, "bash", "A=1\0"); /* a circle, as a hostile /proc might show it */
    ck_assert(!boundary_reviewer_ancestor(proc, 30, why, sizeof why));
}
END_TEST

START_TEST(own_environment_counts)
{
    char why[160];

    (void)unsetenv("KCAP_FLOW_AGENT_ID");
    (void)setenv("KCAP_REVIEWER", "", 1);
    ck_assert(boundary_inside_reviewer(why, sizeof why));
    ck_assert_str_eq(why, "KCAP_REVIEWER is set");
}
END_TEST

START_TEST(classes_come_from_the_table)
{
    ck_assert_uint_eq(boundary_class_of("flows"), KCAP_CLASS_DRIVER);
    ck_assert_uint_eq(boundary_class_of("flow-result"), KCAP_CLASS_REVIEWER);
    ck_assert_uint_eq(boundary_class_of("codex-setup"), KCAP_CLASS_SETUP);
    ck_assert_uint_eq(boundary_class_of("Flow-Result"), KCAP_CLASS_DRIVER);
    ck_assert_uint_eq(boundary_class_of("hello"), KCAP_CLASS_DRIVER);
    ck_assert_str_eq(boundary_class_name(99), "unknown");
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, ancestor_row, 0, N_ROWS(rows));
    tcase_add_test(tests, unreadable_and_endless_trees_go_on);
    tcase_add_test(tests, own_environment_counts);
    tcase_add_test(tests, classes_come_from_the_table);
}

int
main(void)
{
    return suite_run("boundary", add);
}
