/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include "host/reader.h"
#include "tests/unit/suite.h"

static struct reader reader;
static int pipe_fds[2];

static void
begin(void)
{
    ck_assert_int_eq(pipe(pipe_fds), 0);
    reader_init(&reader, pipe_fds[0]);
}

static void
feed(const char *bytes, size_t len)
{
    ck_assert_int_eq(write(pipe_fds[1], bytes, len), (ssize_t)len);
    reader_fill(&reader);
}

static void
assert_line(const char *text)
{
    const char *line;
    size_t len;

    ck_assert_int_eq(reader_next(&reader, &line, &len), READER_LINE);
    ck_assert_uint_eq(len, strlen(text));
    ck_assert_mem_eq(line, text, len);
}

static void
assert_none(void)
{
    const char *line;
    size_t len;

    ck_assert_int_eq(reader_next(&reader, &line, &len), READER_NONE);
}

static void
end(void)
{
    (void)close(pipe_fds[1]);
    reader_fill(&reader);
    ck_assert(reader.eof);
}

static void
finish(void)
{
    (void)close(pipe_fds[0]);
    buf_fini(&reader.buf);
}

START_TEST(lines_are_cut_out)
{
    begin();
    feed("one\r\ntwo\n\n  \t\r\nthr", 18);
    assert_line("one");
    assert_line("two");
    assert_none();
    feed("ee\nlast", 7);
    assert_line("three");
    assert_none();
    end();
    assert_line("last");
    assert_none();
    finish();
}
END_TEST

START_TEST(byte_by_byte)
{
    static const char text[] = "{\"a\":1}\n\r\n{}\n";

    begin();
    for (size_t i = 0; i < sizeof text - 1; i++) {
        feed(text + i, 1);
        if (i == 7)
            assert_line("{\"a\":1}");
        else if (i == 12)
            assert_line("{}");
        else
            assert_none();
    }
    end();
    assert_none();
    finish();
}
END_TEST

static enum reader_result
feed_many(char byte, size_t n)
{
    static char chunk[32768];
    enum reader_result worst = READER_NONE;
    const char *line;
    size_t len;

    memset(chunk, byte, sizeof chunk);
    while (n > 0) {
        size_t now = n < sizeof chunk ? n : sizeof chunk;
        enum reader_result got;
        feed(chunk, now);
        got = reader_next(&reader, &line, &len);
        if (got == READER_TOO_LONG)
            worst = got;
        n -= now;
    }
    return worst;
}

START_TEST(a_line_over_the_limit_is_told_once_and_skipped)
{
    begin();
    ck_assert_int_eq(feed_many('x', READER_MAX_LINE + 100000), READER_TOO_LONG);
    ck_assert_int_eq(feed_many('x', READER_MAX_LINE), READER_NONE);
    feed("\nnext\n", 6);
    assert_line("next");
    assert_none();
    end();
    finish();
}
END_TEST

START_TEST(a_line_of_exactly_the_limit_passes)
{
    const char *line;
    size_t len;

    begin();
    ck_assert_int_eq(feed_many('x', READER_MAX_LINE), READER_NONE);
    feed("\n", 1);
    ck_assert_int_eq(reader_next(&reader, &line, &len), READER_LINE);
    ck_assert_uint_eq(len, READER_MAX_LINE);
    end();
    finish();
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_test(tests, lines_are_cut_out);
    tcase_add_test(tests, byte_by_byte);
    tcase_add_test(tests, a_line_over_the_limit_is_told_once_and_skipped);
    tcase_add_test(tests, a_line_of_exactly_the_limit_passes);
}

int
main(void)
{
    return suite_run("reader", add);
}
