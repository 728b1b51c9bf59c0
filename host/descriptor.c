/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/descriptor.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "host/boundary.h"
#include "lib/jscan.h"

#define MAX_TOOLS 256

/* What ABI 1.0 had: nothing shorter was ever released. */
#define PLUGIN_SIZE_1_0  sizeof(struct kcap_plugin)
#define TOOL_SIZE_1_0    sizeof(struct kcap_tool)
#define COMMAND_SIZE_1_0 sizeof(struct kcap_command)
#define OPTION_SIZE_1_0  sizeof(struct kcap_option)

static int __attribute__((format(printf, 3, 4)))
fail(char *why, size_t why_len, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(why, why_len, format, args);
    va_end(args);
    return -1;
}

static bool
is_name(const char *name, const char *allowed, size_t max)
{
    size_t len = name ? strlen(name) : 0;

    return len > 0 && len <= max && strspn(name, allowed) == len;
}

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT "0123456789"

static bool
is_object(const char *json)
{
    struct jscan scan;

    return jscan(json, strlen(json), &scan) == JSCAN_OK && span_type(scan.value) == '{';
}

static int
check_tools(const struct kcap_plugin *plugin, char *why, size_t why_len)
{
    for (size_t i = 0; plugin->tools && plugin->tools[i]; i++) {
        const struct kcap_tool *tool = plugin->tools[i];

        if (i >= MAX_TOOLS)
            return fail(why, why_len, "it has more than %d tools", MAX_TOOLS);
        if (tool->struct_size < TOOL_SIZE_1_0)
            return fail(why, why_len, "tool %zu is of an older, unknown shape (%u bytes)",
                        i + 1, tool->struct_size);
        if (!is_name(tool->name, LOWER UPPER DIGIT "_.-", 128))
            return fail(why, why_len, "tool %zu has no valid name", i + 1);
        if (!tool->description || !tool->input_schema)
            return fail(why, why_len, "tool %s lacks a description or an input schema",
                        tool->name);
        if (!is_object(tool->input_schema) ||
            (tool->output_schema && !is_object(tool->output_schema)))
            return fail(why, why_len, "a schema of tool %s is not a JSON object", tool->name);
        for (size_t j = 0; j < i; j++) {
            if (strcmp(plugin->tools[j]->name, tool->name) == 0)
                return fail(why, why_len, "it has two tools named %s", tool->name);
        }
    }
    return 0;
}

static int
check_words(const struct kcap_plugin *plugin, char *why, size_t why_len)
{
    for (size_t i = 0; plugin->options && plugin->options[i]; i++) {
        const struct kcap_option *option = plugin->options[i];
        if (option->struct_size < OPTION_SIZE_1_0 || !option->summary ||
            !is_name(option->name, LOWER DIGIT "-", 64))
            return fail(why, why_len, "option %zu is not well formed", i + 1);
    }
    for (size_t i = 0; plugin->commands && plugin->commands[i]; i++) {
        const struct kcap_command *command = plugin->commands[i];
        if (command->struct_size < COMMAND_SIZE_1_0 || !command->summary || !command->run ||
            !is_name(command->name, LOWER DIGIT "-", 64))
            return fail(why, why_len, "command %zu is not well formed", i + 1);
    }
    return 0;
}

int
descriptor_check(const void *symbol, size_t size, uint32_t trust_class, struct kcap_plugin *ret,
                 char *why, size_t why_len)
{
    const struct kcap_plugin *theirs = symbol;
    struct kcap_plugin ours = {.magic = 0};

    if (size < PLUGIN_SIZE_1_0)
        return fail(why, why_len, "its descriptor has %zu bytes, ABI 1.0 has %zu", size,
                    PLUGIN_SIZE_1_0);
    if (theirs->magic != KCAP_MAGIC)
        return fail(why, why_len, "its descriptor does not begin with the kcap magic number");
    if (theirs->struct_size != size)
        return fail(why, why_len, "its descriptor says %u bytes, the file says %zu",
                    theirs->struct_size, size);
    if (theirs->abi_major != KCAP_ABI_MAJOR)
        return fail(why, why_len, "its ABI is %u.%u, this host speaks %d.%d: rebuild it",
                    theirs->abi_major, theirs->abi_minor, KCAP_ABI_MAJOR, KCAP_ABI_MINOR);
    if (theirs->trust_class != trust_class)
        return fail(why, why_len, "its descriptor says class %s, its note says %s",
                    boundary_class_name(theirs->trust_class), boundary_class_name(trust_class));
    memcpy(&ours, theirs, size < sizeof ours ? size : sizeof ours);

    if (ours.threads != KCAP_THREADS_SERIAL && ours.threads != KCAP_THREADS_PARALLEL)
        return fail(why, why_len, "its thread model %u is unknown", ours.threads);
    if (!is_name(ours.name, LOWER DIGIT "-_", 64) || !ours.version || !ours.summary)
        return fail(why, why_len, "its name, version or summary is missing");
    if (!ours.init || (ours.tools && ours.tools[0] && !ours.call))
        return fail(why, why_len, "it has no init or no call function");
    if (check_tools(&ours, why, why_len) < 0 || check_words(&ours, why, why_len) < 0)
        return -1;
    *ret = ours;
    return 0;
}

const struct kcap_tool *
descriptor_tool(const struct kcap_plugin *plugin, const char *name)
{
    for (size_t i = 0; plugin->tools && plugin->tools[i]; i++) {
        if (strcmp(plugin->tools[i]->name, name) == 0)
            return plugin->tools[i];
    }
    return NULL;
}
