/* SPDX-License-Identifier: Apache-2.0 */
/* flows.so as shipped: no run is ever lost, whatever cuts the call that started it. */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flows-rig.h"

START_TEST(window_over_is_a_normal_result)
{
    struct fake_call call = {.window_ms = 270000};

    fake_host_script(rig.fake, rig_running, 3);
    rig_call(START, START_ARGS, &call);
    ck_assert(call.has_result && !call.is_error);
    ck_assert_int_eq(call.took_ms, 270000);
    ck_assert_msg(strncmp(call.text,
                          "flow_run_id: u1\nstatus: running\nnext_step: call "
                          "get_review_flow_status with {\"wait\": true}",
                          80) == 0,
                  "%s", call.text);
    rig_has(call.text, "Flow still running: this call waited 270 s.");
    rig_has(call.text, "Do not start another flow");
    rig_has(call.json, "\"flow_run_id\":\"u1\",\"status\":\"running\"");
    ck_assert_uint_eq(call.n_progress, 17);
    fake_call_fini(&call);
}
END_TEST

/* Cancelled at any of its waits, the run is found by a process that has never heard of it. */
START_TEST(cancelled_anywhere_it_is_found_again)
{
    struct fake_call call = {.cancel_at_wait = (unsigned)_i};
    const char *text;

    fake_host_script(rig.fake, rig_running, 3);
    rig_call(START, START_ARGS, &call);
    ck_assert(!call.has_result);
    ck_assert_int_eq(call.returned, 0);
    fake_host_advance_ms(rig.fake, 1000); /* the post itself goes on */
    rig_restart();
    text = rig_ask(STATUS, "{\"wait\":true}", rig_finished, 2, false);
    rig_has(text, "flow_run_id: u1\n");
    rig_has(text, "chosen: the one flow known here of session s1 (from _meta.threadId)\n");
    rig_has(text, "| a.c:1: bad\n");
    ck_assert_uint_eq(fake_host_count(rig.fake, "POST", "*"), 0);
    fake_call_fini(&call);
}
END_TEST

/* Given up, or out of time, before anything was sent: then nothing is. */
START_TEST(nothing_is_sent_for_a_call_that_is_over)
{
    static const struct {
        const char *tool, *args;
    } tools[] = {{START, START_ARGS}, {ROUND, "{\"flow_run_id\":\"u1\",\"context\":\"c\"}"}};
    bool shut_down = _i >= 2;
    struct fake_call call = {.cancel_at_wait = shut_down ? 0 : 1,
                             .shutdown_at_wait = shut_down ? 1 : 0};

    fake_host_script(rig.fake, rig_running, 3);
    rig_call(tools[_i % 2].tool, tools[_i % 2].args, &call);
    ck_assert(!call.has_result);
    fake_host_advance_ms(rig.fake, 1000);
    ck_assert_uint_eq(fake_host_count(rig.fake, "POST", "*"), 0);
    rig_has(rig_ask(STATUS, "{}", rig_running + 2, 1, true), "No open flow is known");
    rig_lacks(rig_ask(STATUS, "{}", rig_running + 2, 1, true), "a start was sent");
    fake_call_fini(&call);
}
END_TEST

/* The server holds the start's answer beyond the window. */
START_TEST(held_start_is_joined)
{
    const struct fake_reply held[] = {
        {"POST", "*/start/v2", .delay_ms = 300000, .body = ANSWER_RUNNING},
        {"GET", RUN_POLL, .body = STATUS_FINDINGS},
        {"GET", SESSION_LIST, .status = 404},
    };
    struct fake_call call = {.window_ms = 50000}, again = {.window_ms = 50000};
    const char *text;

    fake_host_script(rig.fake, held, 3);
    rig_call(START, START_ARGS, &call);
    ck_assert(call.has_result && !call.is_error);
    rig_has(call.text, "status: starting\n");
    rig_has(call.text, "start is still in progress");
    rig_call(STATUS, "{\"wait\":true}", &again);
    rig_has(again.text, "start is still in progress");
    rig_has(again.text, "elapsed: 100 s\n");
    rig_has(again.text, "chosen: the one start on its way of session s1");
    rig_lacks(again.text, "whose outcome is unknown"); /* it is known: still under way */
    ck_assert_uint_eq(call.n_progress, 3);
    text = rig_ask(STATUS, "{\"wait\":true}", held, 3, false);
    rig_has(text, "flow_run_id: u1\n");
    rig_has(text, "| a.c:1: bad\n");
    ck_assert_uint_eq(fake_host_count(rig.fake, "POST", "*"), 1);
    fake_call_fini(&call);
    fake_call_fini(&again);
}
END_TEST

START_TEST(held_start_that_fails_is_told_once)
{
    const struct fake_reply held[] = {
        {"POST", "*/start/v2", .delay_ms = 60000, .status = 400,
         .body = "no_daemon_available: x"},
        {"GET", SESSION_LIST, .body = LISTED("")},
    };
    struct fake_call call = {.cancel_at_wait = 2};
    const char *text;

    fake_host_script(rig.fake, held, 2);
    rig_call(START, START_ARGS, &call);
    fake_host_advance_ms(rig.fake, 61000);
    text = rig_ask(STATUS, "{}", held, 2, true);
    rig_has(text, "no_daemon_available: x");
    text = rig_ask(STATUS, "{}", held, 2, false);
    rig_has(text, "No open flow is known");
    fake_call_fini(&call);
}
END_TEST

START_TEST(held_round_is_joined)
{
    const struct fake_reply held[] = {
        {"POST", "*/rounds", .delay_ms = 60000,
         .body = "{\"flow_run_id\":\"u1\",\"round_number\":1,\"status\":\"running\"}"},
        {"GET", RUN_POLL, .body = STATUS_FINDINGS},
        {"GET", SESSION_LIST, .status = 404},
    };
    struct fake_call call = {.window_ms = 50000};
    const char *text;

    fake_host_script(rig.fake, held, 3);
    rig_call(ROUND, "{\"flow_run_id\":\"u1\",\"context\":\"c\"}", &call);
    rig_has(call.text, "flow_run_id: u1\nstatus: starting\n");
    text = rig_ask(STATUS, "{\"flow_run_id\":\"u1\",\"wait\":true}", held, 3, false);
    rig_has(text, "| a.c:1: bad\n");
    ck_assert_uint_eq(fake_host_count(rig.fake, "POST", "*"), 1);
    fake_call_fini(&call);
}
END_TEST

/* ---- which run a bare call means ---- */

static const struct {
    const char *name;
    struct fake_reply list; /* the server's answer about the session */
    const char *ids[3];     /* that must be in the answer, in this order */
    bool is_error;
    const char *says;
} choices[] = {
    {"none", {.body = LISTED("")}, {NULL}, false, "No open flow is known for session s1"},
    {"one",
     {.body = LISTED(LISTED_U("7", "running"))},
     {"flow_run_id: u7"},
     false,
     "chosen: the one flow, as the server lists it, of session s1"},
    {"two",
     {.body = LISTED(LISTED_U("7", "running") "," LISTED_U("8", "waiting"))},
     {"flow_run_id: u7", "flow_run_id: u8"},
     false,
     "2 flows are candidates"},
    {"junk between",
     {.body = LISTED("7,{},{\"flow_run_id\":5}," LISTED_U("7", "running"))},
     {"flow_run_id: u7"},
     false,
     "chosen"},
    {"ended, but not shown here",
     {.body = LISTED(LISTED_U("7", "failed"))},
     {"flow_run_id: u7"},
     false,
     "chosen"},
    {"too old", {.status = 404}, {NULL}, true, "too old to list"},
    {"503", {.status = 503, .body = "x"}, {NULL}, true, "HTTP 503"},
    {"hangs", {.delay_ms = FAKE_NEVER}, {NULL}, true, "did not answer"},
    {"no list", {.body = "{}"}, {NULL}, true, "cannot be read"},
};

START_TEST(bare_call_chooses_or_lists)
{
    struct fake_reply replies[] = {
        choices[_i].list,
        {"GET", "/api/flows/u7*", .body = "{\"status\":\"waiting\"}"},
    };
    const char *text, *at;

    replies[0].method = "GET";
    replies[0].path = SESSION_LIST;
    at = text = rig_ask(STATUS, "{}", replies, 2, choices[_i].is_error);
    rig_has(text, choices[_i].says);
    for (int i = 0; i < 3 && choices[_i].ids[i]; i++) {
        at = strstr(at, choices[_i].ids[i]);
        ck_assert_msg(at != NULL, "%s: %s", choices[_i].name, text);
    }
}
END_TEST

START_TEST(local_and_listed_are_one_list)
{
    const struct fake_reply replies[] = {
        {"POST", "*/start/v2", .body = ANSWER_RUNNING},
        {"GET", RUN_POLL, .body = STATUS_FINDINGS},
        {"GET", SESSION_LIST,
         .body = LISTED(LISTED_U("1", "waiting") "," LISTED_U("2", "running"))},
    };
    const char *text;

    (void)rig_ask(START, START_ARGS, replies, 3, false);
    text = rig_ask(STATUS, "{\"wait\":true}", replies, 3, false);
    rig_has(text, "2 flows are candidates");
    rig_has(text, "- flow_run_id: u1\n");
    rig_has(text, "- flow_run_id: u2\n");
}
END_TEST

START_TEST(sessions_do_not_mix)
{
    struct fake_call call = {.session_id = "s2", .client_name = "x"};
    const char *text;

    fake_host_script(rig.fake, rig_running, 3);
    call.window_ms = 1000;
    rig_call(START, START_ARGS, &call);
    rig_has(call.text, "u1");
    text = rig_ask(STATUS, "{}", rig_finished, 2, true);
    rig_lacks(text, "u1");
    text =
        rig_ask(STATUS, "{\"session_id\":\"s2\"}",
                (const struct fake_reply[]){{"GET", "/api/flows/session/s2*", .status = 404},
                                            {"GET", "/api/flows/u1*", .body = STATUS_FINDINGS}},
                2, false);
    rig_has(text, "flow_run_id: u1\n");
    fake_call_fini(&call);
}
END_TEST

START_TEST(session_argument_is_normalised)
{
    (void)rig_ask(STATUS, "{\"session_id\":\" 0198A0F0-1111-2222-3333-ABCDEFABCDEF \"}",
                  (const struct fake_reply[]){{"GET", "*", .body = LISTED("")}}, 1, false);
    ck_assert_uint_eq(fake_host_count(rig.fake, "GET",
                                      "/api/flows/session/0198a0f0111122223333abcdefabcdef*"),
                      1);
}
END_TEST

START_TEST(overlong_session_argument_is_refused)
{
    char args[400];

    (void)snprintf(args, sizeof args, "{\"session_id\":\"%0257d\"}", 1);
    rig_has(rig_ask(STATUS, args, NULL, 0, true), "session_id is longer");
    ck_assert_uint_eq(fake_host_count(rig.fake, "GET", "*"), 0);
    (void)snprintf(args, sizeof args, "{\"session_id\":\"%0256d\"}", 1);
    (void)rig_ask(STATUS, args, (const struct fake_reply[]){{"GET", "*", .body = LISTED("")}},
                  1, false);
}
END_TEST

START_TEST(client_without_session_is_known_by_its_place)
{
    struct fake_call call = {.session_id = "", .client_name = "gemini", .window_ms = 1000};
    struct fake_call again = call;

    fake_host_script(rig.fake, rig_running, 3);
    rig_call(START, START_ARGS, &call);
    rig_restart();
    fake_host_script(rig.fake, rig_finished, 2);
    rig_call(STATUS, "{}", &again);
    rig_has(again.text, "flow_run_id: u1\n");
    rig_has(again.text, "client gemini in /");
    rig_has(again.text, "no session id");
    ck_assert_uint_eq(fake_host_count(rig.fake, "GET", "/api/flows/session/*"), 0);
    fake_call_fini(&call);
    fake_call_fini(&again);
}
END_TEST

START_TEST(run_of_another_server_is_left_alone)
{
    struct fake_call call = {.window_ms = 1000};
    const char *text;

    fake_host_script(rig.fake, rig_running, 3);
    rig_call(START, START_ARGS, &call);
    rig_restart();
    fake_host_set_server(rig.fake, KCAP_HTTP_SERVER_CONFIGURED, "https://other", NULL);
    text = rig_ask(STATUS, "{}", rig_finished, 2, true);
    rig_lacks(text, "u1");
    fake_call_fini(&call);
}
END_TEST

START_TEST(failed_starts_are_no_candidates)
{
    const struct fake_reply replies[] = {
        {"POST", "*/start/v2", .delay_ms = 20000, .status = 400, .body = CODED("bad", "no"),
         .times = 2},
        {"POST", "*/start/v2", .body = ANSWER_RUNNING},
        {"GET", "/api/flows/u1*", .body = STATUS_FINDINGS},
        {"GET", SESSION_LIST, .status = 404},
    };
    struct fake_call first = {.cancel_at_wait = 2}, second = {.cancel_at_wait = 2};
    const char *text;

    fake_host_script(rig.fake, replies, 4);
    rig_call(START, START_ARGS, &first);
    rig_call(START, NEW_RUN_ARGS, &second);
    fake_host_advance_ms(rig.fake, 60000);
    (void)rig_ask(START, START_ARGS, replies + 1, 3, false);
    text = rig_ask(STATUS, "{\"wait\":true}", replies + 2, 2, false);
    rig_has(text, "flow_run_id: u1\n");
    rig_has(text, "a start that failed: T\nError (bad): no\n");
    rig_lacks(rig_ask(STATUS, "{}", replies + 2, 2, false), "failed");
    fake_call_fini(&first);
    fake_call_fini(&second);
}
END_TEST

/* A start was lost a moment ago: that the server lists nothing yet is no proof. */
START_TEST(young_start_is_in_doubt)
{
    const struct fake_reply lost = {"POST", "*", .outcome = KCAP_HTTP_UNKNOWN,
                                    .error = "reset"};
    const struct fake_reply list = {"GET", SESSION_LIST, .body = LISTED("")};

    (void)rig_ask(START, START_ARGS, &lost, 1, true);
    rig_has(rig_ask(STATUS, "{}", &list, 1, false), "a start has no answer yet");
    fake_host_advance_ms(rig.fake, 21 * 60 * 1000);
    rig_lacks(rig_ask(STATUS, "{}", &list, 1, false), "a start has no answer yet");
}
END_TEST

/* The start's answer arrives while the server is asked for its list: one run, not two. */
START_TEST(start_answered_during_the_look_up_is_one_run)
{
    const struct fake_reply replies[] = {
        {"POST", "*/start/v2", .delay_ms = 51000, .body = ANSWER_RUNNING},
        {"GET", RUN_POLL, .body = STATUS_FINDINGS},
        {"GET", SESSION_LIST, .delay_ms = 5000, .body = LISTED(LISTED_U("1", "running"))},
    };
    struct fake_call call = {.window_ms = 50000};
    const char *text;

    fake_host_script(rig.fake, replies, 3);
    rig_call(START, START_ARGS, &call);
    rig_has(call.text, "start is still in progress");
    text = rig_ask(STATUS, "{\"wait\":true}", replies, 3, false);
    rig_has(text, "flow_run_id: u1\n");
    rig_lacks(text, "candidates");
    fake_call_fini(&call);
}
END_TEST

/* The server has made the run, but still holds the start's answer. */
START_TEST(start_still_held_and_its_listed_run_are_one)
{
    static const char *const lists[] = {
        LISTED(LISTED_U("1", "running")),
        LISTED(LISTED_U("1", "running") "," LISTED_U("12", "x")),
        LISTED(LISTED_U("12", "running"))};
    const struct fake_reply replies[] = {
        {"POST", "*/start/v2", .delay_ms = 90000, .body = ANSWER_RUNNING},
        {"GET", RUN_POLL, .body = STATUS_FINDINGS},
        {"GET", SESSION_LIST, .body = lists[_i]},
    };
    struct fake_call call = {.window_ms = 50000};
    const char *text;

    fake_host_script(rig.fake, replies, 3);
    rig_call(START,
             "{\"kind\":\"code-review\",\"target_kind\":\"commit\",\"target_ref\":\"HEAD\","
             "\"target_title\":\"T1\",\"context\":\"c\"}",
             &call);
    rig_has(call.text, "start is still in progress");
    text = rig_ask(STATUS, "{\"wait\":true}", replies, 3, false);
    if (_i == 0) {
        rig_has(text, "flow_run_id: u1\n");
        rig_lacks(text, "candidates");
    } else {
        rig_has(text, "2 flows are candidates"); /* another's run is no answer to our start */
        rig_has(text, "flow_run_id: u12\n");
    }
    ck_assert_uint_eq(fake_host_count(rig.fake, "POST", "*"), 1);
    fake_call_fini(&call);
}
END_TEST

/* The connection broke, but the run came to be: the list tells, and nothing is told twice. */
START_TEST(start_that_broke_is_resolved_by_the_list)
{
    const struct fake_reply replies[] = {
        {"POST", "*/start/v2", .delay_ms = 60000, .outcome = KCAP_HTTP_UNKNOWN,
         .error = "reset"},
        {"GET", RUN_POLL, .body = STATUS_FINDINGS},
        {"GET", SESSION_LIST,
         .body = LISTED("{\"flow_run_id\":\"u1\",\"status\":\"running\",\"target_title\":"
                        "\"T\"}")},
    };
    struct fake_call call = {.window_ms = 50000};
    const char *text;

    fake_host_script(rig.fake, replies, 3);
    rig_call(START, START_ARGS, &call);
    fake_host_advance_ms(rig.fake, 20000);
    text = rig_ask(STATUS, "{\"wait\":true}", replies, 3, false);
    rig_has(text, "flow_run_id: u1\n");
    rig_lacks(text, "candidates");
    rig_lacks(text, "reset");
    fake_call_fini(&call);
}
END_TEST

/* An open run that the server no longer lists, closed elsewhere perhaps. */
/* ---- each host call fails in turn ---- */

START_TEST(each_host_call_may_fail)
{
    static const struct {
        const char *tool, *args;
    } tools[] = {
        {START, NEW_RUN_ARGS},
        {ROUND, "{\"flow_run_id\":\"u1\",\"context\":\"c\"}"},
        {STATUS, "{\"wait\":true}"},
        {CLOSE, "{\"flow_run_id\":\"u1\"}"},
    };
    const struct fake_reply replies[] = {
        {"POST", "*/close", .body = "{\"status\":\"closed\"}"},
        {"POST", "*", .delay_ms = 10, .body = ANSWER_RUNNING},
        {"GET", "/api/flows/u1", .body = STATUS_RUNNING},
        {"GET", RUN_POLL, .body = STATUS_RUNNING, .times = 1},
        {"GET", RUN_POLL, .body = STATUS_FINDINGS},
        {"GET", SESSION_LIST, .body = LISTED(LISTED_U("1", "running"))},
    };
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        struct fake_call call = {.window_ms = 60000};
        size_t posts = fake_host_count(rig.fake, "POST", "*");
        ck_assert_uint_lt(n, 100);
        fake_host_script(rig.fake, replies, 6);
        fake_host_fail_at(rig.fake, n);
        rig_call(tools[_i].tool, tools[_i].args, &call);
        failed = fake_host_has_failed(rig.fake);
        fake_host_fail_at(rig.fake, 0);
        fake_host_advance_ms(rig.fake, 1000);
        ck_assert_msg(call.has_result || call.returned < 0, "%s, failure %u: no answer",
                      tools[_i].tool, n);
        ck_assert_uint_le(fake_host_count(rig.fake, "POST", "*") - posts, 1);
        if (!failed)
            ck_assert(call.has_result && !call.is_error);
        fake_call_fini(&call);
    }
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, rig_setup, rig_teardown);
    tcase_add_test(tests, window_over_is_a_normal_result);
    tcase_add_loop_test(tests, cancelled_anywhere_it_is_found_again, 2, 9);
    tcase_add_loop_test(tests, nothing_is_sent_for_a_call_that_is_over, 0, 4);
    tcase_add_test(tests, held_start_is_joined);
    tcase_add_test(tests, held_start_that_fails_is_told_once);
    tcase_add_test(tests, held_round_is_joined);
    tcase_add_loop_test(tests, bare_call_chooses_or_lists, 0, N_ROWS(choices));
    tcase_add_test(tests, local_and_listed_are_one_list);
    tcase_add_test(tests, sessions_do_not_mix);
    tcase_add_test(tests, session_argument_is_normalised);
    tcase_add_test(tests, overlong_session_argument_is_refused);
    tcase_add_test(tests, client_without_session_is_known_by_its_place);
    tcase_add_test(tests, run_of_another_server_is_left_alone);
    tcase_add_test(tests, failed_starts_are_no_candidates);
    tcase_add_test(tests, young_start_is_in_doubt);
    tcase_add_test(tests, start_answered_during_the_look_up_is_one_run);
    tcase_add_loop_test(tests, start_still_held_and_its_listed_run_are_one, 0, 3);
    tcase_add_test(tests, start_that_broke_is_resolved_by_the_list);
    tcase_add_loop_test(tests, each_host_call_may_fail, 0, 4);
}

int
main(void)
{
    return suite_run("flows-find", add);
}
