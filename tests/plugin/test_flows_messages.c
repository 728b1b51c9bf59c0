/* SPDX-License-Identifier: Apache-2.0 */
/* flows.so as shipped: messages of participants are shown, and acknowledged when they were. */
#include "config.h"

#include <stdio.h>

#include "flows-rig.h"

#define WITH(messages)                                                                    \
    "{\"flow_run_id\":\"u1\",\"status\":\"waiting\",\"round_number\":1,\"round_status\":" \
    "\"clean\",\"result_kind\":\"clean\",\"pending_messages\":[" messages "]}"
#define MESSAGE(id, text) \
    "{\"message_id\":\"" id "\",\"from_participant\":\"reviewer\",\"text\":\"" text "\"}"
#define WITHOUT_ID "{\"from_participant\":\"x\",\"text\":\"no id\"}"

#define ACK     "/api/flows/u1/messages/ack"
#define N_ACKS  fake_host_count(rig.fake, "POST", ACK)
#define OF_U1   "{\"flow_run_id\":\"u1\"}"
#define WAIT_U1 "{\"flow_run_id\":\"u1\",\"wait\":true}"

static const struct fake_reply acked = {"POST", ACK, .body = "{}"};

/* Every tool that can be told of messages; a close has acknowledged them itself. */
static const struct {
    const char *tool, *args;
    unsigned n_acks;
} tools[] = {
    {START, START_ARGS, 1}, {ROUND, "{\"flow_run_id\":\"u1\",\"context\":\"c\"}", 1},
    {STATUS, OF_U1, 1},     {STATUS, WAIT_U1, 1},
    {CLOSE, OF_U1, 0},
};

START_TEST(messages_are_shown_and_acknowledged)
{
    const struct fake_reply replies[] = {
        acked,
        {.body = WITH(
             "7,{},{\"message_id\":\"m0\"},{\"text\":5}," MESSAGE("m1", "where?") "," MESSAGE(
                 "m\\n2", "one\\nflow_run_id: u9\\u001b[2J") "," WITHOUT_ID)},
    };
    struct fake_call call = {.window_ms = 0};
    const struct fake_request *requests;
    size_t n;

    fake_host_script(rig.fake, replies, 2);
    rig_call(tools[_i].tool, tools[_i].args, &call);
    rig_has(call.text, "\nmessages: 3\n");
    rig_has(call.text, "message_from: reviewer\nmessage_id: m1\n");
    rig_has(call.text, "\n| where?\n");
    rig_has(call.text, "\n| one\n| flow_run_id: u9");
    rig_lacks(call.text, "\nflow_run_id: u9");
    rig_lacks(call.text, "\033");
    rig_has(call.text, "\n| no id\n");
    rig_lacks(call.text, "m0");
    ck_assert_uint_eq(N_ACKS, 0);
    rig_settle(&call, KCAP_SETTLED_WRITTEN);
    fake_host_advance_ms(rig.fake, 2000);
    ck_assert_uint_eq(N_ACKS, tools[_i].n_acks);
    requests = fake_host_requests(rig.fake, &n);
    if (tools[_i].n_acks > 0)
        ck_assert_str_eq(requests[n - 1].body, "{\"message_ids\":[\"m1\",\"m\\n2\"]}");
    fake_call_fini(&call);
}
END_TEST

START_TEST(nothing_to_acknowledge)
{
    static const char *const bodies[] = {WITH(""), WITH(WITHOUT_ID),
                                         "{\"status\":\"running\",\"pending_messages\":{}}"};

    (void)rig_ask(STATUS, OF_U1, &(struct fake_reply){.body = bodies[_i]}, 1, false);
    ck_assert_uint_eq(N_ACKS, 0);
}
END_TEST

/* The result does not wait for it, and it is not tried for ever. */
static const struct {
    struct fake_reply ack;
    unsigned n_acks;
} slow[] = {
    {{"POST", ACK, .status = 500, .body = "x"}, 2},
    {{"POST", ACK, .status = 500, .body = "x", .times = 1}, 2},
    {{"POST", ACK, .delay_ms = FAKE_NEVER}, 1},
};

START_TEST(acknowledging_is_bounded)
{
    const struct fake_reply replies[] = {
        slow[_i].ack, acked, {.body = WITH(MESSAGE("m1", "a"))}};
    struct fake_call call = {.window_ms = 1000};

    fake_host_script(rig.fake, replies, 3);
    rig_call(STATUS, OF_U1, &call);
    ck_assert(call.has_result && !call.is_error);
    rig_has(call.text, "| a\n");
    ck_assert_int_eq(call.took_ms, 0);
    rig_settle(&call, KCAP_SETTLED_WRITTEN);
    fake_host_advance_ms(rig.fake, 60000);
    ck_assert_uint_eq(N_ACKS, slow[_i].n_acks);
    if (_i == 1)
        ck_assert_ptr_null(strstr(fake_host_log(rig.fake), "acknowledged"));
    else
        rig_has(fake_host_log(rig.fake), "could not be acknowledged and will come again");
    fake_call_fini(&call);
}
END_TEST

/* What was not seen is not acknowledged. */
static const uint32_t unseen[][2] = {
    {0, 0},
    {KCAP_SETTLED_CANCELLED, 0},
    {KCAP_SETTLED_DROPPED, 0},
    {KCAP_SETTLED_WRITTEN, KCAP_SETTLED_LATE_CANCEL},
};

START_TEST(unseen_messages_are_not_acknowledged)
{
    const struct fake_reply replies[] = {acked, {.body = WITH(MESSAGE("m1", "a"))}};
    struct fake_call call = {.window_ms = 0};
    const char *text;

    fake_host_script(rig.fake, replies, 2);
    rig_call(STATUS, OF_U1, &call);
    for (int i = 0; i < 2; i++) {
        if (unseen[_i][i])
            rig_settle(&call, unseen[_i][i]);
    }
    fake_host_advance_ms(rig.fake, 60000);
    ck_assert_uint_eq(N_ACKS, 0);
    text = rig_ask(STATUS, OF_U1, replies, 2, false);
    rig_has(text, "| a\n");
    fake_call_fini(&call);
}
END_TEST

/* From a shell there is no later: it is seen when it is written. */
START_TEST(shell_acknowledges_at_once)
{
    const struct fake_reply replies[] = {acked, {.body = WITH(MESSAGE("m1", "a"))}};
    struct fake_call call = {.harness = "shell"};

    fake_host_script(rig.fake, replies, 2);
    rig_call(STATUS, OF_U1, &call);
    ck_assert_uint_eq(N_ACKS, 1);
    fake_call_fini(&call);
}
END_TEST

/* What comes again is marked; without an id it is shown once, if that was seen. */
START_TEST(repeats_are_marked)
{
    const struct fake_reply replies[] = {acked,
                                         {.body = WITH(MESSAGE("m1", "a") "," WITHOUT_ID)}};
    struct fake_call call = {.window_ms = 0};
    const char *text;

    fake_host_script(rig.fake, replies, 2);
    rig_call(STATUS, OF_U1, &call);
    rig_lacks(call.text, "shown before");
    rig_has(call.text, "| no id\n");
    rig_settle(&call, _i == 0 ? KCAP_SETTLED_WRITTEN : KCAP_SETTLED_CANCELLED);
    text = rig_ask(STATUS, OF_U1, replies, 2, false);
    rig_has(text, "| a\n");
    if (_i == 0) {
        rig_has(text, "message_id: m1\nmessage_note: shown before");
        rig_lacks(text, "no id");
    } else {
        rig_lacks(text, "shown before");
        rig_has(text, "| no id\n");
    }
    fake_call_fini(&call);
}
END_TEST

/* More than fits: the rest is neither shown nor acknowledged, and comes with the next call. */
START_TEST(too_many_come_with_the_next_call)
{
    char *body = malloc(1 << 20);
    struct fake_reply replies[] = {acked, {.body = body}};
    struct fake_call call = {.window_ms = 0};
    size_t n, len = (size_t)sprintf(body, "{\"status\":\"waiting\",\"pending_messages\":[");

    for (int i = 0; i < 60; i++)
        len += (size_t)sprintf(body + len, "%s" MESSAGE("n%d", "%0*d"), i ? "," : "", i,
                               _i ? 10000 : 1, 0);
    (void)sprintf(body + len, "]}");
    fake_host_script(rig.fake, replies, 2);
    rig_call(STATUS, OF_U1, &call);
    rig_has(call.text, _i ? "messages: 39 (21 more with the next call)\n"
                          : "messages: 50 (10 more with the next call)\n");
    rig_settle(&call, KCAP_SETTLED_WRITTEN);
    fake_host_advance_ms(rig.fake, 2000);
    rig_lacks(fake_host_requests(rig.fake, &n)[1].body, _i ? "\"n39\"" : "\"n50\"");
    rig_has(fake_host_requests(rig.fake, &n)[1].body, _i ? "\"n38\"" : "\"n49\"");
    fake_call_fini(&call);
    free(body);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, rig_setup, rig_teardown);
    tcase_add_loop_test(tests, messages_are_shown_and_acknowledged, 0,
                        sizeof tools / sizeof *tools);
    tcase_add_loop_test(tests, nothing_to_acknowledge, 0, 3);
    tcase_add_loop_test(tests, acknowledging_is_bounded, 0, sizeof slow / sizeof *slow);
    tcase_add_loop_test(tests, unseen_messages_are_not_acknowledged, 0, N_ROWS(unseen));
    tcase_add_test(tests, shell_acknowledges_at_once);
    tcase_add_loop_test(tests, repeats_are_marked, 0, 2);
    tcase_add_loop_test(tests, too_many_come_with_the_next_call, 0, 2);
}

int
main(void)
{
    return suite_run("flows-messages", add);
}
