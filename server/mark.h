/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment of a reviewer's processes says about whose they are. */
#ifndef KCAP_SERVER_MARK_H
#define KCAP_SERVER_MARK_H

#include <sys/types.h>

/* Whether the process carries the launch's mark (KCAP_REVIEWER) or its agent's id
 * (KCAP_FLOW_AGENT_ID): 1 or 0; -ENODATA when it shows no environment: it has none, has ended,
 * or is just becoming another program. */
int mark_find(pid_t pid, const char *mark, const char *agent_id);

#endif
