/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a plugin's name to a checked descriptor. In this order: class by name, reviewer check,
 * open, owner and mode, ELF note, map, symbol size, descriptor. Nothing of the plugin is called
 * here. Nothing is ever unmapped, and one plugin is all a process gets.
 */
#ifndef KCAP_HOST_LOADER_H
#define KCAP_HOST_LOADER_H

#include <cjson/cJSON.h>
#include <kcap/plugin.h>

#include "host/cli.h"

struct plugin {
    struct kcap_plugin
        desc; /* a copy: fields this host knows, zero where the plugin's is shorter */
    uint32_t trust_class;
    char *path;
    cJSON **schemas; /* input schemas, parsed, in the order of desc.tools */
};

/* Returns 0, or -1 after logging one line that names the file and the cure. */
int loader_open(const struct cli *cli, struct plugin *ret);

/* Loads a service module and returns its descriptor, or NULL after logging. */
struct kcap_service;
const struct kcap_service *loader_open_service(const struct cli *cli, const char *name);

#endif
