/* SPDX-License-Identifier: Apache-2.0 */
/* reviewer-launch beside a clock that jumps: a codex that never answers is given up and ended.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/files.h"
#include "tests/unit/suite.h"
#include "lib/auto.h"
#include "lib/paths.h"
#include "tests/support/fake-host.h"

static char dir[64];
static const struct kcap_command *command;
static int32_t status;

static void
run_command(struct kcap_call *call, void *ctx)
{
    const char *const argv[] = {"reviewer-launch", "--vendor",  "codex",      "--dir", dir,
                                "--url",           "http://h/", "--agent-id", "a"};

    status = command->run(ctx, call, sizeof argv / sizeof argv[0], argv);
}

/* The process id that the fake codex left in its file. */
static pid_t
codex_pid(void)
{
    char path[128];
    int pid = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/pid", dir);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%d", &pid), 1);
    (void)fclose(file);
    return pid;
}

static void
launch(struct fake_host *fake, struct fake_call *call)
{
    const struct kcap_plugin *plugin =
        fake_host_load("plugins/codex-setup/codex-setup.so", "kcap_plugin_v1");
    void *ctx = NULL;
    AUTO_FREE char *here = paths_exe_dir();
    char path[256];

    /* alone in its directory, where our programs are looked for; any does here */
    ck_assert_ptr_nonnull(here);
    (void)snprintf(path, sizeof path, "%s/kcap-host", here);
    ck_assert(symlink("/bin/true", path) == 0 || errno == EEXIST);
    (void)snprintf(dir, sizeof dir, "/tmp/kcap-launch-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "#!/bin/sh\necho $$ >%s/pid\nexec tail -f /dev/null\n",
                   dir);
    files_put(dir, "codex", path);
    (void)snprintf(path, sizeof path, "%s/codex", dir);
    ck_assert_int_eq(chmod(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s:/usr/bin:/bin", dir);
    ck_assert_int_eq(setenv("PATH", path, 1), 0);
    for (size_t i = 0; plugin->commands[i]; i++) {
        if (strcmp(plugin->commands[i]->name, "reviewer-launch") == 0)
            command = plugin->commands[i];
    }
    ck_assert_ptr_nonnull(command);
    ck_assert_int_eq(plugin->init(fake_host_table(fake), &ctx), 0);
    fake_host_run(fake, call, run_command, ctx);
}

START_TEST(codex_never_answers)
{
    struct fake_host *fake = fake_host_new();
    struct fake_call call = {.window_ms = 0};
    int64_t begin_ms = fake_host_now_ms(fake);

    launch(fake, &call);
    ck_assert_msg(strstr(fake_host_log(fake), "refused: codex mcp list: no answer in 15 s"),
                  "%s", fake_host_log(fake));
    ck_assert_int_eq(status, 5);
    ck_assert_int_eq(fake_host_now_ms(fake) - begin_ms, 15000);
    ck_assert_int_eq(kill(codex_pid(), 0), -1);
    ck_assert_int_eq(errno, ESRCH);
    fake_call_fini(&call);
    fake_host_free(fake);
    files_remove(dir);
}
END_TEST

static void
add_tests(TCase *tests)
{
    tcase_add_test(tests, codex_never_answers);
}

int
main(void)
{
    return suite_run("reviewer-launch", add_tests);
}
