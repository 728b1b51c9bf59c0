/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "lib/buf.h"
#include "tests/unit/suite.h"

START_TEST(appends_and_stays_terminated)
{
    struct buf buf = BUF_INIT(1000);

    ck_assert_str_eq(buf_str(&buf), "");
    buf_adds(&buf, "one");
    buf_addc(&buf, ' ');
    buf_addf(&buf, "%d %s", 2, "three");
    buf_add(&buf, "\0x", 2);
    ck_assert(buf_ok(&buf));
    ck_assert_uint_eq(buf.len, 13);
    ck_assert_mem_eq(buf.data, "one 2 three\0x", 14);
    buf_fini(&buf);
}
END_TEST

START_TEST(cap_is_hard_and_sticks)
{
    struct buf buf = BUF_INIT(4);

    buf_adds(&buf, "1234");
    ck_assert(buf_ok(&buf));
    buf_addc(&buf, '5');
    ck_assert(!buf_ok(&buf));
    ck_assert_str_eq(buf_str(&buf), "1234");
    buf_adds(&buf, "");
    ck_assert(!buf_ok(&buf));
    ck_assert_ptr_null(buf_take(&buf, NULL));
    ck_assert(buf_ok(&buf));
    ck_assert_uint_eq(buf.len, 0);
}
END_TEST

START_TEST(a_huge_length_does_not_wrap)
{
    struct buf buf = BUF_INIT(SIZE_MAX);

    buf_adds(&buf, "x");
    ck_assert(!buf_reserve(&buf, SIZE_MAX - 1));
    ck_assert(!buf_ok(&buf));
    buf_fini(&buf);
}
END_TEST

START_TEST(take_hands_out)
{
    struct buf buf = BUF_INIT(100);
    size_t len = 7;
    char *text;

    text = buf_take(&buf, &len);
    ck_assert_str_eq(text, "");
    ck_assert_uint_eq(len, 0);
    free(text);
    buf_adds(&buf, "abc");
    text = buf_take(&buf, &len);
    ck_assert_str_eq(text, "abc");
    ck_assert_uint_eq(len, 3);
    free(text);
    ck_assert_ptr_null(buf.data);
}
END_TEST

START_TEST(shift_and_clear)
{
    struct buf buf = BUF_INIT(100);

    buf_shift(&buf, 3);
    buf_adds(&buf, "abcdef");
    buf_shift(&buf, 2);
    ck_assert_str_eq(buf_str(&buf), "cdef");
    buf_shift(&buf, 9);
    ck_assert_str_eq(buf_str(&buf), "");
    buf_adds(&buf, "x");
    buf_clear(&buf);
    ck_assert_str_eq(buf_str(&buf), "");
    buf_fini(&buf);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_test(tests, appends_and_stays_terminated);
    tcase_add_test(tests, cap_is_hard_and_sticks);
    tcase_add_test(tests, a_huge_length_does_not_wrap);
    tcase_add_test(tests, take_hands_out);
    tcase_add_test(tests, shift_and_clear);
}

int
main(void)
{
    return suite_run("buf", add);
}
