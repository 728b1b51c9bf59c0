/* SPDX-License-Identifier: Apache-2.0 */
/* The command line, once read. Strings and lists are argv's, whose words it rearranges. */
#ifndef KCAP_HOST_CLI_H
#define KCAP_HOST_CLI_H

#include <stdbool.h>
#include <stdint.h>

#define EXIT_REFUSED 2 /* bad usage, a plugin that may not or cannot be loaded */

enum cli_mode {
    CLI_SERVE,
    CLI_CALL,
    CLI_COMMAND,
    CLI_LIST_PLUGINS,
    CLI_PLUGIN_HELP,
    CLI_DUMP_PLUGIN,
    CLI_CHECK_PLUGIN,
    CLI_DUMP_CONFIG,
    CLI_HELP,
    CLI_VERSION,
};

struct cli {
    enum cli_mode mode;
    const char *plugin_name; /* --plugin */
    const char *plugin_file; /* --plugin-file */
    const char *plugin_root; /* --plugin-root, or NULL: the installed directory */
    char **options;          /* key=value words after the plugin's name */
    int n_options;
    bool no_discover;          /* --no-discover */
    const char *call_tool;     /* --call */
    const char *call_argument; /* its JSON, @FILE or -, or NULL */
    int64_t call_window_ns;    /* --call-window or KCAP_CALL_WINDOW_SEC; 0: not given */
    char **command;            /* words after -- */
    int n_command;
};

/* Returns 0, or -1 after saying on stderr what is wrong. */
int cli_parse(int argc, char **argv, struct cli *ret);

void cli_print_help(void);

/* A positive number of seconds, fractions allowed, at most a week. */
bool cli_seconds(const char *text, int64_t *ret_ns);

#endif
