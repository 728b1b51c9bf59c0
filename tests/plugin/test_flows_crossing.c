/* SPDX-License-Identifier: Apache-2.0 */
/* flows.so as shipped: clients that give up at the very moment the answer is ready. */
#include "config.h"

#include <stdio.h>

#include "flows-rig.h"

#define N_TIMES 300
#define N_CUTS  6

static const struct fake_reply replies[] = {
    {"POST", "*/start/v*", .delay_ms = 100, .body = ANSWER_RUNNING},
    {"GET", RUN_POLL, .delay_ms = 500, .body = STATUS_FINDINGS},
    {"GET", "/api/flows/u1", .body = STATUS_FINDINGS},
    {"GET", "/api/flows/session/*", .status = 404},
};

/* What the host tells of an answer that the cancel met: it was not written, or just before. */
static void
settle(const struct fake_call *call, int how)
{
    switch (how % 3) {
    case 0:
        rig_settle(call, KCAP_SETTLED_CANCELLED);
        break;
    case 1:
        rig_settle(call, KCAP_SETTLED_WRITTEN);
        break;
    default:
        rig_settle(call, KCAP_SETTLED_WRITTEN);
        rig_settle(call, KCAP_SETTLED_LATE_CANCEL);
    }
}

/* Each client is cut off at another moment: in any of its waits, or with its answer made. Then
 * it repeats the call, or looks for its flow; from the same process, or from a new one. */
START_TEST(crossed_answers_are_not_lost)
{
    size_t n_posts = 0, n_before;
    int n_answered = 0;

    for (int i = 0; i < N_TIMES; i++) {
        char session[32];
        struct fake_call first = {.session_id = session, .client_name = "x"}, again = first;
        bool new_process = i % 4 == 0, looks = i % 5 == 0;
        (void)snprintf(session, sizeof session, "s%d", i);
        n_before = fake_host_count(rig.fake, "POST", "*");
        fake_host_script(rig.fake, replies, 4);
        first.cancel_at_wait = (unsigned)(i % N_CUTS);
        if (first.cancel_at_wait == 1)
            first.cancel_at_wait = 0; /* nothing is sent then: no crossing */
        rig_call(START, START_ARGS, &first);
        n_answered += first.has_result;
        settle(&first, i);
        fake_host_advance_ms(rig.fake, 1000 + i * 90); /* the post goes on; less than 30 s */
        n_posts += fake_host_count(rig.fake, "POST", "*") - n_before;
        if (new_process) {
            rig_restart();
            fake_host_script(rig.fake, replies, 4);
        }
        n_before = fake_host_count(rig.fake, "POST", "*");
        if (looks)
            rig_call(STATUS, "{\"wait\":true}", &again);
        else
            rig_call(START, START_ARGS, &again);
        n_posts += fake_host_count(rig.fake, "POST", "*") - n_before;
        ck_assert_msg(again.has_result && !again.is_error, "%d: %s", i, again.text);
        rig_has(again.text, "flow_run_id: u1\n");
        rig_has(again.text, "| a.c:1: bad\n");
        ck_assert_msg(n_posts == (size_t)i + 1, "%d: %zu runs", i, n_posts);
        fake_call_fini(&first);
        fake_call_fini(&again);
    }
    ck_assert_int_gt(n_answered, N_TIMES / N_CUTS); /* else there was nothing to cross */
    ck_assert_int_lt(n_answered, N_TIMES);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, rig_setup, rig_teardown);
    tcase_add_test(tests, crossed_answers_are_not_lost);
}

int
main(void)
{
    return suite_run("flows-crossing", add);
}
