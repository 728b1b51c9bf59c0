/* SPDX-License-Identifier: Apache-2.0 */
/* flows.so as shipped: which reviewers there are. */
#include "config.h"

#include <sys/stat.h>
#include <unistd.h>

#include "flows-rig.h"
#include "tests/unit/files.h"

#define LIST    "list_reviewer_vendors"
#define MACHINE "0123456789abcdef0123456789abcdef"

static char repository[80];

static void
setup(void)
{
    rig_setup();
    (void)snprintf(repository, sizeof repository, "%s/work", rig_state_dir);
    ck_assert_int_eq(mkdir(repository, 0700), 0);
    fake_host_setenv(rig.fake, "CLAUDE_PROJECT_DIR", repository);
}

/* Makes it one, with a remote. */
static void
init_repository(void)
{
    char dir[100];

    (void)snprintf(dir, sizeof dir, "%s/.git", repository);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    files_put(dir, "config",
              "[remote \"origin\"]\n\turl = git@example.com:acme/grp/proj.git\n");
}

static void
make_machine(void)
{
    ck_assert_int_eq(mkdir(rig_config_dir, 0700), 0);
    files_put(rig_config_dir, "machine.json", "{\"id\": \"" MACHINE "\"}\n");
}

/* "@" in daemons stands for the repository. Returns the answer as JSON; free it. */
static cJSON *
ask(const char *daemons, const struct fake_reply *reply, const char *harness)
{
    static char body[4096];
    struct fake_call call = {.window_ms = 50000, .harness = harness};
    struct fake_reply said = *reply;
    cJSON *json;
    size_t n = 0;

    for (const char *p = daemons ? daemons : ""; *p && n < sizeof body - 100; p++) {
        if (*p == '@')
            n += (size_t)snprintf(body + n, sizeof body - n, "%s", repository);
        else
            body[n++] = *p;
    }
    body[n] = '\0';
    if (daemons)
        said.body = body;
    fake_host_script(rig.fake, &said, 1);
    rig_call(LIST, "{}", &call);
    ck_assert_msg(call.has_result && !call.is_error, "%s", call.text);
    ck_assert_str_eq(call.text, call.json);
    ck_assert_ptr_null(strchr(call.text, '\n'));
    ck_assert_ptr_null(strstr(call.text, repository)); /* never where the checkout is */
    json = json_parse(call.text, strlen(call.text), NULL);
    ck_assert_ptr_nonnull(json);
    fake_call_fini(&call);
    return json;
}

/* "codex*2+ claude*1": daemons, and whether models can be chosen. */
static void
describe(const cJSON *json, char *to, size_t size)
{
    const cJSON *one, *list = json_get(json, "reviewers");
    int64_t daemons;
    size_t n = 0;

    ck_assert(cJSON_IsArray(list));
    to[0] = '\0';
    cJSON_ArrayForEach(one, list)
    {
        ck_assert(json_int(one, "daemons", &daemons));
        n += (size_t)snprintf(to + n, size - n, "%s%s*%d%s", n > 0 ? " " : "",
                              json_str(one, "vendor"), (int)daemons,
                              json_bool(one, "model_override", false) ? "+" : "");
    }
}

static const struct {
    const char *name, *daemons;
    const char *reviewers, *reason, *attended;
    int connected, hosting, skipped;
    bool has_machine;
} rows[] = {
    {"none", "[]", "", "no_daemons_connected", "", 0, 0, 0, false},
    {"elsewhere",
     "[{\"repo_paths\":[\"/x\"],\"unattended_vendors\":[\"codex\"],"
     "\"supported_vendors\":[\"zed\"]}]",
     "", "no_repo_hosting_daemon", "", 1, 0, 0, false},
    {"nobody alone", "[{\"repo_paths\":[\"@\"],\"supported_vendors\":[\"kiro\",\"kiro\"]}]", "",
     "no_unattended_reviewer", "kiro", 1, 1, 0, false},
    {"two of two",
     "[{\"repo_paths\":[\"@/\"],\"unattended_vendors\":[\"codex\",\"codex\"],"
     "\"unattended_vendor_capabilities\":[{\"vendor\":\"codex\","
     "\"supports_reviewer_model_resolution\":true}]},"
     "{\"repo_paths\":[\"/x\",\"@\"],\"unattended_vendors\":[\"codex\"],"
     "\"unattended_vendor_capabilities\":[{\"vendor\":\"codex\","
     "\"supports_reviewer_model_resolution\":true}]}]",
     "codex*2+", NULL, "", 2, 2, 0, false},
    {"one cannot",
     "[{\"repo_paths\":[\"@\"],\"unattended_vendors\":[\"pi\",\"codex\"],"
     "\"supported_vendors\":[\"pi\",\"claude\"],"
     "\"unattended_vendor_capabilities\":[{\"vendor\":\"codex\","
     "\"supports_reviewer_model_resolution\":true}]},"
     "{\"repo_paths\":[\"@\"],\"unattended_vendors\":[\"codex\",\"claude\"]}]",
     "claude*1 codex*2 pi*1", NULL, "claude", 2, 2, 0, false},
    {"junk beside it",
     "[5,null,\"x\",{\"x\":1},{\"repo_paths\":\"@\"},{\"repo_paths\":[5,\"@\"],"
     "\"unattended_vendors\":[5,\"\",\" \",\"codex\"],\"supported_vendors\":\"kiro\","
     "\"unattended_vendor_capabilities\":7}]",
     "codex*1", NULL, "", 1, 1, 5, false},
    {"junk alone", "[{\"x\":1},{\"y\":1}]", "", "schema_skew", "", 0, 0, 2, false},
    {"no list", "{\"daemons\":[]}", "", "schema_skew", "", 0, 0, 0, false},
    {"no JSON", "<html>", "", "schema_skew", "", 0, 0, 0, false},
    {"this machine",
     "[{\"repo_paths\":[\"@\"],\"machine_id\":\"" MACHINE
     "\",\"unattended_vendors\":[\"codex\"]}]",
     "codex*1", NULL, "", 1, 1, 0, true},
    {"another machine",
     "[{\"repo_paths\":[\"@\"],\"machine_id\":\"x\","
     "\"unattended_vendors\":[\"codex\"]}]",
     "", "no_repo_hosting_daemon", "", 1, 0, 0, true},
    {"an unknown machine", "[{\"repo_paths\":[\"@\"],\"unattended_vendors\":[\"codex\"]}]", "",
     "no_repo_hosting_daemon", "", 1, 0, 0, true},
    {"any machine",
     "[{\"repo_paths\":[\"@\"],\"machine_id\":\"x\",\"unattended_vendors\":["
     "\"codex\"]}]",
     "codex*1", NULL, "", 1, 1, 0, false},
    {"case counts", "[{\"repo_paths\":[\"@x\"],\"unattended_vendors\":[\"codex\"]}]", "",
     "no_repo_hosting_daemon", "", 1, 0, 0, false},
};

static void
check_number(const cJSON *json, const char *name, int wanted)
{
    int64_t number = -1;

    ck_assert(json_int(json_get(json, "diagnostics"), name, &number));
    ck_assert_msg(number == wanted, "%s: %d", name, (int)number);
}

START_TEST(daemons_are_counted)
{
    const struct fake_reply reply = {.method = "GET", .path = "/api/daemons"};
    const cJSON *diagnostics, *attended;
    const char *reason;
    char described[200];
    cJSON *json;

    init_repository();
    if (rows[_i].has_machine)
        make_machine();
    json = ask(rows[_i].daemons, &reply, NULL);
    diagnostics = json_get(json, "diagnostics");
    describe(json, described, sizeof described);
    ck_assert_str_eq(described, rows[_i].reviewers);
    reason = json_str(diagnostics, "reason");
    ck_assert_msg(rows[_i].reason ? reason && strcmp(reason, rows[_i].reason) == 0 : !reason,
                  "%s: %s", rows[_i].name, reason);
    attended = json_get(diagnostics, "supported_but_not_unattended");
    ck_assert(cJSON_IsArray(attended));
    ck_assert_int_eq(cJSON_GetArraySize(attended), rows[_i].attended[0] ? 1 : 0);
    if (rows[_i].attended[0])
        ck_assert_str_eq(cJSON_GetArrayItem(attended, 0)->valuestring, rows[_i].attended);
    check_number(json, "connected_daemons", rows[_i].connected);
    check_number(json, "repo_hosting_daemons", rows[_i].hosting);
    check_number(json, "skipped_daemon_records", rows[_i].skipped);
    ck_assert_str_eq(json_str(json_get(json, "repo"), "identity"), "acme/grp/proj");
    cJSON_Delete(json);
    if (!rows[_i].has_machine) /* who only looks makes no file */
        ck_assert_int_ne(access(rig_config_dir, F_OK), 0);
}
END_TEST

START_TEST(outside_of_a_repository_nothing_is_asked)
{
    const struct fake_reply reply = {"GET", "/api/daemons", .body = "[]"};
    cJSON *json = ask(NULL, &reply, NULL);

    ck_assert(!json_bool(json_get(json, "repo"), "resolved", true));
    ck_assert_ptr_null(json_get(json_get(json, "repo"), "identity"));
    ck_assert_str_eq(json_str(json_get(json, "diagnostics"), "reason"), "repo_unresolved");
    ck_assert_uint_eq(fake_host_count(rig.fake, NULL, "*"), 0);
    cJSON_Delete(json);
}
END_TEST

static const struct fake_reply failures[] = {
    {.status = 403, .body = "no"},
    {.status = 404},
    {.status = 500, .body = "x\ny"},
    {.status = 409, .body = CODED("server_catching_up", "m")},
    {.status = 302},
};

START_TEST(server_that_cannot_say_is_a_reason)
{
    cJSON *json;

    init_repository();
    json = ask(NULL, &failures[_i], NULL);
    ck_assert_str_eq(json_str(json_get(json, "diagnostics"), "reason"), "lookup_failed");
    ck_assert_ptr_nonnull(json_str(json_get(json, "diagnostics"), "error"));
    cJSON_Delete(json);
}
END_TEST

static const struct {
    struct fake_reply reply;
    const char *says;
} errors[] = {
    {{.status = 401}, "HTTP 401"},
    {{.outcome = KCAP_HTTP_NOT_SENT, .error = "refused: check server-url"}, "check server-url"},
    {{.outcome = KCAP_HTTP_UNKNOWN, .error = "reset"}, "reset"},
    {{.delay_ms = FAKE_NEVER}, "did not answer while this call could wait"},
};

START_TEST(no_answer_is_an_error)
{
    struct fake_call call = {.window_ms = 10000};

    init_repository();
    fake_host_script(rig.fake, &errors[_i].reply, 1);
    rig_call(LIST, "{}", &call);
    ck_assert(call.has_result && call.is_error);
    rig_has(call.text, errors[_i].says);
    fake_call_fini(&call);
}
END_TEST

static const struct {
    const char *harness, *option, *vendor;
} drivers[] = {
    {"codex", NULL, "codex"},
    {"claude-code-print", NULL, "claude"},
    {"gemini-cli", NULL, "gemini"},
    {"copilot-cli", NULL, "copilot"},
    {"zed", NULL, NULL},
    {NULL, NULL, NULL},
    {"codex", "claude", "claude"},
    {NULL, "kiro", "kiro"},
    {"codex", "nonsense", NULL},
};

START_TEST(driver_is_who_asks)
{
    const struct fake_reply reply = {"GET", "/api/daemons", .body = "[]"};
    const char *vendor;
    cJSON *json;

    init_repository();
    if (drivers[_i].option)
        fake_host_set_option(rig.fake, "driver", drivers[_i].option);
    json = ask(NULL, &reply, drivers[_i].harness);
    vendor = json_str(json, "driver_vendor");
    ck_assert_msg(drivers[_i].vendor ? vendor && strcmp(vendor, drivers[_i].vendor) == 0
                                     : !vendor,
                  "%d: %s", _i, vendor);
    cJSON_Delete(json);
}
END_TEST

/* A daemon of this machine has whatever is on it; it is told what is meant. */
START_TEST(local_server_is_told_the_repository)
{
    const struct fake_reply reply = {"GET", "/api/daemons[?]repo_root=%2F*",
                                     .body = "[{\"repo_paths\":[\"@\"]}]"};

    init_repository();
    fake_host_set_server(rig.fake, KCAP_HTTP_SERVER_LOCAL, "unix:///run/x.sock", NULL);
    cJSON_Delete(ask(NULL, &reply, NULL));
    ck_assert_uint_eq(fake_host_count(rig.fake, "GET", "/api/daemons[?]repo_root=%2F*"), 1);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, setup, rig_teardown);
    tcase_add_loop_test(tests, daemons_are_counted, 0, N_ROWS(rows));
    tcase_add_test(tests, outside_of_a_repository_nothing_is_asked);
    tcase_add_loop_test(tests, server_that_cannot_say_is_a_reason, 0, N_ROWS(failures));
    tcase_add_loop_test(tests, no_answer_is_an_error, 0, N_ROWS(errors));
    tcase_add_loop_test(tests, driver_is_who_asks, 0, N_ROWS(drivers));
    tcase_add_test(tests, local_server_is_told_the_repository);
}

int
main(void)
{
    return suite_run("flows-vendors", add);
}
