/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/clock.h"
#include "host/windows.h"
#include "tests/unit/suite.h"

static const struct {
    const char *name, *version, *entrypoint, *tool_timeout_ms;
    bool progress;
    const char *harness;
    double window_sec;
} rows[] = {
    {NULL, NULL, NULL, NULL, false, "unknown", 50},
    {"nobody", "1", NULL, NULL, true, "unknown", 50},
    {"codex-mcp-client", "0.171.0", NULL, NULL, false, "codex", 270},
    {"codex-mcp-client", "0.171.0", NULL, NULL, true, "codex", 270},
    {"Codex-MCP-client", NULL, NULL, NULL, true, "codex", 270},
    {"codex-mcp-client-2", NULL, NULL, NULL, false, "unknown", 50},
    {"claude-code", "2.1.197", NULL, NULL, false, "claude-code-old", 480},
    {"claude-code", "2.1.212", NULL, NULL, false, "claude-code", 110},
    {"claude-code", "2.1.332", "cli", NULL, true, "claude-code", 110},
    {"claude-code", "2.2", "cli", NULL, false, "claude-code", 110},
    {"claude-code", "3.0.0", NULL, NULL, false, "claude-code", 110},
    {"claude-code", "2.1.99", NULL, NULL, false, "claude-code-old", 480},
    {"claude-code", "2.1", NULL, NULL, false, "claude-code-old", 480},
    {"claude-code", "next", NULL, NULL, false, "claude-code", 110},
    {"claude-code", NULL, NULL, NULL, false, "claude-code", 110},
    {"claude-code", "2.1.332", "sdk-cli", NULL, false, "claude-code-print", 480},
    {"claude-code", "2.1.332", "claude-desktop", NULL, false, "claude-desktop-code", 50},
    {"anything", NULL, "claude-desktop", NULL, false, "claude-desktop-code", 50},
    {"claude-ai", "0.1.0", NULL, NULL, false, "claude-desktop", 50},
    /* the user's own limit shortens a Claude row and lengthens none */
    {"claude-code", "2.1.332", "claude-desktop", "600000", false, "claude-desktop-code", 50},
    {"claude-code", "2.1.332", "sdk-cli", "600000", false, "claude-code-print", 480},
    {"claude-code", "2.1.332", "sdk-cli", "60000", false, "claude-code-print", 50},
    {"claude-code", "2.1.332", "sdk-cli", "300000", false, "claude-code-print", 270},
    {"claude-code", "2.1.332", "sdk-cli", "3000", false, "claude-code-print", 1.5},
    {"claude-code", "2.1.332", "sdk-cli", "never", false, "claude-code-print", 480},
    {"codex-mcp-client", "1", NULL, "3000", false, "codex", 270},
    {"gemini-cli-mcp-client", "0.61.0", NULL, NULL, false, "gemini-cli", 480},
    {"qwen-cli-mcp-client-kcap", "0.0.1", NULL, NULL, false, "qwen-code", 480},
    {"opencode", "1.18.33", NULL, NULL, false, "opencode", 50},
    {"opencode", "1.18.33", NULL, NULL, true, "opencode", 480},
    {"copilot-cli", "1.0.102", NULL, NULL, false, "copilot-cli", 150},
    {"copilot-cli", "1.0.102", NULL, NULL, true, "copilot-cli", 480},
    {"JetBrains-IU-copilot-intellij", NULL, NULL, NULL, false, "copilot-jetbrains", 25},
    {"cursor-vscode", "1.0.0", NULL, NULL, false, "cursor", 240},
    {"Visual Studio Code - Insiders", NULL, NULL, NULL, false, "vscode", 240},
    {"antigravity-client", NULL, NULL, NULL, false, "antigravity", 150},
    {"goose-desktop", NULL, NULL, NULL, false, "goose", 270},
    {"crush", NULL, NULL, NULL, false, "crush", 480},
    {"continue-cli-client", "1.0.0", NULL, NULL, false, "continue-cli", 50},
    {"@cline/core", "0.0.0", NULL, NULL, false, "cline", 50},
    {"Cline", NULL, NULL, NULL, false, "cline", 50},
    {"Roo Code", NULL, NULL, NULL, false, "roo-code", 50},
    {"Roo-Code", NULL, NULL, NULL, false, "roo-code", 50},
    {"Zed", NULL, NULL, NULL, false, "zed", 50},
    {"inspector-cli", "0.5.1", NULL, NULL, false, "inspector", 50},
};

static void
set_or_clear(const char *name, const char *value)
{
    if (value)
        (void)setenv(name, value, 1);
    else
        (void)unsetenv(name);
}

START_TEST(window_row)
{
    struct window window;

    set_or_clear("CLAUDE_CODE_ENTRYPOINT", rows[_i].entrypoint);
    set_or_clear("MCP_TOOL_TIMEOUT", rows[_i].tool_timeout_ms);
    window = windows_pick(rows[_i].name, rows[_i].version, rows[_i].progress, 0);
    ck_assert_str_eq(window.harness, rows[_i].harness);
    ck_assert_int_eq(window.ns, (int64_t)(rows[_i].window_sec * NS_PER_S));
}
END_TEST

START_TEST(override_wins)
{
    ck_assert_int_eq(windows_pick("codex-mcp-client", NULL, false, 5).ns, 5);
}
END_TEST

START_TEST(opencode_cancels_what_is_answered)
{
    ck_assert_int_eq(setenv("CLAUDE_CODE_ENTRYPOINT", "claude-desktop", 1), 0); /* inherited */
    ck_assert(windows_cancels_anyway("opencode", "AbortError: x\"", 14));
    ck_assert(!windows_cancels_anyway("opencode", "McpError: x\"", 12));
    ck_assert(!windows_cancels_anyway("opencode", "Abort", 5));
    ck_assert(!windows_cancels_anyway("codex-mcp-client", "AbortError: x\"", 14));
    ck_assert(!windows_cancels_anyway(NULL, "AbortError: x\"", 14));
    (void)unsetenv("CLAUDE_CODE_ENTRYPOINT");
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_loop_test(tests, window_row, 0, N_ROWS(rows));
    tcase_add_test(tests, override_wins);
    tcase_add_test(tests, opencode_cancels_what_is_answered);
}

int
main(void)
{
    return suite_run("windows", add);
}
