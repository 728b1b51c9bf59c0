/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/orphan.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "lib/text.h"
#include "server/log.h"
#include "server/mark.h"
#include "server/util.h"

/* The launch's processes carry its mark even when their leader is gone and the group's number
 * could be somebody else's. */
static void
kill_agent(const struct launch *launch)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;

    while (proc && (entry = readdir(proc)) != NULL) {
        int64_t pid;
        if (text_to_int(entry->d_name, 2, INT32_MAX, &pid) && pid != getpid() &&
            mark_find((pid_t)pid, launch->mark, launch->agent_id) > 0)
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
