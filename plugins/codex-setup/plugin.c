/* SPDX-License-Identifier: Apache-2.0 */
/* codex-setup.so: registers kcap-flows with Codex and touches nothing else of its config;
 * starts reviewers. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "lib/json.h"
#include "setup.h"

#define MAX_REPORT ((size_t)8 << 20)

static const struct kcap_host *host; /* written by init */

static int32_t
setup_init(const struct kcap_host *given, void **ret_ctx)
{
    host = given;
    *ret_ctx = NULL;
    return KCAP_OK;
}

/* ---- commands ---- */

/* The words that a command knows. */
#define KNOWS_PROJECT 1u
#define KNOWS_DRY_RUN 2u
#define KNOWS_SWITCH  4u
#define KNOWS_SKILLS  8u

static bool
read_words(struct setup *setup, int32_t argc, const char *const *argv, unsigned known)
{
    const struct {
        const char *word;
        unsigned bit;
        bool *flag;
    } words[] = {{"--project", KNOWS_PROJECT, &setup->project},
                 {"--dry-run", KNOWS_DRY_RUN, &setup->dry_run},
                 {"--switch", KNOWS_SWITCH, &setup->switches},
                 {"--skills", KNOWS_SKILLS, &setup->skills}};

    for (int32_t i = 1; i < argc; i++) {
        size_t w = 0;

        while (w < sizeof words / sizeof words[0] &&
               !((known & words[w].bit) && strcmp(argv[i], words[w].word) == 0))
            w++;
        if (w == sizeof words / sizeof words[0]) {
            kcap_logf(host, KCAP_LOG_ERROR,
                      "%s: unknown word '%s' (kcap-host --plugin codex-setup --help)", argv[0],
                      argv[i]);
            return false;
        }
        *words[w].flag = true;
    }
    return true;
}

static int32_t
run(struct kcap_call *call, int32_t argc, const char *const *argv, unsigned known,
    int (*work)(struct setup *setup))
{
    struct setup setup = {
        .host = host, .call = call, .report = BUF_INIT(MAX_REPORT), .lock_fd = -1};
    int32_t status = SETUP_USAGE;

    if (read_words(&setup, argc, argv, known)) {
        status = work(&setup);
        if (setup.skills && status == SETUP_OK)
            status = setup_skills(&setup);
        (void)fputs(buf_str(&setup.report), status == SETUP_OK ? stdout : stderr);
        if (fflush(stdout) != 0)
            status = SETUP_FAILED;
    }
    setup_fini(&setup);
    return status;
}

static int32_t
run_install(void *ctx, struct kcap_call *call, int32_t argc, const char *const *argv)
{
    (void)ctx;
    return run(call, argc, argv, KNOWS_PROJECT | KNOWS_DRY_RUN | KNOWS_SWITCH | KNOWS_SKILLS,
               setup_install);
}

static int32_t
run_remove(void *ctx, struct kcap_call *call, int32_t argc, const char *const *argv)
{
    (void)ctx;
    return run(call, argc, argv, KNOWS_PROJECT | KNOWS_DRY_RUN | KNOWS_SKILLS, setup_remove);
}

static int32_t
run_status(void *ctx, struct kcap_call *call, int32_t argc, const char *const *argv)
{
    (void)ctx;
    return run(call, argc, argv, KNOWS_PROJECT, setup_status);
}

static int32_t
run_reviewer_launch(void *ctx, struct kcap_call *call, int32_t argc, const char *const *argv)
{
    (void)ctx;
    return setup_reviewer_launch(host, call, argc, argv);
}

static const struct kcap_command install = {
    sizeof install, 0, "install",
    "register kcap-flows with Codex, or add its missing time-out [--dry-run] [--project] "
    "[--switch] [--skills]",
    run_install};
static const struct kcap_command status = {
    sizeof status, 0, "status", "what is registered, and what is wrong with it [--project]",
    run_status};
static const struct kcap_command remove_ = {
    sizeof remove_, 0, "remove",
    "take out what install put in, byte for byte [--dry-run] [--project] [--skills]",
    run_remove};
static const struct kcap_command reviewer_launch = {
    sizeof reviewer_launch, 0, "reviewer-launch",
    "start an agent that sees our result server alone, checked; --vendor codex|claude --dir D "
    "--url U --agent-id A [--mode exec|app-server|tui] [--model M] [--print|--exec] "
    "[-- PROMPT]",
    run_reviewer_launch};
static const struct kcap_command *const commands[] = {&install, &status, &remove_,
                                                      &reviewer_launch, NULL};

/* ---- tools ---- */

#define INPUT                                                                           \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"project\":{" \
    "\"type\":\"boolean\","                                                             \
    "\"description\":\"The repository's own .codex/config.toml instead of the user's.\"}}}"

static const struct kcap_tool status_tool = {
    .struct_size = sizeof status_tool,
    .name = "codex_registration_status",
    .title = "Codex registration",
    .description =
        "Tells whether the kcap-flows server is registered with Codex, with which time-out, "
        "whether "
        "Codex accepts the file, and which common mistakes are in it. Changes nothing.",
    .input_schema = INPUT,
    .hints = KCAP_HINT_READ_ONLY | KCAP_HINT_IDEMPOTENT,
};
static const struct kcap_tool install_tool = {
    .struct_size = sizeof install_tool,
    .name = "codex_registration_install",
    .title = "Register with Codex",
    .description = "Registers the kcap-flows server in Codex's config.toml with a time-out of "
                   "600 s, or adds the "
                   "missing time-out to a registration that is there. Every other byte of the "
                   "file stays as it is; "
                   "a value the user chose is never changed. Ask the user first.",
    .input_schema = INPUT,
    .hints = KCAP_HINT_IDEMPOTENT,
};
static const struct kcap_tool *const tools[] = {&status_tool, &install_tool, NULL};

static int32_t
setup_call(void *ctx, struct kcap_call *call, const struct kcap_tool *tool, const char *args,
           size_t args_len)
{
    struct setup setup = {
        .host = host, .call = call, .report = BUF_INIT(MAX_REPORT), .lock_fd = -1};
    AUTO_JSON cJSON *parsed = json_parse(args, args_len, NULL);
    int status_code;

    (void)ctx;
    setup.project = json_bool(parsed, "project", false);
    status_code = tool == &install_tool ? setup_install(&setup) : setup_status(&setup);
    (void)host->result(call, status_code != SETUP_OK, buf_str(&setup.report), setup.report.len,
                       NULL, 0);
    setup_fini(&setup);
    return KCAP_OK;
}

KCAP_REGISTER(KCAP_CLASS_SETUP, .threads = KCAP_THREADS_SERIAL, .name = "codex-setup",
              .version = PACKAGE_VERSION,
              .summary = "registers kcap-flows with Codex; starts agents as reviewers",
              .tools = tools, .commands = commands, .init = setup_init, .call = setup_call);
