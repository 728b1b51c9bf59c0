/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of any size: what stays of them, and that it never is much. The fuzzer looks at the
 * characters. */
#include "config.h"

#include "plugins/flows/shorten.h"

#include <stdlib.h>
#include <string.h>

#include "lib/json.h"
#include "suite.h"

#define KEEP  ((int64_t)256 << 10)
#define PIECE 16384

static struct shortener s;

static void
add_text(const char *text)
{
    ck_assert(shorten_add(&s, text, strlen(text)));
}

/* "0123456789" again and again. */
static void
add_digits(int64_t len)
{
    char piece[PIECE];

    for (size_t i = 0; i < sizeof piece; i++)
        piece[i] = (char)('0' + i % 10);
    for (int64_t n; len > 0; len -= n) {
        n = len < PIECE - PIECE % 10 ? len : PIECE - PIECE % 10;
        ck_assert(shorten_add(&s, piece, (size_t)n));
    }
}

static cJSON *
parsed(void)
{
    cJSON *json = json_parse(buf_str(&s.out), s.out.len, NULL);

    ck_assert(!s.too_long);
    ck_assert_ptr_nonnull(json);
    return json;
}

/* What no text may hold is replaced, whatever piece it comes in. */
static const struct {
    const char *body, *text;
} replaced[] = {
    {"{\"text\":\"a\\u0000b\"}", "a\xef\xbf\xbd"
                                 "b"},
    {"{\"text\":\"a\\ud800b\"}", "a\xef\xbf\xbd"
                                 "b"},
    {"{\"text\":\"a\\ud800\"}", "a\xef\xbf\xbd"},
    {"{\"text\":\"a\\udc00\\ud800\\ud83d\\ude00\"}",
     "a\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80"},
    {"{\"text\":\"\\ud83d\\n\"}", "\xef\xbf\xbd\n"},
    {"{\"text\":\"a\xff"
     "b\"}",
     "a\xef\xbf\xbd"
     "b"},
    {"{\"text\":\"\xe2\x82\"}", "\xef\xbf\xbd"},
    {"{\"text\":\"\xe2\x82\xac\xc3\xa9\"}", "\xe2\x82\xac\xc3\xa9"},
    {"{\"text\":\"\xed\xa0\x80\"}", "\xef\xbf\xbd"},
    {"{\"text\":\"\xe2\x82\\n\xf0\x9f\x98\x80\"}", "\xef\xbf\xbd\n\xf0\x9f\x98\x80"},
    {"{\"a_id\":\"u\\u0000\",\"text\":\"\"}", NULL},
    {"{\"a_id\":\"u\xff\",\"text\":\"\"}", NULL},
};

START_TEST(what_no_text_may_hold)
{
    const char *body = replaced[_i].body;
    cJSON *json;

    for (size_t piece = 1; piece <= strlen(body); piece++) {
        shorten_init(&s, KEEP, 0);
        for (size_t at = 0; at < strlen(body); at += piece) {
            size_t left = strlen(body) - at;
            ck_assert(shorten_add(&s, body + at, left < piece ? left : piece));
        }
        json = json_parse(buf_str(&s.out), s.out.len, NULL);
        if (replaced[_i].text)
            ck_assert_pstr_eq(json_str(json, "text"), replaced[_i].text);
        else
            ck_assert_ptr_null(json);
        cJSON_Delete(json);
        shorten_fini(&s);
    }
}
END_TEST

static const struct {
    int64_t offset, total, from;
    size_t len;
} windows[] = {
    {0, 64 << 20, 0, KEEP},
    {7, 64 << 20, 7, KEEP},
    {KEEP, 64 << 20, KEEP, KEEP},
    {50000003, 64 << 20, 50000003, KEEP},
    {(64 << 20) - 5, 64 << 20, (64 << 20) - 5, 5},
    {1 << 30, 64 << 20, 64 << 20, 0},
    {0, KEEP, -1, KEEP},
    {7, KEEP, -1, KEEP},
    {7, KEEP + 1, 7, KEEP - 6},
};

START_TEST(window_of_a_long_text)
{
    const char *text;
    cJSON *json;

    shorten_init(&s, KEEP, windows[_i].offset);
    add_text("{\"flow_run_id\":\"u1\",\"text\":\"");
    add_digits(windows[_i].total);
    add_text("\",\"status\":\"waiting\"}");
    ck_assert_uint_le(s.out.cap, (size_t)2 << 20);
    json = parsed();
    ck_assert_str_eq(json_str(json, "flow_run_id"), "u1");
    ck_assert_str_eq(json_str(json, "status"), "waiting");
    text = json_str(json, "text");
    ck_assert_uint_eq(strlen(text), windows[_i].len);
    if (windows[_i].from < 0) {
        ck_assert_uint_eq(s.n_cuts, 0);
    } else {
        ck_assert_uint_eq(s.n_cuts, 1);
        ck_assert_str_eq(s.cuts[0].name, "text");
        ck_assert_int_eq(s.cuts[0].from, windows[_i].from);
        ck_assert_int_eq(s.cuts[0].total, windows[_i].total);
        if (windows[_i].len > 0)
            ck_assert_int_eq(text[0] - '0', windows[_i].from % 10);
    }
    cJSON_Delete(json);
    shorten_fini(&s);
}
END_TEST

/* Messages that find no room are no text at all, so that nobody takes them for shown. */
START_TEST(many_long_messages)
{
    const cJSON *message, *list;
    int n_whole = 0, n_without = 0;
    cJSON *json;

    shorten_init(&s, KEEP, 0);
    add_text("{\"pending_messages\":[");
    for (int i = 0; i < 30; i++) {
        add_text(i > 0 ? ",{\"message_id\":\"m\",\"text\":\""
                       : "{\"message_id\":\"m\",\"text\":\"");
        add_digits(300000);
        add_text("\"}");
    }
    add_text("],\"round_result_text\":\"");
    add_digits(1 << 20);
    add_text("\"}");
    json = parsed();
    list = json_get(json, "pending_messages");
    cJSON_ArrayForEach(message, list)
    {
        const char *text = json_str(message, "text");
        ck_assert_str_eq(json_str(message, "message_id"), "m");
        if (text && strlen(text) > (size_t)KEEP) {
            ck_assert_ptr_nonnull(strstr(text, " [cut: 300000 bytes]"));
            n_whole++;
        } else if (!text) {
            n_without++;
        }
    }
    ck_assert_int_ge(n_whole, 2);
    ck_assert_int_eq(n_whole + n_without, 30);
    ck_assert_uint_eq(strlen(json_str(json, "round_result_text")), (size_t)KEEP);
    cJSON_Delete(json);
    shorten_fini(&s);
}
END_TEST

static void
add_again(const char *text, int times)
{
    for (int i = 0; i < times; i++)
        add_text(text);
}

static const struct {
    const char *unit;
    size_t kept, len; /* characters, and what each is in UTF-8 */
} spelled[] = {
    {"\\n", KEEP, 1},
    {"\\u00e9", (512 << 10) / 6, 2},
    {"\\u0001", (512 << 10) / 6, 1},
};

/* What takes much room as it is spelled stays shorter; the rest is there with another offset.
 */
START_TEST(spelled_in_many_bytes)
{
    size_t kept = spelled[_i].kept, len = spelled[_i].len;
    cJSON *json;

    if (kept * len > (size_t)KEEP)
        kept = (size_t)KEEP / len;
    for (size_t offset = 0; offset < 200000; offset += 98304) {
        shorten_init(&s, KEEP, (int64_t)offset);
        add_text("{\"text\":\"");
        add_again(spelled[_i].unit, 500000);
        add_text("\"}");
        ck_assert_uint_le(s.out.len, (size_t)513 << 10);
        json = parsed();
        ck_assert_uint_eq(strlen(json_str(json, "text")), kept * len);
        ck_assert_int_eq(s.cuts[0].from, (int64_t)offset);
        ck_assert_int_eq(s.cuts[0].total, (int64_t)(500000 * len));
        cJSON_Delete(json);
        shorten_fini(&s);
    }
}
END_TEST

/* Of what is shown in one line there is no need for more; and half an id is none. */
START_TEST(long_strings_that_are_no_texts)
{
    const cJSON *message;
    cJSON *json;

    shorten_init(&s, KEEP, 77);
    add_text("{\"target_title\":\"");
    add_digits(1 << 20);
    add_text("\",\"pending_messages\":[{\"message_id\":\"");
    add_digits(1 << 20);
    add_text("\",\"text\":\"hello\"}]}");
    json = parsed();
    ck_assert_uint_le(s.out.len, SHORTEN_MAX_FIELD + 200);
    ck_assert_ptr_nonnull(strstr(json_str(json, "target_title"), " [cut: 1048576 bytes]"));
    message = json_get(json, "pending_messages")->child;
    ck_assert(cJSON_IsNull(json_get(message, "message_id")));
    ck_assert_str_eq(json_str(message, "text"), "hello");
    cJSON_Delete(json);
    shorten_fini(&s);
}
END_TEST

static const struct {
    const char *begin, *again;
    int times;
    bool is_endless;
} hostile[] = {
    {"[", "1,", 1000000, false},
    {"", "[", 100000, false},
    {"{\"a\":", "{\"a\":", 100000, false},
    {"[", "\"0123456789abcdef\",", 1000000, false},
    {"", " ", 10000000, false},
    {"{\"", "name", 5000000, false},
    {"{", "\"a\":\"b\",", 100000, false},
    {"<html>", "<p>x", 70000000, true},
};

START_TEST(no_answer_takes_much)
{
    size_t len = strlen(hostile[_i].again);
    bool ok = true;
    char piece[4000];
    size_t n = 0;

    while (n + len <= sizeof piece) {
        memcpy(piece + n, hostile[_i].again, len);
        n += len;
    }
    shorten_init(&s, KEEP, 0);
    add_text(hostile[_i].begin);
    for (size_t at = 0; ok && at < len * (size_t)hostile[_i].times; at += n)
        ok = shorten_add(&s, piece, n);
    ck_assert(s.too_long);
    ck_assert(ok == !hostile[_i].is_endless);
    ck_assert_uint_le(s.out.len, (size_t)9 << 18);
    shorten_fini(&s);
}
END_TEST

START_TEST(another_answer_begins_anew)
{
    cJSON *json;

    shorten_init(&s, 4, 2);
    add_text("{\"text\":\"0123456789\",\"b\":\"");
    shorten_clear(&s);
    ck_assert_uint_eq(s.n_cuts, 0);
    add_text("{\"text\":\"0123456789\"}");
    json = parsed();
    ck_assert_str_eq(json_str(json, "text"), "2345");
    cJSON_Delete(json);
    shorten_fini(&s);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_loop_test(tests, what_no_text_may_hold, 0, sizeof replaced / sizeof *replaced);
    tcase_add_loop_test(tests, window_of_a_long_text, 0, N_ROWS(windows));
    tcase_add_test(tests, many_long_messages);
    tcase_add_loop_test(tests, spelled_in_many_bytes, 0, N_ROWS(spelled));
    tcase_add_test(tests, long_strings_that_are_no_texts);
    tcase_add_loop_test(tests, no_answer_takes_much, 0, N_ROWS(hostile));
    tcase_add_test(tests, another_answer_begins_anew);
}

int
main(void)
{
    return suite_run("shorten", add);
}
