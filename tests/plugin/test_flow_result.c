/* SPDX-License-Identifier: Apache-2.0 */
/* flow-result.so as shipped, against a fake host: each row of its retry policy. */
#include "config.h"

#include <string.h>

#include "lib/json.h"
#include "reviewer-rig.h"

#define ROUTE "/api/flows/reviewer/result"
#define FINDINGS \
    "{\"round_token\":\"r1\",\"kind\":\"findings\",\"findings\":\"a \\\"b\\\"\\nc\"}"
#define CLEAN                "{\"round_token\":\"r1\",\"kind\":\"clean\",\"findings\":\"dropped\"}"
#define REMINDER             "Call submit_review_result again"
#define CODED(code, message) "{\"error\":\"" code "\",\"message\":\"" message "\"}"

static void
submit(const char *args, struct fake_call *call)
{
    fake_host_call(reviewer_fake, reviewer_plugin, reviewer_ctx, "submit_review_result", args,
                   call);
}

#define LOST                                                                      \
    {                                                                             \
        .outcome = KCAP_HTTP_UNKNOWN, .error = "flow server X: reset", .times = 1 \
    }
#define UNSENT                                                                       \
    {                                                                                \
        .outcome = KCAP_HTTP_NOT_SENT, .error = "flow server X: refused", .times = 1 \
    }
#define CODE(status_, code, times_)                                                         \
    {                                                                                       \
        .status = (status_), .body = CODED(code, "as the server put it"), .times = (times_) \
    }

/* What the server does, how often it is asked, what the reviewer hears. */
static const struct row {
    const char *name;
    struct fake_reply replies[6];
    int64_t window_ms;
    unsigned posts;
    int64_t took_ms;
    char outcome; /* D(elivered), N(ot delivered), U(nknown) */
    bool reminds;
    const char *says, *and_says;
} rows[] = {
    {"200 json", {{.body = "{\"ok\":true}"}}, 0, 1, 0, 'D', false, "Recorded.", NULL},
    {"204", {{.status = 204}}, 0, 1, 0, 'D', false, "Recorded.", NULL},
    {"null error", {{.body = "{\"error\":null}"}}, 0, 1, 0, 'D', false, "Recorded.", NULL},
    {"200 login page",
     {{.body = "<html>log in</html>"}},
     0,
     1,
     0,
     'U',
     true,
     "Outcome unknown: what answered",
     "HTTP 200"},
    {"200 with a code",
     {CODE(200, "boom", 0)},
     0,
     1,
     0,
     'N',
     true,
     "as the server put it",
     NULL},
    {"200 array", {{.body = "[]"}}, 0, 1, 0, 'U', true, "Outcome unknown: what answered", NULL},
    {"no round, then one",
     {CODE(409, "no_open_round", 2), {.body = "{}"}},
     0,
     3,
     6000,
     'D',
     false,
     "Recorded.",
     NULL},
    {"no round at all",
     {CODE(409, "no_open_round", 0)},
     0,
     5,
     12000,
     'N',
     true,
     "no open round",
     "5 attempts"},
    {"no flow",
     {CODE(200, "no_active_flow", 0)},
     0,
     5,
     12000,
     'N',
     true,
     "as the server put it",
     NULL},
    {"no round, no flow, 500",
     {CODE(409, "no_open_round", 1),
      CODE(409, "no_active_flow", 1),
      {.status = 500, .body = "boom"}},
     0,
     3,
     6000,
     'U',
     true,
     "HTTP 500",
     "boom"},
    {"stale",
     {CODE(409, "stale_round_token", 0)},
     0,
     1,
     0,
     'N',
     false,
     "as the server put it",
     NULL},
    {"stale without words",
     {{.status = 409, .body = CODED("stale_round_token", "")}},
     0,
     1,
     0,
     'N',
     false,
     "discard",
     NULL},
    {"catching up",
     {CODE(409, "server_catching_up", 0)},
     0,
     1,
     0,
     'N',
     false,
     "minutes",
     "as the server put it"},
    {"401", {{.status = 401, .body = "no"}}, 0, 1, 0, 'N', false, "login", "no"},
    {"400",
     {{.status = 400, .body = "no_daemon: x"}},
     0,
     1,
     0,
     'N',
     true,
     "HTTP 400",
     "no_daemon: x"},
    {"302", {{.status = 302}}, 0, 1, 0, 'N', true, "HTTP 302", NULL},
    {"502 html", {{.status = 502, .body = "<html>"}}, 0, 1, 0, 'U', true, "HTTP 502", NULL},
    {"code of another type",
     {{.status = 400, .body = "{\"error\":7,\"message\":[]}"}},
     0,
     1,
     0,
     'N',
     true,
     "HTTP 400",
     NULL},
    {"duplicate keys",
     {{.body = "{\"a\":1,\"a\":2}"}},
     0,
     1,
     0,
     'U',
     true,
     "Outcome unknown: what answered",
     NULL},
    {"refused, then well", {UNSENT, {.body = "{}"}}, 0, 2, 3000, 'D', false, "Recorded.", NULL},
    {"lost, then well", {LOST, {.body = "{}"}}, 0, 2, 3000, 'D', false, "Recorded.", NULL},
    {"lost for good",
     {{.outcome = KCAP_HTTP_UNKNOWN, .error = "flow server X: reset"}},
     0,
     5,
     12000,
     'U',
     true,
     "flow server X: reset",
     "5 attempts"},
    {"lost, then stale",
     {LOST, CODE(409, "stale_round_token", 0)},
     0,
     2,
     3000,
     'U',
     false,
     "probably recorded",
     "Do not submit it again"},
    {"lost, then no round",
     {LOST, CODE(409, "no_open_round", 0)},
     0,
     5,
     12000,
     'U',
     false,
     "probably recorded",
     NULL},
    {"lost, then no flow",
     {LOST, CODE(409, "no_active_flow", 0)},
     0,
     5,
     12000,
     'U',
     false,
     "probably recorded",
     NULL},
    {"refused, then stale",
     {UNSENT, CODE(409, "stale_round_token", 0)},
     0,
     2,
     3000,
     'N',
     false,
     "as the server put it",
     NULL},
    {"never answers",
     {{.delay_ms = FAKE_NEVER}},
     0,
     5,
     162000,
     'U',
     true,
     "did not answer",
     "5 attempts"},
    {"never answers, window",
     {{.delay_ms = FAKE_NEVER}},
     50000,
     2,
     49000,
     'U',
     true,
     "did not answer in time",
     NULL},
    {"window in a pause",
     {CODE(409, "no_open_round", 0)},
     4000,
     2,
     3000,
     'N',
     true,
     "no open round",
     NULL},
    {"slow but well",
     {{.delay_ms = 29000, .body = "{}"}},
     50000,
     1,
     29000,
     'D',
     false,
     "Recorded.",
     NULL},
    {"coded 503",
     {CODE(503, "busy", 0)},
     0,
     1,
     0,
     'N',
     true,
     "HTTP 503",
     "as the server put it"},
    {"lost, then 400",
     {LOST, {.status = 400, .body = "no"}},
     0,
     2,
     3000,
     'U',
     true,
     "HTTP 400",
     "An earlier attempt lost its answer"},
    {"lost, then 401",
     {LOST, {.status = 401, .body = "no"}},
     0,
     2,
     3000,
     'U',
     false,
     "login",
     "An earlier attempt lost its answer"},
    {"lost, then catching up",
     {LOST, CODE(409, "server_catching_up", 0)},
     0,
     2,
     3000,
     'U',
     false,
     "catching up",
     "An earlier attempt lost its answer"},
    {"refused for good",
     {{.outcome = KCAP_HTTP_NOT_SENT, .error = "flow server X: refused"}},
     0,
     5,
     12000,
     'N',
     true,
     "flow server X: refused",
     "5 attempts"},
    {"window over at once",
     {{.delay_ms = FAKE_NEVER}},
     1,
     1,
     1,
     'U',
     true,
     "time for this call",
     NULL},
    {"http.so failed",
     {{.returns = KCAP_E_NOMEM}},
     0,
     1,
     0,
     'N',
     true,
     "something failed",
     NULL},
};

START_TEST(policy)
{
    const struct row *row = &rows[_i];
    struct fake_call call = {.window_ms = row->window_ms};
    const struct fake_request *requests;
    size_t n;

    fake_host_script(reviewer_fake, row->replies, 6);
    submit(FINDINGS, &call);
    requests = fake_host_requests(reviewer_fake, &n);
    ck_assert_msg(call.has_result, "%s: no result", row->name);
    ck_assert_msg(n == row->posts, "%s: %zu posts", row->name, n);
    ck_assert_msg(call.took_ms == row->took_ms, "%s: %lld ms", row->name,
                  (long long)call.took_ms);
    reviewer_check_outcome(row->name, row->outcome, &call);
    ck_assert_msg((strstr(call.text, REMINDER) != NULL) == row->reminds, "%s: %s", row->name,
                  call.text);
    ck_assert_msg(strstr(call.text, row->says) != NULL, "%s: %s", row->name, call.text);
    ck_assert_msg(!row->and_says || strstr(call.text, row->and_says), "%s: %s", row->name,
                  call.text);
    for (size_t i = 0; i < n; i++) {
        ck_assert_str_eq(requests[i].method, "POST");
        ck_assert_str_eq(requests[i].path, ROUTE);
        ck_assert_str_eq(
            requests[i].body,
            "{\"agent_id\":\"agent-1\",\"round_token\":\"r1\",\"kind\":\"findings\","
            "\"text\":\"a \\\"b\\\"\\nc\"}");
    }
    fake_call_fini(&call);
}
END_TEST

START_TEST(clean_carries_no_text)
{
    struct fake_call call = {.window_ms = 0};
    size_t n;

    fake_host_script(reviewer_fake, &(struct fake_reply){.body = "{}"}, 1);
    submit(CLEAN, &call);
    ck_assert_str_eq(fake_host_requests(reviewer_fake, &n)[0].body,
                     "{\"agent_id\":\"agent-1\",\"round_token\":\"r1\",\"kind\":\"clean\"}");
    ck_assert(!call.is_error);
    fake_call_fini(&call);
}
END_TEST

/* With the schema in front of it or without: named, and nothing sent. */
static const struct {
    const char *args, *names;
} bad_args[] = {
    {"{}", "round_token"},
    {"{\"round_token\":\" \\t\",\"kind\":\"clean\"}", "round_token"},
    {"{\"round_token\":7,\"kind\":\"clean\"}", "round_token"},
    {"{\"round_token\":\"r\"}", "kind"},
    {"{\"round_token\":\"r\",\"kind\":\"Clean\"}", "kind"},
    {"{\"round_token\":\"r\",\"kind\":[]}", "kind"},
    {"{\"round_token\":\"r\",\"kind\":\"findings\"}", "findings"},
    {"{\"round_token\":\"r\",\"kind\":\"findings\",\"findings\":\" \\n\"}", "findings"},
    {"{\"round_token\":\"r\",\"kind\":\"findings\",\"findings\":{}}", "findings"},
};

START_TEST(bad_arguments_are_named)
{
    struct fake_call call = {.window_ms = 0};
    size_t n;

    submit(bad_args[_i].args, &call);
    (void)fake_host_requests(reviewer_fake, &n);
    ck_assert_uint_eq(n, 0);
    ck_assert(call.has_result && call.is_error);
    ck_assert_msg(strncmp(call.text, bad_args[_i].names, strlen(bad_args[_i].names)) == 0, "%s",
                  call.text);
    fake_call_fini(&call);
}
END_TEST

START_TEST(no_agent_id_no_start)
{
    static const char *const values[] = {NULL, "", " \t"};
    struct fake_host *bare = fake_host_new();
    void *other;

    if (values[_i])
        fake_host_setenv(bare, "KCAP_FLOW_AGENT_ID", values[_i]);
    ck_assert_int_eq(reviewer_plugin->init(fake_host_table(bare), &other), KCAP_E_REFUSED);
    ck_assert_ptr_nonnull(strstr(fake_host_log(bare), "KCAP_FLOW_AGENT_ID"));
    fake_host_free(bare);
}
END_TEST

START_TEST(cancelled_says_nothing)
{
    struct fake_call call = {.cancel_at_wait = 1};

    fake_host_script(reviewer_fake, (const struct fake_reply[]){CODE(409, "no_open_round", 0)},
                     1);
    submit(FINDINGS, &call);
    ck_assert(!call.has_result);
    ck_assert_int_eq(call.returned, 0);
    fake_call_fini(&call);
}
END_TEST

START_TEST(says_once_where_results_go)
{
    const char *first, *line = "results go to http://127.0.0.1:1 (from KCAP_URL)";

    fake_host_script(reviewer_fake, &(struct fake_reply){.body = "{}"}, 1);
    for (int i = 0; i < 2; i++) {
        struct fake_call call = {.window_ms = 0};
        submit(CLEAN, &call);
        fake_call_fini(&call);
    }
    first = strstr(fake_host_log(reviewer_fake), line);
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_null(strstr(first + 1, line));
    ck_assert_ptr_null(strstr(fake_host_log(reviewer_fake), "agent-1"));
}
END_TEST

START_TEST(unusable_server_is_explained)
{
    struct fake_call call = {.window_ms = 0};

    fake_host_set_server(reviewer_fake, KCAP_HTTP_SERVER_UNUSABLE, "",
                         "KCAP_URL is no address");
    submit(CLEAN, &call);
    ck_assert(call.is_error);
    ck_assert_ptr_nonnull(strstr(call.text, "KCAP_URL is no address"));
    ck_assert_ptr_null(strstr(call.text, REMINDER));
    fake_call_fini(&call);
}
END_TEST

/* Whatever fails inside, the reviewer is never told that a result was recorded that was not. */
START_TEST(each_host_call_may_fail)
{
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        struct fake_call call = {.window_ms = 0};
        size_t before = fake_host_count(reviewer_fake, "POST", ROUTE);
        ck_assert_uint_lt(n, 20);
        fake_host_script(
            reviewer_fake,
            (const struct fake_reply[]){CODE(409, "no_open_round", 1), {.body = "{}"}}, 2);
        fake_host_fail_at(reviewer_fake, n);
        submit(FINDINGS, &call);
        failed = fake_host_has_failed(reviewer_fake);
        if (failed && call.has_result)
            ck_assert_msg(call.is_error, "%u: %s", n, call.text);
        else if (failed)
            ck_assert_int_lt(call.returned, 0);
        else
            ck_assert(call.has_result && !call.is_error);
        ck_assert_uint_le(fake_host_count(reviewer_fake, "POST", ROUTE) - before, 2);
        fake_call_fini(&call);
        fake_host_fail_at(reviewer_fake, 0);
    }
}
END_TEST

START_TEST(descriptor_is_honest)
{
    static const struct {
        const char *name;
        uint32_t hints;
        int n_required;
    } tools[] = {{"submit_review_result", KCAP_HINT_IDEMPOTENT, 2},
                 {"send_flow_message", 0, 1}};

    ck_assert_uint_eq(reviewer_plugin->trust_class, KCAP_CLASS_REVIEWER);
    for (size_t i = 0; i < 2; i++) {
        const struct kcap_tool *tool = reviewer_plugin->tools[i];
        cJSON *input = json_parse(tool->input_schema, strlen(tool->input_schema), NULL);
        cJSON *output = json_parse(tool->output_schema, strlen(tool->output_schema), NULL);
        ck_assert_str_eq(tool->name, tools[i].name);
        ck_assert_uint_lt(strlen(tool->description), 2048);
        ck_assert_uint_eq(tool->hints, tools[i].hints);
        ck_assert_int_eq(cJSON_GetArraySize(json_get(input, "required")), tools[i].n_required);
        ck_assert(json_bool(input, "additionalProperties", true)); /* extras are ignored */
        ck_assert_ptr_nonnull(json_get(json_get(output, "properties"), "outcome"));
        cJSON_Delete(input);
        cJSON_Delete(output);
    }
    ck_assert_ptr_null(reviewer_plugin->tools[2]);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, reviewer_setup, reviewer_teardown);
    tcase_add_loop_test(tests, policy, 0, N_ROWS(rows));
    tcase_add_test(tests, clean_carries_no_text);
    tcase_add_loop_test(tests, bad_arguments_are_named, 0, N_ROWS(bad_args));
    tcase_add_loop_test(tests, no_agent_id_no_start, 0, 3);
    tcase_add_test(tests, cancelled_says_nothing);
    tcase_add_test(tests, says_once_where_results_go);
    tcase_add_test(tests, unusable_server_is_explained);
    tcase_add_test(tests, each_host_call_may_fail);
    tcase_add_test(tests, descriptor_is_honest);
}

int
main(void)
{
    return suite_run("flow-result", add);
}
