/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of a turn, at times of our own. */
#include "config.h"

#include "server/clocks.h"
#include "server/util.h"
#include "tests/unit/suite.h"

static const struct clocks clocks = {.idle_sec = 10,
                                     .idle_mcp_call_sec = 30,
                                     .idle_command_sec = 20,
                                     .hard_ceiling_sec = 100,
                                     .foreground_ceiling_sec = 0,
                                     .handshake_sec = 5};
static struct watch watch;

static void
setup(void)
{
    watch_begin(&watch, &clocks, 0);
}

/* The code of the clock that has run out at that second, "" for none. */
static const char *
at(int64_t sec)
{
    struct watch_end end = watch_look(&watch, sec * UTIL_SEC_NS);

    return end.code ? end.code : "";
}

START_TEST(silence)
{
    ck_assert_str_eq(at(9), "");
    ck_assert_str_eq(at(10), "idle_timeout");
    ck_assert_int_eq(watch_until_ns(&watch), 10 * UTIL_SEC_NS);
    watch.sign_ns = 9 * UTIL_SEC_NS;
    ck_assert_str_eq(at(18), "");
    ck_assert_str_eq(at(19), "idle_timeout");
}
END_TEST

START_TEST(what_is_waited_for_has_a_silence_of_its_own)
{
    watch.mcp_calls = 1;
    ck_assert_str_eq(at(29), "");
    ck_assert_str_eq(at(30), "idle_timeout");
    watch.mcp_calls = 0;
    watch.commands = 2;
    ck_assert_str_eq(at(19), "");
    ck_assert_str_eq(at(20), "idle_timeout");
    watch.mcp_calls = 1;
    ck_assert_str_eq(at(29), ""); /* the longer one */
    watch.clocks.idle_sec = 40;   /* never shorter than without */
    ck_assert_str_eq(at(39), "");
}
END_TEST

START_TEST(signs_do_not_move_the_ceilings)
{
    watch.sign_ns = 99 * UTIL_SEC_NS;
    ck_assert_str_eq(at(99), "");
    ck_assert_str_eq(at(100), "hard_ceiling");
    watch.clocks.foreground_ceiling_sec = 50;
    ck_assert_str_eq(at(50), "foreground_ceiling");
    ck_assert_str_eq(at(100), "hard_ceiling");
    watch.clocks.idle_sec = 1000000;
    ck_assert_str_eq(at(50), "foreground_ceiling");
}
END_TEST

START_TEST(the_handshake_has_a_clock_for_each_step)
{
    watch.in_handshake = true;
    ck_assert_str_eq(at(5), "handshake_timeout");
    watch.step_ns = 4 * UTIL_SEC_NS;
    ck_assert_str_eq(at(8), "");
    ck_assert_str_eq(at(9), "handshake_timeout");
    ck_assert_str_eq(at(100), "hard_ceiling");
}
END_TEST

START_TEST(silence_may_mean_nothing)
{
    watch.ceilings_only = true;
    ck_assert_str_eq(at(99), "");
    ck_assert_str_eq(at(100), "hard_ceiling");
}
END_TEST

START_TEST(a_later_word_wins)
{
    struct clocks base = CLOCKS_DEFAULT, over;

    clocks_clear(&over);
    over.foreground_ceiling_sec = 0;
    over.idle_sec = 7;
    base.foreground_ceiling_sec = 9;
    clocks_overlay(&base, &over);
    ck_assert_int_eq(base.idle_sec, 7);
    ck_assert_int_eq(base.foreground_ceiling_sec, 0); /* off is a word, too */
    ck_assert_int_eq(base.hard_ceiling_sec, 2700);
}
END_TEST

static void
add_tests(TCase *tests)
{
    tcase_add_checked_fixture(tests, setup, NULL);
    tcase_add_test(tests, silence);
    tcase_add_test(tests, what_is_waited_for_has_a_silence_of_its_own);
    tcase_add_test(tests, signs_do_not_move_the_ceilings);
    tcase_add_test(tests, the_handshake_has_a_clock_for_each_step);
    tcase_add_test(tests, silence_may_mean_nothing);
    tcase_add_test(tests, a_later_word_wins);
}

int
main(void)
{
    return suite_run("watch", add_tests);
}
