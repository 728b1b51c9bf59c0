/* SPDX-License-Identifier: Apache-2.0 */
/* The composition of a launch as a conversation: what is asked, and what each answer leads to.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "launch/codex-error.h"
#include "launch/compose.h"
#include "lib/buf.h"
#include "suite.h"

static char dir[64];
static char home_variable[80];
static const char *envp[] = {home_variable,
                             "PATH=/usr/bin:/bin",
                             "OPENAI_API_KEY=o",
                             "ANTHROPIC_API_KEY=a",
                             "CODEX_THREAD_ID=t",
                             "CODEX_HOME=/c",
                             "KCAP_FLOW_CAPABILITY_URL=http://evil",
                             "CLAUDECODE=1",
                             "CLAUDE_CONFIG_DIR=",
                             "MINE=1",
                             NULL};

static void
set_up(void)
{
    (void)snprintf(dir, sizeof dir, "/tmp/kcap-compose-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(home_variable, sizeof home_variable, "HOME=%s", dir);
    files_make_dir(dir, "repo");
    files_make_dir(dir, "repo/.git");
    files_make_dir(dir, "repo/sub");
    files_make_dir(dir, ".claude");
}

static void
tear_down(void)
{
    files_remove(dir);
}

static struct compose *
begin(struct compose_request request)
{
    char sub[80];
    struct compose *compose = NULL;

    (void)snprintf(sub, sizeof sub, "%s/repo/sub", dir);
    request.program = "/bin/true";
    request.dir = request.dir ? request.dir : sub;
    request.host_program = request.host_program ? request.host_program : "/bin/false";
    request.url = request.url ? request.url : "http://127.0.0.1:1/";
    request.agent_id = request.agent_id ? request.agent_id : "agent \"1\"";
    request.envp = envp;
    ck_assert_int_eq(compose_new(&request, &compose), 0);
    return compose;
}

static void
say(struct compose *compose, int status, const char *output)
{
    static const char said[] = "WARNING: no\nError: why\nmore\n";
    struct compose_answer answer = {.status = status,
                                    .output = output,
                                    .output_len = strlen(output),
                                    .errors = said,
                                    .errors_len = sizeof said - 1};

    compose_answer(compose, &answer);
}

static struct compose_step
expect_run(struct compose *compose)
{
    struct compose_step step = {.what = NULL};

    ck_assert_int_eq(compose_next(compose, &step), COMPOSE_RUN);
    return step;
}

static void
expect_refusal(struct compose *compose, const char *part)
{
    struct compose_step step;
    bool found = false;

    ck_assert_int_eq(compose_next(compose, &step), COMPOSE_REFUSED);
    for (const char *const *reason = compose_reasons(compose); *reason; reason++)
        found = found || strstr(*reason, part);
    ck_assert_msg(found, "no reason has \"%s\"; the first is \"%s\"", part,
                  compose_reasons(compose)[0]);
    compose_free(compose);
}

static const char *
joined(const char *const *list)
{
    static struct buf text = {.max = 1 << 20};

    buf_clear(&text);
    for (; *list; list++)
        buf_addf(&text, "%s\n", *list);
    return buf_str(&text);
}

/* The name under which our server stands in the flags. */
static const char *
server_of(const struct compose_step *step)
{
    static char name[64];

    for (const char *const *word = step->argv; *word; word++) {
        if (sscanf(*word, "mcp_servers.%63[a-z0-9-]={", name) == 1)
            return name;
    }
    ck_abort_msg("no server in the flags");
    return NULL;
}

#define OURS                                                                               \
    "{\"name\":\"%s\",\"enabled\":true,\"disabled_reason\":null,\"transport\":{\"type\":"  \
    "\"stdio\",\"command\":\"/bin/false\",\"args\":[\"--plugin\",\"flow-result\"],"        \
    "\"env\":{\"KCAP_FLOW_AGENT_ID\":\"agent \\\"1\\\"\",\"KCAP_URL\":\"http://127.0.0.1:" \
    "1/\"},\"env_vars\":[],\"cwd\":null}"

/* As far as the question what is left. */
static struct compose_step
as_far_as_list(struct compose *compose)
{
    (void)expect_run(compose);
    say(compose, 0,
        "[{\"name\":\"al\\\"pha\",\"enabled\":true},{\"name\":\"\",\"enabled\":true}]");
    return expect_run(compose);
}

START_TEST(codex_goes_its_way)
{
    struct compose *compose = begin((struct compose_request){
        .vendor = COMPOSE_CODEX, .mode = COMPOSE_EXEC, .model = "m\"x", .prompt = "-p"});
    struct compose_step step = expect_run(compose);
    const struct compose_plan *plan;
    char answer[2048], flags[8192], line[256];
    const char *name;

    ck_assert_str_eq(step.what, "codex mcp list");
    ck_assert_str_eq(step.argv[0], "/bin/true");
    (void)snprintf(line, sizeof line,
                   "projects={\"%s/repo\"={trust_level=\"untrusted\"},\"%s/repo/sub\"=", dir,
                   dir);
    ck_assert_ptr_nonnull(strstr(joined(step.argv), line));
    ck_assert_ptr_nonnull(strstr(joined(step.argv), "--disable\nplugins\n"));
    ck_assert_ptr_null(strstr(joined(step.argv), "mcp_servers"));
    ck_assert_ptr_nonnull(strstr(joined(step.argv), "\nmcp\nlist\n--json\n"));

    step = as_far_as_list(compose);
    name = server_of(&step);
    ck_assert_uint_eq(strlen(name), strlen("kcap-flow-result-") + 32);
    (void)snprintf(flags, sizeof flags, "%s", joined(step.argv));
    *strstr(flags, "mcp\nlist") = '\0';
    /* disabled first, in one value; ours after it */
    ck_assert_ptr_nonnull(strstr(flags, "\n-c\nmcp_servers={\"al\\\"pha\"={enabled=false},"
                                        "\"\"={enabled=false}}\n-c\nmcp_servers.kcap-flow"));
    ck_assert_ptr_nonnull(strstr(flags, "KCAP_FLOW_AGENT_ID=\"agent \\\"1\\\"\"},enabled=true,"
                                        "required=true,default_tools_approval_mode="));
    (void)snprintf(answer, sizeof answer,
                   "[" OURS "},{\"name\":\"al\\\"pha\",\"enabled\":false},"
                   "{\"name\":\"\",\"enabled\":false}]",
                   name);
    say(compose, 0, answer);

    step = expect_run(compose);
    (void)snprintf(line, sizeof line, "mcp\nget\n%s\n--json\n", name);
    ck_assert_ptr_nonnull(strstr(joined(step.argv), line));
    ck_assert(strncmp(joined(step.argv), flags, strlen(flags)) == 0);
    (void)snprintf(answer, sizeof answer, OURS ",\"enabled_tools\":null}", name);
    say(compose, 0, answer);

    step = expect_run(compose);
    ck_assert_str_eq(joined(step.argv), "/bin/false\n--plugin\nflow-result\n--\nselftest\n");
    ck_assert_ptr_nonnull(strstr(joined(step.envp), "KCAP_URL=http://127.0.0.1:1/\n"));
    ck_assert_ptr_null(strstr(joined(step.envp), "MINE"));
    say(compose, 0, "fine\n");

    ck_assert_int_eq(compose_next(compose, &step), COMPOSE_READY);
    plan = compose_plan(compose);
    ck_assert_str_eq(plan->server, name);
    ck_assert_str_eq(plan->verified, "codex mcp list");
    /* what was verified is what is started */
    ck_assert(strncmp(joined(plan->argv), flags, strlen(flags)) == 0);
    ck_assert_str_eq(joined(plan->argv) + strlen(flags),
                     "-c\nmodel=\"m\\\"x\"\nexec\n--json\n--skip-git-repo-check\n--\n-p\n");
    (void)snprintf(line, sizeof line,
                   "%s\nPATH=/usr/bin:/bin\nOPENAI_API_KEY=o\nCODEX_HOME=/c\nMINE=1\n"
                   "KCAP_REVIEWER=1\n",
                   home_variable);
    ck_assert_str_eq(joined(plan->envp), line);
    compose_free(compose);
}
END_TEST

static const struct {
    int status;
    const char *output, *part;
} bad_lists[] = {
    {COMPOSE_TIMED_OUT, "", "no answer in 15 s"},
    {COMPOSE_NOT_STARTED, "", "cannot be started"},
    {COMPOSE_OVERFLOWED, "", "does not end"},
    {COMPOSE_KILLED, "", "it was killed"},
    {1, "[]", "codex mcp list: exit status 1: Error: why more"},
    {0, "", "not JSON"},
    {0, "warning\n[]", "not JSON"},
    {0, "[] []", "not JSON"},
    {0, "{}", "no list"},
    {0, "[{\"enabled\":true}]", "without a name"},
    {0, "[{\"name\":null}]", "without a name"},
    {0, "[7]", "without a name"},
};

START_TEST(codex_gives_no_good_list)
{
    struct compose *first = begin((struct compose_request){.vendor = COMPOSE_CODEX});
    struct compose *second = begin((struct compose_request){.vendor = COMPOSE_CODEX});

    (void)expect_run(first);
    say(first, bad_lists[_i].status, bad_lists[_i].output);
    expect_refusal(first, bad_lists[_i].part);

    (void)as_far_as_list(second);
    say(second, bad_lists[_i].status, bad_lists[_i].output);
    expect_refusal(second, bad_lists[_i].part);
}
END_TEST

/* The verified list with one text in it replaced by another. */
static const struct {
    const char *from, *to, *part;
} spoilt[] = {
    {"\"name\":\"beta\",\"enabled\":false", "\"name\":\"beta\",\"enabled\":true",
     "the server \"beta\": it stays enabled"},
    {"\"name\":\"beta\",\"enabled\":false", "\"name\":\"beta\"", "the server \"beta\""},
    {"kcap-flow-result-", "other-", "does not list it"},
    {"\"enabled\":true,\"disabled_reason\":null",
     "\"enabled\":false,\"disabled_reason\":\"required by policy\"",
     "does not enable it: required by policy"},
    {"\"type\":\"stdio\"", "\"type\":\"streamable_http\"", "replaces its command"},
    {"/bin/false", "/bin/true", "replaces its command"},
    {"\"flow-result\"]", "\"flow-result\",\"x\"]", "replaces its command"},
    {"[\"--plugin\",\"flow-result\"]", "[\"--plugin\"]", "replaces its command"},
    {"http://127.0.0.1:1/", "http://127.0.0.1:2/", "adds to its environment"},
    {"\"KCAP_URL\":", "\"KCAP_FLOW_CAPABILITY_URL\":\"x\",\"KCAP_URL\":",
     "adds to its environment"},
    {"\"env_vars\":[]", "\"env_vars\":[\"HOME\"]", "adds to its environment"},
    {"\"cwd\":null", "\"cwd\":\"/\"", "another directory"},
};

START_TEST(codex_leaves_something_else)
{
    struct compose *compose = begin((struct compose_request){.vendor = COMPOSE_CODEX});
    struct compose_step step = as_far_as_list(compose);
    char good[2048], bad[4096];
    const char *at;

    (void)snprintf(good, sizeof good, "[{\"name\":\"beta\",\"enabled\":false}," OURS "}]",
                   server_of(&step));
    at = strstr(good, spoilt[_i].from);
    ck_assert_ptr_nonnull(at);
    (void)snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - good), good, spoilt[_i].to,
                   at + strlen(spoilt[_i].from));
    say(compose, 0, bad);
    expect_refusal(compose, spoilt[_i].part);
}
END_TEST

static const struct {
    const char *errors, *want;
} errors[] = {
    {"", ""},
    {"WARNING: x\n\n", ""},
    {"Error: no", ": Error: no"},
    {"Error: a\n\nCaused by:\n    0: file:2:1: b\n    1: TOML parse error at line 2\n  | key = "
     "x\n",
     ": Error: a 0: file:2:1: b"},
    {"bad \"secret\" and \"half", ": bad \"...\" and \"...\""},
    {"a\nb\nStack backtrace:\n 0: c\n", ": a b"},
    {"1\n2\n3\n4\n5\n6\n", ": 1 2 3 4 5"},
    {"esc\x1b[31m", ": esc\xef\xbf\xbd[31m"},
};

START_TEST(what_codex_says_is_wrong)
{
    AUTO_BUF struct buf to = BUF_INIT(4096);

    codex_error_add(&to, errors[_i].errors, strlen(errors[_i].errors));
    ck_assert_str_eq(buf_str(&to), errors[_i].want);
}
END_TEST

START_TEST(codex_hides_tools)
{
    struct compose *compose = begin((struct compose_request){.vendor = COMPOSE_CODEX});
    struct compose_step step = as_far_as_list(compose);
    char answer[2048], name[64];

    (void)snprintf(name, sizeof name, "%s", server_of(&step));
    (void)snprintf(answer, sizeof answer, "[" OURS "}]", name);
    say(compose, 0, answer);
    (void)expect_run(compose);
    (void)snprintf(answer, sizeof answer, OURS ",\"enabled_tools\":[\"x\"]}", name);
    say(compose, 0, answer);
    expect_refusal(compose, "hides tools");
}
END_TEST

static const struct {
    struct compose_request request;
    const char *part;
} bad_requests[] = {
    {{.url = ""}, "url: none is given"},
    {{.url = "127.0.0.1"}, "not an address"},
    {{.url = "http://me:word@host/"}, "user or password"},
    {{.url = "http://h/\n"}, "not an address"},
    {{.agent_id = ""}, "agent id"},
    {{.dir = "/no/such"}, "/no/such is not a directory"},
    {{.dir = "/bin/true"}, "/bin/true is not a directory"},
    {{.host_program = "kcap-host"}, "kcap-host cannot be run"},
    {{.host_program = "/no/such"}, "/no/such cannot be run"},
    {{.model = "a\tb"}, "model"},
    {{.mode = COMPOSE_APP_SERVER, .prompt = "x"}, "prompt"},
};

START_TEST(request_is_wrong)
{
    expect_refusal(begin(bad_requests[_i].request), bad_requests[_i].part);
}
END_TEST

START_TEST(password_is_not_repeated)
{
    struct compose *compose =
        begin((struct compose_request){.url = "http://me:word@host/", .dir = "/no"});

    ck_assert_ptr_null(strstr(joined(compose_reasons(compose)), "word@"));
    ck_assert_ptr_nonnull(compose_reasons(compose)[1]); /* one for each fault */
    compose_free(compose);
}
END_TEST

START_TEST(program_in_path)
{
    struct compose_request request = {.vendor = COMPOSE_CODEX,
                                      .dir = dir,
                                      .host_program = "/bin/false",
                                      .url = "unix:///run/x",
                                      .agent_id = "a"};
    char path[160];
    const char *env[] = {home_variable, path, NULL};
    struct compose *compose;
    struct compose_step step;

    /* a directory, a file that cannot be run, and a place that moves with us are not it */
    files_make_dir(dir, "one");
    files_make_dir(dir, "one/codex");
    files_make_dir(dir, "two");
    files_put(dir, "two/codex", "#!/bin/sh\n");
    (void)snprintf(path, sizeof path, "PATH=.::%s/one:%s/two", dir, dir);
    request.envp = env;
    ck_assert_int_eq(compose_new(&request, &compose), 0);
    expect_refusal(compose, "codex: there is no such program in PATH");
    (void)snprintf(path, sizeof path, "%s/two/codex", dir);
    ck_assert_int_eq(chmod(path, 0700), 0);
    (void)snprintf(path, sizeof path, "PATH=.::%s/one:%s/two", dir, dir);
    ck_assert_int_eq(compose_new(&request, &compose), 0);
    step = expect_run(compose);
    ck_assert_ptr_nonnull(strstr(step.argv[0], "/two/codex"));
    compose_free(compose);
}
END_TEST

START_TEST(screen_has_a_repository_with_servers)
{
    struct compose *compose =
        begin((struct compose_request){.vendor = COMPOSE_CODEX, .mode = COMPOSE_TUI});
    struct compose_step step = expect_run(compose);

    ck_assert_ptr_nonnull(strstr(joined(step.argv), "/repo\"={trust_level=\"trusted\"}"));
    say(compose, 0, "[]"); /* its own server is in no list */
    step = expect_run(compose);
    ck_assert_ptr_nonnull(
        strstr(joined(step.argv), "\nmcp_servers={codex_tui={enabled=false,"));
    compose_free(compose);
    files_make_dir(dir, "repo/.codex");
    files_put(dir, "repo/.codex/config.toml", "");
    expect_refusal(
        begin((struct compose_request){.vendor = COMPOSE_CODEX, .mode = COMPOSE_TUI}),
        "the repository's .codex/config.toml");
}
END_TEST

START_TEST(result_server_cannot_report)
{
    struct compose *compose = begin((struct compose_request){.vendor = COMPOSE_CLAUDE});

    (void)expect_run(compose);
    say(compose, 4, "agent id: set\nreached: no\x1b\n\n");
    expect_refusal(compose, "(exit status 4): reached: no");
    compose = begin((struct compose_request){.vendor = COMPOSE_CLAUDE});
    (void)expect_run(compose);
    say(compose, COMPOSE_TIMED_OUT, "reached");
    expect_refusal(compose, "selftest: no answer in 15 s");
}
END_TEST

static const struct {
    const char *settings, *part; /* NULL: nothing is wrong */
} claude_settings[] = {
    {"{}", NULL},
    {"{\"permissions\":{\"deny\":[\"mcp__other\",\"Bash(rm *)\"],\"allow\":[\"*\"]}}", NULL},
    {"{\"deniedMcpServers\":[{\"serverName\":\"other\"}]}", NULL},
    {"{\"allowedMcpServers\":[{\"serverName\":\"kcap-flow-result\"}]}", NULL},
    {"{\"allowedMcpServers\":[{\"serverCommand\":[\"/bin/false\",\"--plugin\",\"flow-result\"]}"
     "]}",
     NULL},
    {"{\"env\":{\"MINE\":\"1\"}}", NULL},
    {"{,}", "cannot be read as settings"},
    {"[]", "cannot be read as settings (no object)"},
    {"{\"deniedMcpServers\":[{\"serverName\":\"kcap-flow-result\"}]}",
     "deniedMcpServers names the result server"},
    {"{\"deniedMcpServers\":[{\"serverCommand\":[\"/bin/false\",\"--plugin\",\"flow-result\"]}]"
     "}",
     "deniedMcpServers names the result server"},
    {"{\"allowedMcpServers\":[]}", "allowedMcpServers lacks the result server"},
    {"{\"allowedMcpServers\":[{\"serverName\":\"kcap-flow-result\"},{\"serverCommand\":[\"x\"]}"
     "]}",
     "allowedMcpServers lacks the result server"},
    {"{\"permissions\":{\"deny\":[\"mcp__kcap-flow-result\"]}}", "permissions.deny has a rule"},
    {"{\"permissions\":{\"deny\":[\"mcp__kcap-flow-result__submit_review_result\"]}}",
     "permissions.deny has a rule for mcp__kcap-flow-result__submit_review_result"},
    {"{\"permissions\":{\"ask\":[\"mcp__*\"]}}", "permissions.ask has a rule"},
    {"{\"env\":{\"KCAP_FLOW_CAPABILITY_URL\":\"http://evil\"}}",
     "env sets KCAP_FLOW_CAPABILITY_URL"},
};

START_TEST(claude_has_settings)
{
    struct compose *compose;

    files_put(dir, ".claude/settings.json", claude_settings[_i].settings);
    compose = begin((struct compose_request){.vendor = COMPOSE_CLAUDE});
    if (claude_settings[_i].part) {
        expect_refusal(compose, claude_settings[_i].part);
    } else {
        (void)expect_run(compose);
        compose_free(compose);
    }
}
END_TEST

START_TEST(claude_goes_its_way)
{
    struct compose *compose = begin((struct compose_request){
        .vendor = COMPOSE_CLAUDE, .mode = COMPOSE_EXEC, .model = "default", .prompt = "go"});
    struct compose_step step = expect_run(compose);
    const struct compose_plan *plan;
    const char *text;

    ck_assert_str_eq(step.what, "kcap-host selftest");
    say(compose, 0, "");
    ck_assert_int_eq(compose_next(compose, &step), COMPOSE_READY);
    plan = compose_plan(compose);
    ck_assert_str_eq(plan->verified, "static");
    ck_assert_str_eq(plan->server, "kcap-flow-result");
    text = joined(plan->argv);
    ck_assert_ptr_nonnull(
        strstr(text, "--strict-mcp-config\n--mcp-config\n{\"mcpServers\":{\"kcap-flow-result\":"
                     "{\"type\":\"stdio\",\"command\":\"/bin/false\",\"args\":[\"--plugin\","
                     "\"flow-result\"],\"env\":{\"KCAP_URL\":"));
    ck_assert_ptr_nonnull(strstr(text, "\n--disallowedTools\nAgent,Workflow\n"));
    ck_assert_ptr_null(strstr(text, "--model"));
    ck_assert_str_eq(text + strlen(text) - 7, "\n--\ngo\n");
    text = joined(plan->envp);
    ck_assert_ptr_nonnull(strstr(text, "ANTHROPIC_API_KEY=a\n"));
    ck_assert_ptr_null(strstr(text, "OPENAI"));
    ck_assert_ptr_null(strstr(text, "CODEX"));
    ck_assert_ptr_null(strstr(text, "CLAUDECODE"));
    ck_assert_ptr_null(strstr(text, "CAPABILITY"));
    compose_free(compose);
}
END_TEST

static void
add_tests(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, codex_goes_its_way);
    tcase_add_loop_test(tests, codex_gives_no_good_list, 0, N_ROWS(bad_lists));
    tcase_add_loop_test(tests, codex_leaves_something_else, 0, N_ROWS(spoilt));
    tcase_add_loop_test(tests, what_codex_says_is_wrong, 0, N_ROWS(errors));
    tcase_add_test(tests, codex_hides_tools);
    tcase_add_loop_test(tests, request_is_wrong, 0, N_ROWS(bad_requests));
    tcase_add_test(tests, password_is_not_repeated);
    tcase_add_test(tests, program_in_path);
    tcase_add_test(tests, screen_has_a_repository_with_servers);
    tcase_add_test(tests, result_server_cannot_report);
    tcase_add_loop_test(tests, claude_has_settings, 0, N_ROWS(claude_settings));
    tcase_add_test(tests, claude_goes_its_way);
}

int
main(void)
{
    return suite_run("compose", add_tests);
}
