/* SPDX-License-Identifier: Apache-2.0 */
/* The host table: what plugin.h promises, on top of calls, waits and wire. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/calls.h"
#include "host/log.h"
#include "host/reply.h"
#include "host/waits.h"
#include "host/wire.h"
#include "lib/jscan.h"
#include "lib/service.h"
#include "lib/text.h"

#define PROGRESS_EVERY_NS (20 * (int64_t)NS_PER_MS)
#define MAX_BACKGROUND    64

static void
table_log(const struct kcap_host *host, int32_t level, const char *line)
{
    (void)host;
    log_line(level, line);
}

static const char *
table_option(const struct kcap_host *table, const char *name)
{
    const struct cli *cli = host_of(table)->cli;
    size_t len = strlen(name);
    const char *value = NULL;

    for (int i = 0; i < cli->n_options; i++) {
        if (strncmp(cli->options[i], name, len) == 0 && cli->options[i][len] == '=')
            value = cli->options[i] + len + 1;
    }
    return value;
}

static const char *
table_env(const struct kcap_host *host, const char *name)
{
    (void)host;
    return getenv(name);
}

static int64_t
table_now_ns(const struct kcap_host *host)
{
    (void)host;
    return host_now_ns();
}

static int64_t
table_wall_ms(const struct kcap_host *host)
{
    struct timespec now;

    (void)host;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / NS_PER_MS;
}

static uint64_t
table_seq(const struct kcap_host *table)
{
    struct host *host = host_of(table);
    uint64_t seq;

    (void)pthread_mutex_lock(&host->lock);
    seq = host->seq;
    (void)pthread_mutex_unlock(&host->lock);
    return seq;
}

static void
table_notify(const struct kcap_host *table)
{
    waits_notify(host_of(table));
}

static int64_t
table_remaining_ms(struct kcap_call *call)
{
    int64_t left_ns;

    if (call->deadline_ns == KCAP_TIME_NEVER)
        return INT64_MAX;
    left_ns = call->deadline_ns - host_now_ns();
    return left_ns > 0 ? left_ns / NS_PER_MS : 0;
}

static uint64_t
table_serial(struct kcap_call *call)
{
    return call->serial;
}

static void
table_client(struct kcap_call *call, struct kcap_client *ret)
{
    struct kcap_client client = {
        .struct_size = ret->struct_size,
        .name = call->caller.name,
        .version = call->caller.version,
        .harness = call->caller.harness,
        .session_id = call->caller.session_id,
        .session_source = call->caller.session_source,
        .meta = call->caller.meta,
    };

    memcpy(ret, &client, ret->struct_size < sizeof client ? ret->struct_size : sizeof client);
}

/* The call from the shell: a line a person can read. */
static void
show_progress(double done, double total, const char *text)
{
    if (text)
        log_line(KCAP_LOG_INFO, text);
    else if (total > 0)
        log_linef(KCAP_LOG_INFO, "%.0f of %.0f", done, total);
}

static int32_t
table_progress(struct kcap_call *call, double done, double total, const char *text)
{
    struct host *host = call->host;
    AUTO_BUF struct buf line = BUF_INIT(1u << 20);
    int64_t now_ns = host_now_ns();
    bool due;
    int32_t end;

    (void)pthread_mutex_lock(&host->lock);
    end = waits_end(call, now_ns);
    due = !end && call->kind == CALL_TOOL && !call->answered && !call->over && isfinite(done) &&
          done > call->progress_done &&
          (call->progress_ns == 0 || now_ns - call->progress_ns >= PROGRESS_EVERY_NS);
    if (due && host->wire)
        due = call->progress_token && wire_pending(host->wire) < WIRE_PROGRESS_MAX;
    if (due) {
        call->progress_done = done;
        call->progress_ns = now_ns;
        if (host->wire) {
            reply_progress(&line, call->progress_token, done, total, text);
            (void)wire_queue(host->wire, &line, NULL); /* under lock: never after the answer */
        }
    }
    (void)pthread_mutex_unlock(&host->lock);
    if (due && host->wire)
        wire_flush(host->wire);
    else if (due)
        show_progress(done, total, text);
    return end;
}

/* The plugin's own JSON goes out inside our line, so it is checked here. */
static bool
is_json(const char *json, size_t len, char type)
{
    struct jscan scan;

    return jscan(json, len, &scan) == JSCAN_OK && span_type(scan.value) == type;
}

static int32_t
answer_defect(struct kcap_call *call, const char *what)
{
    log_linef(KCAP_LOG_ERROR, "tool %s: %s", call->tool ? call->tool->name : "?", what);
    call_answer_error(call, what);
    return KCAP_E_INVALID;
}

static int32_t
give_answer(struct kcap_call *call, const struct answer *answer)
{
    if (answer->json && !is_json(answer->json, answer->json_len, '{'))
        return answer_defect(call,
                             "The plugin's structured result is not a JSON object; this is a "
                             "defect of the plugin.");
    if (answer->is_content && !is_json(answer->text, answer->text_len, '['))
        return answer_defect(
            call, "The plugin's content is not a JSON array; this is a defect of the "
                  "plugin.");
    return call_answer(call, answer);
}

static int32_t
table_result(struct kcap_call *call, int32_t is_error, const char *text, size_t text_len,
             const char *json, size_t json_len)
{
    struct answer answer = {.is_error = is_error != 0,
                            .text = text,
                            .text_len = text_len,
                            .json = json,
                            .json_len = json_len};

    return give_answer(call, &answer);
}

static int32_t
table_content(struct kcap_call *call, int32_t is_error, const char *content, size_t content_len,
              const char *json, size_t json_len)
{
    struct answer answer = {.is_error = is_error != 0,
                            .text = content,
                            .text_len = content_len,
                            .is_content = true,
                            .json = json,
                            .json_len = json_len};

    return give_answer(call, &answer);
}

static int32_t
table_require(struct kcap_call *call, const char *capability)
{
    struct answer answer = {.missing_capability = capability, .text = ""};
    AUTO_BUF struct buf text = BUF_INIT(1024);
    struct jscan scan;

    if (call->capabilities &&
        jscan(call->capabilities, strlen(call->capabilities), &scan) == JSCAN_OK &&
        span_get(scan.value, capability).p)
        return KCAP_OK;
    if (call->stateless) {
        (void)call_answer(call, &answer);
    } else {
        buf_addf(
            &text,
            "This tool needs a client with the capability '%s', which yours does not declare.",
            capability);
        call_answer_error(call, buf_str(&text));
    }
    return KCAP_E_UNSUPPORTED;
}

static int32_t
table_background(const struct kcap_host *table, void (*fn)(struct kcap_call *call, void *arg),
                 void (*drop)(void *arg), void *arg)
{
    struct host *host = host_of(table);
    struct kcap_call *call;
    unsigned running = 0;
    int32_t r;

    (void)pthread_mutex_lock(&host->lock);
    for (call = host->calls; call; call = call->next)
        running += call->kind == CALL_BACKGROUND;
    (void)pthread_mutex_unlock(&host->lock);
    if (running >= MAX_BACKGROUND)
        return KCAP_E_BUSY;
    call = call_new(host, CALL_BACKGROUND);
    if (!call)
        return KCAP_E_NOMEM;
    call->bg_run = fn;
    call->bg_drop = drop;
    call->bg_arg = arg;
    r = call_start(call);
    host_wake_main(host); /* it adds the thread that this may need */
    return r;
}

/* The one extension there is, from its service module. A setup plugin has no network at all. */
static const void *
table_extension(const struct kcap_host *table, const char *name)
{
    struct host *host = host_of(table);
    const struct kcap_service *service;
    const void *found;

    if (strcmp(name, "kcap.http/1") != 0 || host->plugin.trust_class == KCAP_CLASS_SETUP)
        return NULL;
    (void)pthread_mutex_lock(&host->extension_lock);
    if (!host->http) {
        service = loader_open_service(host->cli, "http");
        if (service && strcmp(service->provides, name) == 0)
            host->http = service->open(&host->table, host->plugin.trust_class);
    }
    found = host->http;
    (void)pthread_mutex_unlock(&host->extension_lock);
    return found;
}

void
host_table_init(struct host *host)
{
    host->table = (struct kcap_host){
        .struct_size = sizeof(struct kcap_host),
        .abi_major = KCAP_ABI_MAJOR,
        .abi_minor = KCAP_ABI_MINOR,
        .log = table_log,
        .option = table_option,
        .env = table_env,
        .now_ns = table_now_ns,
        .wall_ms = table_wall_ms,
        .seq = table_seq,
        .notify = table_notify,
        .wait = waits_wait,
        .wake_fd = waits_wake_fd,
        .remaining_ms = table_remaining_ms,
        .serial = table_serial,
        .client = table_client,
        .progress = table_progress,
        .result = table_result,
        .content = table_content,
        .require = table_require,
        .background = table_background,
        .extension = table_extension,
    };
}
