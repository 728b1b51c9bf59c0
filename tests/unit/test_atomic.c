/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/atomic.h"
#include "lib/paths.h"
#include "tests/unit/suite.h"

static char top[64], path[128], link_path[128];

static void
begin(void)
{
    (void)snprintf(top, sizeof top, "/tmp/kcap-test-atomic.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(top));
    (void)snprintf(path, sizeof path, "%s/file", top);
    (void)snprintf(link_path, sizeof link_path, "%s/link", top);
}

static void
end(void)
{
    char command[128];

    (void)snprintf(command, sizeof command, "rm -rf '%s'", top);
    ck_assert_int_eq(system(command), 0);
}

static void
expect(const char *of, const char *content, mode_t mode)
{
    struct buf buf = BUF_INIT(1000);
    struct stat st;

    ck_assert_int_eq(atomic_read(of, &buf), 0);
    ck_assert_str_eq(buf_str(&buf), content);
    ck_assert_int_eq(stat(of, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, mode);
    buf_fini(&buf);
}

static int
count_files(void)
{
    DIR *dir = opendir(top);
    int n = 0;

    ck_assert_ptr_nonnull(dir);
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n - 2;
}

START_TEST(a_new_file_has_its_mode_whatever_the_mask)
{
    (void)umask(0);
    ck_assert_int_eq(atomic_write(path, "one", 3, 0600), 0);
    expect(path, "one", 0600);
    (void)umask(0777);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(atomic_write(path, "two", 3, 0640), 0);
    expect(path, "two", 0640);
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

START_TEST(an_old_file_keeps_mode_and_owner)
{
    struct stat before, after;

    ck_assert_int_eq(atomic_write(path, "one", 3, 0600), 0);
    ck_assert_int_eq(chmod(path, 0644), 0);
    if (geteuid() == 0)
        ck_assert_int_eq(chown(path, 1234, 4321), 0);
    ck_assert_int_eq(stat(path, &before), 0);
    ck_assert_int_eq(atomic_write(path, "", 0, 0600), 0);
    expect(path, "", 0644);
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_uint_eq(after.st_uid, before.st_uid);
    ck_assert_uint_eq(after.st_gid, before.st_gid);
    ck_assert_uint_ne(after.st_ino, before.st_ino);
}
END_TEST

START_TEST(a_link_stays_and_its_target_is_replaced)
{
    struct stat st;

    ck_assert_int_eq(atomic_write(path, "one", 3, 0600), 0);
    ck_assert_int_eq(symlink("file", link_path), 0);
    ck_assert_int_eq(atomic_write(link_path, "two", 3, 0644), 0);
    expect(path, "two", 0600);
    ck_assert_int_eq(lstat(link_path, &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    ck_assert_int_eq(unlink(path), 0); /* a link to nothing says so instead of being replaced */
    ck_assert_int_eq(atomic_write(link_path, "x", 1, 0600), -ENOENT);
    ck_assert_int_eq(lstat(link_path, &st), 0);
}
END_TEST

/* A disk that fills up in the middle: the old content stays, and nothing is left behind. */
START_TEST(a_failed_write_changes_nothing)
{
    static char much[100000];
    struct rlimit old, small = {.rlim_cur = 5000, .rlim_max = RLIM_INFINITY};

    ck_assert_int_eq(atomic_write(path, "old", 3, 0600), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    (void)signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    ck_assert_int_eq(atomic_write(path, much, sizeof much, 0600), -EFBIG);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    expect(path, "old", 0600);
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

START_TEST(a_file_somebody_else_changed_is_left)
{
    struct buf expected = BUF_INIT(100);

    ck_assert_int_eq(atomic_write_if(path, &expected, "one", 3, 0600),
                     0); /* as expected: none */
    ck_assert_int_eq(atomic_write_if(path, &expected, "two", 3, 0600), -ESTALE);
    expect(path, "one", 0600);
    buf_adds(&expected, "one");
    ck_assert_int_eq(atomic_write_if(path, &expected, "two", 3, 0600), 0);
    ck_assert_int_eq(atomic_write_if(path, &expected, "three", 5, 0600), -ESTALE);
    expect(path, "two", 0600);
    buf_fini(&expected);
}
END_TEST

START_TEST(faults_are_told)
{
    struct buf buf = BUF_INIT(3);
    char below[160];

    (void)snprintf(below, sizeof below, "%s/none/file", top);
    ck_assert_int_eq(atomic_write(below, "x", 1, 0600), -ENOENT);
    ck_assert_int_eq(atomic_read(below, &buf), -ENOENT);
    ck_assert_int_eq(atomic_read(top, &buf), -EINVAL);
    ck_assert_int_eq(atomic_write(path, "four", 4, 0600), 0);
    ck_assert_int_eq(atomic_read(path, &buf), -EFBIG);
    buf_fini(&buf);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0); /* does not hang */
    buf = BUF_INIT(3);
    ck_assert_int_eq(atomic_read(path, &buf), -EINVAL);
    buf_fini(&buf);
}
END_TEST

START_TEST(leftovers_are_known_by_name)
{
    ck_assert(atomic_is_leftover("a.json.kcap-tmp-Ab12cD"));
    ck_assert(!atomic_is_leftover("a.json"));
    ck_assert(!atomic_is_leftover(".kcap-tmp-Ab12cD"));
    ck_assert(!atomic_is_leftover("a.json.kcap-tmp-Ab12cDe"));
}
END_TEST

START_TEST(config_dir_is_told_not_made)
{
    char want[128], *dir = paths_config_dir(NULL, top);

    (void)snprintf(want, sizeof want, "%s/.config/kcap", top);
    ck_assert_str_eq(dir, want);
    ck_assert_int_ne(access(dir, F_OK), 0);
    free(dir);
    dir = paths_config_dir("/a/b//", top);
    ck_assert_str_eq(dir, "/a/b");
    free(dir);
    dir = paths_config_dir("relative", top);
    ck_assert_str_eq(dir, want);
    free(dir);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_new_file_has_its_mode_whatever_the_mask);
    tcase_add_test(tests, an_old_file_keeps_mode_and_owner);
    tcase_add_test(tests, a_link_stays_and_its_target_is_replaced);
    tcase_add_test(tests, a_failed_write_changes_nothing);
    tcase_add_test(tests, a_file_somebody_else_changed_is_left);
    tcase_add_test(tests, faults_are_told);
    tcase_add_test(tests, leftovers_are_known_by_name);
    tcase_add_test(tests, config_dir_is_told_not_made);
}

int
main(void)
{
    return suite_run("atomic", add);
}
