/* SPDX-License-Identifier: Apache-2.0 */
/* flows.so as shipped: what is in the journal, and what if it is torn, long, locked or not
 * there. */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flows-rig.h"

static void
journal_file(char *path, size_t size)
{
    char dir_path[128];
    struct dirent *entry;
    DIR *dir;
    int n = 0;

    (void)snprintf(dir_path, sizeof dir_path, "%s/journal", rig_state_dir);
    dir = opendir(dir_path);
    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        n++;
        (void)snprintf(path, size, "%s/%.100s", dir_path, entry->d_name);
    }
    (void)closedir(dir);
    ck_assert_int_eq(n, 1);
}

static void
append(const char *path, const char *text, int n)
{
    FILE *file = fopen(path, "a");

    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < n; i++)
        (void)fprintf(file, "%s", text);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(torn_line_harms_nothing)
{
    struct fake_call call = {.window_ms = 1000};
    const char *text;
    char path[256];
    struct stat st;

    fake_host_script(rig.fake, rig_running, 3);
    rig_call(START, START_ARGS, &call);
    journal_file(path, sizeof path);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0600);
    append(path,
           "not json\n{\"event\":\"newer\",\"at_ms\":1}\n{\"event\":\"closed\",\"run\":\"u", 1);
    rig_restart();
    text = rig_ask(STATUS, "{}", rig_finished, 2, false);
    rig_has(text, "flow_run_id: u1\n");
    (void)rig_ask(CLOSE, "{\"flow_run_id\":\"u1\"}",
                  &(struct fake_reply){.body = "{\"status\":\"closed\"}"}, 1, false);
    rig_restart();
    text = rig_ask(STATUS, "{}", rig_finished, 2, true);
    rig_lacks(text, "u1"); /* the event behind the torn line was not glued to it */
    fake_call_fini(&call);
}
END_TEST

/* Another process keeps the journal locked: it is waited for, then done without, and a call
 * that is given up or out of time meanwhile sends nothing. */
START_TEST(locked_journal_holds_nobody_up)
{
    const struct fake_reply replies[] = {
        {"POST", "*/rounds", .body = "{\"flow_run_id\":\"u1\",\"status\":\"clean\"}"},
        {"POST", "*", .body = ANSWER_RUNNING},
        {"GET", RUN_POLL, .body = STATUS_FINDINGS},
        {"GET", SESSION_LIST, .status = 404},
    };
    struct fake_call call = {.cancel_at_wait = _i == 1 ? 3 : 0, .window_ms = _i == 2 ? 500 : 0};
    const char *log;
    char path[256];
    int fd;

    (void)rig_ask(ROUND, "{\"flow_run_id\":\"u0\",\"context\":\"c\"}",
                  &(struct fake_reply){.body = "{\"flow_run_id\":\"u0\",\"status\":\"clean\"}"},
                  1, false);
    journal_file(path, sizeof path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    fake_host_script(rig.fake, replies, 4);
    rig_call(START, START_ARGS, &call);
    ck_assert_uint_eq(fake_host_count(rig.fake, "POST", "*/start/v2"), _i == 0 ? 1 : 0);
    ck_assert(call.has_result == (_i != 1));
    if (_i == 0) {
        ck_assert_int_le(call.took_ms, 10000);
        rig_has(call.text, "| a.c:1: bad\n");
        log = strstr(fake_host_log(rig.fake), "another process keeps it locked");
        ck_assert_ptr_nonnull(log);
        ck_assert_ptr_null(strstr(log + 1, "another process keeps it locked"));
        (void)close(fd);
        rig_has(rig_ask(STATUS, "{}", replies, 4, false), "flow_run_id: u1\n");
    } else {
        if (call.has_result)
            rig_has(call.text, "before anything could be started");
        (void)close(fd);
    }
    fake_call_fini(&call);
}
END_TEST

START_TEST(long_journal_is_rewritten)
{
    struct fake_call call = {.window_ms = 1000};
    char path[256];
    struct stat st;

    fake_host_script(rig.fake, rig_running, 3);
    rig_call(START, START_ARGS, &call);
    journal_file(path, sizeof path);
    append(path,
           "{\"event\":\"run\",\"at_ms\":1,\"run\":\"old\",\"server\":\"http://127.0.0.1:1\"}\n"
           "{\"event\":\"shown\",\"at_ms\":2,\"run\":\"old\",\"ended\":true}\n",
           12000);
    (void)rig_ask(ROUND, "{\"flow_run_id\":\"u1\",\"context\":\"c\"}",
                  &(struct fake_reply){.body = "{\"flow_run_id\":\"u1\",\"round_number\":2,"
                                               "\"status\":\"clean\"}"},
                  1, false);
    journal_file(path, sizeof path);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_lt((int)st.st_size, 1000);
    ck_assert_int_eq(st.st_mode & 07777, 0600);
    rig_restart();
    rig_has(rig_ask(STATUS, "{}", rig_finished, 2, false), "flow_run_id: u1\n");
    fake_call_fini(&call);
}
END_TEST

START_TEST(without_a_journal_it_goes_on)
{
    struct fake_host *old = rig.fake;
    const char *text;

    fake_host_stop(old);
    rig.plugin->fini(rig.ctx);
    fake_host_free(old);
    rig.fake = fake_host_new();
    fake_host_setenv(rig.fake, "KCAP_STATE_DIR", "/proc/none");
    fake_host_setenv(rig.fake, "KCAP_CONFIG_DIR", rig_config_dir);
    ck_assert_int_eq(rig.plugin->init(fake_host_table(rig.fake), &rig.ctx), 0);
    rig_has(fake_host_log(rig.fake), "/proc/none");

    text = rig_ask(STATUS, "{}", rig_finished, 2, true);
    rig_has(text, "not known: what earlier processes of this session started");
    (void)rig_ask(START, START_ARGS,
                  (const struct fake_reply[]){{"POST", "*", .body = ANSWER_RUNNING},
                                              {"GET", RUN_POLL, .body = STATUS_FINDINGS}},
                  2, false);
    text = rig_ask(STATUS, "{}", rig_finished, 2, false);
    rig_has(text, "flow_run_id: u1\n");
}
END_TEST

START_TEST(unknown_start_of_another_process_is_told)
{
    const struct fake_reply held[] = {{"POST", "*", .delay_ms = FAKE_NEVER}};
    struct fake_call call = {.window_ms = 1000};

    fake_host_script(rig.fake, held, 1);
    rig_call(START, START_ARGS, &call);
    rig_restart(); /* the post died with its process */
    rig_has(rig_ask(STATUS, "{}", rig_finished, 2, true),
            "has no answer yet that is known here: T\n");
    fake_call_fini(&call);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, rig_setup, rig_teardown);
    tcase_add_test(tests, torn_line_harms_nothing);
    tcase_add_loop_test(tests, locked_journal_holds_nobody_up, 0, 3);
    tcase_add_test(tests, long_journal_is_rewritten);
    tcase_add_test(tests, without_a_journal_it_goes_on);
    tcase_add_test(tests, unknown_start_of_another_process_is_told);
}

int
main(void)
{
    return suite_run("flows-ledger", add);
}
