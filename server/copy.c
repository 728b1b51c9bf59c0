/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/paths.h"
#include "lib/spawn.h"
#include "lib/text.h"
#include "server/util.h"
#include "server/workspace.h"

#define LIMIT_SEC 120
#define MAX_FAULT 4096

void
copy_init(struct copy *copy)
{
    *copy = (struct copy){.errors_fd = -1, .fault = BUF_INIT(MAX_FAULT)};
}

void
copy_fini(struct copy *copy)
{
    if (copy->state == COPY_RUNS)
        (void)kill(-copy->pid, SIGKILL);
    if (copy->errors_fd >= 0)
        (void)close(copy->errors_fd);
    buf_fini(&copy->fault);
    copy_init(copy);
}

int
copy_start(struct copy *copy, const char *source, const char *dir)
{
    AUTO_FREE char *self = paths_program("kcap-flowd");
    const char *const argv[] = {self, WORKSPACE_COPY_WORD, source, dir, NULL};
    AUTO_CLOSE int theirs = -1;
    struct spawn spawn = {.argv = argv, .stdin_fd = -1, .stdout_fd = -1, .new_group = true};
    int ends[2], r;

    if (!self)
        return -ENOENT;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    copy->errors_fd = ends[0];
    spawn.stderr_fd = theirs = ends[1];
    r = spawn_start(&spawn, &copy->pid, NULL);
    if (r < 0)
        return r;
    copy->state = COPY_RUNS;
    copy->until_ns = util_now_ns() + LIMIT_SEC * UTIL_SEC_NS;
    return 0;
}

void
copy_ended(struct copy *copy, int status)
{
    char space[MAX_FAULT / 8];
    ssize_t n;

    copy->state = status == 0 ? COPY_READY : COPY_FAILED;
    if (status == 0)
        return;
    buf_adds(&copy->fault, "the checkout could not be copied");
    n = read(copy->errors_fd, space, sizeof space);
    if (n > 0) {
        buf_adds(&copy->fault, ": ");
        text_add_line(&copy->fault, space, (size_t)n);
    }
}

void
copy_tick(struct copy *copy, int64_t now_ns)
{
    if (copy->state != COPY_RUNS || copy->until_ns > now_ns)
        return;
    (void)kill(-copy->pid, SIGKILL);
    copy->until_ns = UTIL_NEVER;
}
