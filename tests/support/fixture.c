/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin that tests of the host call: one tool for each way a tool can behave. Never
 * installed. */
#include "config.h"

#include <fcntl.h>
#include <kcap/plugin.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/json.h"

#define NS_PER_MS INT64_C(1000000)

static const struct kcap_host *host;

static void
say(struct kcap_call *call, const char *text)
{
    (void)host->result(call, 0, text, strlen(text), NULL, 0);
}

static void
do_echo(struct kcap_call *call, const cJSON *args)
{
    say(call, json_str(args, "text"));
}

/* Sleeps through the host, telling how far it is; each end of the wait has its own text. */
static void
do_slow(struct kcap_call *call, const cJSON *args)
{
    int64_t ms = 0, start_ns = host->now_ns(host), until_ns, step_ns;
    char text[64];
    int32_t r;

    (void)json_int(args, "ms", &ms);
    until_ns = start_ns + ms * NS_PER_MS;
    do {
        step_ns = host->now_ns(host) + 50 * NS_PER_MS;
        r = host->wait(call, KCAP_SEQ_NONE, NULL, 0, step_ns < until_ns ? step_ns : until_ns);
        (void)host->progress(call, (double)((host->now_ns(host) - start_ns) / NS_PER_MS),
                             (double)ms, "sleeping");
    } while (r == KCAP_WAIT_TIMEOUT && host->now_ns(host) < until_ns);
    (void)snprintf(text, sizeof text, r == KCAP_WAIT_DEADLINE ? "window over" : "slept %lld",
                   (long long)ms);
    if (r == KCAP_WAIT_TIMEOUT || r == KCAP_WAIT_DEADLINE)
        say(call, text);
    kcap_logf(host, KCAP_LOG_INFO, "slow ended %d", r);
}

static void
do_structured(struct kcap_call *call, const cJSON *args)
{
    int64_t a = 0;
    char json[64];

    (void)json_int(args, "a", &a);
    (void)snprintf(json, sizeof json, "{\"sum\":\n%lld}", (long long)a + 1);
    (void)host->result(call, 0, json, strlen(json), json, strlen(json));
}

/* Writes where the protocol used to be. */
static void
do_noise(struct kcap_call *call, const cJSON *args)
{
    (void)args;
    (void)puts("noise on standard output");
    (void)fflush(stdout);
    say(call, "quiet");
}

static void
do_fail(struct kcap_call *call, const cJSON *args)
{
    static const char text[] = "failed as asked";

    (void)args;
    (void)host->result(call, 1, text, sizeof text - 1, NULL, 0);
}

static void
do_silent(struct kcap_call *call, const cJSON *args)
{
    (void)call;
    (void)args;
}

/* Goes on past its window, deaf to every end but the process's. */
static void
do_deaf(struct kcap_call *call, const cJSON *args)
{
    int64_t ms = 0, until_ns;

    (void)json_int(args, "ms", &ms);
    until_ns = host->now_ns(host) + ms * NS_PER_MS;
    while (host->now_ns(host) < until_ns &&
           host->wait(call, KCAP_SEQ_NONE, NULL, 0, until_ns) != KCAP_WAIT_SHUTDOWN)
        ;
    say(call, "too late");
}

static void
do_bad_json(struct kcap_call *call, const cJSON *args)
{
    (void)args;
    (void)host->result(call, 0, "text", 4, "[1]", 3);
}

/* ---- what the official conformance suite calls by name ---- */

#define PNG                                                                                    \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E" \
    "rkJggg=="
#define WAV               "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
#define TEXT_BLOCK(text_) "{\"type\":\"text\",\"text\":\"" text_ "\"}"
#define IMAGE_BLOCK       "{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}"

static void
say_content(struct kcap_call *call, const char *blocks)
{
    (void)host->content(call, 0, blocks, strlen(blocks), NULL, 0);
}

static void
do_simple_text(struct kcap_call *call, const cJSON *args)
{
    (void)args;
    say(call, "This is a simple text response for testing.");
}

static void
do_image(struct kcap_call *call, const cJSON *args)
{
    (void)args;
    say_content(call, "[" IMAGE_BLOCK "]");
}

static void
do_audio(struct kcap_call *call, const cJSON *args)
{
    (void)args;
    say_content(call, "[{\"type\":\"audio\",\"data\":\"" WAV "\",\"mimeType\":\"audio/wav\"}]");
}

static void
do_resource(struct kcap_call *call, const cJSON *args)
{
    (void)args;
    say_content(call,
                "[{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded-resource\","
                "\"mimeType\":\"text/plain\",\"text\":\"This is an embedded resource "
                "content.\"}}]");
}

static void
do_mixed(struct kcap_call *call, const cJSON *args)
{
    (void)args;
    say_content(
        call,
        "[" TEXT_BLOCK("Multiple content types test:") "," IMAGE_BLOCK
                                                       ",\n{\"type\":\"resource\",\"resource\":"
                                                       "{\"uri\":\"test://mixed-content-"
                                                       "resource\",\"mimeType\":\"application/"
                                                       "json\",\"text\":\"{}\"}}]");
}

static void
do_progress(struct kcap_call *call, const cJSON *args)
{
    (void)args;
    for (int done = 0; done <= 100; done += 50) {
        (void)host->progress(call, done, 100, NULL);
        if (host->wait(call, KCAP_SEQ_NONE, NULL, 0, host->now_ns(host) + 50 * NS_PER_MS) !=
            KCAP_WAIT_TIMEOUT)
            return;
    }
    say(call, "done");
}

static void
do_sampling(struct kcap_call *call, const cJSON *args)
{
    (void)args;
    if (host->require(call, "sampling") == KCAP_OK)
        say(call, "it is there");
}

static void
do_elicitation(struct kcap_call *call, const cJSON *args)
{
    (void)args;
    if (host->require(call, "elicitation") == KCAP_OK)
        say(call, "no input needed");
}

/* ---- ways to hold a call wrong ---- */

static void
do_twice(struct kcap_call *call, const cJSON *args)
{
    (void)args;
    say(call, "first");
    say(call, "second");
}

static struct kcap_call *_Atomic kept;

static void
use_stale_handle(struct kcap_call *bg_call, void *arg)
{
    int64_t until_ns = host->now_ns(host) + 200 * NS_PER_MS;

    (void)arg;
    (void)host->wait(bg_call, KCAP_SEQ_NONE, NULL, 0, until_ns);
    say(kept, "too late");
    kcap_logf(host, KCAP_LOG_INFO, "stale: wait %d, progress %d, wake_fd %d",
              host->wait(kept, KCAP_SEQ_NONE, NULL, 0, KCAP_TIME_NEVER),
              host->progress(kept, 1, 2, NULL), host->wake_fd(kept));
}

static void
do_after_return(struct kcap_call *call, const cJSON *args)
{
    (void)args;
    kept = call;
    say(call, "in time");
    (void)host->background(host, use_stale_handle, NULL, NULL);
}

static void
do_wait_after_cancel(struct kcap_call *call, const cJSON *args)
{
    int32_t first, second;

    (void)args;
    host->log(host, KCAP_LOG_INFO, "waits for its cancel");
    first = host->wait(call, KCAP_SEQ_NONE, NULL, 0, KCAP_TIME_NEVER);
    second = host->wait(call, KCAP_SEQ_NONE, NULL, 0, KCAP_TIME_NEVER);
    kcap_logf(host, KCAP_LOG_INFO, "waits after the end: %d %d, progress %d", first, second,
              host->progress(call, 1, 2, NULL));
    say(call, "nobody hears this");
}

/* Closes what is the host's to close, and lets the number be taken by something else. */
static void
do_close_wake_fd(struct kcap_call *call, const cJSON *args)
{
    int fd = host->wake_fd(call), again;

    (void)args;
    (void)close(fd);
    again = open("/dev/null", O_RDONLY | O_CLOEXEC);
    kcap_logf(host, KCAP_LOG_INFO, "the number %s taken again",
              fd == again ? "was" : "was not");
    say(call, "closed");
}

static void
log_end(struct kcap_call *bg_call, void *arg)
{
    (void)arg;
    kcap_logf(host, KCAP_LOG_INFO, "background ended %d",
              host->wait(bg_call, KCAP_SEQ_NONE, NULL, 0, KCAP_TIME_NEVER));
}

static void
do_background(struct kcap_call *call, const cJSON *args)
{
    int32_t r = KCAP_OK;
    int n = 0;

    (void)args;
    while (n < 1000 && (r = host->background(host, log_end, NULL, NULL)) == KCAP_OK)
        n++;
    kcap_logf(host, KCAP_LOG_INFO, "background jobs: %d, then %d", n, r);
    say(call, "started");
}

static _Atomic bool helped;

static void
help(struct kcap_call *bg_call, void *arg)
{
    (void)bg_call;
    (void)arg;
    atomic_store(&helped, true);
    host->notify(host);
}

/* Waits for a job of its own, after the host has seen it wait. */
static void
do_wait_for_job(struct kcap_call *call, const cJSON *args)
{
    uint64_t seq;
    int32_t r = KCAP_WAIT_CHANGED;

    (void)args;
    (void)host->wait(call, KCAP_SEQ_NONE, NULL, 0, host->now_ns(host) + 300 * NS_PER_MS);
    seq = host->seq(host);
    (void)host->background(host, help, NULL, NULL);
    while (!atomic_load(&helped) && r == KCAP_WAIT_CHANGED) {
        r = host->wait(call, seq, NULL, 0, host->now_ns(host) + 3000 * NS_PER_MS);
        seq = host->seq(host);
    }
    say(call, atomic_load(&helped) ? "helped" : "nobody came");
}

/* Readable once the call ends; an outside poll loop would watch it. */
static void
do_wake_fd(struct kcap_call *call, const cJSON *args)
{
    struct pollfd polled = {.fd = host->wake_fd(call), .events = POLLIN};
    int first, again;

    (void)args;
    if (polled.fd < 0) {
        (void)host->result(call, 1, "no descriptor", 13, NULL, 0);
        return;
    }
    host->log(host, KCAP_LOG_INFO, "wake_fd is watched");
    first = poll(&polled, 1, 20000);
    again = poll(&polled, 1, 0);
    kcap_logf(host, KCAP_LOG_INFO, "wake_fd polled %d, then %d", first, again);
    say(call, "woken");
}

/* Who the host says is calling. */
static void
do_whoami(struct kcap_call *call, const cJSON *args)
{
    struct kcap_client client = {.struct_size = sizeof client};
    char text[512];

    (void)args;
    host->client(call, &client);
    (void)snprintf(
        text, sizeof text, "name=%s version=%s harness=%s session=%s from=%s window=%lld",
        client.name ? client.name : "-", client.version ? client.version : "-",
        client.harness ? client.harness : "-", client.session_id ? client.session_id : "-",
        client.session_source ? client.session_source : "-",
        (long long)((host->remaining_ms(call) + 999) / 1000));
    say(call, text);
}

static const struct tool {
    struct kcap_tool tool;
    void (*run)(struct kcap_call *call, const cJSON *args);
} table[] = {
#define TOOL(name_, description_, schema_, output_, hints_) \
    .tool = {                                               \
        sizeof(struct kcap_tool), 0, name_, NULL, description_, schema_, output_, hints_, 0}
    {TOOL("echo", "Says text back.",
          "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\",\"description\":"
          "\"What "
          "to say.\"}},\"required\":[\"text\"],\"additionalProperties\":false}",
          NULL, KCAP_HINT_READ_ONLY),
     .run = do_echo},
    {TOOL("slow", "Waits.",
          "{\"type\":\"object\",\"properties\":{\"ms\":{\"type\":\"integer\",\"minimum\":0}},"
          "\"required\":[\"ms\"],\"additionalProperties\":false}",
          NULL, KCAP_HINT_READ_ONLY),
     .run = do_slow},
    {TOOL(
         "structured", "Gives structured content.",
         "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},\"required\":["
         "\"a\"]}",
         "{\"type\":\"object\",\n\"properties\":{\"sum\":{\"type\":\"integer\"}},\"required\":["
         "\"sum\"]}",
         0),
     .run = do_structured},
    {TOOL("noise", "Prints to standard output.", "{\"type\":\"object\"}", NULL, 0),
     .run = do_noise},
    {TOOL("test_error_handling", "Fails.", "{\"type\":\"object\"}", NULL, 0), .run = do_fail},
    {TOOL("silent", "Returns without a result.", "{\"type\":\"object\"}", NULL, 0),
     .run = do_silent},
    {TOOL("deaf", "Overruns its window.",
          "{\"type\":\"object\",\"properties\":{\"ms\":{\"type\":\"integer\"}}}", NULL, 0),
     .run = do_deaf},
    {TOOL("bad_json", "Gives bad structured content.", "{\"type\":\"object\"}", NULL, 0),
     .run = do_bad_json},
    {TOOL("twice", "Answers twice.", "{\"type\":\"object\"}", NULL, 0), .run = do_twice},
    {TOOL("after_return", "Uses its handle later.", "{\"type\":\"object\"}", NULL, 0),
     .run = do_after_return},
    {TOOL("wait_after_cancel", "Waits on.", "{\"type\":\"object\"}", NULL, 0),
     .run = do_wait_after_cancel},
    {TOOL("close_wake_fd", "Closes the host's fd.", "{\"type\":\"object\"}", NULL, 0),
     .run = do_close_wake_fd},
    {TOOL("background", "Starts jobs.", "{\"type\":\"object\"}", NULL, 0),
     .run = do_background},
    {TOOL("wait_for_job", "Waits for a job.", "{\"type\":\"object\"}", NULL, 0),
     .run = do_wait_for_job},
    {TOOL("wake_fd", "Polls by itself.", "{\"type\":\"object\"}", NULL, 0), .run = do_wake_fd},
    {TOOL("whoami", "Says who is calling.", "{\"type\":\"object\"}", NULL, 0),
     .run = do_whoami},
    {TOOL("test_simple_text", "One text.", "{\"type\":\"object\"}", NULL, 0),
     .run = do_simple_text},
    {TOOL("test_image_content", "An image.", "{\"type\":\"object\"}", NULL, 0),
     .run = do_image},
    {TOOL("test_audio_content", "A sound.", "{\"type\":\"object\"}", NULL, 0), .run = do_audio},
    {TOOL("test_embedded_resource", "A resource.", "{\"type\":\"object\"}", NULL, 0),
     .run = do_resource},
    {TOOL("test_multiple_content_types", "Several.", "{\"type\":\"object\"}", NULL, 0),
     .run = do_mixed},
    {TOOL("test_tool_with_progress", "Three steps.", "{\"type\":\"object\"}", NULL, 0),
     .run = do_progress},
    {TOOL("test_missing_capability", "Needs sampling.", "{\"type\":\"object\"}", NULL, 0),
     .run = do_sampling},
    {TOOL("test_streaming_elicitation", "Needs elicitation.", "{\"type\":\"object\"}", NULL, 0),
     .run = do_elicitation},
    {TOOL("test_logging_tool", "Logs nothing to the client.", "{\"type\":\"object\"}", NULL, 0),
     .run = do_simple_text},
    {TOOL("json_schema_2020_12_tool", "Its schema comes back as it is.",
          "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","
          "\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\","
          "\"properties\":{"
          "\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},\"properties\":{"
          "\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"
          "\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"
          "\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"
          "\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"
          "\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},\"required\":["
          "\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},\"else\":{\"required\":["
          "\"email\"]},"
          "\"additionalProperties\":false}",
          NULL, 0),
     .run = do_simple_text},
};
#define N_TOOLS (sizeof table / sizeof table[0])

static int32_t
fixture_init(const struct kcap_host *given, void **ret_ctx)
{
    host = given;
    *ret_ctx = NULL;
    return KCAP_OK;
}

static int32_t
fixture_call(void *ctx, struct kcap_call *call, const struct kcap_tool *tool, const char *args,
             size_t args_len)
{
    AUTO_JSON cJSON *parsed = json_parse(args, args_len, NULL);

    (void)ctx;
    for (size_t i = 0; i < N_TOOLS; i++) {
        if (&table[i].tool == tool)
            table[i].run(call, parsed);
    }
    return KCAP_OK;
}

static void
fixture_fini(void *ctx)
{
    (void)ctx;
    host->log(host, KCAP_LOG_INFO, "fini");
}

/* Tests read these lines: what became of each answer. */
static void
fixture_settled(void *ctx, uint64_t serial, uint32_t outcome)
{
    (void)ctx;
    kcap_logf(host, KCAP_LOG_INFO, "settled %llu %u", (unsigned long long)serial, outcome);
}

static int32_t
run_hello(void *ctx, struct kcap_call *call, int32_t argc, const char *const *argv)
{
    (void)ctx;
    (void)call;
    (void)printf("hello %s\n", argc > 1 ? argv[1] : "nobody");
    return fflush(stdout) == 0 ? 7 : 1;
}

static const struct kcap_tool *const tools[] = {
    &table[0].tool,  &table[1].tool,  &table[2].tool,
    &table[3].tool,  &table[4].tool,  &table[5].tool,
    &table[6].tool,  &table[7].tool,  &table[8].tool,
    &table[9].tool,  &table[10].tool, &table[11].tool,
    &table[12].tool, &table[13].tool, &table[14].tool,
    &table[15].tool, &table[16].tool, &table[17].tool,
    &table[18].tool, &table[19].tool, &table[20].tool,
    &table[21].tool, &table[22].tool, &table[23].tool,
    &table[24].tool, &table[25].tool, NULL};
_Static_assert(sizeof tools / sizeof tools[0] == N_TOOLS + 1, "every tool is listed");
static const struct kcap_command hello = {sizeof hello, 0, "hello", "prints a greeting",
                                          run_hello};
static const struct kcap_command *const commands[] = {&hello, NULL};
static const struct kcap_option colour = {sizeof colour, 0, "colour", "any word"};
static const struct kcap_option *const options[] = {&colour, NULL};

KCAP_REGISTER(KCAP_CLASS_DRIVER, .threads = KCAP_THREADS_PARALLEL, .name = "fixture",
              .version = "1", .summary = "for tests of the host", .tools = tools,
              .commands = commands, .options = options, .init = fixture_init,
              .call = fixture_call, .settled = fixture_settled, .fini = fixture_fini);
