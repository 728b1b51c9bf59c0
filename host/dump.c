/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/boundary.h"
#include "host/plugindirs.h"
#include "host/schema.h"
#include "host/windows.h"
#include "lib/buf.h"
#include "lib/span.h"
#include "lib/text.h"

#define MAX_DESCRIPTION 2048 /* clients cut descriptions there */

/* One line; what comes from the plugin's file is escaped. */
static void
put(const char *key, const char *value)
{
    AUTO_BUF struct buf line = BUF_INIT(64u << 10);

    text_add_line(&line, value ? value : "", value ? strlen(value) : 0);
    (void)printf("%s=%s\n", key, buf_str(&line));
}

static void
put_tool(size_t i, const struct kcap_tool *tool)
{
    char key[64];

    (void)snprintf(key, sizeof key, "tool_%zu", i + 1);
    put(key, tool->name);
    (void)printf("tool_%zu_hints=%u\n", i + 1, tool->hints);
    (void)printf("tool_%zu_description_len=%zu\n", i + 1, strlen(tool->description));
    /* so that a change of a schema shows in a diff of two dumps */
    (void)printf("tool_%zu_input_schema_hash=%016llx\n", i + 1,
                 (unsigned long long)text_hash(tool->input_schema, 0));
    (void)printf("tool_%zu_has_output_schema=%d\n", i + 1, tool->output_schema != NULL);
}

int
dump_plugin(const struct plugin *plugin)
{
    const struct kcap_plugin *desc = &plugin->desc;
    size_t n = 0;

    put("path", plugin->path);
    put("class", boundary_class_name(plugin->trust_class));
    (void)printf("abi=%u.%u\nstruct_size=%u\n", desc->abi_major, desc->abi_minor,
                 desc->struct_size);
    put("name", desc->name);
    put("version", desc->version);
    put("summary", desc->summary);
    put("threads", desc->threads == KCAP_THREADS_SERIAL ? "serial" : "parallel");
    (void)printf("has_call=%d\nhas_settled=%d\nhas_fini=%d\n", desc->call != NULL,
                 desc->settled != NULL, desc->fini != NULL);
    for (; desc->options && desc->options[n]; n++)
        put("option", desc->options[n]->name);
    for (n = 0; desc->commands && desc->commands[n]; n++)
        put("command", desc->commands[n]->name);
    for (n = 0; desc->tools && desc->tools[n]; n++)
        put_tool(n, desc->tools[n]);
    (void)printf("tools=%zu\n", n);
    return fflush(stdout) == 0 ? 0 : 1;
}

static bool
check_tool(const struct kcap_tool *tool, const cJSON *schema)
{
    AUTO_BUF struct buf why = BUF_INIT(64u << 10);

    if (!schema_is_sound(schema, &why)) {
        (void)printf("%s: input schema: %s\n", tool->name, buf_str(&why));
        return false;
    }
    if (strlen(tool->description) >= MAX_DESCRIPTION) {
        (void)printf("%s: its description has %zu bytes; clients cut at %d\n", tool->name,
                     strlen(tool->description), MAX_DESCRIPTION);
        return false;
    }
    return true;
}

int
dump_check_plugin(struct host *host)
{
    const struct kcap_plugin *desc = &host->plugin.desc;
    bool sound = true;

    for (size_t i = 0; desc->tools && desc->tools[i]; i++)
        sound = check_tool(desc->tools[i], host->plugin.schemas[i]) && sound;
    if (desc->fini)
        desc->fini(host->ctx);
    if (sound)
        (void)printf("%s %s is well formed\n", desc->name, desc->version);
    return fflush(stdout) == 0 && sound ? 0 : 1;
}

int
dump_config(const struct cli *cli)
{
    static const uint32_t classes[] = {KCAP_CLASS_DRIVER, KCAP_CLASS_REVIEWER, KCAP_CLASS_SETUP,
                                       KCAP_CLASS_SERVICE};
    char why[160];

    put("version", PACKAGE_VERSION);
    (void)printf("abi=%d.%d\n", KCAP_ABI_MAJOR, KCAP_ABI_MINOR);
    for (size_t c = 0; c < sizeof classes / sizeof classes[0]; c++) {
        char *dirs[PLUGINDIRS_MAX], key[64];

        (void)snprintf(key, sizeof key, "dir_%s", boundary_class_name(classes[c]));
        plugindirs_of(cli, classes[c], dirs);
        for (int i = 0; i < PLUGINDIRS_MAX; i++) {
            if (dirs[i])
                put(key, dirs[i]);
            free(dirs[i]);
        }
    }
    if (boundary_inside_reviewer(why, sizeof why))
        put("inside_reviewer", why);
    windows_dump(cli->call_window_ns);
    return fflush(stdout) == 0 ? 0 : 1;
}
