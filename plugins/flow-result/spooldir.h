/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of kept results: names, and keeping it small. */
#ifndef KCAP_FLOW_RESULT_SPOOLDIR_H
#define KCAP_FLOW_RESULT_SPOOLDIR_H

#include <kcap/plugin.h>
#include <stddef.h>

#include "lib/buf.h"

#define SPOOL_HASH_LEN 32

/* Writes SPOOL_HASH_LEN hexadecimal digits for a text of any length. */
void spooldir_hash(const char *text, char *ret);

/* The agent's entries, each name followed by a newline. */
void spooldir_list(const char *dir, const char *agent_id, struct buf *ret_names);

/* Removes what a crash left and what is older than a month; then, while there is too much,
 * the oldest. Entries of the agent itself, and those somebody holds, stay. Each removed result
 * is logged. Returns 0, or -EDQUOT when there is no room for len bytes more. */
int spooldir_make_room(const struct kcap_host *host, const char *dir, const char *agent_id,
                       size_t len);

#endif
