/* SPDX-License-Identifier: Apache-2.0 */
/* A SERIAL plugin: says whether two calls were ever in it at once. */
#include "config.h"

#include <kcap/plugin.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_MS INT64_C(1000000)

static const struct kcap_host *host;
static _Atomic int inside, most_inside, steps;

static int32_t
serial_init(const struct kcap_host *given, void **ret_ctx)
{
    host = given;
    *ret_ctx = NULL;
    return KCAP_OK;
}

static int32_t
serial_call(void *ctx, struct kcap_call *call, const struct kcap_tool *tool, const char *args,
            size_t args_len)
{
    int now = atomic_fetch_add(&inside, 1) + 1;
    char text[64];

    (void)ctx;
    (void)args;
    (void)args_len;
    if (strcmp(tool->name, "deaf_step") == 0)
        (void)poll(NULL, 0, 600); /* hears nothing of its deadline */
    if (now > atomic_load(&most_inside))
        atomic_store(&most_inside, now);
    (void)host->wait(call, KCAP_SEQ_NONE, NULL, 0, host->now_ns(host) + 20 * NS_PER_MS);
    (void)snprintf(text, sizeof text, "step %d, at most %d inside",
                   atomic_fetch_add(&steps, 1) + 1, atomic_load(&most_inside));
    atomic_fetch_sub(&inside, 1);
    return host->result(call, 0, text, strlen(text), NULL, 0);
}

static void
serial_settled(void *ctx, uint64_t serial, uint32_t outcome)
{
    (void)ctx;
    kcap_logf(host, KCAP_LOG_INFO, "settled %llu %u", (unsigned long long)serial, outcome);
}

static const struct kcap_tool step = {.struct_size = sizeof step,
                                      .name = "step",
                                      .description = "Takes 20 ms.",
                                      .input_schema = "{\"type\":\"object\"}"};
static const struct kcap_tool deaf_step = {.struct_size = sizeof deaf_step,
                                           .name = "deaf_step",
                                           .description =
                                               "Takes 600 ms more, whatever its deadline.",
                                           .input_schema = "{\"type\":\"object\"}"};
static const struct kcap_tool *const tools[] = {&step, &deaf_step, NULL};

KCAP_REGISTER(KCAP_CLASS_DRIVER, .threads = KCAP_THREADS_SERIAL, .name = "serial",
              .version = "1", .summary = "one at a time", .tools = tools, .init = serial_init,
              .call = serial_call, .settled = serial_settled);
