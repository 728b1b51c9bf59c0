/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "lib/text.h"
#include "tests/unit/suite.h"

#define BAD "\xef\xbf\xbd"

static const struct {
    const char *text;
    size_t len;
    const char *clean, *line, *json;
} rows[] = {
    {"plain", 5, "plain", "plain", "\"plain\""},
    {"a\nb\tc\rd", 7, "a\nb\tc" BAD "d", "a\\nb\\tc\\rd", "\"a\\nb\\tc\\rd\""},
    {"\x1b[31mred", 8, BAD "[31mred", BAD "[31mred", "\"\\u001b[31mred\""},
    {"nul\0x", 5, "nul" BAD "x", "nul" BAD "x", "\"nul\\u0000x\""},
    {"\xc3\x28", 2, BAD "(", BAD "(", "\"" BAD "(\""},
    {"a\x80", 2, "a" BAD, "a" BAD, "\"a" BAD "\""},
    {"\xed\xa0\xbd", 3, BAD BAD BAD, BAD BAD BAD, "\"" BAD BAD BAD "\""},
    {"\xc2\x9b", 2, BAD, BAD, "\"\xc2\x9b\""},
    {"\xf0\x9f\x98\x80", 4, "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},
    {"q\"\\\x7f", 4, "q\"\\" BAD, "q\"\\" BAD, "\"q\\\"\\\\\x7f\""},
    {"\v\f\b", 3, BAD BAD BAD, BAD BAD BAD, "\"\\u000b\\f\\b\""},
    {"\xd8\x9c", 2, "\xd8\x9c", "\\u061c", "\"\xd8\x9c\""},
    {"\xe2\x80\x8e", 3, "\xe2\x80\x8e", "\\u200e", "\"\xe2\x80\x8e\""},
    {"\xe2\x80\x8f", 3, "\xe2\x80\x8f", "\\u200f", "\"\xe2\x80\x8f\""},
    {"\xe2\x80\xaa", 3, "\xe2\x80\xaa", "\\u202a", "\"\xe2\x80\xaa\""},
    {"\xe2\x80\xae", 3, "\xe2\x80\xae", "\\u202e", "\"\xe2\x80\xae\""},
    {"\xe2\x81\xa6", 3, "\xe2\x81\xa6", "\\u2066", "\"\xe2\x81\xa6\""},
    {"\xe2\x81\xa9", 3, "\xe2\x81\xa9", "\\u2069", "\"\xe2\x81\xa9\""},
    {"\xe2\x80\x8d", 3, "\xe2\x80\x8d", "\xe2\x80\x8d", "\"\xe2\x80\x8d\""},
    {"\xe2\x80\xa7", 3, "\xe2\x80\xa7", "\xe2\x80\xa7", "\"\xe2\x80\xa7\""},
    {"\xe2\x80\xa8", 3, BAD, BAD, "\"\xe2\x80\xa8\""},
    {"\xe2\x80\xa9", 3, BAD, BAD, "\"\xe2\x80\xa9\""},
    {"\xe2\x80\xaf", 3, "\xe2\x80\xaf", "\xe2\x80\xaf", "\"\xe2\x80\xaf\""},
    {"\xe2\x81\xa5", 3, "\xe2\x81\xa5", "\xe2\x81\xa5", "\"\xe2\x81\xa5\""},
    {"\xe2\x81\xaa", 3, "\xe2\x81\xaa", "\xe2\x81\xaa", "\"\xe2\x81\xaa\""},
    {"\xd8\x9b", 2, "\xd8\x9b", "\xd8\x9b", "\"\xd8\x9b\""},
};

START_TEST(escapes)
{
    struct buf clean = BUF_INIT(1000), line = BUF_INIT(1000), json = BUF_INIT(1000);

    text_add_clean(&clean, rows[_i].text, rows[_i].len);
    text_add_line(&line, rows[_i].text, rows[_i].len);
    text_add_json(&json, rows[_i].text, rows[_i].len);
    ck_assert_str_eq(buf_str(&clean), rows[_i].clean);
    ck_assert_str_eq(buf_str(&line), rows[_i].line);
    ck_assert_str_eq(buf_str(&json), rows[_i].json);
    ck_assert(text_is_utf8(clean.data, clean.len));
    buf_fini(&clean);
    buf_fini(&line);
    buf_fini(&json);
}
END_TEST

/* Every byte at every place of a word, so that no borrow of one byte hides or shows another. */
START_TEST(plain_length_is_exact)
{
    char text[24];

    for (size_t at = 0; at < sizeof text; at++) {
        for (int byte = 0; byte < 256; byte++) {
            bool plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
            memset(text, at % 2 ? ' ' : '~', sizeof text);
            text[at] = (char)byte;
            ck_assert_uint_eq(text_plain_len(text, sizeof text), plain ? sizeof text : at);
        }
    }
    ck_assert_uint_eq(text_plain_len(text, 0), 0);
}
END_TEST

START_TEST(prefix_never_cuts_a_character)
{
    static const char text[] = "a\xc3\xa9\xf0\x9f\x98\x80z";

    for (size_t max = 0; max <= sizeof text; max++) {
        size_t len = text_prefix(text, sizeof text - 1, max);
        ck_assert_uint_le(len, max);
        ck_assert(text_is_utf8(text, len));
    }
    ck_assert_uint_eq(text_prefix(text, 8, 100), 8);
}
END_TEST

START_TEST(numbers_are_whole_and_bounded)
{
    int64_t n = -1;

    ck_assert(text_to_int("0", 0, 10, &n) && n == 0);
    ck_assert(text_to_int("-5", -5, 10, &n) && n == -5);
    ck_assert(text_to_int("10", 0, 10, &n) && n == 10);
    ck_assert(!text_to_int("11", 0, 10, &n));
    ck_assert(!text_to_int("", 0, 10, &n));
    ck_assert(!text_to_int(NULL, 0, 10, &n));
    ck_assert(!text_to_int(" 1", 0, 10, &n));
    ck_assert(!text_to_int("+1", 0, 10, &n));
    ck_assert(!text_to_int("1x", 0, 10, &n));
    ck_assert(!text_to_int("1.0", 0, 10, &n));
    ck_assert(!text_to_int("99999999999999999999", 0, INT64_MAX, &n));
    ck_assert_int_eq(n, 10);
}
END_TEST

START_TEST(blank)
{
    ck_assert(text_is_blank(NULL));
    ck_assert(text_is_blank(""));
    ck_assert(text_is_blank(" \t\r\n"));
    ck_assert(!text_is_blank(" x"));
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_loop_test(tests, escapes, 0, N_ROWS(rows));
    tcase_add_test(tests, plain_length_is_exact);
    tcase_add_test(tests, prefix_never_cuts_a_character);
    tcase_add_test(tests, numbers_are_whole_and_bounded);
    tcase_add_test(tests, blank);
}

int
main(void)
{
    return suite_run("text", add);
}
