/* SPDX-License-Identifier: Apache-2.0 */
/* flows.so as shipped: flows of any kind, and what their tools share with those for reviews. */
#include "config.h"

#include "flows-rig.h"

#define START_FLOW "start_flow"
#define SEND       "send_to_participant"

#define TARGET \
    "\"target_kind\":\"branch\",\"target_ref\":\"b\",\"target_title\":\"T\",\"context\":\"c\""
#define BY_ID   "{\"definition_id\":\"panel\"," TARGET "}"
#define BY_YAML "{\"definition_yaml\":\"name: x\\n\"," TARGET "}"

#define STARTED_WITHOUT_ROUND "{\"flow_run_id\":\"u1\",\"status\":\"running\"}"
#define CLEAN                 "{\"flow_run_id\":\"u1\",\"status\":\"clean\"}"

/* The body of the nth request; free it. */
static cJSON *
sent(size_t nth)
{
    size_t n;
    const struct fake_request *requests = fake_host_requests(rig.fake, &n);
    cJSON *json;

    ck_assert_uint_gt(n, nth);
    json = json_parse(requests[nth].body, strlen(requests[nth].body), NULL);
    ck_assert_ptr_nonnull(json);
    return json;
}

static const char *
path_of(size_t nth)
{
    size_t n;
    const struct fake_request *requests = fake_host_requests(rig.fake, &n);

    ck_assert_uint_gt(n, nth);
    return requests[nth].path;
}

/* ---- starting ---- */

START_TEST(definition_of_the_catalog)
{
    const struct fake_reply reply = {.body = CLEAN};
    const char *text = rig_ask(START_FLOW, BY_ID, &reply, 1, false);
    cJSON *body = sent(0);

    rig_has(text, "next_step: call close_flow");
    ck_assert_str_eq(path_of(0), "/api/flows/review/start/v2");
    ck_assert_str_eq(json_str(body, "kind"), "panel");
    ck_assert_ptr_null(json_get(body, "definition_id"));
    ck_assert_ptr_null(json_get(body, "definition_yaml"));
    cJSON_Delete(body);
}
END_TEST

START_TEST(definition_that_is_sent_along)
{
    const struct fake_reply reply = {.body = CLEAN};
    int64_t protocol;
    cJSON *body;

    rig_ask(START_FLOW, "{\"definition_yaml\":\"name: x\\n\",\"vendor\":\" Codex\"," TARGET "}",
            &reply, 1, false);
    body = sent(0);
    ck_assert_str_eq(path_of(0), "/api/flows/review/start");
    ck_assert_str_eq(json_str(body, "definition_yaml"), "name: x\n");
    ck_assert_str_eq(json_str(body, "vendor"), "codex"); /* the server judges it */
    ck_assert_ptr_null(json_get(body, "kind"));
    ck_assert(!json_int(body, "client_flow_protocol_version", &protocol));
    ck_assert(json_bool(body, "async", false));
    cJSON_Delete(body);
}
END_TEST

static const struct {
    struct fake_reply reply;
    const char *says, *lacks;
} refused_yaml[] = {
    {{.status = 404}, "takes no definition_yaml", "review flows"},
    {{.status = 400, .body = "no"}, "may not take definitions", NULL},
    {{.status = 500, .body = "no"}, "may not take definitions", NULL},
    {{.status = 401}, "401", "may not take"},
    {{.status = 400, .body = CODED("definition_invalid", "line 3: roles")},
     "Error (definition_invalid): line 3: roles",
     "may not take"},
    {{.status = 404, .body = CODED("dynamic_flows_off", "m")},
     "Error (dynamic_flows_off): m",
     "too old"},
    {{.status = 400, .body = CODED("reviewer_vendor_required", "m")},
     "Error (reviewer_vendor_required): m",
     "saved"},
};

START_TEST(definition_that_is_refused)
{
    const char *text = rig_ask(START_FLOW, BY_YAML, &refused_yaml[_i].reply, 1, true);

    rig_has(text, refused_yaml[_i].says);
    if (refused_yaml[_i].lacks)
        rig_lacks(text, refused_yaml[_i].lacks);
    ck_assert_uint_eq(fake_host_count(rig.fake, "POST", "*"), 1);
}
END_TEST

static const struct {
    const char *tool, *args, *says;
} bad[] = {
    {START_FLOW, "{" TARGET "}", "either definition_id or definition_yaml"},
    {START_FLOW, "{\"definition_id\":null,\"definition_yaml\":null," TARGET "}",
     "either definition_id or definition_yaml"},
    {START_FLOW, "{\"definition_id\":\"a\",\"definition_yaml\":\"b\"," TARGET "}",
     "either definition_id or definition_yaml"},
    {START_FLOW, "{\"definition_id\":\" \"," TARGET "}", "definition is blank"},
    {START_FLOW, "{\"definition_yaml\":\"\\n\"," TARGET "}", "definition is blank"},
    {START_FLOW, "{\"definition_id\":\"a\",\"model\":\"m\"," TARGET "}", "model needs vendor"},
    {START_FLOW, "{\"definition_yaml\":\"a\",\"vendor\":\"v\",\"model\":\"m\"," TARGET "}",
     "with definition_yaml"},
    {SEND, "{\"flow_run_id\":\"\",\"participant\":\"\",\"message\":\"\"}", "participant is"},
    {SEND, "{\"flow_run_id\":\"\",\"participant\":\"a\",\"message\":\"\"}", "message is"},
    {SEND, "{\"flow_run_id\":\"\",\"participant\":\"a\",\"message\":\"m\"}",
     "flow_run_id is missing or blank; nothing was submitted. get_flow_status"},
};

START_TEST(bad_arguments_send_nothing)
{
    rig_has(rig_ask(bad[_i].tool, bad[_i].args, NULL, 0, true), bad[_i].says);
    ck_assert_uint_eq(fake_host_count(rig.fake, NULL, "*"), 0);
}
END_TEST

/* ---- several participants ---- */

START_TEST(flow_without_a_round_is_not_waited_for)
{
    const struct fake_reply reply = {
        "POST", "*/start/v2",
        .body =
            "{\"flow_run_id\":\"u1\",\"status\":\"running\",\"workspace_mode\":\"borrowed\","
            "\"pending_messages\":[{\"message_id\":\"m1\",\"from_participant\":\"a\","
            "\"text\":\"hello\"}]}"};
    struct fake_call call = {.window_ms = 270000};

    fake_host_script(rig.fake, &reply, 1);
    rig_call(START_FLOW, BY_ID, &call);
    ck_assert(call.has_result && !call.is_error);
    rig_has(call.text, "flow_run_id: u1\nstatus: running\nnext_step: give its participants");
    rig_has(call.text, "call send_to_participant");
    rig_has(call.text, "workspace: borrowed\n");
    rig_has(call.text, "| hello\n");
    ck_assert_uint_eq(fake_host_count(rig.fake, "GET", "*"), 0);
    fake_call_fini(&call);
}
END_TEST

/* That it is there is all such a start has to say: once that was said, a start is a start. */
START_TEST(flow_without_a_round_is_delivered_by_its_answer)
{
    const struct fake_reply replies[] = {
        {"POST", "*/start/v2", .body = STARTED_WITHOUT_ROUND},
        {"GET", "/api/flows/u1*", .body = STARTED_WITHOUT_ROUND},
    };
    struct fake_call call = {.window_ms = 270000}, again = {.window_ms = 270000},
                     later = {.window_ms = 270000};

    fake_host_script(rig.fake, replies, 2);
    rig_call(START_FLOW, BY_ID, &call);
    rig_call(START_FLOW, BY_ID, &again);
    ck_assert_uint_eq(fake_host_count(rig.fake, "POST", "*"), 1);
    rig_has(again.text, "joined: the very same start");
    rig_settle(&again, KCAP_SETTLED_WRITTEN);
    fake_host_advance_ms(rig.fake, 31000);
    rig_call(START_FLOW, BY_ID, &later);
    ck_assert_uint_eq(fake_host_count(rig.fake, "POST", "*"), 2);
    fake_call_fini(&call);
    fake_call_fini(&again);
    fake_call_fini(&later);
}
END_TEST

START_TEST(waiting_for_no_round_ends_at_once)
{
    const struct fake_reply reply = {
        "GET", "/api/flows/u1*",
        .body = "{\"flow_run_id\":\"u1\",\"status\":\"running\",\"participants\":[{\"role\":"
                "\"critic\",\"vendor\":\"codex\",\"model\":\"m\",\"stopped\":false}]}"};
    const char *text =
        rig_ask("get_flow_status", "{\"flow_run_id\":\"u1\",\"wait\":true}", &reply, 1, false);

    rig_has(text, "next_step: give its participants their work");
    rig_has(text, "participant: critic, codex, m, ");
    ck_assert_uint_eq(fake_host_count(rig.fake, "GET", "*"), 1);
}
END_TEST

START_TEST(participant_is_told_and_waited_for)
{
    const struct fake_reply replies[] = {
        {"POST", "/api/flows/u1/rounds", .body = ANSWER_RUNNING},
        {"GET", RUN_POLL, .body = STATUS_FINDINGS},
    };
    const char *text = rig_ask(
        SEND, "{\"flow_run_id\":\"u1\",\"participant\":\"critic\",\"message\":\"look\"}",
        replies, 2, false);
    cJSON *body = sent(0);

    rig_has(text, "next_step: address the findings, then call send_to_participant with this "
                  "flow_run_id and the participant\n");
    ck_assert_str_eq(json_str(body, "context"), "look");
    ck_assert_str_eq(json_str(body, "participant"), "critic");
    ck_assert_ptr_null(json_get(body, "message"));
    ck_assert(json_bool(body, "async", false));
    cJSON_Delete(body);
}
END_TEST

/* Roles that work at the same time: each wait is for its own round, whichever is shown. */
#define ROUND_OF(role, n, status)                                                  \
    "{\"status\":\"running\",\"round_number\":" n ",\"round_participant\":\"" role \
    "\",\"round_status\":\"" status "\",\"round_result_kind\":\"" status "\"}"

static const struct {
    const char *name;
    struct fake_reply shown[2];
    size_t gets;
    const char *says;
} parallel[] = {
    {"another role's, later",
     {{.body = ROUND_OF("tester", "3", "running"), .times = 3},
      {.body = ROUND_OF("critic", "2", "findings")}},
     4,
     "round_number: 2\nresult_kind: findings\n"},
    {"another role's, earlier",
     {{.body = ROUND_OF("tester", "1", "running"), .times = 30},
      {.body = ROUND_OF("critic", "2", "findings")}},
     31,
     "round_number: 2\nresult_kind: findings\n"},
    {"its own next one", /* so this one is over */
     {{.body = ROUND_OF("critic", "3", "running")}},
     1,
     "warning: this call waited for round 2,"},
};

START_TEST(wait_is_for_its_own_round)
{
    struct fake_reply replies[3] = {
        {"POST", "*/rounds",
         .body = "{\"flow_run_id\":\"u1\",\"round_number\":2,\"status\":\"running\"}"}};
    const char *text;

    memcpy(replies + 1, parallel[_i].shown, sizeof parallel[_i].shown);
    text = rig_ask("send_to_participant",
                   "{\"flow_run_id\":\"u1\",\"participant\":\"critic\",\"message\":\"m\"}",
                   replies, 3, false);
    rig_has(text, parallel[_i].says);
    ck_assert_msg(fake_host_count(rig.fake, "GET", RUN_POLL) == parallel[_i].gets,
                  "%s: %zu GETs", parallel[_i].name,
                  fake_host_count(rig.fake, "GET", RUN_POLL));
}
END_TEST

START_TEST(participant_that_is_not_there)
{
    const struct fake_reply replies[] = {
        {"POST", "*", .status = 404, .body = CODED("unknown_participant", "it has: critic"),
         .times = 1},
        {"POST", "*", .status = 404, .body = CODED("unknown_flow", "no such run")},
    };
    static const char args[] =
        "{\"flow_run_id\":\"u1\",\"participant\":\"x\",\"message\":\"m\"}";

    rig_has(rig_ask(SEND, args, replies, 2, true),
            "next_step: call get_flow_status with this flow_run_id\n");
    rig_has(rig_ask(SEND, args, replies + 1, 1, true),
            "next_step: call get_flow_status without an id");
}
END_TEST

START_TEST(server_may_be_asked_to_hold_the_answer)
{
    const struct fake_reply reply = {.body = CLEAN, .delay_ms = 100000};
    cJSON *body;

    rig_ask(SEND,
            "{\"flow_run_id\":\"u1\",\"participant\":\"r\",\"message\":\"m\",\"async\":false}",
            &reply, 1, false);
    body = sent(0);
    ck_assert(!json_bool(body, "async", true));
    cJSON_Delete(body);
}
END_TEST

/* ---- one run, two sets of tools ---- */

static const char *const review_tools[] = {START, ROUND, STATUS, CLOSE};
static const char *const flow_tools[] = {START_FLOW, SEND, "get_flow_status", "close_flow"};

static bool
names_one_of(const char *text, const char *const *tools)
{
    for (int i = 0; i < 4; i++) {
        if (strstr(text, tools[i]))
            return true;
    }
    return false;
}

/* Whatever comes of it, an answer names the tools of the family it was asked by. */
static const struct {
    struct fake_reply reply;
    bool is_error;
} fates[] = {
    {{.body = STATUS_RUNNING}, false},
    {{.body = STATUS_FINDINGS}, false},
    {{.body = "{\"flow_run_id\":\"u1\",\"status\":\"waiting\",\"round_number\":1,"
              "\"round_status\":\"clean\"}"},
     false},
    {{.body = "{\"flow_run_id\":\"u1\",\"status\":\"waiting\",\"round_number\":1,"
              "\"round_status\":\"failed\"}"},
     false},
    {{.body = "{\"flow_run_id\":\"u1\",\"status\":\"waiting\",\"round_number\":1,"
              "\"round_status\":\"unclear\",\"round_reason\":\"it died\"}"},
     false},
    {{.body = "{\"flow_run_id\":\"u1\",\"status\":\"waiting\",\"round_number\":1,"
              "\"round_status\":\"unclear\"}"},
     false},
    {{.body = "{\"flow_run_id\":\"u1\",\"status\":\"waiting\",\"round_number\":1,"
              "\"round_status\":\"waiting\"}"},
     false},
    {{.status = 404}, true},
    {{.status = 500}, true},
    {{.delay_ms = FAKE_NEVER}, true},
};

START_TEST(advice_is_of_the_family)
{
    struct fake_call review = {.window_ms = 19000}, flow = {.window_ms = 19000};

    fake_host_script(rig.fake, &fates[_i].reply, 1);
    rig_call(STATUS, "{\"flow_run_id\":\"u1\"}", &review);
    rig_call("get_flow_status", "{\"flow_run_id\":\"u1\"}", &flow);
    ck_assert(review.is_error == fates[_i].is_error && flow.is_error == fates[_i].is_error);
    ck_assert_msg(names_one_of(review.text, review_tools) &&
                      !names_one_of(review.text, flow_tools),
                  "%s", review.text);
    ck_assert_msg(names_one_of(flow.text, flow_tools) && !names_one_of(flow.text, review_tools),
                  "%s", flow.text);
    fake_call_fini(&review);
    fake_call_fini(&flow);
}
END_TEST

/* A review that one family started is found, and closed, by the other. */
START_TEST(runs_are_shared)
{
    const struct fake_reply replies[] = {
        {"POST", "*/start/v2", .body = ANSWER_RUNNING},
        {"GET", SESSION_LIST, .status = 404},
        {"GET", "/api/flows/u1*", .body = STATUS_FINDINGS},
        {"POST", "/api/flows/u1/close",
         .body = "{\"flow_run_id\":\"u1\",\"status\":\"closed\"}"},
    };

    rig_ask(START, START_ARGS, replies, 4, false);
    rig_has(rig_ask("get_flow_status", "{}", replies, 4, false), "flow_run_id: u1\n");
    rig_has(rig_ask("close_flow", "{\"flow_run_id\":\"u1\"}", replies, 4, false),
            "status: closed\n");
    rig_has(rig_ask(STATUS, "{}", replies, 4, true), "status: none\n");
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, rig_setup, rig_teardown);
    tcase_add_test(tests, definition_of_the_catalog);
    tcase_add_test(tests, definition_that_is_sent_along);
    tcase_add_loop_test(tests, definition_that_is_refused, 0, N_ROWS(refused_yaml));
    tcase_add_loop_test(tests, bad_arguments_send_nothing, 0, N_ROWS(bad));
    tcase_add_test(tests, flow_without_a_round_is_not_waited_for);
    tcase_add_test(tests, flow_without_a_round_is_delivered_by_its_answer);
    tcase_add_test(tests, waiting_for_no_round_ends_at_once);
    tcase_add_test(tests, participant_is_told_and_waited_for);
    tcase_add_loop_test(tests, wait_is_for_its_own_round, 0, N_ROWS(parallel));
    tcase_add_test(tests, participant_that_is_not_there);
    tcase_add_test(tests, server_may_be_asked_to_hold_the_answer);
    tcase_add_loop_test(tests, advice_is_of_the_family, 0, N_ROWS(fates));
    tcase_add_test(tests, runs_are_shared);
}

int
main(void)
{
    return suite_run("flows-family", add);
}
