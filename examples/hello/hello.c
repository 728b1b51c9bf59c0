/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole plugin: one tool that greets, slowly when asked to, and so shows arguments, progress,
 * cancel and the window. Build and try it with nothing but an installed kcap-host:
 *
 *     make
 *     kcap-host --plugin-file ./hello.so --call hello '{"name":"Ada","seconds":2}'
 */
#include <kcap/plugin.h>

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_S INT64_C(1000000000)

static const struct kcap_host *host;

/* The host has checked these against the tool's schema, so the types are right. */
static void
greet(struct kcap_call *call, const cJSON *args)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(args, "name"));
    const cJSON *seconds = cJSON_GetObjectItemCaseSensitive(args, "seconds");
    int total = cJSON_IsNumber(seconds) ? seconds->valueint : 0;
    char text[256];

    for (int done = 0; done < total; done++) {
        int64_t until_ns = host->now_ns(host) + NS_PER_S;
        int32_t end = host->wait(call, KCAP_SEQ_NONE, NULL, 0, until_ns);

        if (end == KCAP_WAIT_CANCELLED || end == KCAP_WAIT_SHUTDOWN)
            return; /* nobody is listening any more */
        if (end == KCAP_WAIT_DEADLINE) {
            (void)snprintf(text, sizeof text,
                           "Still greeting %.100s, %d of %d seconds done. Call again.", name,
                           done, total);
            (void)host->result(call, 0, text, strlen(text), NULL, 0);
            return;
        }
        (void)host->progress(call, done + 1, total, "clearing my throat");
    }
    (void)snprintf(text, sizeof text, "Hello, %.100s!", name);
    (void)host->result(call, 0, text, strlen(text), NULL, 0);
}

static int32_t
hello_call(void *ctx, struct kcap_call *call, const struct kcap_tool *tool, const char *args,
           size_t len)
{
    cJSON *parsed = cJSON_ParseWithLength(args, len);

    (void)ctx;
    (void)tool; /* there is but one */
    if (!parsed)
        return KCAP_E_NOMEM;
    greet(call, parsed);
    cJSON_Delete(parsed);
    return KCAP_OK;
}

static int32_t
hello_init(const struct kcap_host *given, void **ret_ctx)
{
    host = given;
    *ret_ctx = NULL;
    return KCAP_OK;
}

static const struct kcap_tool hello_tool = {
    .struct_size = sizeof hello_tool,
    .name = "hello",
    .title = "Say hello",
    .description = "Greets somebody by name, after waiting the given number of seconds.",
    .input_schema =
        "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"name\"],"
        "\"properties\":{"
        "\"name\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Whom to greet.\"},"
        "\"seconds\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":3600,"
        "\"description\":\"How long to wait first.\"}}}",
    .hints = KCAP_HINT_READ_ONLY | KCAP_HINT_IDEMPOTENT,
};
static const struct kcap_tool *const hello_tools[] = {&hello_tool, NULL};

KCAP_REGISTER(KCAP_CLASS_DRIVER, .threads = KCAP_THREADS_PARALLEL, .name = "hello",
              .version = "1.0", .summary = "greets people", .tools = hello_tools,
              .init = hello_init, .call = hello_call);
