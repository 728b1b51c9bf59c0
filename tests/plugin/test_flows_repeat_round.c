/* SPDX-License-Identifier: Apache-2.0 */
/* flows.so as shipped: the same round again is not paid for twice, whoever sends it. */
#include "config.h"

#include "flows-rig.h"

#define ROUND_ARGS "{\"flow_run_id\":\"u1\",\"context\":\"fixed\"}"
#define OTHER_ARGS "{\"flow_run_id\":\"u1\",\"context\":\"fixed otherwise\"}"
#define SEND_ARGS  "{\"flow_run_id\":\"u1\",\"participant\":\"critic\",\"message\":\"fixed\"}"

#define ROUND_2 "{\"flow_run_id\":\"u1\",\"round_number\":2,\"status\":\"running\"}"
#define STATUS_2(round_status)                                                            \
    "{\"flow_run_id\":\"u1\",\"status\":\"waiting\",\"round_number\":2,\"round_status\":" \
    "\"" round_status "\",\"round_result_text\":\"two\"}"
#define RUNNING_2                                                                         \
    "{\"flow_run_id\":\"u1\",\"status\":\"running\",\"round_number\":2,\"round_status\":" \
    "\"running\"}"

#define N_ROUNDS fake_host_count(rig.fake, "POST", "*/rounds")

static const struct fake_reply taken[] = {
    {"POST", "*/rounds", .body = ROUND_2},
    {"GET", "/api/flows/u1*", .delay_ms = 15000, .body = RUNNING_2},
};

/* A run with findings in its first round. */
static void
have_a_run(void)
{
    const struct fake_reply replies[] = {
        {"POST", "*/start/v2", .body = ANSWER_RUNNING},
        {"GET", "/api/flows/u1*", .body = STATUS_FINDINGS},
    };

    rig_ask(START, START_ARGS, replies, 2, false);
}

static void
submit_and_vanish(const char *args)
{
    struct fake_call call = {.cancel_at_wait = 5};

    fake_host_script(rig.fake, taken, 2);
    rig_call(ROUND, args, &call);
    ck_assert(!call.has_result);
    ck_assert_uint_eq(N_ROUNDS, 1);
    fake_call_fini(&call);
}

/* What the server says when the same call comes again, from a new process. */
static const struct {
    const char *name, *args;
    struct fake_reply there;
    int64_t later_ms;
    bool sends, is_error;
    const char *says;
} again[] = {
    {"at work", ROUND_ARGS, {.body = RUNNING_2}, 0, false, false, "Flow still running"},
    {"findings", ROUND_ARGS, {.body = STATUS_2("findings")}, 0, false, false, "| two\n"},
    {"clean, hours later",
     ROUND_ARGS,
     {.body = STATUS_2("clean")},
     7200000,
     false,
     false,
     "joined: the very same round was made 7200 s ago"},
    {"not shown yet",
     ROUND_ARGS,
     {.body = STATUS_FINDINGS},
     0,
     false,
     false,
     "Flow still running"},
    {"never shown",
     ROUND_ARGS,
     {.body = STATUS_FINDINGS},
     120000,
     true,
     false,
     "round_number: 3"},
    {"died",
     ROUND_ARGS,
     {.body = "{\"flow_run_id\":\"u1\",\"status\":\"waiting\",\"round_number\":2,"
              "\"round_status\":\"unclear\",\"round_result_text\":\"participant_died\"}"},
     0,
     true,
     false,
     "round_number: 3"},
    {"failed", ROUND_ARGS, {.body = STATUS_2("failed")}, 0, true, false, "round_number: 3"},
    {"a later one",
     ROUND_ARGS,
     {.body = "{\"flow_run_id\":\"u1\",\"status\":\"waiting\",\"round_number\":4,"
              "\"round_status\":\"clean\"}"},
     0,
     true,
     false,
     "round_number: 3"},
    {"gone",
     ROUND_ARGS,
     {.status = 404, .body = CODED("unknown_flow", "?")},
     0,
     true,
     false,
     "round_number: 3"},
    {"over",
     ROUND_ARGS,
     {.body = "{\"flow_run_id\":\"u1\",\"status\":\"closed\"}"},
     0,
     true,
     false,
     "round_number: 3"},
    {"not seen", ROUND_ARGS, {.status = 503, .body = "x"}, 0, false, true, "could not be seen"},
    {"nonsense", ROUND_ARGS, {.body = "{}"}, 0, false, true, "could not be seen"},
    {"another text", OTHER_ARGS, {.body = RUNNING_2}, 0, true, false, "round_number: 3"},
    {"for a participant", SEND_ARGS, {.body = RUNNING_2}, 0, true, false, "round_number: 3"},
};

START_TEST(what_is_there_decides)
{
    struct fake_call call = {.window_ms = 50000};
    struct fake_reply replies[] = {
        {"POST", "*/rounds",
         .body = "{\"flow_run_id\":\"u1\",\"round_number\":3,\"status\":\"clean\"}"},
        again[_i].there,
    };

    have_a_run();
    submit_and_vanish(ROUND_ARGS);
    rig_restart();
    fake_host_advance_ms(rig.fake, again[_i].later_ms);
    replies[1].method = "GET";
    fake_host_script(rig.fake, replies, 2);
    rig_call(strcmp(again[_i].args, SEND_ARGS) == 0 ? "send_to_participant" : ROUND,
             again[_i].args, &call);
    ck_assert_msg(call.has_result && call.is_error == again[_i].is_error, "%s: %s",
                  again[_i].name, call.text);
    rig_has(call.text, again[_i].says);
    ck_assert_msg(N_ROUNDS == (again[_i].sends ? 1 : 0), "%s", again[_i].name);
    if (!again[_i].sends && !again[_i].is_error)
        rig_has(call.text, "joined: the very same round");
    fake_call_fini(&call);
}
END_TEST

/* A server shows one round, and may let several participants work at once. */
static const char *const others[] = {
    "{\"flow_run_id\":\"u1\",\"status\":\"running\",\"round_number\":3,\"round_status\":"
    "\"running\","
    "\"round_participant\":\"tester\"}",
    "{\"flow_run_id\":\"u1\",\"status\":\"waiting\",\"round_number\":3,\"round_status\":"
    "\"clean\","
    "\"round_participant\":\"tester\"}",
};

START_TEST(another_participants_round_is_not_the_end_of_it)
{
    struct fake_call call = {.cancel_at_wait = 5}, again_call = {.window_ms = 50000};
    struct fake_reply replies[] = {taken[0], {"GET", "*", .body = others[_i]}};

    have_a_run();
    fake_host_script(rig.fake, taken, 2);
    rig_call("send_to_participant", SEND_ARGS, &call);
    rig_restart();
    fake_host_script(rig.fake, replies, 2);
    rig_call("send_to_participant", SEND_ARGS, &again_call);
    rig_has(again_call.text, "joined: the very same round");
    ck_assert_uint_eq(N_ROUNDS, 0);
    fake_call_fini(&call);
    fake_call_fini(&again_call);
}
END_TEST

START_TEST(four_times_the_same_call_is_one_round)
{
    size_t n_rounds = 0;

    have_a_run();
    for (int i = 0; i < 4; i++) {
        struct fake_call call = {.cancel_at_wait = 5};
        rig_restart();
        fake_host_script(rig.fake, taken, 2);
        rig_call(ROUND, ROUND_ARGS, &call);
        n_rounds += N_ROUNDS;
        fake_call_fini(&call);
    }
    ck_assert_uint_eq(n_rounds, 1);
}
END_TEST

/* Other rounds in between, refused ones too, do not make a repeated one a new one. */
START_TEST(others_in_between_change_nothing)
{
    const struct fake_reply busy = {"POST", "*/rounds", .status = 409,
                                    .body = CODED("round_in_progress", "wait")};
    const struct fake_reply other[] = {
        {"POST", "*/rounds",
         .body = "{\"flow_run_id\":\"u1\",\"round_number\":3,\"status\":\"running\"}"},
        {"GET", "*", .delay_ms = 15000, .body = RUNNING_2},
    };
    const struct fake_reply there = {"GET", "*", .body = STATUS_2("findings")};
    struct fake_call call = {.cancel_at_wait = 5};

    have_a_run();
    submit_and_vanish(ROUND_ARGS);
    if (_i == 0) {
        (void)rig_ask(ROUND, OTHER_ARGS, &busy, 1, true);
    } else {
        fake_host_script(rig.fake, other, 2);
        rig_call("send_to_participant", SEND_ARGS, &call);
        fake_call_fini(&call);
    }
    rig_restart();
    rig_has(rig_ask(ROUND, ROUND_ARGS, &there, 1, false), "joined: the very same round");
    ck_assert_uint_eq(N_ROUNDS, 0);
}
END_TEST

/* A round whose answer is still out is joined within the process, whatever the server says. */
START_TEST(held_round_is_joined)
{
    const struct fake_reply replies[] = {
        {"POST", "*/rounds", .delay_ms = 90000, .body = STATUS_2("clean")},
        {"GET", "*", .body = STATUS_FINDINGS},
    };
    struct fake_call call = {.window_ms = 50000};

    fake_host_script(rig.fake, replies, 2);
    rig_call(ROUND, ROUND_ARGS, &call);
    rig_has(call.text, "status: starting");
    fake_call_fini(&call);
    rig_call(ROUND, ROUND_ARGS, &call);
    rig_has(call.text, "joined: ");
    ck_assert_uint_eq(N_ROUNDS, 1);
    fake_call_fini(&call);
}
END_TEST

/* Nobody knows whether the server took it. What is newer than all that was known is it. */
static const struct {
    bool has_run;
    const char *there;
    bool sends;
} unknown[] = {
    {true, STATUS_FINDINGS, true},  {true, STATUS_2("clean"), false}, {true, RUNNING_2, false},
    {false, STATUS_FINDINGS, true}, {false, STATUS_2("clean"), true}, {false, RUNNING_2, false},
};

START_TEST(round_that_broke)
{
    const struct fake_reply broken = {"POST", "*/rounds", .outcome = KCAP_HTTP_UNKNOWN,
                                      .error = "reset"};
    const struct fake_reply replies[] = {
        {"POST", "*/rounds",
         .body = "{\"flow_run_id\":\"u1\",\"round_number\":3,\"status\":\"clean\"}"},
        {"GET", "*", .body = unknown[_i].there},
    };
    struct fake_call call = {.window_ms = 50000};

    if (unknown[_i].has_run)
        have_a_run();
    rig_has(rig_ask(ROUND, ROUND_ARGS, &broken, 1, true), "may have taken the round");
    rig_restart();
    fake_host_script(rig.fake, replies, 2);
    rig_call(ROUND, ROUND_ARGS, &call);
    ck_assert(call.has_result && !call.is_error);
    ck_assert_uint_eq(N_ROUNDS, unknown[_i].sends ? 1 : 0);
    fake_call_fini(&call);
}
END_TEST

/* The findings of the round before must not pass for the answer to one that was lost. */
START_TEST(lost_round_is_told_with_the_status)
{
    const struct fake_reply broken = {"POST", "*/rounds", .outcome = KCAP_HTTP_UNKNOWN,
                                      .error = "reset"};
    const struct fake_reply there = {"GET", "*", .body = STATUS_FINDINGS};

    have_a_run();
    rig_lacks(rig_ask(STATUS, "{\"flow_run_id\":\"u1\"}", &there, 1, false),
              "warning: a round");
    (void)rig_ask(ROUND, ROUND_ARGS, &broken, 1, true);
    rig_restart();
    rig_has(rig_ask(STATUS, "{\"flow_run_id\":\"u1\"}", &there, 1, false), "warning: a round");
}
END_TEST

/* What the server refused is in nobody's way, and leaves no trace of a run. */
START_TEST(refused_round_is_sent_again)
{
    const struct fake_reply refused = {.status = 400, .body = CODED("bad", "no")};
    const struct fake_reply list = {"GET", SESSION_LIST, .status = 404};

    rig_ask(ROUND, ROUND_ARGS, &refused, 1, true);
    rig_ask(ROUND, ROUND_ARGS, &refused, 1, true);
    ck_assert_uint_eq(N_ROUNDS, 2);
    rig_has(rig_ask(STATUS, "{}", &list, 1, true), "status: none\n");
}
END_TEST

/* Delivered: written, and no cancel within half a minute. Then the same text is a new round. */
static const struct {
    uint32_t outcomes[2];
    int64_t later_ms;
    bool sends;
} fates[] = {
    {{0, 0}, 60000, false},
    {{KCAP_SETTLED_WRITTEN, 0}, 1000, false},
    {{KCAP_SETTLED_WRITTEN, 0}, 31000, true},
    {{KCAP_SETTLED_WRITTEN, KCAP_SETTLED_LATE_CANCEL}, 60000, false},
};

START_TEST(delivered_round_is_not_joined)
{
    const struct fake_reply replies[] = {
        {"POST", "*/rounds", .body = ROUND_2},
        {"GET", "*", .body = STATUS_2("findings")},
    };
    struct fake_call call = {.window_ms = 0};

    have_a_run();
    fake_host_script(rig.fake, replies, 2);
    rig_call(ROUND, ROUND_ARGS, &call);
    for (int i = 0; i < 2; i++) {
        if (fates[_i].outcomes[i])
            rig_settle(&call, fates[_i].outcomes[i]);
    }
    fake_host_advance_ms(rig.fake, fates[_i].later_ms);
    rig_restart();
    fake_host_advance_ms(rig.fake, fates[_i].later_ms);
    rig_ask(ROUND, ROUND_ARGS, replies, 2, false);
    ck_assert_uint_eq(N_ROUNDS, fates[_i].sends ? 1 : 0);
    fake_call_fini(&call);
}
END_TEST

START_TEST(each_host_call_may_fail)
{
    const struct fake_reply there = {"GET", "*", .body = STATUS_2("clean")};
    bool failed = true;

    have_a_run();
    submit_and_vanish(ROUND_ARGS);
    rig_restart();
    for (unsigned n = 1; failed; n++) {
        struct fake_call call = {.window_ms = 60000};
        ck_assert_uint_lt(n, 100);
        fake_host_script(rig.fake, &there, 1);
        fake_host_fail_at(rig.fake, n);
        rig_call(ROUND, ROUND_ARGS, &call);
        failed = fake_host_has_failed(rig.fake);
        fake_host_fail_at(rig.fake, 0);
        ck_assert(call.has_result || call.returned < 0);
        if (!failed)
            rig_has(call.text, "joined: ");
        fake_call_fini(&call);
    }
    ck_assert_uint_eq(N_ROUNDS, 0);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, rig_setup, rig_teardown);
    tcase_add_loop_test(tests, what_is_there_decides, 0, N_ROWS(again));
    tcase_add_loop_test(tests, another_participants_round_is_not_the_end_of_it, 0, 2);
    tcase_add_test(tests, four_times_the_same_call_is_one_round);
    tcase_add_loop_test(tests, others_in_between_change_nothing, 0, 2);
    tcase_add_test(tests, held_round_is_joined);
    tcase_add_loop_test(tests, round_that_broke, 0, N_ROWS(unknown));
    tcase_add_test(tests, lost_round_is_told_with_the_status);
    tcase_add_test(tests, refused_round_is_sent_again);
    tcase_add_loop_test(tests, delivered_round_is_not_joined, 0, N_ROWS(fates));
    tcase_add_test(tests, each_host_call_may_fail);
}

int
main(void)
{
    return suite_run("flows-repeat-round", add);
}
