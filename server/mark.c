/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/mark.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/atomic.h"
#include "lib/buf.h"

#define MAX_ENVIRON ((size_t)256 << 10)

/* Whether the entry is NAME=VALUE. */
static bool
is_entry(const char *entry, size_t len, const char *name, const char *value)
{
    size_t name_len = strlen(name);

    return value[0] && len == name_len + strlen(value) && memcmp(entry, name, name_len) == 0 &&
           memcmp(entry + name_len, value, len - name_len) == 0;
}

int
mark_find(pid_t pid, const char *mark, const char *agent_id)
{
    AUTO_BUF struct buf env = BUF_INIT(MAX_ENVIRON);
    char path[48];

    (void)snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
    (void)atomic_read(path, &env); /* as much of it as there is */
    for (size_t at = 0; at < env.len; at += strnlen(env.data + at, env.len - at) + 1) {
        size_t len = strnlen(env.data + at, env.len - at);
        if (is_entry(env.data + at, len, "KCAP_REVIEWER=", mark) ||
            is_entry(env.data + at, len, "KCAP_FLOW_AGENT_ID=", agent_id))
            return 1;
    }
    return env.len > 0 ? 0 : -ENODATA;
}
