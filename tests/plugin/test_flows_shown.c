/* SPDX-License-Identifier: Apache-2.0 */
/* flows.so as shipped: an outcome is shown until it was delivered, and a run that is over is
 * told once. */
#include "config.h"

#include "flows-rig.h"
#include "lib/buf.h"

static const char u1_closed[] =
    "{\"flow_run_id\":\"u1\",\"status\":\"closed\",\"round_number\":1,"
    "\"round_status\":\"clean\"}";

/* A run that has ended and whose outcome was or was not delivered: is it still a candidate? */
static const struct {
    const char *name;
    uint32_t outcomes[2];
    int64_t later_ms;
    bool is_candidate;
} fates[] = {
    {"nothing known", {0, 0}, 60000, true},
    {"just written", {KCAP_SETTLED_WRITTEN, 0}, 1000, true},
    {"written", {KCAP_SETTLED_WRITTEN, 0}, 31000, false},
    {"crossed by a cancel", {KCAP_SETTLED_WRITTEN, KCAP_SETTLED_LATE_CANCEL}, 60000, true},
    {"cancelled", {KCAP_SETTLED_CANCELLED, 0}, 60000, true},
    {"dropped", {KCAP_SETTLED_DROPPED, 0}, 60000, true},
};

START_TEST(outcome_stays_until_it_was_delivered)
{
    const struct fake_reply replies[] = {
        {"POST", "*/start/v2", .body = ANSWER_RUNNING},
        {"GET", RUN_POLL, .body = u1_closed},
        {"GET", "/api/flows/u1", .body = u1_closed},
        {"GET", SESSION_LIST, .body = LISTED("")},
    };
    struct fake_call call = {.window_ms = 0};
    const char *text;

    fake_host_script(rig.fake, replies, 4);
    rig_call(START, START_ARGS, &call);
    for (int i = 0; i < 2; i++) {
        if (fates[_i].outcomes[i])
            rig_settle(&call, fates[_i].outcomes[i]);
    }
    rig_restart();
    fake_host_advance_ms(rig.fake, fates[_i].later_ms);
    text = rig_ask(STATUS, "{}", replies, 4, false);
    rig_has(text, fates[_i].is_candidate ? "flow_run_id: u1\n" : "No open flow is known");
    fake_call_fini(&call);
}
END_TEST

START_TEST(closed_run_is_forgotten)
{
    const struct fake_reply replies[] = {
        {"POST", "*/start/v2", .body = ANSWER_RUNNING},
        {"GET", RUN_POLL, .body = STATUS_FINDINGS},
        {"POST", "*/close", .body = "{\"status\":\"closed\"}"},
        {"GET", SESSION_LIST, .status = 404},
    };

    (void)rig_ask(START, START_ARGS, replies, 4, false);
    (void)rig_ask(CLOSE, "{\"flow_run_id\":\"u1\"}", replies, 4, false);
    rig_lacks(rig_ask(STATUS, "{}", replies, 4, true), "u1");
    rig_restart();
    rig_lacks(rig_ask(STATUS, "{}", replies, 4, true), "u1");
}
END_TEST

/* The server has lost the run: told once, then it is no candidate any more. */
START_TEST(run_that_is_gone_is_told_once)
{
    const struct fake_reply replies[] = {
        {"POST", "*/start/v2", .body = ANSWER_RUNNING},
        {"GET", RUN_POLL, .body = STATUS_FINDINGS, .times = 1},
        {"GET", "/api/flows/u1*", .status = 404, .body = CODED("unknown_flow", "no such run")},
        {"GET", SESSION_LIST, .body = LISTED("")},
    };
    struct fake_call call = {.window_ms = 0};

    (void)rig_ask(START, START_ARGS, replies, 4, false);
    fake_host_advance_ms(rig.fake, 11000);
    fake_host_script(rig.fake, replies + 2, 2);
    rig_call(STATUS, _i == 0 ? "{}" : "{\"wait\":true}", &call);
    ck_assert(call.is_error);
    rig_has(call.text, "flow_run_id: u1\n");
    rig_has(call.text, "Error (unknown_flow): no such run");
    rig_settle(&call, KCAP_SETTLED_WRITTEN);
    fake_host_advance_ms(rig.fake, 31000);
    rig_has(rig_ask(STATUS, "{}", replies + 2, 2, false), "No open flow is known");
    fake_call_fini(&call);
}
END_TEST

/* A server that has not caught up, or a proxy, says 404 as well: no run is given up for that,
 * and no other one started in its place. */
START_TEST(run_that_is_not_shown_is_kept)
{
    const struct fake_reply replies[] = {
        {"POST", "*/start/v2", .body = ANSWER_RUNNING},
        {"GET", RUN_POLL, .delay_ms = 1000, .body = STATUS_RUNNING, .times = 1},
        {"GET", "/api/flows/u1*", .status = 404, .body = "404 page not found"},
        {"GET", SESSION_LIST, .status = 404},
    };
    struct fake_call call = {.cancel_at_wait = 4}, later = {.window_ms = 0};

    fake_host_script(rig.fake, replies, 4);
    rig_call(START, START_ARGS, &call);
    ck_assert(!call.has_result);
    fake_host_advance_ms(rig.fake, _i == 0 ? 0 : 60000);
    fake_host_script(rig.fake, replies, 4);
    rig_call(STATUS, "{}", &later);
    rig_has(later.text, "flow_run_id: u1\n");
    rig_has(later.text,
            _i == 0 ? "Flow still running" : "The server does not show this flow now");
    rig_settle(&later, KCAP_SETTLED_WRITTEN);
    fake_host_advance_ms(rig.fake, 60000);
    rig_has(rig_ask(START, START_ARGS, replies, 4, true), "nothing was started by this call");
    ck_assert_uint_eq(fake_host_count(rig.fake, "POST", "*"), 1);
    /* what is gone for good is closed, and then forgotten */
    (void)rig_ask(CLOSE, "{\"flow_run_id\":\"u1\"}", replies + 3, 1, true);
    rig_has(rig_ask(STATUS, "{}", replies + 3, 1, true), "status: none\n");
    fake_call_fini(&call);
    fake_call_fini(&later);
}
END_TEST

/* A run that was only waited for, by its id, is found without it from then on. */
START_TEST(run_that_was_waited_for_is_remembered)
{
    const struct fake_reply replies[] = {
        {"GET", "/api/flows/u1*", .delay_ms = 10000, .body = STATUS_RUNNING},
        {"GET", SESSION_LIST, .status = 404},
    };
    struct fake_call call = {.window_ms = 25000};

    fake_host_script(rig.fake, replies, 2);
    rig_call(STATUS, "{\"flow_run_id\":\"u1\",\"wait\":true}", &call);
    rig_has(call.text, "Flow still running");
    rig_has(rig_ask(STATUS, "{}", replies, 2, false), "flow_run_id: u1\n");
    fake_call_fini(&call);
}
END_TEST

/* Starts that failed unheard are told beside the run there is, once, and hide nothing. */
START_TEST(run_no_longer_listed_stays_until_delivered)
{
    const struct fake_reply replies[] = {
        {"POST", "*/start/v2", .body = ANSWER_RUNNING},
        {"GET", "/api/flows/u1*", .body = STATUS_FINDINGS},
        {"GET", SESSION_LIST, .body = LISTED("")},
    };
    struct fake_call call = {.window_ms = 0};

    fake_host_script(rig.fake, replies, 3);
    rig_call(START, START_ARGS, &call);
    if (_i == 1)
        rig_settle(&call, KCAP_SETTLED_WRITTEN);
    fake_host_advance_ms(rig.fake, 31000);
    rig_has(rig_ask(STATUS, "{}", replies, 3, false),
            _i == 0 ? "flow_run_id: u1\n" : "No open flow is known");
    fake_call_fini(&call);
}
END_TEST

/* A character is never cut in two; what says an earlier round is not shown beside a further
 * part of this one. */
START_TEST(long_words_are_cut_where_they_may_be)
{
    AUTO_BUF struct buf body = BUF_INIT(1u << 20);
    struct fake_reply reply = {"GET", "*", .times = 2};
    const char *text;

    buf_adds(&body, "{\"status\":\"waiting\",\"round_number\":2,\"round_status\":\"findings\","
                    "\"last_result_kind\":\"clean\",\"last_result_text\":\"of before\","
                    "\"participants\":[{\"role\":\"critic\",\"vendor\":\"");
    for (int i = 0; i < 100; i++)
        buf_adds(&body, "\xe2\x82\xac");
    buf_adds(&body, "\"}],\"round_result_text\":\"");
    for (int i = 0; i < 60000; i++)
        buf_adds(&body, "0123456789");
    buf_adds(&body, "\"}");
    reply.body = buf_str(&body);
    text = rig_ask(STATUS, "{\"flow_run_id\":\"u1\"}", &reply, 1, false);
    ck_assert_ptr_nonnull(strstr(text, "\xe2\x82\xac [cut], no model"));
    ck_assert_ptr_null(strstr(text, "\xef\xbf\xbd"));
    ck_assert_ptr_nonnull(strstr(text, "| of before\n"));
    text = rig_ask(STATUS, "{\"flow_run_id\":\"u1\",\"offset\":300003}", &reply, 1, false);
    ck_assert_ptr_nonnull(strstr(text, "| 3456789"));
    ck_assert_ptr_null(strstr(text, "earlier round"));
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, rig_setup, rig_teardown);
    tcase_add_loop_test(tests, outcome_stays_until_it_was_delivered, 0, N_ROWS(fates));
    tcase_add_test(tests, closed_run_is_forgotten);
    tcase_add_loop_test(tests, run_that_is_gone_is_told_once, 0, 2);
    tcase_add_loop_test(tests, run_that_is_not_shown_is_kept, 0, 2);
    tcase_add_test(tests, run_that_was_waited_for_is_remembered);
    tcase_add_loop_test(tests, run_no_longer_listed_stays_until_delivered, 0, 2);
    tcase_add_test(tests, long_words_are_cut_where_they_may_be);
}

int
main(void)
{
    return suite_run("flows-shown", add);
}
