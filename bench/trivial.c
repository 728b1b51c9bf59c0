/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin that is measured: as little as a plugin can do, so that the numbers are the
 * host's. */
#include "config.h"

#include <kcap/plugin.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json.h"

static const struct kcap_host *host;
static const struct kcap_tool echo, slow;

static int32_t
trivial_init(const struct kcap_host *given, void **ret_ctx)
{
    host = given;
    *ret_ctx = NULL;
    return KCAP_OK;
}

static int32_t
trivial_call(void *ctx, struct kcap_call *call, const struct kcap_tool *tool, const char *args,
             size_t args_len)
{
    AUTO_JSON cJSON *parsed = cJSON_ParseWithLength(args, args_len);
    const char *text = json_str(parsed, "text");
    int64_t ms = 0;

    (void)ctx;
    if (tool == &slow && json_int(parsed, "ms", &ms) &&
        host->wait(call, KCAP_SEQ_NONE, NULL, 0, host->now_ns(host) + ms * 1000000) !=
            KCAP_WAIT_TIMEOUT)
        return KCAP_OK;
    text = text ? text : "done";
    return host->result(call, 0, text, strlen(text), NULL, 0);
}

static const struct kcap_tool echo = {
    .struct_size = sizeof echo,
    .name = "echo",
    .description = "Says text back.",
    .input_schema = "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},"
                    "\"required\":[\"text\"]}"};
static const struct kcap_tool slow = {
    .struct_size = sizeof slow,
    .name = "slow",
    .description = "Waits.",
    .input_schema = "{\"type\":\"object\",\"properties\":{\"ms\":{\"type\":\"integer\"}},"
                    "\"required\":[\"ms\"]}"};
static const struct kcap_tool *const tools[] = {&echo, &slow, NULL};

KCAP_REGISTER(KCAP_CLASS_DRIVER, .threads = KCAP_THREADS_PARALLEL, .name = "trivial",
              .version = "1", .summary = "for measuring the host", .tools = tools,
              .init = trivial_init, .call = trivial_call);
