/* SPDX-License-Identifier: Apache-2.0 */
/* One call or one command from the shell, instead of serving MCP. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/calls.h"
#include "host/descriptor.h"
#include "host/log.h"
#include "host/signals.h"
#include "lib/auto.h"
#include "lib/buf.h"
#include "lib/jscan.h"

#define MAX_ARGUMENT (16u << 20)
#define SETTLE_NS    (500 * (int64_t)NS_PER_MS)

/* The call's JSON: the word itself, @FILE, or - for standard input; {} without one. */
static int
read_argument(const char *word, struct buf *ret)
{
    AUTO_CLOSE int opened = -1;
    const char *name = word;
    int fd = STDIN_FILENO;
    ssize_t n;

    if (!word) {
        buf_adds(ret, "{}");
        return 0;
    }
    if (word[0] == '{') {
        buf_adds(ret, word);
        return buf_ok(ret) ? 0 : -1;
    }
    if (word[0] == '@') {
        name = word + 1;
        fd = opened = open(name, O_RDONLY | O_CLOEXEC);
    }
    while (fd >= 0 && buf_reserve(ret, 65536) &&
           (n = read(fd, ret->data + ret->len, 65536)) != 0) {
        if (n < 0 && errno != EINTR) {
            fd = -1;
            break;
        }
        ret->len += n > 0 ? (size_t)n : 0;
    }
    if (fd < 0 || !buf_ok(ret)) {
        log_linef(KCAP_LOG_ERROR, "arguments from %s: %s", name,
                  fd < 0 ? strerror(errno) : "longer than 16 MiB");
        return -1;
    }
    return 0;
}

static struct kcap_call *
new_call(struct host *host, size_t tool, const struct buf *arguments)
{
    struct kcap_call *call = call_new(host, CALL_TOOL);

    if (!call)
        return NULL;
    call->refs++; /* ours, to read the answer; the signal thread uses it to the end */
    call->tool = host->plugin.desc.tools[tool];
    call->schema = host->plugin.schemas[tool];
    call->args = strndup(buf_str(arguments), arguments->len);
    call->args_len = arguments->len;
    call->may_hold_nul = true;
    call->caller.name = strdup(PACKAGE_NAME);
    call->caller.version = strdup(PACKAGE_VERSION);
    call->caller.harness = "shell";
    (void)session_find((struct span){NULL, 0}, &call->caller);
    if (host->cli->call_window_ns > 0)
        call->deadline_ns = host_now_ns() + host->cli->call_window_ns;
    return call;
}

/* Waits until the plugin is done and does the main thread's chores meanwhile. */
static void
wait_for(struct host *host, struct kcap_call *call)
{
    (void)pthread_mutex_lock(&host->lock);
    while (!call->returned) {
        int64_t next_ns;

        (void)pthread_mutex_unlock(&host->lock);
        next_ns = host_tick(host);
        (void)pthread_mutex_lock(&host->lock);
        if (!call->returned)
            (void)clock_cond_wait_until(&host->changed, &host->lock, next_ns);
    }
    (void)pthread_mutex_unlock(&host->lock);
}

/* The plugin hears what became of its answer before the process goes, if that takes no time. */
static void
finish_settling(struct host *host)
{
    int64_t until_ns = host_now_ns() + SETTLE_NS;

    (void)pthread_mutex_lock(&host->lock);
    while (host->settling && clock_cond_wait_until(&host->changed, &host->lock, until_ns))
        ;
    (void)pthread_mutex_unlock(&host->lock);
}

static int
print_answer(const struct kcap_call *call)
{
    if (!call->text) {
        log_line(KCAP_LOG_INFO, "the call was cancelled; what it had started goes on");
        return 1;
    }
    if (fwrite(call->text, 1, call->text_len, stdout) != call->text_len ||
        (call->text_len > 0 && call->text[call->text_len - 1] != '\n' &&
         putchar('\n') == EOF) ||
        fflush(stdout) != 0) {
        log_linef(KCAP_LOG_ERROR, "the result cannot be written: %s", strerror(errno));
        return 1;
    }
    return call->is_error ? 1 : 0;
}

int
host_call_once(struct host *host)
{
    const struct kcap_tool *const *tools = host->plugin.desc.tools;
    AUTO_BUF struct buf arguments = BUF_INIT(MAX_ARGUMENT);
    struct kcap_call *call;
    struct jscan scan;
    size_t tool = 0;
    int status;

    while (tools && tools[tool] && strcmp(tools[tool]->name, host->cli->call_tool) != 0)
        tool++;
    if (!tools || !tools[tool]) {
        log_linef(KCAP_LOG_ERROR, "no tool %s (kcap-host --plugin %s --help lists them)",
                  host->cli->call_tool, host->plugin.desc.name);
        return EXIT_REFUSED;
    }
    if (read_argument(host->cli->call_argument, &arguments) < 0)
        return EXIT_REFUSED;
    if (jscan(buf_str(&arguments), arguments.len, &scan) != JSCAN_OK ||
        span_type(scan.value) != '{') {
        log_line(KCAP_LOG_ERROR, "the arguments are not a JSON object");
        return EXIT_REFUSED;
    }
    call = new_call(host, tool, &arguments);
    if (!call || !call->args || signals_cancel_on_interrupt(call) < 0 ||
        call_start(call) != KCAP_OK) {
        log_line(KCAP_LOG_ERROR, "out of memory or threads");
        return 1;
    }
    wait_for(host, call);
    status = print_answer(call);
    finish_settling(host);
    host_end(host);
    return signals_caught() ? 128 + signals_caught() : status;
}

int
host_run_command(struct host *host)
{
    const struct kcap_command *const *commands = host->plugin.desc.commands;
    const struct cli *cli = host->cli;
    struct kcap_call *call;
    size_t c = 0;

    while (commands && commands[c] && strcmp(commands[c]->name, cli->command[0]) != 0)
        c++;
    if (!commands || !commands[c]) {
        log_linef(KCAP_LOG_ERROR, "no command %s (kcap-host --plugin %s --help lists them)",
                  cli->command[0], host->plugin.desc.name);
        return EXIT_REFUSED;
    }
    call = call_new(host, CALL_COMMAND);
    if (!call || signals_cancel_on_interrupt(call) < 0) {
        log_line(KCAP_LOG_ERROR, "out of memory or threads");
        return 1;
    }
    call_adopt(call);
    return commands[c]->run(host->ctx, call, cli->n_command,
                            (const char *const *)(uintptr_t)cli->command);
}
