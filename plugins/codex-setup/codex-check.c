/* SPDX-License-Identifier: Apache-2.0 */
/* Asking Codex itself: one value it does not take makes it refuse its whole config. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/paths.h"
#include "lib/spawn.h"
#include "setup.h"

#define LIMIT_NS INT64_C(15000000000)

static void
remove_dir(const char *dir)
{
    DIR *stream = opendir(dir);
    struct dirent *entry;

    while (stream && (entry = readdir(stream))) {
        AUTO_FREE char *path = paths_join(dir, entry->d_name);
        if (path && entry->d_type != DT_DIR)
            (void)unlink(path);
        else if (path && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_dir(path);
    }
    if (stream)
        (void)closedir(stream);
    (void)rmdir(dir);
}

/* Waits for the child through the host; a child that takes too long, or whose caller left, is
 * ended. Returns what ended the waiting, KCAP_WAIT_*. */
static int32_t
await(struct setup *setup, pid_t pid, int pidfd, int *ret_status)
{
    struct kcap_fd fd = {.fd = pidfd, .events = KCAP_FD_READ};
    int64_t until_ns = setup->host->now_ns(setup->host) + LIMIT_NS;
    int32_t why = setup->host->wait(setup->call, KCAP_SEQ_NONE, &fd, 1, until_ns);
    int status = 0;

    if (why != KCAP_WAIT_FD)
        (void)kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return why;
}

static enum codex_answer
run_codex(struct setup *setup, const char *home)
{
    const char *argv[] = {"codex", "mcp", "list", "--json", NULL};
    const char *path = setup->host->env(setup->host, "PATH");
    char home_variable[4200], codex_variable[4200], path_variable[8192];
    const char *envp[] = {home_variable, codex_variable, path_variable, NULL};
    struct spawn spawn = {.argv = argv,
                          .envp = envp,
                          .dir = home,
                          .stdin_fd = -1,
                          .stdout_fd = -1,
                          .stderr_fd = -1,
                          .new_group = true};
    AUTO_CLOSE int pidfd = -1;
    pid_t pid;
    int32_t why;
    int status;

    (void)snprintf(home_variable, sizeof home_variable, "HOME=%s", home);
    (void)snprintf(codex_variable, sizeof codex_variable, "CODEX_HOME=%s", home);
    (void)snprintf(path_variable, sizeof path_variable, "PATH=%s",
                   path ? path : "/usr/bin:/bin");
    if (spawn_start(&spawn, &pid, &pidfd) < 0)
        return CODEX_ABSENT;
    why = await(setup, pid, pidfd, &status);
    if (why != KCAP_WAIT_FD)
        return why == KCAP_WAIT_TIMEOUT ? CODEX_SILENT : CODEX_LEFT;
    return status == 0 ? CODEX_ACCEPTS : status == 1 ? CODEX_REFUSES : CODEX_SILENT;
}

enum codex_answer
codex_check(struct setup *setup, const struct buf *text)
{
    const char *tmp = setup->host->env(setup->host, "TMPDIR");
    char home[4096];
    AUTO_FREE char *config = NULL;
    enum codex_answer answer = CODEX_SILENT;

    (void)snprintf(home, sizeof home, "%s/kcap-codex-XXXXXX",
                   tmp && tmp[0] == '/' ? tmp : "/tmp");
    if (!mkdtemp(home))
        return CODEX_ABSENT;
    config = paths_join(home, "config.toml");
    if (config && atomic_write(config, buf_str(text), text->len, 0600) == 0)
        answer = run_codex(setup, home);
    remove_dir(home);
    if (answer == CODEX_SILENT)
        setup_say(setup, "Codex (codex mcp list) did not say whether it accepts the file.");
    return answer;
}
