/* SPDX-License-Identifier: Apache-2.0 */
/* The one host of this process: what main puts together and every other file of host/ works on.
 */
#ifndef KCAP_HOST_HOST_H
#define KCAP_HOST_HOST_H

#include <kcap/plugin.h>
#include <pthread.h>
#include <stdbool.h>

#include "host/cli.h"
#include "host/clock.h"
#include "host/loader.h"
#include "host/workers.h"

struct batch;
struct wire;

/* An answer of a moment ago, kept so that a cancel that crossed it is recognised. */
struct answered {
    char *id; /* raw JSON token */
    uint64_t serial;
    bool told;      /* the plugin has heard of the answer */
    bool cancelled; /* and is to hear of a cancel next */
};
#define HOST_ANSWERED 64
#define HOST_OVER     256 /* shells of calls that are over, kept to refuse stale handles */

struct host {
    struct kcap_host table; /* what the plugin sees; first, so that it leads back here */
    const struct cli *cli;
    struct plugin plugin;
    void *ctx;        /* the plugin's own */
    const void *http; /* the loaded extension, or NULL; under extension_lock */
    pthread_mutex_t extension_lock;

    struct workers workers;
    struct wire *wire; /* NULL when a single call or command is run from the shell */
    char *server_info; /* {"name":..,"version":..}, with the wire */
    int wake_main_fd;  /* eventfd in the main thread's poll set, or -1 */

    /* Everything below, and every call's state, is under lock. */
    pthread_mutex_t lock;
    pthread_cond_t
        changed; /* CLOCK_MONOTONIC; any change of seq, of a call's state, of shutdown */
    uint64_t seq;
    bool shutdown;
    struct kcap_call *calls; /* all that are not over, newest first */
    struct batch *batches;   /* whose array has not left (batch.c) */
    unsigned n_tool_calls;
    uint64_t next_serial;
    struct kcap_call *serial_first,
        *serial_last; /* SERIAL plugin: calls waiting for their turn */
    bool serial_busy;
    struct answered answered[HOST_ANSWERED]; /* by serial, the newest of each slot */
    struct kcap_call *over[HOST_OVER];       /* ring */
    unsigned next_over;
    struct settled *settled_first, *settled_last; /* for the plugin, in order (settled.c) */
    bool settling;
};

/* Loads the plugin that cli names and runs its init. Returns 0, or -1 after logging why. */
int host_open(struct host *host, const struct cli *cli);

/* What has to be done by the clock; the main thread's. Returns when it is due again. */
int64_t host_tick(struct host *host);

/* Has the main thread look at calls and workers again: work came from another thread than
 * itself. */
void host_wake_main(struct host *host);

/* Fills in the function table (table.c). */
void host_table_init(struct host *host);

/* The three ways to spend a process; each returns the exit status. */
int host_serve(struct host *host);       /* MCP on stdin and stdout */
int host_call_once(struct host *host);   /* --call */
int host_run_command(struct host *host); /* -- COMMAND */

/* The plugin's fini, when nothing of it runs any more. */
void host_end(struct host *host);

/* Prints the plugin's options, commands and tools; returns the exit status. */
int host_plugin_help(const struct host *host);

static inline struct host *
host_of(const struct kcap_host *table)
{
    return (struct host *)(uintptr_t)table;
}

#endif
