/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/paths.h"
#include "lib/spawn.h"
#include "tests/unit/suite.h"

static char top[64];

static void
begin(void)
{
    (void)snprintf(top, sizeof top, "/tmp/kcap-test-paths.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(top));
}

static void
end(void)
{
    char command[128];

    (void)snprintf(command, sizeof command, "rm -rf '%s'", top);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(state_dir_is_made_private)
{
    char want[128], *dir;
    struct stat st;

    (void)umask(0);
    ck_assert_int_eq(paths_state_dir(NULL, top, &dir), 0);
    (void)snprintf(want, sizeof want, "%s/.local/state/kcap", top);
    ck_assert_str_eq(dir, want);
    ck_assert_int_eq(stat(dir, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0700);
    free(dir);
    ck_assert_int_eq(paths_state_dir("", top, &dir), 0);
    ck_assert_str_eq(dir, want);
    free(dir);
}
END_TEST

/* Without a usable HOME the user database is asked, as the manual says. */
START_TEST(home_is_the_users)
{
    static const char *const homes[] = {NULL, "", "relative", "./x"};
    const struct passwd *user = getpwuid(getuid());
    char want[4200], *dir = paths_config_dir(NULL, homes[_i]);

    ck_assert_ptr_nonnull(user);
    (void)snprintf(want, sizeof want, "%.4000s/.config/kcap", user->pw_dir);
    ck_assert_str_eq(dir, want);
    free(dir);
}
END_TEST

START_TEST(override_is_taken_as_it_is)
{
    char want[128], given[140], *dir;

    (void)snprintf(want, sizeof want, "%s/state", top);
    (void)snprintf(given, sizeof given, "%s//", want);
    ck_assert_int_eq(paths_state_dir(given, "/nowhere", &dir), 0);
    ck_assert_str_eq(dir, want);
    free(dir);
    ck_assert_int_eq(paths_state_dir("relative", top, &dir), -EINVAL);
    ck_assert_ptr_null(dir);
}
END_TEST

START_TEST(a_dir_open_to_others_is_refused)
{
    char *dir;

    ck_assert_int_eq(chmod(top, 0777), 0);
    ck_assert_int_eq(paths_state_dir(top, NULL, &dir), -EPERM);
    ck_assert_str_eq(dir, top);
    free(dir);
}
END_TEST

START_TEST(a_file_in_the_way_is_told)
{
    char path[128], *dir;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/state", top);
    file = fopen(path, "w");
    (void)fclose(file);
    ck_assert_int_eq(paths_state_dir(path, NULL, &dir), -ENOTDIR);
    free(dir);
}
END_TEST

START_TEST(a_program_is_found_beside_us)
{
    char *dir = paths_exe_dir(), *path = paths_program("test_paths");

    ck_assert_ptr_nonnull(dir);
    ck_assert_ptr_nonnull(path);
    ck_assert_int_eq(strncmp(path, dir, strlen(dir)), 0);
    ck_assert_ptr_null(paths_program("no-such-program"));
    free(dir);
    free(path);
}
END_TEST

/* Runs sh -c script with our pipe's end as its stdout; returns its exit status and what it
 * wrote. */
static int
run_script(const char *script, char *ret_text, size_t len)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL},
               *envp[] = {"ONLY=this", "PATH=/bin", NULL};
    struct spawn spawn = {.argv = argv,
                          .envp = envp,
                          .dir = "/",
                          .stdin_fd = -1,
                          .stderr_fd = -1,
                          .new_group = true};
    int fds[2], pidfd, status;
    size_t at = 0;
    ssize_t n;
    pid_t pid;

    ck_assert_int_eq(pipe(fds), 0);
    spawn.stdout_fd = fds[1];
    ck_assert_int_eq(spawn_start(&spawn, &pid, &pidfd), 0);
    ck_assert_int_eq(getpgid(pid), pid);
    (void)close(fds[1]);
    while ((n = read(fds[0], ret_text + at, len - 1 - at)) > 0)
        at += (size_t)n;
    ret_text[at] = '\0';
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    (void)close(fds[0]);
    (void)close(pidfd);
    return WEXITSTATUS(status);
}

START_TEST(a_child_gets_what_it_was_given_and_no_more)
{
    char text[256];

    ck_assert_int_eq(run_script("echo $ONLY $HOME; pwd; cat; ls /proc/self/fd | wc -l; exit 3",
                                text, sizeof text),
                     3);
    /* 0, 1, 2 and the directory that ls has open */
    ck_assert_str_eq(text, "this\n/\n4\n");
}
END_TEST

START_TEST(a_child_that_cannot_start_is_told)
{
    const char *argv[] = {"/no/such/program", NULL};
    struct spawn spawn = {.argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    int pidfd;
    pid_t pid;

    ck_assert_int_eq(spawn_start(&spawn, &pid, &pidfd), -ENOENT);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, state_dir_is_made_private);
    tcase_add_loop_test(tests, home_is_the_users, 0, 4);
    tcase_add_test(tests, override_is_taken_as_it_is);
    tcase_add_test(tests, a_dir_open_to_others_is_refused);
    tcase_add_test(tests, a_file_in_the_way_is_told);
    tcase_add_test(tests, a_program_is_found_beside_us);
    tcase_add_test(tests, a_child_gets_what_it_was_given_and_no_more);
    tcase_add_test(tests, a_child_that_cannot_start_is_told);
}

int
main(void)
{
    return suite_run("paths", add);
}
