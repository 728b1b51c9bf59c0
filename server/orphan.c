/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/orphan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/buf.h"
#include "lib/text.h"
#include "server/log.h"
#include "server/util.h"

#define MAX_ENVIRON ((size_t)256 << 10)

/* Whether the entry is NAME=VALUE. */
static bool
is_entry(const char *entry, size_t len, const char *name, const char *value)
{
    size_t name_len = strlen(name);

    return value[0] && len == name_len + strlen(value) && memcmp(entry, name, name_len) == 0 &&
           memcmp(entry + name_len, value, len - name_len) == 0;
}

/* Whether the process carries the launch's mark: its environment names a reviewer's child even
 * when the leader is gone and the group's number could be somebody else's. */
static bool
belongs_to(pid_t pid, const struct launch *launch)
{
    AUTO_BUF struct buf env = BUF_INIT(MAX_ENVIRON);
    char path[48];
    ssize_t n = 1;

    (void)snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && n > 0 && buf_reserve(&env, 4096)) {
        n = read(fd, env.data + env.len, 4096);
        if (n > 0)
            env.len += (size_t)n;
    }
    for (size_t at = 0; at < env.len; at += strnlen(env.data + at, env.len - at) + 1) {
        size_t len = strnlen(env.data + at, env.len - at);
        if (is_entry(env.data + at, len, "KCAP_REVIEWER=", launch->mark) ||
            is_entry(env.data + at, len, "KCAP_FLOW_AGENT_ID=", launch->agent_id))
            return true;
    }
    return false;
}

/* The agent's processes outside the leader's group, and those of a group whose leader is gone.
 */
static void
kill_agent(const struct launch *launch)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;

    while (proc && (entry = readdir(proc)) != NULL) {
        int64_t pid;
        if (text_to_int(entry->d_name, 2, INT32_MAX, &pid) && pid != getpid() &&
            belongs_to((pid_t)pid, launch))
            (void)kill((pid_t)pid, SIGKILL);
    }
    if (proc)
        (void)closedir(proc);
}

static int
end_orphan(void *arg, const struct launch *launch)
{
    const char *boot_id = arg;
    pid_t pid = (pid_t)launch->pid;

    if (strcmp(launch->boot_id, boot_id) != 0)
        return 0;
    if (pid > 1 && util_start_ticks(pid) == launch->start_ticks) {
        log_line("ending process %ld, the reviewer of a kcap-flowd that was killed", (long)pid);
        (void)kill(-pid, SIGKILL);
    }
    kill_agent(launch);
    return 0;
}

int
orphans_end(struct engine *engine)
{
    char boot_id[40];
    int r = store_begin(engine->store);

    util_boot_id(boot_id);
    if (r == 0)
        r = store_each_launch(engine->store, end_orphan, boot_id);
    if (r == 0)
        r = engine_recover(engine);
    if (r == 0)
        r = store_remove_launches(engine->store);
    if (r == 0)
        r = store_commit(engine->store);
    else
        store_rollback(engine->store);
    engine_drop_effects(engine, 0); /* nobody waits yet */
    return r;
}
