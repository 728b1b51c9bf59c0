/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long one tool call may block, by client. Every harness ends a call at some limit of its
 * own; the window lies under it by 10 s or 10 %, whichever is more, so that our answer wins the
 * race.
 */
#ifndef KCAP_HOST_WINDOWS_H
#define KCAP_HOST_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct window {
    const char *harness; /* the row's id; "unknown" for the fallback */
    int64_t ns;
};

/* name and version as the client says (either may be NULL); with_progress: the call has a
 * progress token. Reads CLAUDE_CODE_ENTRYPOINT and MCP_TOOL_TIMEOUT from the environment.
 * override_ns above 0 wins over everything. */
struct window windows_pick(const char *name, const char *version, bool with_progress,
                           int64_t override_ns);

/* Whether a cancel for an answered call says nothing: this client sends one for each, with such
 * a reason. name as above; reason: len bytes, as they stand in the JSON string. */
bool windows_cancels_anyway(const char *name, const char *reason, size_t len);

/* Prints the table as lines "harness=ROW name=... window_sec=... with_progress_sec=...", then
 * what the environment makes of it. */
void windows_dump(int64_t override_ns);

#endif
