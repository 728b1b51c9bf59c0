/* SPDX-License-Identifier: Apache-2.0 */
/* What app-server's notifications say about a turn: shapes that were seen, and hostile ones. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "lib/jscan.h"
#include "server/codex_track.h"
#include "tests/unit/suite.h"

static struct codex_track track;

static struct span
span_of(const char *text)
{
    struct jscan scan;

    ck_assert_msg(jscan(text, strlen(text), &scan) == JSCAN_OK, "%s", text);
    return scan.value;
}

static enum track_sign
tell(const char *method, const char *params)
{
    return track_read(&track, method, span_of(params));
}

static void
setup(void)
{
    track = (struct codex_track){.thread_count = 0};
    ck_assert(track_set_root(&track, span_of("\"root\"")));
    track_begin_turn(&track);
}

static void
begin(void)
{
    ck_assert_int_eq(tell("turn/started", "{\"threadId\":\"root\",\"turn\":{\"id\":\"t1\"}}"),
                     TRACK_ALIVE);
    ck_assert_str_eq(track_turn(&track), "t1");
}

#define OURS  "{\"threadId\":\"root\",\"turnId\":\"t1\"}"
#define ENDED "{\"threadId\":\"root\",\"turn\":{\"id\":\"t1\",\"status\":\"completed\"}}"

START_TEST(ids_come_from_whichever_is_first)
{
    track_set_turn(&track, span_of("\"t1\"")); /* the answer */
    begin();
    track_set_turn(&track, span_of("\"t2\"")); /* too late */
    ck_assert_str_eq(track_turn(&track), "t1");
    ck_assert_int_eq(tell("turn/completed", ENDED), TRACK_ENDED);
}
END_TEST

static const struct {
    const char *method, *params;
    enum track_sign sign;
} rows[] = {
    {"item/agentMessage/delta", OURS, TRACK_ALIVE},
    {"item/reasoning/summaryTextDelta", OURS, TRACK_ALIVE},
    {"item/commandExecution/outputDelta", OURS, TRACK_ALIVE},
    {"thread/tokenUsage/updated", OURS, TRACK_ALIVE},
    {"hook/started", "{\"threadId\":\"root\"}", TRACK_ALIVE}, /* its turnId may be absent */
    {"hook/started", "{\"threadId\":\"root\",\"turnId\":null}", TRACK_ALIVE},
    {"item/agentMessage/delta", "{\"threadId\":\"root\",\"turnId\":\"t0\"}", TRACK_NOTHING},
    {"item/agentMessage/delta", "{\"threadId\":\"other\",\"turnId\":\"t1\"}", TRACK_NOTHING},
    {"item/agentMessage/delta", "{\"turnId\":\"t1\"}", TRACK_NOTHING},
    {"item/agentMessage/delta", "[]", TRACK_NOTHING},
    {"item/agentMessage/delta", "7", TRACK_NOTHING},
    {"item/agentMessage/delta", "{\"threadId\":[\"root\"],\"turnId\":\"t1\"}", TRACK_NOTHING},
    {"thread/status/changed", OURS, TRACK_NOTHING},
    {"warning", OURS, TRACK_NOTHING},
    {"mcpServer/startupStatus/updated", OURS, TRACK_NOTHING},
    {"account/rateLimits/updated", "{}", TRACK_NOTHING},
    {"command/exec/outputDelta", OURS, TRACK_NOTHING},
    {"no/such/method", OURS, TRACK_NOTHING},
    {"error", "{\"threadId\":\"root\",\"turnId\":\"t1\",\"willRetry\":true}", TRACK_RETRYING},
    {"error", "{\"threadId\":\"root\",\"turnId\":\"t1\",\"willRetry\":false}", TRACK_BROKEN},
    {"error", OURS, TRACK_BROKEN},
    {"turn/completed", "{\"threadId\":\"root\",\"turn\":{\"id\":\"t0\"}}", TRACK_NOTHING},
    {"turn/completed", "{\"threadId\":\"other\",\"turn\":{\"id\":\"t1\"}}", TRACK_NOTHING},
    {"turn/completed", ENDED, TRACK_ENDED},
    {"thread/closed", "{\"threadId\":\"root\"}", TRACK_CLOSED},
    {"thread/closed", "{\"threadId\":\"other\"}", TRACK_NOTHING},
};

START_TEST(signs)
{
    begin();
    ck_assert_msg(tell(rows[_i].method, rows[_i].params) == rows[_i].sign, "%s %s",
                  rows[_i].method, rows[_i].params);
}
END_TEST

START_TEST(nothing_ends_a_turn_that_has_no_id)
{
    ck_assert_int_eq(tell("turn/completed", ENDED), TRACK_NOTHING);
    ck_assert_int_eq(tell("turn/completed", "{\"threadId\":\"root\",\"turn\":{\"id\":\"\"}}"),
                     TRACK_NOTHING);
}
END_TEST

START_TEST(children)
{
    begin();
    (void)tell("item/started",
               "{\"threadId\":\"root\",\"turnId\":\"t1\",\"item\":{\"type\":"
               "\"collabAgentToolCall\",\"id\":\"i\",\"receiverThreadIds\":[\"a\",7,\"a\"]}}");
    ck_assert_uint_eq(track.thread_count, 2);
    (void)tell("turn/started", "{\"threadId\":\"a\",\"turn\":{\"id\":\"ta\"}}");
    ck_assert_int_eq(tell("item/completed", "{\"threadId\":\"a\",\"turnId\":\"ta\"}"),
                     TRACK_ALIVE);
    /* one that is known by its root alone */
    (void)tell("turn/started",
               "{\"threadId\":\"b\",\"turn\":{\"id\":\"tb\",\"rootTurnId\":\"t1\"}}");
    ck_assert_int_eq(tell("item/completed", "{\"threadId\":\"b\",\"turnId\":\"tb\"}"),
                     TRACK_ALIVE);
    (void)tell("turn/started",
               "{\"threadId\":\"c\",\"turn\":{\"id\":\"tc\",\"rootTurnId\":\"t0\"}}");
    ck_assert_int_eq(tell("item/completed", "{\"threadId\":\"c\",\"turnId\":\"tc\"}"),
                     TRACK_NOTHING);
    ck_assert_int_eq(
        tell("turn/completed",
             "{\"threadId\":\"a\",\"turn\":{\"id\":\"ta\",\"status\":\"completed\"}}"),
        TRACK_ALIVE);
    track_begin_turn(&track);
    ck_assert_uint_eq(track.thread_count, 1);
}
END_TEST

static void
item_of(const char *thread, const char *turn, const char *method, const char *type,
        const char *id)
{
    char params[256];

    (void)snprintf(params, sizeof params,
                   "{\"threadId\":\"%s\",\"turnId\":\"%s\",\"item\":{\"type\":\"%s\",\"id\":"
                   "\"%s\"}}",
                   thread, turn, type, id);
    (void)tell(method, params);
}

static void
item(const char *method, const char *type, const char *id)
{
    item_of("root", "t1", method, type, id);
}

START_TEST(open_items)
{
    unsigned mcp_calls, commands;

    begin();
    item("item/started", "mcpToolCall", "a");
    item("item/started", "commandExecution", "b");
    item("item/started", "reasoning", "c");
    item("item/started", "commandExecution", "d");
    item("item/completed", "commandExecution", "b");
    item("item/completed", "commandExecution", "unknown");
    track_count_open(&track, &mcp_calls, &commands);
    ck_assert_uint_eq(mcp_calls, 1);
    ck_assert_uint_eq(commands, 1);
    track_begin_turn(&track); /* what was interrupted is never completed */
    track_count_open(&track, &mcp_calls, &commands);
    ck_assert_uint_eq(mcp_calls + commands, 0);
}
END_TEST

START_TEST(a_child_that_is_interrupted_leaves_nothing_open)
{
    unsigned mcp_calls, commands;

    begin();
    (void)tell("turn/started",
               "{\"threadId\":\"a\",\"turn\":{\"id\":\"ta\",\"rootTurnId\":\"t1\"}}");
    item("item/started", "commandExecution", "1");
    item_of("a", "ta", "item/started", "commandExecution", "1"); /* the same id, its own */
    item_of("a", "ta", "item/started", "mcpToolCall", "2");
    item_of("a", "ta", "item/completed", "commandExecution", "1");
    track_count_open(&track, &mcp_calls, &commands);
    ck_assert_uint_eq(mcp_calls, 1);
    ck_assert_uint_eq(commands, 1);
    (void)tell("turn/completed",
               "{\"threadId\":\"a\",\"turn\":{\"id\":\"ta\",\"status\":\"interrupted\"}}");
    track_count_open(&track, &mcp_calls, &commands);
    ck_assert_uint_eq(mcp_calls, 0);
    ck_assert_uint_eq(commands, 1);
}
END_TEST

START_TEST(floods_of_items_and_threads_are_held)
{
    char id[32], params[256];

    begin();
    for (int i = 0; i < 2 * TRACK_MAX_ITEMS; i++) {
        (void)snprintf(id, sizeof id, "i%d", i);
        item("item/started", "mcpToolCall", id);
        (void)snprintf(params, sizeof params,
                       "{\"threadId\":\"x%d\",\"turn\":{\"id\":\"y\",\"rootTurnId\":\"t1\"}}",
                       i);
        (void)tell("turn/started", params);
    }
    ck_assert_uint_eq(track.item_count, TRACK_MAX_ITEMS);
    ck_assert_uint_eq(track.thread_count, TRACK_MAX_THREADS);
    ck_assert_int_eq(tell("turn/completed", ENDED), TRACK_ENDED);
}
END_TEST

START_TEST(ids_that_are_none)
{
    char id[TRACK_MAX_ID + 4];

    memset(id, 'x', sizeof id);
    id[0] = id[TRACK_MAX_ID + 2] = '"';
    id[TRACK_MAX_ID + 3] = '\0';
    ck_assert(!track_set_root(&track, span_of(id)));
    ck_assert(!track_set_root(&track, span_of("\"\"")));
    ck_assert(!track_set_root(&track, span_of("\"a\\u0000b\"")));
    ck_assert(!track_set_root(&track, span_of("7")));
    ck_assert(!track_set_root(&track, (struct span){NULL, 0}));
    ck_assert_int_eq(tell("item/started", OURS), TRACK_NOTHING);
}
END_TEST

static void
add_tests(TCase *tests)
{
    tcase_add_checked_fixture(tests, setup, NULL);
    tcase_add_test(tests, ids_come_from_whichever_is_first);
    tcase_add_loop_test(tests, signs, 0, N_ROWS(rows));
    tcase_add_test(tests, nothing_ends_a_turn_that_has_no_id);
    tcase_add_test(tests, children);
    tcase_add_test(tests, open_items);
    tcase_add_test(tests, a_child_that_is_interrupted_leaves_nothing_open);
    tcase_add_test(tests, floods_of_items_and_threads_are_held);
    tcase_add_test(tests, ids_that_are_none);
}

int
main(void)
{
    return suite_run("codex_track", add_tests);
}
