/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of runs and rounds, on a real store in a temporary directory. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/engine.h"
#include "tests/unit/suite.h"

static char dir[64], path[80];
static struct engine engine;
static struct definition definition;
static struct flow flow;
static struct participant who;
static struct round begun;

static void
open_store(void)
{
    struct buf error = BUF_INIT(1000);

    engine = (struct engine){0};
    ck_assert_msg(store_open(path, &engine.store, &error) == 0, "%s", buf_str(&error));
    buf_fini(&error);
}

static void
close_store(void)
{
    store_close(engine.store);
    engine_fini(&engine);
}

static void
setup(void)
{
    (void)snprintf(dir, sizeof dir, "/tmp/kcap-engine-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/flowd.db", dir);
    open_store();
}

static void
teardown(void)
{
    char companion[96];

    definition_fini(&definition);
    flow_fini(&flow);
    participant_fini(&who);
    round_fini(&begun);
    close_store();
    (void)unlink(path);
    (void)snprintf(companion, sizeof companion, "%s-wal", path);
    (void)unlink(companion);
    (void)snprintf(companion, sizeof companion, "%s-shm", path);
    (void)unlink(companion);
    ck_assert_int_eq(rmdir(dir), 0);
}

static void
set_text(char **place, const char *text)
{
    free(*place);
    *place = strdup(text);
    ck_assert_ptr_nonnull(*place);
}

/* Starts a run of the definition; flow, who (the first) and begun are it. */
static void
start_defined(void)
{
    const struct start start = {.definition = &definition,
                                .target_kind = "k",
                                .target_ref = "r",
                                .target_title = "t",
                                .context = "c",
                                .session_id = "s",
                                .cwd = "/"};

    flow_fini(&flow);
    participant_fini(&who);
    round_fini(&begun);
    ck_assert_int_eq(store_begin(engine.store), 0);
    ck_assert_int_eq(engine_start(&engine, &start, &flow, &begun), 0);
    ck_assert_int_eq(
        store_get_participant(engine.store, flow.id, definition.participants[0].role, &who), 0);
    ck_assert_int_eq(store_commit(engine.store), 0);
}

static void
start_run(void)
{
    struct buf error = BUF_INIT(1000);

    definition_fini(&definition);
    ck_assert_int_eq(definition_find(NULL, "code-review", &definition, &error), 0);
    set_text(&definition.participants[0].vendor, "checklist");
    start_defined();
}

/* One from YAML; every participant without a vendor is the checklist. */
static void
start_yaml(const char *yaml)
{
    struct buf error = BUF_INIT(1000);

    definition_fini(&definition);
    ck_assert_msg(definition_from_yaml(yaml, strlen(yaml), "y", &definition, &error) == 0, "%s",
                  buf_str(&error));
    for (size_t i = 0; i < definition.participant_count; i++)
        set_text(&definition.participants[i].vendor, "checklist");
    start_defined();
}

static int
lose(const char *text, const char *reason)
{
    return engine_round_lost(&engine, begun.id,
                             &(struct loss){.result_text = text,
                                            .code = "code",
                                            .reason = reason,
                                            .silence_ms = 5,
                                            .elapsed_ms = 7});
}

static int
submit(const char *role, struct round *ret)
{
    struct flow same = {0};
    int r = engine_submit(&engine, flow.id, role, "c", "i", &same, ret);

    flow_fini(&same);
    return r;
}

static const char *
round_status(void)
{
    static char status[32];
    struct round now = {0};

    ck_assert_int_eq(store_get_newest_round(engine.store, flow.id, &now), 0);
    (void)snprintf(status, sizeof status, "%s", now.status);
    round_fini(&now);
    return status;
}

static const char *
flow_status(void)
{
    static char status[32];
    struct flow now = {0};

    ck_assert_int_eq(store_get_flow(engine.store, flow.id, &now), 0);
    (void)snprintf(status, sizeof status, "%s", now.status);
    flow_fini(&now);
    return status;
}

static int
result(const char *token, const char *kind, const char *text)
{
    return engine_result(&engine, who.agent_id, token, kind, text);
}

START_TEST(a_start_has_its_effects)
{
    start_run();
    ck_assert_uint_eq(engine.effect_count, 2);
    ck_assert_int_eq(engine.effects[0].kind, EFFECT_START);
    ck_assert_str_eq(engine.effects[0].id, begun.id);
    ck_assert_int_eq(engine.effects[1].kind, EFFECT_CHANGED);
    ck_assert_str_eq(engine.effects[1].id, flow.id);
    ck_assert_str_eq(flow_status(), "running");
    ck_assert_int_eq(begun.number, 1);
    ck_assert_str_ne(begun.token, begun.id);
    ck_assert_str_ne(who.agent_id, flow.id);
}
END_TEST

START_TEST(results)
{
    start_run();
    ck_assert_int_eq(engine_result(&engine, "x", begun.token, "clean", NULL),
                     ENGINE_NO_ACTIVE_FLOW);
    ck_assert_int_eq(result("x", "clean", NULL), ENGINE_STALE_ROUND_TOKEN);
    ck_assert_int_eq(result(begun.token, "findings", "f"), 0);
    ck_assert_str_eq(round_status(), "findings");
    ck_assert_str_eq(flow_status(), "waiting");
    ck_assert_int_eq(result(begun.token, "findings", "f"), 0);
    ck_assert_int_eq(result(begun.token, "findings", "g"), ENGINE_STALE_ROUND_TOKEN);
    ck_assert_int_eq(result(begun.token, "clean", NULL), ENGINE_STALE_ROUND_TOKEN);
    ck_assert_int_eq(result("x", "clean", NULL), ENGINE_NO_OPEN_ROUND);
    ck_assert_str_eq(round_status(), "findings");
}
END_TEST

START_TEST(rounds_one_after_the_other)
{
    struct flow same = {0};
    struct round second = {0};

    start_run();
    ck_assert_int_eq(submit(NULL, &second), ENGINE_ROUND_IN_PROGRESS);
    ck_assert_int_eq(result(begun.token, "clean", NULL), 0);
    ck_assert_int_eq(submit("judge", &second), ENGINE_UNKNOWN_PARTICIPANT);
    ck_assert_int_eq(submit("reviewer", &second), 0);
    ck_assert_int_eq(second.number, 2);
    ck_assert_str_ne(second.token, begun.token);
    ck_assert_int_eq(result(begun.token, "findings", "late"), ENGINE_STALE_ROUND_TOKEN);
    ck_assert_str_eq(round_status(), "running");
    ck_assert_int_eq(engine_submit(&engine, "x", NULL, "c", NULL, &same, &second),
                     ENGINE_UNKNOWN_FLOW);
    round_fini(&second);
    flow_fini(&same);
}
END_TEST

static bool
has_end_effect(void)
{
    for (size_t i = 0; i < engine.effect_count; i++) {
        if (engine.effects[i].kind == EFFECT_END)
            return strcmp(engine.effects[i].id, who.agent_id) == 0;
    }
    return false;
}

START_TEST(close_cancels)
{
    struct flow closed = {0};

    start_run();
    engine_drop_effects(&engine, 0);
    ck_assert_int_eq(engine_close(&engine, flow.id, &closed), 0);
    ck_assert_str_eq(closed.status, "closed");
    ck_assert_str_eq(round_status(), "cancelled");
    ck_assert(has_end_effect());
    flow_fini(&closed);
    engine_drop_effects(&engine, 0);
    ck_assert_int_eq(engine_close(&engine, flow.id, &closed), 0);
    ck_assert(has_end_effect());
    ck_assert_int_eq(result(begun.token, "clean", NULL), ENGINE_NO_ACTIVE_FLOW);
    flow_fini(&closed);
    ck_assert_int_eq(submit(NULL, &begun), ENGINE_RUN_CLOSED);
}
END_TEST

START_TEST(a_lost_round_leaves_the_run_open)
{
    struct round lost = {0};

    start_run();
    ck_assert_int_eq(lose(ROUND_TEXT_DIED, "why"), 0);
    ck_assert_int_eq(store_get_round(engine.store, begun.id, &lost), 0);
    ck_assert_str_eq(lost.status, "unclear");
    ck_assert_str_eq(lost.result_text, "participant_died");
    ck_assert_str_eq(lost.reason, "why");
    ck_assert_str_eq(lost.reason_code, "code");
    ck_assert_int_eq(lost.silence_ms, 5);
    ck_assert_int_eq(lost.elapsed_ms, 7);
    ck_assert_str_eq(flow_status(), "waiting");
    round_fini(&lost);
    ck_assert_int_eq(result(begun.token, "clean", NULL), ENGINE_STALE_ROUND_TOKEN);
}
END_TEST

START_TEST(a_result_is_not_lost_afterwards)
{
    start_run();
    ck_assert_int_eq(result(begun.token, "clean", NULL), 0);
    ck_assert_int_eq(lose(ROUND_TEXT_DIED, "why"), 0);
    ck_assert_str_eq(round_status(), "clean");
}
END_TEST

START_TEST(what_can_only_fail_again_has_failed)
{
    struct round lost = {0};

    start_run();
    ck_assert_int_eq(lose(NULL, "no such commit"), 0);
    ck_assert_int_eq(store_get_newest_round(engine.store, flow.id, &lost), 0);
    ck_assert_str_eq(lost.status, "failed");
    ck_assert_str_eq(lost.reason, "no such commit");
    ck_assert_ptr_null(lost.result_text);
    ck_assert_str_eq(flow_status(), "waiting");
    round_fini(&lost);
}
END_TEST

static const char *
say(void *arg, const char *round_id)
{
    ck_assert_str_eq(round_id, begun.id);
    return arg;
}

START_TEST(a_note_is_kept_with_the_result)
{
    static char words[] = "Looked at\x1b 3 files";
    struct round stored = {0};

    engine.note = say;
    engine.note_arg = _i == 0 ? words : NULL;
    start_run();
    ck_assert_int_eq(result(begun.token, "clean", NULL), 0);
    ck_assert_int_eq(store_get_newest_round(engine.store, flow.id, &stored), 0);
    if (_i == 0)
        ck_assert_str_eq(stored.reason, "Looked at\xef\xbf\xbd 3 files");
    else
        ck_assert_ptr_null(stored.reason);
    round_fini(&stored);
}
END_TEST

/* Open, just closed, or with a reviewer that has not been seen to end: all stay. */
START_TEST(only_old_closed_runs_are_forgotten)
{
    struct launch launch;
    struct flow closed = {0}, found = {0};

    start_run();
    ck_assert_int_eq(engine_forget(&engine, INT64_MAX), 0);
    ck_assert_int_eq(store_get_flow(engine.store, flow.id, &found), 0);
    flow_fini(&found);
    launch = (struct launch){.agent_id = who.agent_id, .mark = dir, .boot_id = dir, .pid = 7};
    ck_assert_int_eq(store_add_launch(engine.store, &launch), 0);
    ck_assert_int_eq(engine_close(&engine, flow.id, &closed), 0);
    ck_assert_int_eq(engine_forget(&engine, INT64_MAX), 0);
    ck_assert_int_eq(store_get_flow(engine.store, flow.id, &found), 0);
    flow_fini(&found);
    ck_assert_int_eq(store_remove_launch(engine.store, who.agent_id, 8), 0);
    ck_assert_int_eq(engine_forget(&engine, INT64_MAX), 0);
    ck_assert_int_eq(store_get_flow(engine.store, flow.id, &found), 0);
    flow_fini(&found);
    ck_assert_int_eq(store_remove_launch(engine.store, who.agent_id, 7), 0);
    ck_assert_int_eq(engine_forget(&engine, closed.updated_ms), 0);
    ck_assert_int_eq(store_get_flow(engine.store, flow.id, &found), 0);
    flow_fini(&found);
    ck_assert_int_eq(engine_forget(&engine, closed.updated_ms + 1), 0);
    ck_assert_int_eq(store_get_flow(engine.store, flow.id, &found), -ENOENT);
    flow_fini(&closed);
}
END_TEST

START_TEST(a_new_process_recovers)
{
    start_run();
    close_store();
    open_store();
    ck_assert_int_eq(engine_recover(&engine), 0);
    ck_assert_str_eq(round_status(), "unclear");
    ck_assert_str_eq(flow_status(), "waiting");
}
END_TEST

static int
count_flow(void *arg, const struct flow *listed)
{
    int *count = arg;

    ck_assert_str_eq(listed->id, flow.id);
    ++*count;
    return 0;
}

START_TEST(an_end_is_listed_until_it_was_shown)
{
    struct flow closed = {0};
    int count = 0;

    start_run();
    ck_assert_int_eq(engine_close(&engine, flow.id, &closed), 0);
    flow_fini(&closed);
    ck_assert_int_eq(store_each_session_flow(engine.store, "other", count_flow, &count), 0);
    ck_assert_int_eq(count, 0);
    ck_assert_int_eq(store_each_session_flow(engine.store, "s", count_flow, &count), 0);
    ck_assert_int_eq(count, 1);
    ck_assert_int_eq(store_set_flow_shown(engine.store, flow.id), 0);
    ck_assert_int_eq(store_each_session_flow(engine.store, "s", count_flow, &count), 0);
    ck_assert_int_eq(count, 1);
}
END_TEST

START_TEST(a_part_can_fail_alone)
{
    struct flow closed = {0};

    start_run();
    ck_assert_int_eq(store_begin(engine.store), 0);
    ck_assert_int_eq(store_part_begin(engine.store), 0);
    ck_assert_int_eq(result(begun.token, "clean", NULL), 0);
    ck_assert_int_eq(store_part_end(engine.store, true), 0);
    ck_assert_int_eq(store_part_begin(engine.store), 0);
    ck_assert_int_eq(engine_close(&engine, flow.id, &closed), 0);
    flow_fini(&closed);
    ck_assert_int_eq(store_part_end(engine.store, false), 0);
    ck_assert_int_eq(store_commit(engine.store), 0);
    ck_assert_str_eq(flow_status(), "waiting");
    ck_assert_str_eq(round_status(), "clean");
}
END_TEST

START_TEST(a_rollback_undoes_all)
{
    start_run();
    ck_assert_int_eq(store_begin(engine.store), 0);
    ck_assert_int_eq(result(begun.token, "clean", NULL), 0);
    store_rollback(engine.store);
    ck_assert_str_eq(round_status(), "running");
}
END_TEST

START_TEST(hostile_texts_come_back)
{
    static const char text[] = "'; DROP TABLE rounds; --\n\xc3\xa9\x1b";
    struct round stored = {0};

    start_run();
    ck_assert_int_eq(result(begun.token, "findings", text), 0);
    ck_assert_int_eq(store_get_answered_round(engine.store, flow.id, &stored), 0);
    ck_assert_str_eq(stored.result_text, text);
    round_fini(&stored);
    ck_assert_int_eq(store_get_flow(engine.store, "' OR '1'='1", &flow), -ENOENT);
}
END_TEST

static int
count_message(void *arg, const struct message *message)
{
    int *count = arg;

    ck_assert_str_eq(message->role, "reviewer");
    ++*count;
    return 0;
}

static int
pending_messages(void)
{
    int count = 0;

    ck_assert_int_eq(store_each_pending_message(engine.store, flow.id, count_message, &count),
                     0);
    return count;
}

START_TEST(messages_wait_until_they_are_acknowledged)
{
    struct flow closed = {0};

    start_run();
    ck_assert_int_eq(engine_message(&engine, "nobody", "1", "x"), ENGINE_NO_ACTIVE_FLOW);
    ck_assert_int_eq(engine_message(&engine, who.agent_id, "1", "one"), 0);
    ck_assert_int_eq(engine_message(&engine, who.agent_id, "1", "one"), 0);
    ck_assert_int_eq(engine_message(&engine, who.agent_id, "2", "two"), 0);
    ck_assert_int_eq(pending_messages(), 2);
    ck_assert_int_eq(store_ack_message(engine.store, flow.id, "1"), 0);
    ck_assert_int_eq(store_ack_message(engine.store, flow.id, "unknown"), 0);
    ck_assert_int_eq(pending_messages(), 1);
    ck_assert_int_eq(engine_message(&engine, who.agent_id, "1", "one"), 0);
    ck_assert_int_eq(pending_messages(), 1);
    for (int i = 1; i < ENGINE_MAX_MESSAGES; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "more%d", i);
        ck_assert_int_eq(engine_message(&engine, who.agent_id, id, "x"), 0);
    }
    ck_assert_int_eq(engine_message(&engine, who.agent_id, "3", "x"), ENGINE_TOO_MANY_MESSAGES);
    ck_assert_int_eq(engine_message(&engine, who.agent_id, "2", "two"), 0); /* it is there */
    ck_assert_int_eq(engine_message(&engine, who.agent_id, "2", "x"), ENGINE_MESSAGE_ID_IN_USE);
    ck_assert_int_eq(engine_close(&engine, flow.id, &closed), 0);
    flow_fini(&closed);
    ck_assert_int_eq(engine_message(&engine, who.agent_id, "3", "x"), ENGINE_RUN_CLOSED);
    ck_assert_int_eq(pending_messages(), ENGINE_MAX_MESSAGES);
}
END_TEST

START_TEST(several_participants_begin_without_a_round)
{
    struct participant author = {0};

    start_yaml("participants: [{role: author}, {role: reviewer}]");
    ck_assert_ptr_null(begun.id);
    ck_assert_str_eq(flow_status(), "waiting");
    ck_assert_int_eq(submit(NULL, &begun), ENGINE_PARTICIPANT_NEEDED);
    ck_assert_int_eq(submit("judge", &begun), ENGINE_UNKNOWN_PARTICIPANT);
    ck_assert_int_eq(submit("reviewer", &begun), 0);
    ck_assert_str_eq(begun.role, "reviewer");
    /* a round is answered by the one whose it is */
    ck_assert_int_eq(result(begun.token, "clean", NULL), ENGINE_STALE_ROUND_TOKEN);
    ck_assert_int_eq(store_get_participant(engine.store, flow.id, "reviewer", &author), 0);
    ck_assert_int_eq(engine_result(&engine, author.agent_id, begun.token, "clean", NULL), 0);
    participant_fini(&author);
}
END_TEST

START_TEST(a_message_id_belongs_to_one_participant)
{
    struct participant writer = {0};

    start_yaml("participants: [{role: author}, {role: reviewer}]");
    ck_assert_int_eq(store_get_participant(engine.store, flow.id, "reviewer", &writer), 0);
    ck_assert_int_eq(engine_message(&engine, writer.agent_id, "1", "one"), 0);
    participant_fini(&writer);
    ck_assert_int_eq(store_get_participant(engine.store, flow.id, "author", &writer), 0);
    ck_assert_int_eq(engine_message(&engine, writer.agent_id, "1", "one"),
                     ENGINE_MESSAGE_ID_IN_USE);
    participant_fini(&writer);
    ck_assert_int_eq(pending_messages(), 1);
}
END_TEST

START_TEST(rounds_are_limited)
{
    struct round second = {0};

    start_yaml("{participants: [{role: reviewer}], limits: {max_rounds: 1}}");
    ck_assert_int_eq(result(begun.token, "clean", NULL), 0);
    ck_assert_int_eq(submit(NULL, &second), ENGINE_MAX_ROUNDS);
    ck_assert_str_eq(flow_status(), "waiting");
}
END_TEST

START_TEST(a_spent_budget_fails_the_run)
{
    struct round second = {0};

    start_yaml("{participants: [{role: reviewer}], limits: {budget_usd: 1.5}}");
    ck_assert_int_eq(engine_round_cost(&engine, begun.id, 1499999), 0);
    ck_assert_str_eq(flow_status(), "running");
    ck_assert_int_eq(result(begun.token, "clean", NULL), 0);
    engine_drop_effects(&engine, 0);
    ck_assert_int_eq(engine_round_cost(&engine, begun.id, 1500000), 0);
    ck_assert_str_eq(flow_status(), "failed");
    ck_assert_str_eq(round_status(), "clean");
    ck_assert(has_end_effect());
    ck_assert_int_eq(submit(NULL, &second), ENGINE_RUN_FAILED);
}
END_TEST

START_TEST(idle_runs_are_closed)
{
    int64_t next_ms, long_ago_ms;

    start_yaml("{participants: [{role: reviewer}], limits: {idle_ttl: 60}}");
    ck_assert_int_eq(engine_end_idle(&engine, 1, INT64_MAX / 2, &next_ms), 0);
    ck_assert_str_eq(flow_status(), "running"); /* it is not the driver who is idle */
    ck_assert_int_eq(result(begun.token, "clean", NULL), 0);
    engine_drop_effects(&engine, 0);
    long_ago_ms = flow.updated_ms;
    ck_assert_int_eq(engine_end_idle(&engine, 1, long_ago_ms + 2000, &next_ms), 0);
    ck_assert_str_eq(flow_status(), "waiting");
    ck_assert_int_ge(next_ms, long_ago_ms + 60000);
    ck_assert_int_eq(engine_end_idle(&engine, 1, next_ms, &next_ms), 0);
    ck_assert_str_eq(flow_status(), "closed");
    ck_assert(has_end_effect());
    ck_assert_int_eq(next_ms, INT64_MAX);
}
END_TEST

static void
add_tests(TCase *tests)
{
    tcase_add_test(tests, messages_wait_until_they_are_acknowledged);
    tcase_add_test(tests, several_participants_begin_without_a_round);
    tcase_add_test(tests, a_message_id_belongs_to_one_participant);
    tcase_add_test(tests, rounds_are_limited);
    tcase_add_test(tests, a_spent_budget_fails_the_run);
    tcase_add_test(tests, idle_runs_are_closed);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_start_has_its_effects);
    tcase_add_test(tests, results);
    tcase_add_test(tests, rounds_one_after_the_other);
    tcase_add_test(tests, close_cancels);
    tcase_add_test(tests, a_lost_round_leaves_the_run_open);
    tcase_add_test(tests, a_result_is_not_lost_afterwards);
    tcase_add_test(tests, what_can_only_fail_again_has_failed);
    tcase_add_loop_test(tests, a_note_is_kept_with_the_result, 0, 2);
    tcase_add_test(tests, only_old_closed_runs_are_forgotten);
    tcase_add_test(tests, a_new_process_recovers);
    tcase_add_test(tests, an_end_is_listed_until_it_was_shown);
    tcase_add_test(tests, a_part_can_fail_alone);
    tcase_add_test(tests, a_rollback_undoes_all);
    tcase_add_test(tests, hostile_texts_come_back);
}

int
main(void)
{
    return suite_run("engine", add_tests);
}
