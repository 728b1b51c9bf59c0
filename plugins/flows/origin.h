/* SPDX-License-Identifier: Apache-2.0 */
/* Where a start comes from, in words the server can match with other machines. */
#ifndef KCAP_FLOWS_ORIGIN_H
#define KCAP_FLOWS_ORIGIN_H

#include <kcap/plugin.h>

#include "lib/buf.h"

/* Adds requester_machine_id to an object under way. The id is in machine.json of the
 * configuration directory and is made here when there is none: of two at once one is kept.
 * Without one nothing is added. */
void origin_add_machine(struct buf *to, const struct kcap_host *host);

/* That id, NULL when there is none (or no memory): never made here. Free it. */
char *origin_machine(const struct kcap_host *host);

/* Adds repo_owner and repo_name by the remote "origin" of the repository around dir; nothing
 * when there is none. Returns 0 or KCAP_E_NOMEM. */
int origin_add_repository(struct buf *to, const char *dir);

/* "owner/.../name" by that remote, NULL when there is none. Free it. Returns 0 or KCAP_E_NOMEM.
 */
int origin_identity(const char *dir, char **ret);

#endif
