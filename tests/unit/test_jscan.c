/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "lib/buf.h"
#include "lib/jscan.h"
#include "lib/json.h"
#include "tests/unit/suite.h"

static const struct {
    const char *text;
    int result;
} grammar[] = {
    {"{}", JSCAN_OK},
    {" [ ] ", JSCAN_OK},
    {"\t\r\n1\n", JSCAN_OK},
    {"-0.5e+10", JSCAN_OK},
    {"123456789012345678901234567890", JSCAN_OK},
    {"\"\\u0041\\n\\\\\\/\\\"\"", JSCAN_OK},
    {"\"\xe2\x80\xa8\"", JSCAN_OK},
    {"\"\\ud83d\\ude00\"", JSCAN_OK},
    {"{\"a\":{\"a\":1},\"b\":[{\"a\":1},{\"a\":2}]}", JSCAN_OK},
    {"", JSCAN_SYNTAX},
    {"{", JSCAN_SYNTAX},
    {"[1,]", JSCAN_SYNTAX},
    {"{\"a\":1,}", JSCAN_SYNTAX},
    {"{\"a\" 1}", JSCAN_SYNTAX},
    {"{a:1}", JSCAN_SYNTAX},
    {"[1 2]", JSCAN_SYNTAX},
    {"{} {}", JSCAN_SYNTAX},
    {"{}x", JSCAN_SYNTAX},
    {"01", JSCAN_SYNTAX},
    {"1.", JSCAN_SYNTAX},
    {".5", JSCAN_SYNTAX},
    {"+1", JSCAN_SYNTAX},
    {"-", JSCAN_SYNTAX},
    {"1e", JSCAN_SYNTAX},
    {"0x10", JSCAN_SYNTAX},
    {"NaN", JSCAN_SYNTAX},
    {"tru", JSCAN_SYNTAX},
    {"nulll", JSCAN_SYNTAX},
    {"'a'", JSCAN_SYNTAX},
    {"\"a", JSCAN_SYNTAX},
    {"\"a\nb\"", JSCAN_SYNTAX},
    {"\"\\x41\"", JSCAN_SYNTAX},
    {"\"\\u00g0\"", JSCAN_SYNTAX},
    {"\"\\u00", JSCAN_SYNTAX},
    {"\"\\", JSCAN_SYNTAX},
    {"/* no */ 1", JSCAN_SYNTAX},
    {"\v1", JSCAN_SYNTAX},
    {"\xef\xbb\xbf{}", JSCAN_SYNTAX},
    {"\"\x80\"", JSCAN_UTF8},
    {"\"\xc0\xaf\"", JSCAN_UTF8},
    {"\"\xed\xa0\x80\"", JSCAN_UTF8},
    {"\"\xf4\x90\x80\x80\"", JSCAN_UTF8},
    {"\"\xe2\x82\"", JSCAN_UTF8},
    {"\"\\ud83d\"", JSCAN_UTF8},
    {"\"\\ude00\"", JSCAN_UTF8},
    {"\"\\ud83d\\u0041\"", JSCAN_UTF8},
    {"\"\\ud83dx\"", JSCAN_UTF8},
    {"{\"a\":1,\"a\":2}", JSCAN_DUPLICATE},
    {"{\"a\":1,\"\\u0061\":2}", JSCAN_DUPLICATE},
    {"[{\"x\":{\"k\":1,\"j\":2,\"k\":3}}]", JSCAN_DUPLICATE},
    {"{\"\xc3\xa9\":1,\"\\u00e9\":2}", JSCAN_DUPLICATE},
    {"{\"\xf0\x9f\x98\x80\":1,\"\\ud83d\\ude00\":2}", JSCAN_DUPLICATE},
    {"{\"a\":1,\"A\":2}", JSCAN_OK},
    {"{\"\":1,\"\":2}", JSCAN_DUPLICATE},
};

START_TEST(grammar_row)
{
    struct jscan scan;

    ck_assert_msg(jscan(grammar[_i].text, strlen(grammar[_i].text), &scan) ==
                      grammar[_i].result,
                  "row %d: %s", _i, grammar[_i].text);
}
END_TEST

/* A prefix of any valid text must be refused and nothing read past its end (a sanitizer looks
 * on). */
START_TEST(every_prefix_is_refused)
{
    static const char text[] = "{\"a\":[1.5e3,true,null,\"\\ud83d\\ude00\xc3\xa9\"],\"b\":{}}";

    for (size_t len = 0; len < sizeof text - 1; len++) {
        char *copy = malloc(len + 1);
        struct jscan scan;

        memcpy(copy, text, len);
        ck_assert_int_lt(jscan(copy, len, &scan), 0);
        free(copy);
    }
}
END_TEST

START_TEST(depth_is_bounded)
{
    char text[2 * (JSCAN_MAX_DEPTH + 1)];
    struct jscan scan;

    memset(text, '[', sizeof text / 2);
    memset(text + sizeof text / 2, ']', sizeof text / 2);
    ck_assert_int_eq(jscan(text, sizeof text, &scan), JSCAN_DEPTH);
    ck_assert_int_eq(jscan(text + 1, sizeof text - 2, &scan), JSCAN_OK);
}
END_TEST

START_TEST(many_names_are_not_quadratic)
{
    struct buf text = BUF_INIT(16u << 20);
    struct jscan scan;

    buf_addc(&text, '{');
    for (int i = 0; i < 200000; i++)
        buf_addf(&text, "\"n%d\":0,", i);
    buf_adds(&text, "\"n7\":1}");
    ck_assert_int_eq(jscan(text.data, text.len, &scan), JSCAN_DUPLICATE);
    buf_fini(&text);
}
END_TEST

START_TEST(nul_is_seen)
{
    struct jscan scan;

    ck_assert_int_eq(jscan("\"a\\u0000b\"", 10, &scan), JSCAN_OK);
    ck_assert(scan.has_nul);
    ck_assert_int_eq(jscan("\"a\\\\u0000\"", 10, &scan), JSCAN_OK);
    ck_assert(!scan.has_nul);
    ck_assert_int_eq(jscan("\"a\0b\"", 5, &scan), JSCAN_SYNTAX);
}
END_TEST

static struct span
scanned(const char *text)
{
    struct jscan scan;

    ck_assert_int_eq(jscan(text, strlen(text), &scan), JSCAN_OK);
    return scan.value;
}

static void
assert_span(struct span span, const char *text)
{
    ck_assert_uint_eq(span.len, strlen(text));
    ck_assert_mem_eq(span.p, text, span.len);
}

START_TEST(members_are_found)
{
    struct span object =
        scanned(" { \"id\" : 9007199254740993 , \"p\\u0061rams\":{\"x\":[1,{\"id\":2}]},"
                "\"s\":\"}\\\"{\", \"last\":true}");

    assert_span(span_get(object, "id"), "9007199254740993");
    assert_span(span_get(object, "params"), "{\"x\":[1,{\"id\":2}]}");
    assert_span(span_get(object, "s"), "\"}\\\"{\"");
    assert_span(span_get(object, "last"), "true");
    assert_span(span_get(scanned("{\"a\":\"\\\\\",\"b\":\"\\\\\\\"\",\"c\":7}"), "c"), "7");
    ck_assert_ptr_null(span_get(object, "ID").p);
    ck_assert_ptr_null(span_get(object, "x").p);
    ck_assert_ptr_null(span_get(scanned("[1]"), "x").p);
    ck_assert_ptr_null(span_get((struct span){NULL, 0}, "x").p);
    ck_assert_ptr_null(span_get(scanned("{}"), "x").p);
}
END_TEST

START_TEST(tokens_compare_as_tokens)
{
    ck_assert(span_same(scanned("\"\\u0061\""), scanned("\"a\"")));
    ck_assert(!span_same(scanned("\"1\""), scanned("1")));
    ck_assert(!span_same(scanned("9007199254740993"), scanned("9007199254740992")));
    ck_assert(!span_same(scanned("\"a\""), scanned("\"ab\"")));
    ck_assert(span_is_integer(scanned("-12")));
    ck_assert(!span_is_integer(scanned("1.5")));
    ck_assert(!span_is_integer(scanned("\"1\"")));
    ck_assert(!span_is_integer((struct span){NULL, 0}));
    ck_assert(span_is(scanned("\"a\\u0062\""), "ab"));
    ck_assert(!span_is(scanned("\"ab\""), "a"));
    ck_assert(!span_is(scanned("\"a\""), "ab"));
    ck_assert(!span_is(scanned("\"a\\u0000\""), "a"));
    ck_assert(!span_is(scanned("\"a\\u0000bcdefghijklmnopq\""), "a"));
    ck_assert_int_eq(span_type(scanned("-1")), '0');
    ck_assert_int_eq(span_type(scanned("false")), 't');
}
END_TEST

START_TEST(strings_are_read)
{
    size_t len;
    char *text = span_string(scanned("\"\\ud83d\\ude00 \\u00e9\\t\\/\""), &len);

    ck_assert_str_eq(text, "\xf0\x9f\x98\x80 \xc3\xa9\t/");
    ck_assert_uint_eq(len, strlen(text));
    free(text);
}
END_TEST

START_TEST(json_is_strict_and_minds_case)
{
    const char *error = NULL;
    static const char text[] = "{\"a\":\"x\",\"n\":3,\"f\":1.5,\"t\":true}";
    cJSON *value = json_parse(text, sizeof text - 1, &error);
    int64_t n = 0;

    ck_assert_ptr_nonnull(value);
    ck_assert_str_eq(json_str(value, "a"), "x");
    ck_assert_ptr_null(json_str(value, "A"));
    ck_assert_ptr_null(json_str(value, "n"));
    ck_assert(json_int(value, "n", &n) && n == 3);
    ck_assert(!json_int(value, "f", &n) && n == 3);
    ck_assert(!json_int(value, "a", &n));
    ck_assert(json_bool(value, "t", false));
    ck_assert(!json_bool(value, "n", false));
    cJSON_Delete(value);
    ck_assert_ptr_null(json_parse("{\"a\":1,\"a\":2}", 13, &error));
    ck_assert_str_eq(error, "duplicate member name");
    ck_assert_ptr_null(json_parse("\"\\u0000\"", 8, &error));
    ck_assert_ptr_null(json_parse("<html>", 6, NULL));
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_loop_test(tests, grammar_row, 0, N_ROWS(grammar));
    tcase_add_test(tests, every_prefix_is_refused);
    tcase_add_test(tests, depth_is_bounded);
    tcase_add_test(tests, many_names_are_not_quadratic);
    tcase_add_test(tests, nul_is_seen);
    tcase_add_test(tests, members_are_found);
    tcase_add_test(tests, tokens_compare_as_tokens);
    tcase_add_test(tests, strings_are_read);
    tcase_add_test(tests, json_is_strict_and_minds_case);
}

int
main(void)
{
    return suite_run("jscan", add);
}
