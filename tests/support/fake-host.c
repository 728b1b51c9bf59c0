/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "fake-host.h"

#include <assert.h>
#include <dlfcn.h>
#include <fnmatch.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake-private.h"

#define MAX_LOG ((size_t)1 << 20)

static struct fake_host *
fake_of(const struct kcap_host *host)
{
    return (struct fake_host *)(uintptr_t)host;
}

bool
fake_host_fails(struct fake_host *fake)
{
    if (fake->fail_at == 0 || --fake->fail_at > 0)
        return false;
    fake->failed = true;
    return true;
}

static int32_t
host_wait(struct kcap_call *call, uint64_t seen, struct kcap_fd *fds, uint32_t n,
          int64_t until_ns)
{
    if (!call->ended && fake_host_fails(call->fake))
        return KCAP_E_IO;
    return fake_wait(call, seen, fds, n, until_ns);
}

/* ---- the rest of the table ---- */

static void
host_log(const struct kcap_host *host, int32_t level, const char *line)
{
    (void)level;
    buf_adds(&fake_of(host)->log, line);
    buf_addc(&fake_of(host)->log, '\n');
}

static const char *
look_up(const struct setting *list, const char *name)
{
    for (; list; list = list->next) {
        if (strcmp(list->name, name) == 0)
            return list->value;
    }
    return NULL;
}

static const char *
host_option(const struct kcap_host *host, const char *name)
{
    return look_up(fake_of(host)->options, name);
}

static const char *
host_env(const struct kcap_host *host, const char *name)
{
    return look_up(fake_of(host)->env, name);
}

static int64_t
host_now_ns(const struct kcap_host *host)
{
    return fake_now_ns(fake_of(host));
}

static int64_t
host_wall_ms(const struct kcap_host *host)
{
    return INT64_C(1700000000000) + host_now_ns(host) / FAKE_NS_PER_MS;
}

static uint64_t
host_seq(const struct kcap_host *host)
{
    return fake_of(host)->seq;
}

static void
host_notify(const struct kcap_host *host)
{
    fake_of(host)->seq++;
}

static int32_t
host_wake_fd(struct kcap_call *call)
{
    (void)call;
    return KCAP_E_UNSUPPORTED; /* nothing of ours asks for it */
}

static int64_t
host_remaining_ms(struct kcap_call *call)
{
    int64_t left_ns = call->deadline_ns - host_now_ns(&call->fake->table);

    if (call->deadline_ns == FAKE_NEVER)
        return INT64_MAX;
    return left_ns > 0 ? left_ns / FAKE_NS_PER_MS : 0;
}

static uint64_t
host_serial(struct kcap_call *call)
{
    return call->serial;
}

static void
host_client(struct kcap_call *call, struct kcap_client *ret)
{
    ret->name = call->outer ? call->outer->client_name : NULL;
    ret->harness = call->outer ? call->outer->harness : NULL;
    ret->session_id = call->outer ? call->outer->session_id : NULL;
    ret->session_source = call->outer ? call->outer->session_source : NULL;
}

static int32_t
host_progress(struct kcap_call *call, double done, double total, const char *text)
{
    (void)total;
    assert(call->outer);
    assert(call->outer->n_progress == 0 || done > call->outer->progress);
    call->outer->progress = done;
    free(call->outer->last_progress);
    call->outer->last_progress = strdup(text ? text : "");
    call->outer->n_progress++;
    return fake_call_end(call);
}

static int32_t
host_result(struct kcap_call *call, int32_t is_error, const char *text, size_t text_len,
            const char *json, size_t json_len)
{
    struct fake_call *outer = call->outer;

    assert(outer);
    if (fake_host_fails(call->fake))
        return KCAP_E_NOMEM;
    if (outer->has_result || call->ended == KCAP_WAIT_CANCELLED)
        return 0;
    outer->has_result = true;
    outer->is_error = is_error != 0;
    outer->text = strndup(text, text_len);
    outer->json = json ? strndup(json, json_len) : NULL;
    return 0;
}

static void *
background_main(void *arg)
{
    struct background *bg = arg;

    (void)pthread_mutex_lock(&bg->fake->lock);
    fake_await_turn(bg->fake, &bg->sleeper);
    bg->fn(&bg->call, bg->arg);
    fake_pass_turn(bg->fake);
    (void)pthread_mutex_unlock(&bg->fake->lock);
    return NULL;
}

/* The new thread is put among the sleepers here: it could not do so before our next wait. */
static int32_t
host_background(const struct kcap_host *host, void (*fn)(struct kcap_call *bg_call, void *arg),
                void (*drop)(void *arg), void *arg)
{
    struct fake_host *fake = fake_of(host);
    struct background *bg;

    (void)drop;
    if (fake_host_fails(fake))
        return KCAP_E_BUSY;
    bg = calloc(1, sizeof *bg);
    if (!bg)
        return KCAP_E_NOMEM;
    bg->fake = fake;
    bg->fn = fn;
    bg->arg = arg;
    bg->call =
        (struct kcap_call){.fake = fake, .deadline_ns = FAKE_NEVER, .cancel_ns = FAKE_NEVER};
    if (pthread_create(&bg->thread, NULL, background_main, bg) != 0) {
        free(bg);
        return KCAP_E_IO;
    }
    fake_enlist(fake, &bg->sleeper);
    bg->next = fake->backgrounds;
    fake->backgrounds = bg;
    return 0;
}

static const void *
host_extension(const struct kcap_host *host, const char *name)
{
    struct fake_host *fake = fake_of(host);

    if (strcmp(name, KCAP_HTTP_EXTENSION) != 0 || fake_host_fails(fake))
        return NULL;
    return fake->real_http ? fake->real_http : fake_http_table(fake->http);
}

/* ---- for tests ---- */

struct fake_host *
fake_host_new(void)
{
    struct fake_host *fake = calloc(1, sizeof *fake);

    assert(fake);
    fake->table = (struct kcap_host){
        .struct_size = sizeof fake->table,
        .abi_major = KCAP_ABI_MAJOR,
        .abi_minor = KCAP_ABI_MINOR,
        .log = host_log,
        .option = host_option,
        .env = host_env,
        .now_ns = host_now_ns,
        .wall_ms = host_wall_ms,
        .seq = host_seq,
        .notify = host_notify,
        .wait = host_wait,
        .wake_fd = host_wake_fd,
        .remaining_ms = host_remaining_ms,
        .serial = host_serial,
        .client = host_client,
        .progress = host_progress,
        .result = host_result,
        .background = host_background,
        .extension = host_extension,
    };
    fake->log = BUF_INIT(MAX_LOG);
    fake->now_ns = 1000000000;
    fake->http = fake_http_new(fake);
    (void)pthread_mutex_init(&fake->lock, NULL);
    (void)pthread_cond_init(&fake->cond, NULL);
    (void)pthread_mutex_lock(&fake->lock);
    return fake;
}

static void
free_settings(struct setting *list)
{
    while (list) {
        struct setting *next = list->next;
        free(list);
        list = next;
    }
}

void
fake_host_stop(struct fake_host *fake)
{
    fake->shutdown = true;
    while (fake->backgrounds) {
        struct background *bg = fake->backgrounds;
        fake->backgrounds = bg->next;
        fake_pass_turn(fake);
        (void)pthread_mutex_unlock(&fake->lock);
        (void)pthread_join(bg->thread, NULL);
        (void)pthread_mutex_lock(&fake->lock);
        free(bg);
    }
}

void
fake_host_free(struct fake_host *fake)
{
    fake_host_stop(fake);
    (void)pthread_mutex_unlock(&fake->lock);
    free_settings(fake->env);
    free_settings(fake->options);
    fake_http_free(fake->http);
    buf_fini(&fake->log);
    (void)pthread_mutex_destroy(&fake->lock);
    (void)pthread_cond_destroy(&fake->cond);
    free(fake);
}

const struct kcap_host *
fake_host_table(struct fake_host *fake)
{
    return &fake->table;
}

void
fake_host_use_real_time(struct fake_host *fake)
{
    fake->real = true;
}

static void
add_setting(struct setting **list, const char *name, const char *value)
{
    struct setting *setting = calloc(1, sizeof *setting);

    assert(setting);
    setting->next = *list;
    setting->name = name;
    setting->value = value;
    *list = setting;
}

void
fake_host_setenv(struct fake_host *fake, const char *name, const char *value)
{
    add_setting(&fake->env, name, value);
}

void
fake_host_set_option(struct fake_host *fake, const char *name, const char *value)
{
    add_setting(&fake->options, name, value);
}

void
fake_host_set_server(struct fake_host *fake, uint32_t kind, const char *url, const char *error)
{
    fake_http_set_server(fake->http, kind, url, error);
}

void
fake_host_set_http(struct fake_host *fake, const struct kcap_http *http)
{
    fake->real_http = http;
}

void
fake_host_script(struct fake_host *fake, const struct fake_reply *replies, size_t n)
{
    fake_http_script(fake->http, replies, n);
}

const struct fake_request *
fake_host_requests(struct fake_host *fake, size_t *ret_n)
{
    return fake_http_requests(fake->http, ret_n);
}

size_t
fake_host_count(struct fake_host *fake, const char *method, const char *path)
{
    size_t n, found = 0;
    const struct fake_request *requests = fake_http_requests(fake->http, &n);

    for (size_t i = 0; i < n; i++)
        found +=
            strcmp(requests[i].method, method) == 0 && fnmatch(path, requests[i].path, 0) == 0;
    return found;
}

void
fake_host_fail_at(struct fake_host *fake, unsigned n)
{
    fake->fail_at = n;
    fake->failed = false;
}

bool
fake_host_has_failed(struct fake_host *fake)
{
    return fake->failed;
}

void
fake_host_advance_ms(struct fake_host *fake, int64_t ms)
{
    struct kcap_call call = {.fake = fake, .deadline_ns = FAKE_NEVER, .cancel_ns = FAKE_NEVER};

    (void)fake_wait(&call, KCAP_SEQ_NONE, NULL, 0, fake->now_ns + ms * FAKE_NS_PER_MS);
}

int64_t
fake_host_now_ms(struct fake_host *fake)
{
    return host_now_ns(&fake->table) / FAKE_NS_PER_MS;
}

const char *
fake_host_log(struct fake_host *fake)
{
    return buf_str(&fake->log);
}

const void *
fake_host_load(const char *module, const char *symbol)
{
    char path[4096];
    const char *slash = strrchr(module, '/');
    void *object;
    const void *found;

    (void)snprintf(path, sizeof path, "%s/%.*s/.libs%s", KCAP_BUILDDIR, (int)(slash - module),
                   module, slash);
    object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    found = object ? dlsym(object, symbol) : NULL;
    if (!found) {
        (void)fprintf(stderr, "%s: %s\n", path, dlerror());
        abort();
    }
    return found;
}

void
fake_host_run(struct fake_host *fake, struct fake_call *outer,
              void (*fn)(struct kcap_call *call, void *arg), void *arg)
{
    static atomic_uint_fast64_t serials;
    int64_t began_ns = host_now_ns(&fake->table);
    struct kcap_call call = {
        .fake = fake,
        .outer = outer,
        .serial = atomic_fetch_add(&serials, 1) + 1,
        .deadline_ns =
            outer->window_ms ? began_ns + outer->window_ms * FAKE_NS_PER_MS : FAKE_NEVER,
        .cancel_ns = outer->cancel_after_ms ? began_ns + outer->cancel_after_ms * FAKE_NS_PER_MS
                                            : FAKE_NEVER,
    };

    outer->serial = call.serial;
    fn(&call, arg);
    outer->took_ms = (host_now_ns(&fake->table) - began_ns) / FAKE_NS_PER_MS;
}

struct tool_call {
    const struct kcap_plugin *plugin;
    void *ctx;
    const struct kcap_tool *tool;
    const char *args;
    int32_t returned;
};

static void
run_tool(struct kcap_call *call, void *arg)
{
    struct tool_call *tool_call = arg;

    tool_call->returned = tool_call->plugin->call(tool_call->ctx, call, tool_call->tool,
                                                  tool_call->args, strlen(tool_call->args));
}

void
fake_host_call(struct fake_host *fake, const struct kcap_plugin *plugin, void *ctx,
               const char *tool, const char *args, struct fake_call *call)
{
    struct tool_call tool_call = {.plugin = plugin, .ctx = ctx, .args = args};

    for (const struct kcap_tool *const *t = plugin->tools; *t; t++) {
        if (strcmp((*t)->name, tool) == 0)
            tool_call.tool = *t;
    }
    assert(tool_call.tool);
    fake_host_run(fake, call, run_tool, &tool_call);
    call->returned = tool_call.returned;
}

void
fake_call_fini(struct fake_call *call)
{
    free(call->text);
    free(call->json);
    free(call->last_progress);
    *call = (struct fake_call){.window_ms = 0};
}
