/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/windows.h"

#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "host/clock.h"
#include "lib/text.h"

/*
 * First fit wins, so a narrower row stands above a wider one. A name may hold '*'. Limits were
 * measured or reported in November 2026; a client that is not here gets the fallback, safe
 * under the 60 s that most clients inherit from their SDK.
 */
static const struct row {
    const char *harness;
    const char *name;        /* clientInfo.name, or NULL: any */
    const char *min_version; /* this one or newer, or NULL */
    const char *entrypoint;  /* CLAUDE_CODE_ENTRYPOINT, or NULL: any */
    int window_sec;
    int with_progress_sec; /* where progress restarts the client's clock */
} rows[] = {
    {"claude-desktop-code", NULL, NULL, "claude-desktop", 50, 50},
    {"claude-code-print", "claude-code", NULL, "sdk-cli", 480, 480},
    {"claude-code", "claude-code", "2.1.212", NULL, 110,
     110}, /* calls move to the background at 120 s */
    {"claude-code-old", "claude-code", NULL, NULL, 480, 480},
    {"claude-desktop", "claude-ai", NULL, NULL, 50, 50},
    {"codex", "codex-mcp-client", NULL, NULL, 270, 270},
    {"gemini-cli", "gemini-cli-mcp-client", NULL, NULL, 480, 480},
    {"qwen-code", "qwen-cli-mcp-client-*", NULL, NULL, 480, 480},
    {"opencode", "opencode", NULL, NULL, 50, 480},
    {"copilot-cli", "copilot-cli", NULL, NULL, 150, 480},
    {"copilot-jetbrains", "JetBrains-*-copilot-intellij", NULL, NULL, 25, 25},
    {"cursor", "cursor-vscode", NULL, NULL, 240, 240},
    {"vscode", "Visual Studio Code*", NULL, NULL, 240, 240},
    {"antigravity", "antigravity-client", NULL, NULL, 150, 150},
    {"goose", "goose*", NULL, NULL, 270, 270},
    {"crush", "crush", NULL, NULL, 480, 480},
    {"continue-cli", "continue-cli-client", NULL, NULL, 50, 50},
    {"cline", "@cline/core", NULL, NULL, 50, 50},
    {"cline", "Cline", NULL, NULL, 50, 50},
    {"roo-code", "Roo[- ]Code", NULL, NULL, 50, 50},
    {"zed", "Zed", NULL, NULL, 50, 50},
    {"inspector", "inspector-cli", NULL, NULL, 50, 50},
};
static const struct row fallback = {"unknown", NULL, NULL, NULL, 50, 50};

/* Whether a dotted version is min or newer; one that does not parse counts as the newest. */
static bool
version_reaches(const char *version, const char *min)
{
    if (!version || version[0] < '0' || version[0] > '9')
        return true;
    while (*min) {
        char *after, *min_after;
        unsigned long ours = strtoul(version, &after, 10),
                      wanted = strtoul(min, &min_after, 10);
        if (ours != wanted)
            return ours > wanted;
        version = *after == '.' ? after + 1 : "0";
        min = *min_after == '.' ? min_after + 1 : "";
    }
    return true;
}

/* Most names are literal, and this runs for every call. */
static bool
name_matches(const char *pattern, const char *name, bool any_case)
{
    if (!strpbrk(pattern, "*["))
        return (any_case ? strcasecmp(pattern, name) : strcmp(pattern, name)) == 0;
    return fnmatch(pattern, name, any_case ? FNM_CASEFOLD : 0) == 0;
}

static const struct row *
find_row(const char *name, const char *version)
{
    const char *entrypoint = getenv("CLAUDE_CODE_ENTRYPOINT");

    for (int pass = 0; pass < 2; pass++) { /* the exact spelling first, then any case */
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            const struct row *row = &rows[i];
            if (row->entrypoint && (!entrypoint || strcmp(row->entrypoint, entrypoint) != 0))
                continue;
            if (row->name && (!name || !name_matches(row->name, name, pass == 1)))
                continue;
            if (row->min_version && !version_reaches(version, row->min_version))
                continue;
            return row;
        }
    }
    return &fallback;
}

bool
windows_cancels_anyway(const char *name, const char *reason, size_t len)
{
    static const char begin[] = "AbortError"; /* a time-out says "McpError" */

    return name && strcasecmp(name, "opencode") == 0 && len >= sizeof begin - 1 &&
           memcmp(reason, begin, sizeof begin - 1) == 0;
}

/* The user's own limit for Claude Code reaches us as MCP_TOOL_TIMEOUT, in milliseconds. */
static int64_t
own_limit_ns(const struct row *row)
{
    int64_t limit_ms, margin_ms;

    if (strncmp(row->harness, "claude-", 7) != 0 ||
        !text_to_int(getenv("MCP_TOOL_TIMEOUT"), 1, INT64_C(1) << 40, &limit_ms))
        return INT64_MAX;
    margin_ms = limit_ms / 10 > 10000 ? limit_ms / 10 : 10000;
    if (margin_ms > limit_ms / 2)
        margin_ms = limit_ms / 2; /* a limit of seconds leaves no room for ten of them */
    return (limit_ms - margin_ms) * NS_PER_MS;
}

struct window
windows_pick(const char *name, const char *version, bool with_progress, int64_t override_ns)
{
    const struct row *row = find_row(name, version);
    int64_t table_ns =
        (with_progress ? row->with_progress_sec : row->window_sec) * (int64_t)NS_PER_S;
    int64_t limit_ns = own_limit_ns(row);

    return (struct window){
        .harness = row->harness,
        .ns = override_ns > 0       ? override_ns
              : table_ns < limit_ns ? table_ns
                                    : limit_ns,
    };
}

void
windows_dump(int64_t override_ns)
{
    struct window unknown = windows_pick(NULL, NULL, false, override_ns);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        (void)printf("harness=%s name=%s%s%s%s%s window_sec=%d with_progress_sec=%d\n",
                     rows[i].harness, rows[i].name ? rows[i].name : "*",
                     rows[i].min_version ? " min_version=" : "",
                     rows[i].min_version ? rows[i].min_version : "",
                     rows[i].entrypoint ? " CLAUDE_CODE_ENTRYPOINT=" : "",
                     rows[i].entrypoint ? rows[i].entrypoint : "", rows[i].window_sec,
                     rows[i].with_progress_sec);
    (void)printf("here: a client without a row is %s, %.3f s\n", unknown.harness,
                 (double)unknown.ns / NS_PER_S);
    if (override_ns > 0)
        (void)printf("here: the window is set to %.3f s for every client\n",
                     (double)override_ns / NS_PER_S);
}
