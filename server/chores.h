/* SPDX-License-Identifier: Apache-2.0 */
/* What is done from time to time: runs that are idle are ended, old ones forgotten, directories
 * that nobody needs any more removed. */
#ifndef KCAP_SERVER_CHORES_H
#define KCAP_SERVER_CHORES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/turn.h"

struct chores {
    struct turn *turn;
    int64_t forget_at_ns, idle_at_ns; /* the next look; all 0: at once */
    pid_t remover;                    /* of directories; 0: none runs */
};

/* Does what is due. */
void chores_run(struct chores *chores);
int64_t chores_deadline_ns(const struct chores *chores);
/* A child has ended; false when it is none of the chores'. */
bool chores_child_ended(struct chores *chores, pid_t pid, int status);

#endif
