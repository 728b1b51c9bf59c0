/* SPDX-License-Identifier: Apache-2.0 */
/* What is the same for every vendor: the request, the order of the stages, the self-test. */
#include "config.h"

#include "launch/compose.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/codex-error.h"
#include "launch/environment.h"
#include "launch/internal.h"
#include "lib/auto.h"
#include "lib/paths.h"
#include "lib/text.h"

#define MAX_REASON 2048

void
compose_refuse(struct compose *compose, const char *format, ...)
{
    AUTO_BUF struct buf clean = BUF_INIT(8 * MAX_REASON);
    char line[MAX_REASON];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    text_add_line(&clean, line, strlen(line));
    words_add_buf(&compose->reasons, &clean);
}

/* ---- the request ---- */

/* One argument's worth of text that changes no meaning on its way. */
static bool
is_plain(const char *text, size_t max_len)
{
    size_t len = text ? strlen(text) : 0;

    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    }
    return len > 0 && len <= max_len && text_is_utf8(text, len);
}

static void
check_url(struct compose *compose, const char *url)
{
    const char *authority = url ? strstr(url, "://") : NULL;

    if (!url || !url[0]) {
        compose_refuse(compose,
                       "url: none is given, and without a flow server the reviewer could not "
                       "report");
    } else if (!is_plain(url, MAX_ENV_VALUE) || !authority) {
        compose_refuse(compose, "url: it is not an address (http://, https:// or unix:///)");
    } else if (memchr(authority + 3, '@', strcspn(authority + 3, "/?#"))) {
        compose_refuse(compose, "url: it holds a user or password, which would stand in every "
                                "process list; log in instead");
    }
}

static void
add_server_variable(struct compose *compose, const char *name, const char *value)
{
    AUTO_BUF struct buf variable = BUF_INIT(MAX_ENV_VALUE + 256);

    buf_addf(&variable, "%s=%s", name, value ? value : "");
    words_add_buf(&compose->server_env, &variable);
}

static void
take_request(struct compose *compose, const struct compose_request *request)
{
    static const char *const names[] = {[COMPOSE_CODEX] = "codex", [COMPOSE_CLAUDE] = "claude"};
    const char *name = request->program ? request->program : names[request->vendor];
    struct stat st;

    check_url(compose, request->url);
    if (!is_plain(request->agent_id, 256))
        compose_refuse(compose, "agent id: none is given, or it is no plain text");
    if (request->model && !is_plain(request->model, MAX_MODEL))
        compose_refuse(compose, "model: it is no plain text");
    if (request->prompt && request->mode == COMPOSE_APP_SERVER)
        compose_refuse(compose,
                       "prompt: it is sent over standard input in this mode, not given");
    compose->dir = request->dir ? realpath(request->dir, NULL) : NULL;
    if (!compose->dir || stat(compose->dir, &st) < 0 || !S_ISDIR(st.st_mode) ||
        !text_is_utf8(compose->dir, strlen(compose->dir)))
        compose_refuse(compose, "dir: %s is not a directory (with a name in UTF-8)",
                       request->dir ? request->dir : "nothing");
    if (!request->host_program || request->host_program[0] != '/' ||
        access(request->host_program, X_OK) < 0 || !is_plain(request->host_program, PATH_MAX))
        compose_refuse(compose,
                       "kcap-host: %s cannot be run, and without it the reviewer could not "
                       "report",
                       request->host_program ? request->host_program : "its path is unknown;");
    environment_for(request->vendor, request->envp, &compose->env);
    compose->program = environment_find_program(words_list(&compose->env), name);
    if (!compose->program)
        compose_refuse(compose, "%s: there is no such program%s", name,
                       strchr(name, '/') ? "" : " in PATH");
    add_server_variable(compose, "KCAP_URL", request->url);
    add_server_variable(compose, "KCAP_FLOW_AGENT_ID", request->agent_id);
    words_add_all(&compose->server_env, request->server_env);
    if (compose->dir) {
        compose->top = paths_repository_top(compose->dir);
        if (!compose->top)
            compose->top = strdup(compose->dir);
    }
}

static char *
copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

/* The host's own copy of the text "default" means what no model means. */
static bool
names_model(const char *model)
{
    return model && model[0] && strcmp(model, "default") != 0;
}

int
compose_new(const struct compose_request *request, struct compose **ret)
{
    struct compose *compose = calloc(1, sizeof *compose);

    if (!compose)
        return -ENOMEM;
    compose->vendor = request->vendor;
    compose->mode = request->mode;
    compose->host_program = copy(request->host_program);
    compose->model = names_model(request->model) ? strdup(request->model) : NULL;
    compose->prompt = copy(request->prompt);
    take_request(compose, request);
    if ((request->host_program && !compose->host_program) ||
        (names_model(request->model) && !compose->model) ||
        (request->prompt && !compose->prompt) || (compose->dir && !compose->top) ||
        compose->env.failed || compose->server_env.failed) {
        compose_free(compose);
        return -ENOMEM;
    }
    if (compose->reasons.n == 0) {
        if (compose->vendor == COMPOSE_CODEX)
            compose_codex_begin(compose);
        else
            compose_claude_begin(compose);
    }
    *ret = compose;
    return 0;
}

void
compose_free(struct compose *compose)
{
    if (!compose)
        return;
    free(compose->program);
    free(compose->dir);
    free(compose->host_program);
    free(compose->model);
    free(compose->prompt);
    free(compose->top);
    words_fini(&compose->env);
    words_fini(&compose->server_env);
    words_fini(&compose->flags);
    words_fini(&compose->argv);
    words_fini(&compose->selftest_env);
    words_fini(&compose->reasons);
    free(compose);
}

/* ---- answers ---- */

bool
compose_check_step(struct compose *compose, const char *what,
                   const struct compose_answer *answer)
{
    AUTO_BUF struct buf said = BUF_INIT(8192);

    if (answer->status == 0)
        return true;
    codex_error_add(&said, answer->errors, answer->errors_len);
    if (answer->status == COMPOSE_NOT_STARTED)
        compose_refuse(compose, "%s: it cannot be started%s", what, buf_str(&said));
    else if (answer->status == COMPOSE_TIMED_OUT)
        compose_refuse(compose, "%s: no answer in %d s", what, STEP_LIMIT_MS / 1000);
    else if (answer->status == COMPOSE_OVERFLOWED)
        compose_refuse(compose, "%s: its answer does not end", what);
    else if (answer->status < 0)
        compose_refuse(compose, "%s: it was killed%s", what, buf_str(&said));
    else
        compose_refuse(compose, "%s: exit status %d%s", what, answer->status, buf_str(&said));
    return false;
}

/* ---- the self-test of the result server ---- */

static void
add_selftest(struct compose *compose)
{
    static const char *const passed[] = {"HOME", "PATH", "LANG"};
    static const char *const words[] = {"--plugin", "flow-result", "--", "selftest", NULL};

    words_fini(&compose->selftest_env);
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++) {
        const char *value = environment_get(words_list(&compose->env), passed[i]);
        if (value) /* it stands behind NAME= */
            words_add(&compose->selftest_env, value - strlen(passed[i]) - 1);
    }
    words_add_all(&compose->selftest_env, words_list(&compose->server_env));
    words_add(&compose->argv, compose->host_program);
    words_add_all(&compose->argv, words);
}

/* What it says about its trouble is in the last line of its output. */
static void
check_selftest(struct compose *compose, const struct compose_answer *answer)
{
    size_t len = answer->output_len, from;

    if (answer->status <= 0 || len == 0) {
        if (compose_check_step(compose, "kcap-host --plugin flow-result -- selftest", answer))
            compose->stage = STAGE_READY;
        return;
    }
    while (len > 0 && answer->output[len - 1] == '\n')
        len--;
    for (from = len; from > 0 && answer->output[from - 1] != '\n'; from--)
        ;
    compose_refuse(compose, "the result server could not report (exit status %d): %.*s",
                   answer->status, (int)(len - from > 800 ? 800 : len - from),
                   answer->output + from);
}

/* ---- the conversation ---- */

enum compose_next
compose_next(struct compose *compose, struct compose_step *ret_step)
{
    static const char *const stages[] = {[STAGE_ENUMERATE] = "codex mcp list",
                                         [STAGE_LIST] = "codex mcp list",
                                         [STAGE_GET] = "codex mcp get",
                                         [STAGE_SELFTEST] = "kcap-host selftest"};
    bool is_selftest = compose->stage == STAGE_SELFTEST;

    if (compose->reasons.n > 0 || compose->reasons.failed)
        return COMPOSE_REFUSED;
    words_fini(&compose->argv);
    if (compose->stage == STAGE_READY) {
        if (compose->vendor == COMPOSE_CODEX)
            compose_codex_add_plan(compose);
        else
            compose_claude_add_plan(compose);
    } else if (is_selftest) {
        add_selftest(compose);
    } else {
        compose_codex_add_step(compose);
    }
    if (compose->argv.failed || compose->flags.failed || compose->selftest_env.failed) {
        compose_refuse(compose, "out of memory");
        return COMPOSE_REFUSED;
    }
    if (compose->stage == STAGE_READY) {
        compose->plan = (struct compose_plan){
            .argv = words_list(&compose->argv),
            .envp = words_list(&compose->env),
            .dir = compose->dir,
            .server = compose->server,
            .verified = compose->vendor == COMPOSE_CODEX ? "codex mcp list" : "static",
        };
        return COMPOSE_READY;
    }
    *ret_step = (struct compose_step){
        .what = stages[compose->stage],
        .argv = words_list(&compose->argv),
        .envp = words_list(is_selftest ? &compose->selftest_env : &compose->env),
        .dir = compose->dir,
        .limit_ms = STEP_LIMIT_MS,
        .max_output = STEP_MAX_BYTES,
    };
    return COMPOSE_RUN;
}

void
compose_answer(struct compose *compose, const struct compose_answer *answer)
{
    if (compose->stage == STAGE_SELFTEST)
        check_selftest(compose, answer);
    else if (compose->stage != STAGE_READY)
        compose_codex_check(compose, answer);
}

const struct compose_plan *
compose_plan(const struct compose *compose)
{
    return &compose->plan;
}

const char *const *
compose_reasons(const struct compose *compose)
{
    static const char *const no_memory[] = {"out of memory", NULL};

    return compose->reasons.n > 0 ? words_list(&compose->reasons) : no_memory;
}
