/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/cli.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help_text[] =
    "usage: kcap-host --plugin NAME [key=value ...] [option ...]\n"
    "       kcap-host --plugin NAME [key=value ...] --call TOOL [JSON | @FILE | -]\n"
    "       kcap-host --plugin NAME [key=value ...] -- COMMAND [ARG ...]\n"
    "       kcap-host --list-plugins | --version | --help\n"
    "\n"
    "Serves one plugin's tools over MCP on standard input and output.\n"
    "\n"
    "  --plugin NAME        load this installed plugin, with its key=value options\n"
    "  --plugin-file PATH   load this file instead (for plugin authors)\n"
    "  --plugin-root DIR    look for plugins below DIR instead of the installed directory\n"
    "  --call TOOL [ARGS]   make one call: progress on stderr, the result on stdout,\n"
    "                       exit 0, or 1 when the tool reports an error\n"
    "  --call-window SEC    end each call after SEC seconds at the latest, whoever the client\n"
    "                       is (also KCAP_CALL_WINDOW_SEC)\n"
    "  --no-discover        answer server/discover as unknown, so that clients which probe "
    "with\n"
    "                       it fall back to initialize\n"
    "  --list-plugins       name, trust class and file of each plugin that can be loaded\n"
    "  --dump-plugin FILE   describe a plugin's file as key=value lines, without calling it\n"
    "  --check-plugin FILE  check its schemas, and that it starts and ends\n"
    "  --dump-config        directories, ABI and the windows of all known clients\n"
    "  --help, --version    with --plugin NAME, --help describes that plugin\n"
    "\n"
    "Exit status: 0 done, 1 the call failed, 2 refused to start (the reason is on stderr).\n"
    "Manual: kcap-host(1); for authors of plugins kcap-host-plugin(3).\n";

void
cli_print_help(void)
{
    (void)fputs(help_text, stdout);
}

bool
cli_seconds(const char *text, int64_t *ret_ns)
{
    char *end;
    double seconds;

    if (!text || !(*text == '.' || (*text >= '0' && *text <= '9')))
        return false;
    errno = 0;
    seconds = strtod(text, &end);
    if (errno != 0 || *end != '\0' || !isfinite(seconds) || seconds < 0.001 || seconds > 604800)
        return false;
    *ret_ns = (int64_t)(seconds * 1e9);
    return true;
}

static int
bad_usage(const char *problem, const char *word)
{
    (void)fprintf(stderr, "kcap-host: %s%s%s\nTry 'kcap-host --help'.\n", problem,
                  word ? ": " : "", word ? word : "");
    return -1;
}

/* An override that cannot be read is ignored, not fatal: a server that does not start helps
 * nobody. */
static void
parse_window(const char *name, const char *text, int64_t *ret_ns)
{
    if (!cli_seconds(text, ret_ns))
        (void)fprintf(stderr,
                      "kcap-host: %s is ignored: '%.40s' is not a positive number of seconds\n",
                      name, text);
}

static int
check(const struct cli *cli)
{
    bool loads = cli->plugin_name || cli->plugin_file;

    if (cli->mode == CLI_HELP || cli->mode == CLI_VERSION || cli->mode == CLI_DUMP_CONFIG ||
        cli->mode == CLI_LIST_PLUGINS)
        return 0;
    if (!loads)
        return bad_usage("no plugin named (--plugin NAME)", NULL);
    if (cli->plugin_name && cli->plugin_file)
        return bad_usage("--plugin and --plugin-file exclude each other", NULL);
    if (cli->plugin_name && (strchr(cli->plugin_name, '/') || cli->plugin_name[0] == '\0' ||
                             cli->plugin_name[0] == '.' || strlen(cli->plugin_name) > 64))
        return bad_usage(
            "not a plugin name (a name has no slash; for a file use --plugin-file)",
            cli->plugin_name);
    if (cli->call_tool && cli->n_command > 0)
        return bad_usage("--call and a command exclude each other", NULL);
    if (cli->plugin_root && cli->plugin_root[0] != '/')
        return bad_usage("--plugin-root needs an absolute directory", cli->plugin_root);
    return 0;
}

/* The word after an option that needs one. */
static const char *
value_of(int argc, char **argv, int *i)
{
    return *i + 1 < argc ? argv[++*i] : NULL;
}

int
cli_parse(int argc, char **argv, struct cli *ret)
{
    static const struct {
        const char *name;
        enum cli_mode mode;
    } modes[] = {{"--help", CLI_HELP},
                 {"-h", CLI_HELP},
                 {"--version", CLI_VERSION},
                 {"--list-plugins", CLI_LIST_PLUGINS},
                 {"--dump-config", CLI_DUMP_CONFIG}};
    const char *window = getenv("KCAP_CALL_WINDOW_SEC");
    struct cli cli = {.mode = CLI_SERVE, .options = argv + 1};
    const struct {
        const char *name;
        const char **place;
    } places[] = {{"--plugin", &cli.plugin_name},
                  {"--plugin-file", &cli.plugin_file},
                  {"--plugin-root", &cli.plugin_root},
                  {"--call", &cli.call_tool}};

    if (window && window[0])
        parse_window("KCAP_CALL_WINDOW_SEC", window, &cli.call_window_ns);
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], **place = NULL;
        bool known = false;

        for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
            if (strcmp(word, modes[m].name) == 0) {
                cli.mode = modes[m].mode;
                known = true;
            }
        }
        if (known)
            continue;
        if (strcmp(word, "--") == 0) {
            cli.command = argv + i + 1;
            cli.n_command = argc - i - 1;
            if (cli.n_command == 0)
                return bad_usage("no command after --", NULL);
            break;
        }
        if (strcmp(word, "--no-discover") == 0) {
            cli.no_discover = true;
            continue;
        }
        if (strcmp(word, "--call-window") == 0) {
            const char *seconds = value_of(argc, argv, &i);
            if (!seconds)
                return bad_usage("a value is missing after", word);
            parse_window("--call-window", seconds, &cli.call_window_ns);
            continue;
        }
        if (strcmp(word, "--dump-plugin") == 0 || strcmp(word, "--check-plugin") == 0) {
            cli.mode = word[2] == 'd' ? CLI_DUMP_PLUGIN : CLI_CHECK_PLUGIN;
            place = &cli.plugin_file;
        }
        for (size_t p = 0; p < sizeof places / sizeof places[0]; p++) {
            if (strcmp(word, places[p].name) == 0)
                place = places[p].place;
        }
        if (place) {
            if (*place)
                return bad_usage("given twice", word);
            *place = value_of(argc, argv, &i);
            if (!*place)
                return bad_usage("a value is missing after", word);
            if (place == &cli.call_tool && i + 1 < argc && argv[i + 1][0] != '\0' &&
                (strchr("{@", argv[i + 1][0]) || strcmp(argv[i + 1], "-") == 0))
                cli.call_argument = argv[++i];
            continue;
        }
        if (word[0] != '-' && strchr(word, '=') && (cli.plugin_name || cli.plugin_file)) {
            argv[1 + cli.n_options++] =
                argv[i]; /* gathered at the front, over words already read */
            continue;
        }
        return bad_usage("unknown word", word);
    }
    if (cli.mode == CLI_HELP && (cli.plugin_name || cli.plugin_file))
        cli.mode = CLI_PLUGIN_HELP;
    else if (cli.mode == CLI_SERVE && cli.call_tool)
        cli.mode = CLI_CALL;
    else if (cli.mode == CLI_SERVE && cli.n_command > 0)
        cli.mode = CLI_COMMAND;
    if (check(&cli) < 0)
        return -1;
    *ret = cli;
    return 0;
}
