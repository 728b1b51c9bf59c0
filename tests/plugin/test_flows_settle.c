/* SPDX-License-Identifier: Apache-2.0 */
/* flows.so as shipped: a server that settles an earlier round and wants to be asked again. */
#include "config.h"

#include <stdio.h>

#include "flows-rig.h"
#include "tests/unit/files.h"

static const struct {
    const char *name, *tool, *args;
    struct fake_reply reply;
    unsigned times; /* then it is well; 0: it never is */
    size_t least_posts, most_posts;
    int64_t least_ms, most_ms;
    bool is_error;
} settling[] = {
    {"busy twice",
     START,
     START_ARGS,
     {.status = 409, .body = CODED("flow_settlement_busy", "m")},
     2,
     3,
     3,
     750,
     1500,
     false},
    {"whatever the status",
     START,
     START_ARGS,
     {.status = 503, .body = CODED("reviewer_launch_incarnation_superseded", "m")},
     1,
     2,
     2,
     250,
     500,
     false},
    {"busy, a round",
     ROUND,
     "{\"flow_run_id\":\"u1\",\"context\":\"c\"}",
     {.status = 409, .body = CODED("flow_settlement_busy", "m")},
     2,
     3,
     3,
     750,
     1500,
     false},
    {"superseded, a round",
     ROUND,
     "{\"flow_run_id\":\"u1\",\"context\":\"c\"}",
     {.status = 503, .body = CODED("reviewer_launch_incarnation_superseded", "m")},
     1,
     2,
     2,
     250,
     500,
     false},
    {"for ever",
     START,
     START_ARGS,
     {.status = 409, .body = CODED("flow_settlement_busy", "m")},
     0,
     20,
     45,
     180000,
     180000,
     true},
    {"with a mark that stands",
     START,
     START_ARGS,
     {.status = 409,
      .body =
          "{\"error\":\"flow_settlement_busy\",\"message\":\"m\",\"last_processed_seq\":7}"},
     0,
     20,
     45,
     180000,
     180000,
     true},
    {"slow posts",
     START,
     START_ARGS,
     {.status = 409, .delay_ms = 100000, .body = CODED("flow_settlement_busy", "m")},
     0,
     2,
     2,
     200000,
     201000,
     true},
    {"model",
     START,
     "{\"kind\":\"k\",\"target_kind\":\"t\",\"target_ref\":\"\",\"target_title\":\"\","
     "\"context\":\"c\",\"vendor\":\"v\",\"model\":\"m\"}",
     {.status = 409, .body = CODED("flow_settlement_busy", "m")},
     0,
     1,
     1,
     0,
     0,
     true},
    {"unreachable on a start",
     START,
     START_ARGS,
     {.status = 409, .body = CODED("participant_unreachable", "m")},
     0,
     1,
     1,
     0,
     0,
     true},
    {"unreachable on a round",
     ROUND,
     "{\"flow_run_id\":\"u1\",\"context\":\"c\"}",
     {.status = 409, .body = CODED("participant_unreachable", "m")},
     1,
     2,
     2,
     250,
     500,
     false},
    {"unreachable with another status",
     ROUND,
     "{\"flow_run_id\":\"u1\",\"context\":\"c\"}",
     {.status = 400, .body = CODED("participant_unreachable", "m")},
     0,
     1,
     1,
     0,
     0,
     true},
};

START_TEST(settling_is_waited_for)
{
    struct fake_reply replies[2] = {settling[_i].reply,
                                    {.body = "{\"flow_run_id\":\"u1\",\"status\":\"clean\"}"}};
    const char *text;
    int64_t took_ms;
    size_t posts;

    replies[0].times = settling[_i].times;
    text = rig_ask(settling[_i].tool, settling[_i].args, replies, 2, settling[_i].is_error);
    took_ms = fake_host_now_ms(rig.fake) - 1000;
    posts = fake_host_count(rig.fake, "POST", "*");
    ck_assert_msg(posts >= settling[_i].least_posts && posts <= settling[_i].most_posts,
                  "%s: %zu posts", settling[_i].name, posts);
    ck_assert_msg(took_ms >= settling[_i].least_ms && took_ms <= settling[_i].most_ms,
                  "%s: %lld ms", settling[_i].name, (long long)took_ms);
    if (settling[_i].is_error && posts > 1)
        rig_has(text, "the server was busy");
}
END_TEST

/* Each higher mark gives it three minutes more, but eight in all. */
static const struct {
    const char *name;
    int steps; /* of 80 s, each with a higher mark; the last mark stays */
    int64_t least_ms, most_ms;
} marks[] = {
    {"one", 1, 180000, 180000},
    {"two", 2, 255000, 275000},
    {"ever higher", 8, 480000, 560000}, /* a post that is out is not dropped */
};

START_TEST(progress_is_given_time)
{
    struct fake_reply replies[8];
    char bodies[8][100];
    const char *text;
    int64_t took_ms;

    for (int i = 0; i < marks[_i].steps; i++) {
        (void)snprintf(bodies[i], sizeof bodies[i],
                       "{\"error\":\"flow_settlement_busy\",\"message\":\"m%d\","
                       "\"last_processed_seq\":%d}",
                       i, i + 7);
        replies[i] = (struct fake_reply){.status = 409,
                                         .delay_ms = 75000,
                                         .body = bodies[i],
                                         .times = i + 1 < marks[_i].steps};
    }
    replies[marks[_i].steps - 1].delay_ms = 0;
    if (marks[_i].steps > 2)
        replies[marks[_i].steps - 1].delay_ms = 75000;
    text = rig_ask(START, START_ARGS, replies, (size_t)marks[_i].steps, true);
    took_ms = fake_host_now_ms(rig.fake) - 1000;
    rig_has(text, "Error (flow_settlement_busy): m");
    rig_has(text, "the server was busy");
    ck_assert_msg(took_ms >= marks[_i].least_ms && took_ms <= marks[_i].most_ms, "%s: %lld ms",
                  marks[_i].name, (long long)took_ms);
}
END_TEST

/* The start with the saved reviewer has what the first one left of the three minutes. */
START_TEST(second_start_shares_the_patience)
{
    const struct fake_reply replies[] = {
        {.status = 409,
         .delay_ms = 60000,
         .body = CODED("flow_settlement_busy", "m"),
         .times = 2},
        {.status = 400, .body = CODED("reviewer_vendor_required", "who?"), .times = 1},
        {.status = 409, .body = CODED("flow_settlement_busy", "m")},
    };

    ck_assert_int_eq(mkdir(rig_config_dir, 0700), 0);
    files_put(rig_config_dir, "config.json",
              "{\"profiles\":{\"default\":{\"flows\":{\"reviewer_vendor\":\"codex\"}}}}");
    rig_has(rig_ask(START, START_ARGS, replies, 3, true), "the server was busy");
    ck_assert_int_eq(fake_host_now_ms(rig.fake) - 1000, 180000);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, rig_setup, rig_teardown);
    tcase_add_loop_test(tests, settling_is_waited_for, 0, N_ROWS(settling));
    tcase_add_loop_test(tests, progress_is_given_time, 0, N_ROWS(marks));
    tcase_add_test(tests, second_start_shares_the_patience);
}

int
main(void)
{
    return suite_run("flows-settle", add);
}
