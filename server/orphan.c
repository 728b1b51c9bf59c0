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

/* Whether the process was given that agent's id: its environment names a reviewer's child even
 * when the leader is gone and the group's number could be somebody else's. */
static bool
belongs_to_agent(pid_t pid, const char *agent_id)
{
    static const char name[] = "KCAP_FLOW_AGENT_ID=";
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
        if (len == sizeof name - 1 + strlen(agent_id) &&
            memcmp(env.data + at, name, sizeof name - 1) == 0 &&
            memcmp(env.data + at + sizeof name - 1, agent_id, strlen(agent_id)) == 0)
            return true;
    }
    return false;
}

/* The agent's processes outside the leader's group, and those of a group whose leader is gone.
 */
static void
kill_agent(const char *agent_id)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;

    while (proc && (entry = readdir(proc)) != NULL) {
        int64_t pid;
        if (text_to_int(entry->d_name, 2, INT32_MAX, &pid) && pid != getpid() &&
            belongs_to_agent((pid_t)pid, agent_id))
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
        log_line("round %s: ending its reviewer, process %ld, of a kcap-flowd that was killed",
                 launch->round_id, (long)pid);
        (void)kill(-pid, SIGKILL);
    }
    kill_agent(launch->agent_id);
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
