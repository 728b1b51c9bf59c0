/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "host/cli.h"
#include "tests/unit/suite.h"

#define MAX_WORDS 12

static const struct {
    const char *words[MAX_WORDS];
    int mode; /* -1: refused */
    int n_options;
} rows[] = {
    {{"--plugin", "flows"}, CLI_SERVE, 0},
    {{"--plugin", "flows", "server-url=http://x", "driver=codex"}, CLI_SERVE, 2},
    {{"--plugin", "flows", "--call", "t"}, CLI_CALL, 0},
    {{"--plugin", "flows", "--call", "t", "{\"a\":1}", "a=b"}, CLI_CALL, 1},
    {{"--plugin", "flows", "--call", "t", "@file"}, CLI_CALL, 0},
    {{"--plugin", "flows", "--call", "t", "-"}, CLI_CALL, 0},
    {{"--plugin", "codex-setup", "--", "install", "--dry-run"}, CLI_COMMAND, 0},
    {{"--plugin-file", "/x.so"}, CLI_SERVE, 0},
    {{"--plugin", "flows", "--help"}, CLI_PLUGIN_HELP, 0},
    {{"--help"}, CLI_HELP, 0},
    {{"--version"}, CLI_VERSION, 0},
    {{"--list-plugins"}, CLI_LIST_PLUGINS, 0},
    {{"--plugin", "flows", "--call-window", "nonsense"}, CLI_SERVE, 0},
    {{NULL}, -1, 0},
    {{"--plugin"}, -1, 0},
    {{"--plugin", ""}, -1, 0},
    {{"--plugin", "../flows"}, -1, 0},
    {{"--plugin", "x/y"}, -1, 0},
    {{"--plugin", "."}, -1, 0},
    {{"--plugin", "flows", "--plugin", "flow-result"}, -1, 0},
    {{"--plugin", "flows", "--plugin-file", "/x.so"}, -1, 0},
    {{"--plugin", "flows", "--plugin-root", "relative"}, -1, 0},
    {{"--plugin", "flows", "stray"}, -1, 0},
    {{"--plugin", "flows", "--nonsense"}, -1, 0},
    {{"--plugin", "flows", "--"}, -1, 0},
    {{"--plugin", "flows", "--call", "t", "--", "x"}, -1, 0},
    {{"key=value", "--plugin", "flows"}, -1, 0},
};

START_TEST(words_row)
{
    char *argv[MAX_WORDS + 2] = {NULL}, words[MAX_WORDS + 2][32] = {"kcap-host"};
    struct cli cli = {.mode = CLI_SERVE};
    int argc = 1, r;

    argv[0] = words[0];
    for (; argc <= MAX_WORDS && rows[_i].words[argc - 1]; argc++)
        argv[argc] = strcpy(words[argc], rows[_i].words[argc - 1]);
    r = cli_parse(argc, argv, &cli);
    ck_assert_int_eq(r, rows[_i].mode < 0 ? -1 : 0);
    if (r == 0) {
        ck_assert_int_eq((int)cli.mode, rows[_i].mode);
        ck_assert_int_eq(cli.n_options, rows[_i].n_options);
    }
}
END_TEST

static const struct {
    const char *text;
    int64_t ns; /* 0: refused */
} seconds[] = {
    {"1", 1000000000},
    {"0.5", 500000000},
    {".25", 250000000},
    {"604800", 604800000000000},
    {"0", 0},
    {"-1", 0},
    {"", 0},
    {"1s", 0},
    {"nan", 0},
    {"inf", 0},
    {"1e9", 0},
    {"604801", 0},
    {NULL, 0},
    {" 1", 0},
};

START_TEST(seconds_row)
{
    int64_t ns = 0;

    ck_assert_int_eq(cli_seconds(seconds[_i].text, &ns), seconds[_i].ns != 0);
    ck_assert_int_eq(ns, seconds[_i].ns);
}
END_TEST

START_TEST(the_option_wins_over_the_variable)
{
    char *argv[] = {(char[]){"kcap-host"},     (char[]){"--plugin"}, (char[]){"x"},
                    (char[]){"--call-window"}, (char[]){"2"},        NULL};
    struct cli cli;

    (void)setenv("KCAP_CALL_WINDOW_SEC", "7", 1);
    ck_assert_int_eq(cli_parse(3, argv, &cli), 0);
    ck_assert_int_eq(cli.call_window_ns, INT64_C(7000000000));
    ck_assert_int_eq(cli_parse(5, argv, &cli), 0);
    ck_assert_int_eq(cli.call_window_ns, INT64_C(2000000000));
    (void)setenv("KCAP_CALL_WINDOW_SEC", "soon", 1);
    ck_assert_int_eq(cli_parse(3, argv, &cli), 0);
    ck_assert_int_eq(cli.call_window_ns, 0);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_loop_test(tests, words_row, 0, N_ROWS(rows));
    tcase_add_loop_test(tests, seconds_row, 0, N_ROWS(seconds));
    tcase_add_test(tests, the_option_wins_over_the_variable);
}

int
main(void)
{
    return suite_run("cli", add);
}
