/* SPDX-License-Identifier: Apache-2.0 */
/* The registration of our server in a parsed config.toml: whose it is, and in what shape. */
#ifndef KCAP_CODEX_SETUP_ENTRY_H
#define KCAP_CODEX_SETUP_ENTRY_H

#include "toml.h"

#define ENTRY_NAME    "kcap-flows"
#define ENTRY_TIMEOUT 600 /* seconds; Codex cuts a call at 300 unless told otherwise */

enum entry_owner {
    ENTRY_ABSENT,
    ENTRY_OURS,    /* kcap-host --plugin flows */
    ENTRY_KCAP,    /* exactly what kcap writes: kcap mcp flows, and perhaps our timeout */
    ENTRY_FOREIGN, /* anything else of that name: never touched */
    ENTRY_BLOCKED, /* mcp_servers or the entry is no table, so nothing can be put there */
};

struct entry {
    enum entry_owner owner;
    struct toml_value *servers; /* mcp_servers, or NULL */
    struct toml_value *table;   /* the entry, or NULL */
    struct toml_value *timeout; /* its tool_timeout_sec, or NULL */
};

void entry_find(const struct toml_value *root, struct entry *ret);

/* Whether table runs these words: the command's last path component, then the arguments'
 * beginning. */
bool entry_runs(const struct toml_value *table, const char *program, const char *const *args);

/* Whether two configs are the same but for our entry; an mcp_servers table that is missing
 * equals an empty one. */
bool entry_only_difference(const struct toml_value *a, const struct toml_value *b);

#endif
