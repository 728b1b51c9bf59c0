/* SPDX-License-Identifier: Apache-2.0 */
/* Asking Codex itself: one value it does not take makes it refuse its whole config. */
#include "config.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch/codex-error.h"
#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/paths.h"
#include "run.h"
#include "setup.h"

#define LIMIT_MS   15000
#define MAX_OUTPUT ((size_t)8 << 20)
#define MAX_ERRORS ((size_t)64 << 10)

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

static enum codex_answer
run_codex(struct setup *setup, const char *home, struct buf *why)
{
    static const char *const argv[] = {"codex", "mcp", "list", "--json", NULL};
    AUTO_BUF struct buf output = BUF_INIT(MAX_OUTPUT), errors = BUF_INIT(MAX_ERRORS);
    const char *path = setup->host->env(setup->host, "PATH");
    char home_variable[4200], codex_variable[4200], path_variable[8192];
    const char *envp[] = {home_variable, codex_variable, path_variable, NULL};
    struct run run = {.argv = argv, .envp = envp, .dir = home, .limit_ms = LIMIT_MS};
    int status;

    (void)snprintf(home_variable, sizeof home_variable, "HOME=%s", home);
    (void)snprintf(codex_variable, sizeof codex_variable, "CODEX_HOME=%s", home);
    (void)snprintf(path_variable, sizeof path_variable, "PATH=%s",
                   path ? path : "/usr/bin:/bin");
    switch (run_program(setup->host, setup->call, &run, &output, &errors, &status)) {
    case RUN_EXITED:
        codex_error_add(why, buf_str(&errors), errors.len);
        return status == 0 ? CODEX_ACCEPTS : status == 1 ? CODEX_REFUSES : CODEX_SILENT;
    case RUN_NOT_STARTED:
        return CODEX_ABSENT;
    case RUN_LEFT:
        return CODEX_LEFT;
    case RUN_KILLED:
    case RUN_TIMED_OUT:
    case RUN_OVERFLOWED:
        break;
    }
    return CODEX_SILENT;
}

enum codex_answer
codex_check(struct setup *setup, const struct buf *text, struct buf *why)
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
        answer = run_codex(setup, home, why);
    remove_dir(home);
    if (answer == CODEX_SILENT)
        setup_say(setup, "Codex (codex mcp list) did not say whether it accepts the file.");
    return answer;
}
