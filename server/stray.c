/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/stray.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/atomic.h"
#include "lib/buf.h"
#include "server/mark.h"
#include "server/reviewer_internal.h"

#define MAX_CHILDREN ((size_t)1 << 20) /* bytes of their numbers in decimal */

/* Numbers, each with a space after it. */
static int
read_children(struct buf *ret)
{
    return atomic_read("/proc/thread-self/children", ret);
}

bool
strays_are_ours(void)
{
    AUTO_BUF struct buf children = BUF_INIT(MAX_CHILDREN);

    return getpid() != 1 && read_children(&children) == 0 && strlen(buf_str(&children)) == 0;
}

static bool
is_reviewer(const struct reviewers *reviewers, pid_t pid)
{
    const struct reviewer *reviewer = reviewers->first;

    while (reviewer && reviewer->pid != pid)
        reviewer = reviewer->next;
    return reviewer != NULL;
}

/* One that shows no mark may have thrown it away. One that shows nothing may be just becoming
 * another program: it gets the benefit of the doubt as long as there is a reviewer. */
static bool
belongs_to_living(const struct reviewers *reviewers, pid_t pid)
{
    for (const struct reviewer *reviewer = reviewers->first; reviewer;
         reviewer = reviewer->next) {
        if (mark_find(pid, reviewer->mark, reviewer->agent_id) != 0)
            return true;
    }
    return false;
}

size_t
strays_end(const struct reviewers *reviewers, bool (*is_ours)(const void *arg, pid_t pid),
           const void *arg)
{
    AUTO_BUF struct buf children = BUF_INIT(MAX_CHILDREN);
    char *at = read_children(&children) == 0 ? children.data : NULL;
    size_t count = 0;

    while (at && *at >= '0' && *at <= '9') {
        pid_t pid = (pid_t)strtol(at, &at, 10);
        at += *at == ' ' ? 1 : 0;
        if (is_reviewer(reviewers, pid) || is_ours(arg, pid) ||
            belongs_to_living(reviewers, pid))
            continue;
        count += kill(pid, SIGKILL) == 0 ? 1 : 0;
    }
    return count;
}
