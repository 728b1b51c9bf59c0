/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at plugins and at the configuration, as key=value lines. Each returns the exit
 * status. */
#ifndef KCAP_HOST_DUMP_H
#define KCAP_HOST_DUMP_H

#include "host/host.h"

/* --dump-plugin: the descriptor. The file is mapped (its constructors run), nothing of it is
 * called. */
int dump_plugin(const struct plugin *plugin);

/* --check-plugin: the schemas, and init and fini against a host that is already shutting down.
 */
int dump_check_plugin(struct host *host);

/* --dump-config: directories, ABI, classes, the harness table and what the environment makes of
 * it. */
int dump_config(const struct cli *cli);

#endif
