/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/host.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "host/calls.h"
#include "host/log.h"

/* Each key=value word must be one the plugin declares: a misspelt option that does nothing
 * helps nobody. */
static int
check_options(const struct cli *cli, const struct kcap_plugin *plugin)
{
    for (int i = 0; i < cli->n_options; i++) {
        size_t len = strcspn(cli->options[i], "="), o = 0;

        while (plugin->options && plugin->options[o] &&
               (strncmp(plugin->options[o]->name, cli->options[i], len) != 0 ||
                plugin->options[o]->name[len] != '\0'))
            o++;
        if (!plugin->options || !plugin->options[o]) {
            log_linef(KCAP_LOG_ERROR,
                      "plugin %s has no option %.*s (--plugin %s --help lists them)",
                      plugin->name, (int)len, cli->options[i], plugin->name);
            return -1;
        }
    }
    return 0;
}

int
host_open(struct host *host, const struct cli *cli)
{
    int r;

    *host = (struct host){.cli = cli, .wake_main_fd = -1};
    (void)pthread_mutex_init(&host->lock, NULL);
    (void)pthread_mutex_init(&host->extension_lock, NULL);
    clock_cond_init(&host->changed);
    host_table_init(host);
    if (loader_open(cli, &host->plugin) < 0)
        return -1;
    log_set_name(host->plugin.desc.name);
    if (cli->mode == CLI_PLUGIN_HELP || cli->mode == CLI_DUMP_PLUGIN)
        return 0;
    host->shutdown =
        cli->mode == CLI_CHECK_PLUGIN; /* its waits end at once, its jobs are dropped */
    if (check_options(cli, &host->plugin.desc) < 0)
        return -1;
    workers_init(&host->workers);
    r = host->plugin.desc.init(&host->table, &host->ctx);
    if (r < 0) {
        log_linef(KCAP_LOG_ERROR, "plugin %s did not start (%d)", host->plugin.desc.name, r);
        return -1;
    }
    return 0;
}

int64_t
host_tick(struct host *host)
{
    int64_t now_ns = host_now_ns();
    int64_t calls_ns = calls_tick(host, now_ns),
            workers_ns = workers_tick(&host->workers, now_ns);

    return calls_ns < workers_ns ? calls_ns : workers_ns;
}

void
host_wake_main(struct host *host)
{
    if (host->wake_main_fd >= 0)
        (void)eventfd_write(host->wake_main_fd, 1);
    (void)pthread_cond_broadcast(&host->changed);
}

void
host_end(struct host *host)
{
    if (host->plugin.desc.fini)
        host->plugin.desc.fini(host->ctx);
}

static void
print_row(const char *name, const char *summary)
{
    (void)printf("  %-24s %s\n", name, summary);
}

int
host_plugin_help(const struct host *host)
{
    const struct kcap_plugin *plugin = &host->plugin.desc;

    (void)printf("%s %s: %s\n", plugin->name, plugin->version, plugin->summary);
    if (plugin->options && plugin->options[0])
        (void)printf("\noptions (key=value after the plugin's name):\n");
    for (size_t i = 0; plugin->options && plugin->options[i]; i++)
        print_row(plugin->options[i]->name, plugin->options[i]->summary);
    if (plugin->commands && plugin->commands[0])
        (void)printf("\ncommands (after --):\n");
    for (size_t i = 0; plugin->commands && plugin->commands[i]; i++)
        print_row(plugin->commands[i]->name, plugin->commands[i]->summary);
    if (plugin->tools && plugin->tools[0])
        (void)printf("\ntools:\n");
    for (size_t i = 0; plugin->tools && plugin->tools[i]; i++)
        print_row(plugin->tools[i]->name,
                  plugin->tools[i]->title ? plugin->tools[i]->title : "");
    return fflush(stdout) == 0 ? 0 : 1;
}
