/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's side: which directory, and when it goes. */
#include "config.h"

#include "server/workspace.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/paths.h"
#include "lib/spawn.h"
#include "server/definition.h"
#include "server/engine.h"
#include "server/log.h"
#include "server/util.h"

#define MAX_SWEPT 64 /* directories in one go */

/* Whether the directory or one above it is a git repository's. */
static bool
is_in_repository(const char *cwd)
{
    AUTO_FREE char *dir = strdup(cwd);

    while (dir && dir[0]) {
        AUTO_FREE char *git = paths_join(dir, ".git");
        char *slash = strrchr(dir, '/');
        if (git && access(git, F_OK) == 0)
            return true;
        if (!slash)
            break;
        *slash = '\0';
    }
    return false;
}

static int
set_text(char **place, const char *text)
{
    free(*place);
    *place = text ? strdup(text) : NULL;
    return !text || *place ? 0 : -ENOMEM;
}

int
workspace_settle(const char *work_dir, const char *cwd, struct participant *who)
{
    const char *applied = who->workspace, *reason = NULL;
    AUTO_FREE char *dir = NULL;
    int r;

    if (strcmp(who->workspace, WORKSPACE_BORROWED) == 0) {
        dir = strdup(cwd);
    } else {
        dir = paths_join(work_dir, who->agent_id);
        if (strcmp(who->workspace, WORKSPACE_WORKTREE) == 0 && !is_in_repository(cwd)) {
            applied = WORKSPACE_FALLBACK;
            reason = "not_a_repository";
        }
        r = dir ? paths_make_dir(dir) : -ENOMEM;
        if (r < 0)
            return r;
    }
    if (!dir || set_text(&who->applied_workspace, applied) < 0 ||
        set_text(&who->fallback_reason, reason) < 0 || set_text(&who->dir, dir) < 0)
        return -ENOMEM;
    return strcmp(applied, WORKSPACE_WORKTREE) == 0;
}

/* ---- the end ---- */

static bool
is_needed(struct store *store, const char *agent_id)
{
    struct participant who = {0};
    struct flow flow = {0};
    bool needed = true; /* also when nobody can tell */
    int r = store_get_participant_by_agent(store, agent_id, &who);

    if (r == 0)
        r = store_get_flow(store, who.flow_id, &flow);
    if (r == -ENOENT)
        needed = false;
    else if (r == 0)
        needed = strcmp(flow.status, FLOW_CLOSED) != 0 && strcmp(flow.status, FLOW_FAILED) != 0;
    flow_fini(&flow);
    participant_fini(&who);
    return needed;
}

static pid_t
start_remover(const char *const *argv)
{
    struct spawn spawn = {.argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    pid_t pid = 0;
    int r = argv[0] ? spawn_start(&spawn, &pid, NULL) : -ENOENT;

    if (r < 0)
        log_line("workspaces cannot be removed: %s", strerror(-r));
    return r < 0 ? 0 : pid;
}

pid_t
workspace_sweep(const char *work_dir, struct store *store,
                bool (*is_in_use)(const void *arg, const char *agent_id), const void *arg)
{
    AUTO_FREE char *self = paths_program("kcap-flowd");
    char *paths[MAX_SWEPT];
    const char *argv[2 + MAX_SWEPT + 1] = {self, WORKSPACE_REMOVE_WORD};
    size_t count = 0;
    DIR *dir = opendir(work_dir);
    const struct dirent *entry;
    pid_t pid = 0;

    while (dir && count < MAX_SWEPT && (entry = readdir(dir)) != NULL) {
        if (strlen(entry->d_name) != UTIL_ID_LEN || is_in_use(arg, entry->d_name) ||
            is_needed(store, entry->d_name))
            continue;
        paths[count] = paths_join(work_dir, entry->d_name);
        if (paths[count])
            argv[2 + count] = paths[count];
        count += paths[count] ? 1 : 0;
    }
    if (dir)
        (void)closedir(dir);
    if (count > 0)
        pid = start_remover(argv);
    while (count > 0)
        free(paths[--count]);
    return pid;
}
