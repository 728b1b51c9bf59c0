/* SPDX-License-Identifier: Apache-2.0 */
/* reviewer-launch: composes the start of a reviewer, checks it, and prints or becomes it. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch/compose.h"
#include "lib/auto.h"
#include "lib/json.h"
#include "lib/paths.h"
#include "run.h"
#include "setup.h"

#define MAX_ERRORS ((size_t)64 << 10)

extern char **environ;

struct words_read {
    struct compose_request request;
    const char *vendor, *mode;
    bool has_vendor, exec;
};

/* ---- the command line ---- */

static const char *const vendors[] = {
    [COMPOSE_CODEX] = "codex", [COMPOSE_CLAUDE] = "claude", NULL};
static const char *const modes[] = {
    [COMPOSE_EXEC] = "exec", [COMPOSE_APP_SERVER] = "app-server", [COMPOSE_TUI] = "tui", NULL};

static int
find(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], name) == 0)
            return i;
    }
    return -1;
}

/* Returns what is wrong, or NULL. */
static const char *
read_words(int32_t argc, const char *const *argv, struct words_read *ret)
{
    const struct {
        const char *name;
        const char **value;
    } words[] = {{"--vendor", &ret->vendor},
                 {"--mode", &ret->mode},
                 {"--dir", &ret->request.dir},
                 {"--url", &ret->request.url},
                 {"--agent-id", &ret->request.agent_id},
                 {"--model", &ret->request.model}};
    int32_t i;

    for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        size_t w = 0;

        if (strcmp(argv[i], "--print") == 0 || strcmp(argv[i], "--exec") == 0) {
            ret->exec = argv[i][2] == 'e';
            continue;
        }
        while (w < sizeof words / sizeof words[0] && strcmp(words[w].name, argv[i]) != 0)
            w++;
        if (w == sizeof words / sizeof words[0] || i + 1 == argc)
            return argv[i];
        *words[w].value = argv[++i];
    }
    if (i + 1 < argc)
        ret->request.prompt = argv[i + 1];
    if (i + 2 < argc)
        return argv[i + 2];
    if (!ret->vendor || find(vendors, ret->vendor) < 0)
        return "--vendor (codex or claude)";
    if (ret->mode && find(modes, ret->mode) < 0)
        return "--mode (exec, app-server or tui)";
    if (!ret->request.dir)
        return "--dir";
    ret->request.vendor = (enum compose_vendor)find(vendors, ret->vendor);
    ret->request.mode = ret->mode ? (enum compose_mode)find(modes, ret->mode) : COMPOSE_EXEC;
    return NULL;
}

/* ---- composing ---- */

/* Runs a step. Returns SETUP_FAILED when our own caller left meanwhile. */
static int
run_step(const struct kcap_host *host, struct kcap_call *call, const struct compose_step *step,
         struct compose *compose)
{
    static const int codes[] = {[RUN_NOT_STARTED] = COMPOSE_NOT_STARTED,
                                [RUN_KILLED] = COMPOSE_KILLED,
                                [RUN_TIMED_OUT] = COMPOSE_TIMED_OUT,
                                [RUN_OVERFLOWED] = COMPOSE_OVERFLOWED};
    AUTO_BUF struct buf output = BUF_INIT(step->max_output), errors = BUF_INIT(MAX_ERRORS);
    struct run run = {
        .argv = step->argv, .envp = step->envp, .dir = step->dir, .limit_ms = step->limit_ms};
    int status;
    enum run_end end = run_program(host, call, &run, &output, &errors, &status);
    struct compose_answer answer = {.status = end == RUN_EXITED || end == RUN_LEFT ? status
                                                                                   : codes[end],
                                    .output = buf_str(&output),
                                    .output_len = output.len,
                                    .errors = buf_str(&errors),
                                    .errors_len = errors.len};

    if (end == RUN_LEFT)
        return SETUP_FAILED;
    compose_answer(compose, &answer);
    return SETUP_OK;
}

static int
compose_all(const struct kcap_host *host, struct kcap_call *call, struct compose *compose)
{
    struct compose_step step;
    enum compose_next next;

    while ((next = compose_next(compose, &step)) == COMPOSE_RUN) {
        if (run_step(host, call, &step, compose) != SETUP_OK) {
            host->log(host, KCAP_LOG_ERROR, "reviewer-launch: cancelled; nothing was started");
            return SETUP_FAILED;
        }
    }
    if (next == COMPOSE_READY)
        return SETUP_OK;
    for (const char *const *reason = compose_reasons(compose); *reason; reason++)
        kcap_logf(host, KCAP_LOG_ERROR, "refused: %s", *reason);
    return SETUP_NO_LAUNCH;
}

/* ---- the outcome ---- */

static bool
has_variable(const char *const *envp, const char *variable)
{
    size_t len = strcspn(variable, "=");

    for (; *envp; envp++) {
        if (strncmp(*envp, variable, len) == 0 && (*envp)[len] == '=')
            return true;
    }
    return false;
}

/* The environment as what to change in the one that is there: all of it would show secrets. */
static void
add_environment(cJSON *to, const struct compose_plan *plan)
{
    cJSON *set = cJSON_AddObjectToObject(to, "env"),
          *unset = cJSON_AddArrayToObject(to, "env_unset");

    (void)json_add_str(set, "KCAP_REVIEWER", "1");
    for (char **each = environ; each && *each; each++) {
        AUTO_FREE char *name = strndup(*each, strcspn(*each, "="));

        if (name && !has_variable(plan->envp, *each))
            (void)cJSON_AddItemToArray(unset, cJSON_CreateString(name));
    }
}

static int
print_plan(const struct words_read *words, const struct compose_plan *plan)
{
    AUTO_JSON cJSON *json = cJSON_CreateObject();
    AUTO_FREE char *text = NULL;
    cJSON *argv;

    (void)json_add_str(json, "vendor", vendors[words->request.vendor]);
    (void)json_add_str(json, "mode", modes[words->request.mode]);
    (void)json_add_str(json, "verified", plan->verified);
    (void)json_add_str(json, "server", plan->server);
    (void)json_add_str(json, "dir", plan->dir);
    argv = cJSON_AddArrayToObject(json, "argv");
    for (const char *const *word = plan->argv; *word; word++)
        (void)cJSON_AddItemToArray(argv, cJSON_CreateString(*word));
    add_environment(json, plan);
    text = json_print(json);
    if (!text || fputs(text, stdout) == EOF || fputc('\n', stdout) == EOF ||
        fflush(stdout) != 0)
        return SETUP_FAILED;
    return SETUP_OK;
}

/* Returns only when that fails. */
static int
become(const struct kcap_host *host, const struct compose_plan *plan)
{
    char *const *argv = (char *const *)(uintptr_t)plan->argv;
    char *const *envp = (char *const *)(uintptr_t)plan->envp;
    sigset_t none;

    sigemptyset(&none);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir(plan->dir) == 0)
        (void)execve(plan->argv[0], argv, envp);
    kcap_logf(host, KCAP_LOG_ERROR, "%s cannot be started in %s: %s", plan->argv[0], plan->dir,
              strerror(errno));
    return SETUP_FAILED;
}

/* Where the result server finds its state and its login, if not in the usual places. */
static void
find_places(const struct kcap_host *host, struct buf *texts, const char **ret)
{
    static const char *const names[] = {"KCAP_STATE_DIR", "KCAP_CONFIG_DIR", "KCAP_PROFILE"};
    size_t n = 0, at[sizeof names / sizeof names[0]];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = host->env(host, names[i]);

        if (!value || !value[0])
            continue;
        at[n++] = texts->len;
        buf_addf(texts, "%s=%s", names[i], value);
        buf_addc(texts, '\0');
    }
    ret[n] = NULL;
    while (n > 0 && buf_ok(texts)) {
        n--;
        ret[n] = texts->data + at[n];
    }
}

int
setup_reviewer_launch(const struct kcap_host *host, struct kcap_call *call, int32_t argc,
                      const char *const *argv)
{
    struct words_read words = {.exec = false};
    const char *wrong = read_words(argc, argv, &words), *server_env[4];
    AUTO_FREE char *host_program = paths_program("kcap-host");
    AUTO_BUF struct buf places = BUF_INIT(16384);
    struct compose *compose;
    int r;

    if (wrong) {
        kcap_logf(host, KCAP_LOG_ERROR, "%s: %s is missing, unknown or without a value",
                  argv[0], wrong);
        return SETUP_USAGE;
    }
    find_places(host, &places, server_env);
    words.request.host_program = host_program;
    words.request.envp = (const char *const *)(uintptr_t)environ;
    words.request.server_env = server_env;
    if (!buf_ok(&places) || compose_new(&words.request, &compose) < 0) {
        host->log(host, KCAP_LOG_ERROR, "reviewer-launch: out of memory");
        return SETUP_FAILED;
    }
    r = compose_all(host, call, compose);
    if (r == SETUP_OK && words.exec)
        r = become(host, compose_plan(compose));
    else if (r == SETUP_OK)
        r = print_plan(&words, compose_plan(compose));
    compose_free(compose);
    return r;
}
