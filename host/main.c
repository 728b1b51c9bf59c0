/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "host/dump.h"
#include "host/host.h"
#include "host/plugindirs.h"
#include "host/signals.h"

/* Descriptors 0 to 2 exist from here on, so that none of them becomes something else's by
 * accident. */
static void
fill_stdio(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
}

/* Left alone, malloc keeps for good whatever is as long as anything that was ever freed; a host
 * lives as long as its client. */
static void
give_back_memory(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 128 << 10);
}

static int
run(const struct cli *cli)
{
    static struct host host; /* the plugin's threads outlive main's frame */

    if (host_open(&host, cli) < 0)
        return EXIT_REFUSED;
    switch (cli->mode) {
    case CLI_CALL:
        return host_call_once(&host);
    case CLI_COMMAND:
        return host_run_command(&host);
    case CLI_PLUGIN_HELP:
        return host_plugin_help(&host);
    case CLI_DUMP_PLUGIN:
        return dump_plugin(&host.plugin);
    case CLI_CHECK_PLUGIN:
        return dump_check_plugin(&host);
    default:
        return host_serve(&host);
    }
}

int
main(int argc, char **argv)
{
    static struct cli cli;
    int status;

    fill_stdio();
    if (cli_parse(argc, argv, &cli) < 0)
        return EXIT_REFUSED;
    switch (cli.mode) {
    case CLI_HELP:
        cli_print_help();
        return fflush(stdout) == 0 ? 0 : 1;
    case CLI_VERSION:
        (void)puts(PACKAGE_STRING);
        return fflush(stdout) == 0 ? 0 : 1;
    case CLI_LIST_PLUGINS:
        return plugindirs_list(&cli);
    case CLI_DUMP_CONFIG:
        return dump_config(&cli);
    default:
        break;
    }
    signals_exit_at_once();
    give_back_memory();
    status = run(&cli);
    /* Worker threads may be anywhere, so nothing is torn down under them. */
    (void)fflush(NULL);
    _exit(status);
}
