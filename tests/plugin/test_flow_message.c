/* SPDX-License-Identifier: Apache-2.0 */
/* send_flow_message of flow-result.so: each row of its retry policy. */
#include "config.h"

#include <string.h>

#include "lib/json.h"
#include "reviewer-rig.h"

#define ROUTE                "/api/flows/participant/message"
#define CODED(code, message) "{\"error\":\"" code "\",\"message\":\"" message "\"}"
#define CODE(status_, code, times_)                                                         \
    {                                                                                       \
        .status = (status_), .body = CODED(code, "as the server put it"), .times = (times_) \
    }
#define LOST                                                                      \
    {                                                                             \
        .outcome = KCAP_HTTP_UNKNOWN, .error = "flow server X: reset", .times = 1 \
    }

static const struct row {
    const char *name;
    struct fake_reply replies[4];
    int64_t window_ms;
    unsigned posts;
    int64_t took_ms;
    char outcome;
    const char *says, *and_says;
} rows[] = {
    {"200", {{.body = "{}"}}, 0, 1, 0, 'D', "Sent.", NULL},
    {"204", {{.status = 204}}, 0, 1, 0, 'D', "Sent.", NULL},
    {"no flow, then one",
     {CODE(409, "no_active_flow", 1), {.body = "{}"}},
     0,
     2,
     3000,
     'D',
     "Sent.",
     NULL},
    {"concurrent, then well",
     {CODE(409, "concurrent_update", 4), {.body = "{}"}},
     0,
     5,
     12000,
     'D',
     "Sent.",
     NULL},
    {"concurrent for good",
     {CODE(409, "concurrent_update", 0)},
     0,
     5,
     12000,
     'N',
     "could not take it",
     "5 attempts"},
    {"no flow at all",
     {CODE(200, "no_active_flow", 0)},
     0,
     5,
     12000,
     'N',
     "as the server put it",
     "5 attempts"},
    {"closed", {CODE(409, "run_closed", 0)}, 0, 1, 0, 'N', "as the server put it", NULL},
    {"catching up", {CODE(409, "server_catching_up", 0)}, 0, 1, 0, 'N', "minutes", NULL},
    {"no open round",
     {CODE(409, "no_open_round", 0)},
     0,
     1,
     0,
     'N',
     "HTTP 409",
     "as the server put it"},
    {"stale",
     {CODE(409, "stale_round_token", 0)},
     0,
     1,
     0,
     'N',
     "HTTP 409",
     "as the server put it"},
    {"400", {{.status = 400, .body = "bad"}}, 0, 1, 0, 'N', "HTTP 400", "bad"},
    {"401", {{.status = 401, .body = "no"}}, 0, 1, 0, 'N', "login", NULL},
    {"500", {{.status = 500, .body = "oh"}}, 0, 1, 0, 'U', "HTTP 500", NULL},
    {"login page", {{.body = "<html>"}}, 0, 1, 0, 'U', "not the flow server", NULL},
    {"lost, then well", {LOST, {.body = "{}"}}, 0, 2, 3000, 'D', "Sent.", NULL},
    {"lost, then closed",
     {LOST, CODE(409, "run_closed", 0)},
     0,
     2,
     3000,
     'U',
     "as the server put it",
     "An earlier attempt"},
    {"lost for good",
     {{.outcome = KCAP_HTTP_UNKNOWN, .error = "flow server X: reset"}},
     0,
     5,
     12000,
     'U',
     "reset",
     "5 attempts"},
    {"never answers",
     {{.delay_ms = FAKE_NEVER}},
     50000,
     2,
     49000,
     'U',
     "did not answer in time",
     NULL},
};

START_TEST(policy)
{
    const struct row *row = &rows[_i];
    struct fake_call call = {.window_ms = row->window_ms};
    const struct fake_request *requests;
    cJSON *json;
    size_t n;

    fake_host_script(reviewer_fake, row->replies, 4);
    reviewer_call("send_flow_message", "{\"text\":\"why \\\"so\\\"?\"}", &call);
    requests = fake_host_requests(reviewer_fake, &n);
    ck_assert_msg(n == row->posts, "%s: %zu posts", row->name, n);
    ck_assert_msg(call.took_ms == row->took_ms, "%s: %lld ms", row->name,
                  (long long)call.took_ms);
    reviewer_check_outcome(row->name, row->outcome, &call);
    ck_assert_msg(strstr(call.text, row->says) != NULL, "%s: %s", row->name, call.text);
    ck_assert_msg(!row->and_says || strstr(call.text, row->and_says), "%s: %s", row->name,
                  call.text);
    ck_assert_ptr_null(strstr(call.text, "only way")); /* no row has the reminder */
    for (size_t i = 0; i < n; i++) {
        ck_assert_str_eq(requests[i].path, ROUTE);
        ck_assert_str_eq(requests[i].body, requests[0].body); /* the id with it */
    }
    json = json_parse(requests[0].body, strlen(requests[0].body), NULL);
    ck_assert_str_eq(json_str(json, "agent_id"), "agent-1");
    ck_assert_str_eq(json_str(json, "text"), "why \"so\"?");
    ck_assert_uint_eq(strspn(json_str(json, "message_id"), "0123456789abcdef"), 32);
    ck_assert_uint_eq(strlen(json_str(json, "message_id")), 32);
    ck_assert_int_eq(cJSON_GetArraySize(json), 3);
    cJSON_Delete(json);
    fake_call_fini(&call);
}
END_TEST

START_TEST(each_call_has_its_own_id)
{
    const struct fake_request *requests;
    size_t n;

    fake_host_script(reviewer_fake, &(struct fake_reply){.body = "{}"}, 1);
    for (int i = 0; i < 2; i++) {
        struct fake_call call = {.window_ms = 0};
        reviewer_call("send_flow_message", "{\"text\":\"x\"}", &call);
        fake_call_fini(&call);
    }
    requests = fake_host_requests(reviewer_fake, &n);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_ne(requests[0].body, requests[1].body);
}
END_TEST

START_TEST(bad_text_is_named)
{
    static const char *const args[] = {"{}", "{\"text\":\" \\n\"}", "{\"text\":7}",
                                       "{\"text\":[\"x\"]}"};
    struct fake_call call = {.window_ms = 0};
    size_t n;

    reviewer_call("send_flow_message", args[_i], &call);
    (void)fake_host_requests(reviewer_fake, &n);
    ck_assert_uint_eq(n, 0);
    ck_assert(call.is_error);
    ck_assert_ptr_eq(strstr(call.text, "text is missing or blank"), call.text);
    fake_call_fini(&call);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, reviewer_setup, reviewer_teardown);
    tcase_add_loop_test(tests, policy, 0, N_ROWS(rows));
    tcase_add_test(tests, each_call_has_its_own_id);
    tcase_add_loop_test(tests, bad_text_is_named, 0, 4);
}

int
main(void)
{
    return suite_run("flow-message", add);
}
