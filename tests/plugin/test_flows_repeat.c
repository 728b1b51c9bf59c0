/* SPDX-License-Identifier: Apache-2.0 */
/* flows.so as shipped: the same start again makes no second run, whoever sends it. */
#include "config.h"

#include "flows-rig.h"

#define OTHER_ARGS                                                                  \
    "{\"kind\":\"code-review\",\"target_kind\":\"commit\",\"target_ref\":\"HEAD\"," \
    "\"target_title\":\"T\",\"context\":\"other\"}"
#define OTHER_TARGET                                                                  \
    "{\"kind\":\"code-review\",\"target_kind\":\"commit\",\"target_ref\":\"HEAD~1\"," \
    "\"target_title\":\"T\",\"context\":\"c\"}"

#define N_POSTS       fake_host_count(rig.fake, "POST", "*")
#define STATUS_OF(st) "{\"flow_run_id\":\"u1\",\"status\":\"" st "\",\"round_number\":1}"

static const struct fake_reply running[] = {
    {"POST", "*/start/v*", .body = ANSWER_RUNNING},
    {"GET", RUN_POLL, .delay_ms = 15000, .body = STATUS_RUNNING},
    {"GET", "/api/flows/u1", .body = STATUS_RUNNING},
};
static const struct fake_reply finished[] = {
    {"POST", "*/start/v*",
     .body = "{\"flow_run_id\":\"u2\",\"status\":\"clean\",\"round_number\":1}"},
    {"GET", "/api/flows/u1*", .body = STATUS_FINDINGS},
};

/* A start whose client goes away while the round runs. */
static void
start_and_vanish(void)
{
    struct fake_call call = {.cancel_at_wait = 4};

    fake_host_script(rig.fake, running, 3);
    rig_call(START, START_ARGS, &call);
    ck_assert(!call.has_result);
    ck_assert_uint_eq(N_POSTS, 1);
    fake_call_fini(&call);
}

/* A client that knows no session id gives up and sends the very same call, from a new process
 * each time. */
START_TEST(four_times_the_same_call_is_one_run)
{
    size_t n_posts = 0;

    for (int i = 0; i < 4; i++) {
        struct fake_call call = {
            .session_id = "", .client_name = "qwen-code", .cancel_at_wait = 4};
        fake_host_script(rig.fake, running, 3);
        rig_call(START, START_ARGS, &call);
        ck_assert(!call.has_result);
        n_posts += N_POSTS;
        fake_call_fini(&call);
        rig_restart();
    }
    ck_assert_uint_eq(n_posts, 1);
    fake_host_script(rig.fake, finished, 2);
    {
        struct fake_call call = {.session_id = "", .client_name = "qwen-code"};
        rig_call(START, START_ARGS, &call);
        ck_assert(call.has_result && !call.is_error);
        rig_has(call.text, "flow_run_id: u1\n");
        rig_has(call.text, "joined: the very same start was made");
        rig_has(call.text, "| a.c:1: bad\n");
        ck_assert_uint_eq(N_POSTS, 0);
        fake_call_fini(&call);
    }
}
END_TEST

/* The server holds the first one's post: the second waits for that post, too. */
START_TEST(two_at_once_are_one)
{
    const struct fake_reply held[] = {
        {"POST", "*", .delay_ms = 30000, .body = ANSWER_RUNNING},
        {"GET", "/api/flows/u1*", .body = STATUS_FINDINGS},
    };
    struct fake_call first = {.window_ms = 1000}, second = {.window_ms = 270000};

    fake_host_script(rig.fake, held, 2);
    rig_call(START, START_ARGS, &first);
    rig_has(first.text, "status: starting\n");
    rig_call(START, START_ARGS, &second);
    rig_has(second.text, "joined: ");
    rig_has(second.text, "flow_run_id: u1\n");
    rig_has(second.text, "| a.c:1: bad\n");
    ck_assert_uint_eq(N_POSTS, 1);
    fake_call_fini(&first);
    fake_call_fini(&second);
}
END_TEST

/* What became of another process's post is not known: the same call does not send it again. */
START_TEST(start_of_a_dead_process_is_not_repeated)
{
    const struct fake_reply held[] = {{"POST", "*", .delay_ms = FAKE_NEVER}};
    struct fake_call call = {.window_ms = 1000};
    const char *text;

    fake_host_script(rig.fake, held, 1);
    rig_call(START, START_ARGS, &call);
    rig_restart();
    text = rig_ask(START, START_ARGS, finished, 2, true);
    rig_has(text, "what became of it is not known; nothing was started");
    rig_has(text, "next_step: call get_review_flow_status without an id");
    ck_assert_uint_eq(N_POSTS, 0);
    rig_has(rig_ask(START, NEW_RUN_ARGS, finished, 2, false), "flow_run_id: u2\n");
    ck_assert_uint_eq(N_POSTS, 1);
    fake_call_fini(&call);
}
END_TEST

/* But the server may know, and then it is no longer in anybody's way. */
#define OF_HEAD(id)                                                                  \
    "{\"flow_run_id\":\"" id "\",\"status\":\"running\",\"target_kind\":\"commit\"," \
    "\"target_ref\":\"HEAD\",\"target_title\":\"T\"}"
#define ANOTHER                                                                  \
    "{\"flow_run_id\":\"u9\",\"status\":\"running\",\"target_kind\":\"commit\"," \
    "\"target_ref\":\"v1\",\"target_title\":\"T\"}"

#define OF_SPEC(id)                                                                         \
    "{\"flow_run_id\":\"" id "\",\"status\":\"running\",\"definition_id\":\"spec-review\"," \
    "\"target_kind\":\"commit\",\"target_ref\":\"HEAD\",\"target_title\":\"T\"}"

static const struct {
    const char *name, *flows; /* NULL: a server that does not list them */
    uint32_t server;
    size_t n_posts;
    bool is_error;
    const char *says;
} lists[] = {
    {"it arrived", ANOTHER "," OF_HEAD("u1"), KCAP_HTTP_SERVER_CONFIGURED, 0, false,
     "joined: "},
    {"it arrived here", OF_HEAD("u1"), KCAP_HTTP_SERVER_LOCAL, 0, false, "flow_run_id: u1\n"},
    {"two may be it", OF_HEAD("u1") "," OF_HEAD("u3"), KCAP_HTTP_SERVER_LOCAL, 0, true,
     "is not known"},
    {"it did not arrive", ANOTHER, KCAP_HTTP_SERVER_LOCAL, 1, false, "flow_run_id: u2\n"},
    {"another kind of review", OF_SPEC("u1"), KCAP_HTTP_SERVER_LOCAL, 1, false,
     "flow_run_id: u2\n"},
    {"another kind of review, elsewhere", OF_SPEC("u1"), KCAP_HTTP_SERVER_CONFIGURED, 0, true,
     "is not known"},
    {"it may have ended", "", KCAP_HTTP_SERVER_CONFIGURED, 0, true, "is not known"},
    {"nobody can say", NULL, KCAP_HTTP_SERVER_LOCAL, 0, true, "is not known"},
};

START_TEST(server_knows_what_became_of_a_start)
{
    const struct fake_reply held[] = {{"POST", "*", .delay_ms = FAKE_NEVER}};
    struct fake_reply replies[3] = {
        finished[0], finished[1], {"GET", SESSION_LIST, .status = 200}};
    struct fake_call call = {.window_ms = 1000};
    char body[800];

    (void)snprintf(body, sizeof body, "{\"flows\":[%s]}",
                   lists[_i].flows ? lists[_i].flows : "");
    replies[2].body = body;
    replies[2].status = lists[_i].flows ? 200 : 404;
    fake_host_set_server(rig.fake, lists[_i].server, "unix:///s", NULL);
    fake_host_script(rig.fake, held, 1);
    rig_call(START, START_ARGS, &call);
    rig_restart();
    fake_host_set_server(rig.fake, lists[_i].server, "unix:///s", NULL);
    rig_has(rig_ask(START, START_ARGS, replies, 3, lists[_i].is_error), lists[_i].says);
    ck_assert_msg(N_POSTS == lists[_i].n_posts, "%s: %zu", lists[_i].name, N_POSTS);
    fake_call_fini(&call);
}
END_TEST

/* Also when a status has shown the run before, which did not know whose it was; and when its
 * title is longer than what is noted of it. */
START_TEST(arrived_start_is_joined_whatever_was_seen)
{
    static const char format[] =
        "{\"kind\":\"code-review\",\"target_kind\":\"commit\",\"target_ref\":\"HEAD\","
        "\"target_title\":\"%s\",\"context\":\"c\"}";
    const struct fake_reply held[] = {{"POST", "*", .delay_ms = FAKE_NEVER}};
    char title[400], args[600], body[800];
    struct fake_reply replies[3] = {finished[0],
                                    {"GET", SESSION_LIST, .body = body},
                                    {"GET", "/api/flows/u1*", .body = STATUS_RUNNING}};
    struct fake_call call = {.window_ms = 1000}, again = {.window_ms = 50000};

    memset(title, 't', sizeof title);
    title[_i % 2 ? 301 : 7] = '\0';
    (void)snprintf(args, sizeof args, format, title);
    (void)snprintf(body, sizeof body,
                   "{\"flows\":[{\"flow_run_id\":\"u1\",\"status\":\"running\",\"target_kind\":"
                   "\"commit\",\"target_ref\":\"HEAD\",\"target_title\":\"%s\"}]}",
                   title);
    fake_host_set_server(rig.fake, KCAP_HTTP_SERVER_LOCAL, "unix:///s", NULL);
    fake_host_script(rig.fake, held, 1);
    rig_call(START, args, &call);
    rig_restart();
    fake_host_set_server(rig.fake, KCAP_HTTP_SERVER_LOCAL, "unix:///s", NULL);
    if (_i >= 2)
        rig_has(rig_ask(STATUS, "{}", replies + 1, 2, false), "flow_run_id: u1\n");
    fake_host_script(rig.fake, replies, 3);
    rig_call(START, args, &again);
    rig_has(again.text, "flow_run_id: u1\n");
    rig_has(again.text, "joined: ");
    ck_assert_uint_eq(N_POSTS, 0);
    fake_call_fini(&call);
    fake_call_fini(&again);
}
END_TEST

/* What is there when the same start comes again, and whether that makes a new run. */
static const struct {
    const char *name, *args;
    struct fake_reply there; /* the server's answer about the run */
    int64_t later_ms;
    bool starts, is_error;
    const char *says;
} again[] = {
    {"open", START_ARGS, {.body = STATUS_FINDINGS}, 0, false, false, "joined: "},
    {"ended with a result",
     START_ARGS,
     {.body = STATUS_OF("closed")},
     0,
     false,
     false,
     "joined: "},
    {"failed", START_ARGS, {.body = STATUS_OF("failed")}, 0, true, false, "flow_run_id: u2\n"},
    {"unknown to the server",
     START_ARGS,
     {.status = 404, .body = CODED("unknown_flow", "no such run")},
     11000,
     true,
     false,
     "flow_run_id: u2\n"},
    {"not seen", START_ARGS, {.status = 503, .body = "x"}, 0, false, true, "could not be seen"},
    {"other arguments",
     OTHER_ARGS,
     {.body = STATUS_FINDINGS},
     0,
     false,
     true,
     "\"new_run\": true"},
    {"other arguments, ended",
     OTHER_ARGS,
     {.body = STATUS_OF("closed")},
     0,
     true,
     false,
     "u2\n"},
    {"other target", OTHER_TARGET, {.body = STATUS_FINDINGS}, 0, true, false, "u2\n"},
    {"new_run", NEW_RUN_ARGS, {.body = STATUS_FINDINGS}, 0, true, false, "u2\n"},
};

START_TEST(what_is_there_decides)
{
    struct fake_reply replies[] = {finished[0], again[_i].there};
    const char *text;

    start_and_vanish();
    fake_host_advance_ms(rig.fake, again[_i].later_ms);
    rig_restart();
    fake_host_advance_ms(rig.fake, again[_i].later_ms);
    replies[1].method = "GET";
    text = rig_ask(START, again[_i].args, replies, 2, again[_i].is_error);
    rig_has(text, again[_i].says);
    ck_assert_uint_eq(N_POSTS, again[_i].starts ? 1 : 0);
    if (!again[_i].starts)
        rig_has(text, "flow_run_id: u1\n");
}
END_TEST

/* A run that should have been closed at once is never shown as if it were what was asked for.
 */
START_TEST(unwanted_run_is_not_joined)
{
    const struct fake_reply replies[] = {
        {"POST", "*/start/v4",
         .body = "{\"flow_run_id\":\"u1\",\"round_number\":1,\"status\":\"running\","
                 "\"applied_reviewer_vendor\":\"claude\"}"},
        {"POST", "*/close", .status = 500, .body = "x", .times = 1},
        {"POST", "*/close", .body = "{\"status\":\"closed\"}"},
        {"GET", "/api/flows/u1*", .body = STATUS_FINDINGS},
        {"GET", SESSION_LIST, .status = 404},
    };
    char args[400];

    (void)snprintf(args, sizeof args, "%.*s,\"vendor\":\"codex\"}", (int)strlen(START_ARGS) - 1,
                   START_ARGS);
    rig_has(rig_ask(START, args, replies, 5, true), "could not be closed");
    rig_restart();
    rig_has(rig_ask(STATUS, "{}", replies + 2, 3, false), "warning: its reviewer may not be");
    rig_has(rig_ask(START, args, replies + 2, 3, true), "next_step: call close_review_flow");
    ck_assert_uint_eq(N_POSTS, 0);
    (void)rig_ask(CLOSE, "{\"flow_run_id\":\"u1\"}", replies + 2, 3, false);
    (void)rig_ask(START, args, replies, 5, true);
    ck_assert_uint_eq(fake_host_count(rig.fake, "POST", "*/start/v4"), 1);
}
END_TEST

/* Where another run is wanted beside the first, that is one more, however often it is asked
 * for. */
START_TEST(new_run_is_one_run)
{
    size_t n_posts = 0;

    start_and_vanish();
    for (int i = 0; i < 3; i++) {
        struct fake_call call = {.cancel_at_wait = 4};
        const struct fake_reply replies[] = {
            {"POST", "*/start/v*",
             .body = "{\"flow_run_id\":\"u2\",\"round_number\":1,\"status\":\"running\"}"},
            {"GET", "/api/flows/u2*", .delay_ms = 1000,
             .body =
                 "{\"status\":\"running\",\"round_number\":1,\"round_status\":\"running\"}"},
        };
        rig_restart();
        fake_host_script(rig.fake, replies, 2);
        rig_call(START, NEW_RUN_ARGS, &call);
        n_posts += N_POSTS;
        fake_call_fini(&call);
    }
    ck_assert_uint_eq(n_posts, 1);
}
END_TEST

/* Delivered: written, and no cancel within half a minute, or named by a later call. */
static const struct {
    uint32_t outcomes[2];
    int64_t later_ms;
    bool is_named, starts; /* named: by another call in between */
} fates[] = {
    {{0, 0}, 60000, false, false},
    {{0, 0}, 1000, true, false},
    {{KCAP_SETTLED_WRITTEN, 0}, 1000, false, false},
    {{KCAP_SETTLED_WRITTEN, 0}, 1000, true, true},
    {{KCAP_SETTLED_WRITTEN, 0}, 31000, false, true},
    {{KCAP_SETTLED_WRITTEN, KCAP_SETTLED_LATE_CANCEL}, 60000, false, false},
    {{KCAP_SETTLED_WRITTEN, KCAP_SETTLED_LATE_CANCEL}, 1000, true, false},
    {{KCAP_SETTLED_CANCELLED, 0}, 60000, false, false},
};

START_TEST(delivered_run_is_not_joined)
{
    struct fake_call call = {.window_ms = 0};

    fake_host_script(rig.fake, (const struct fake_reply[]){running[0], finished[1]}, 2);
    rig_call(START, START_ARGS, &call);
    for (int i = 0; i < 2; i++) {
        if (fates[_i].outcomes[i])
            rig_settle(&call, fates[_i].outcomes[i]);
    }
    fake_host_advance_ms(rig.fake, fates[_i].later_ms);
    if (fates[_i].is_named)
        (void)rig_ask(STATUS, "{\"flow_run_id\":\"u1\"}", finished, 2, false);
    (void)rig_ask(START, START_ARGS, finished, 2, false);
    ck_assert_uint_eq(N_POSTS, fates[_i].starts ? 2 : 1);
    fake_call_fini(&call);
}
END_TEST

/* Whatever fails in the host: nothing is sent twice, and the next call joins all the same. */
START_TEST(each_host_call_may_fail)
{
    bool failed = true;

    start_and_vanish();
    rig_restart();
    for (unsigned n = 1; failed; n++) {
        struct fake_call call = {.window_ms = 60000};
        ck_assert_uint_lt(n, 100);
        fake_host_script(rig.fake, finished, 2);
        fake_host_fail_at(rig.fake, n);
        rig_call(START, START_ARGS, &call);
        failed = fake_host_has_failed(rig.fake);
        fake_host_fail_at(rig.fake, 0);
        ck_assert(call.has_result || call.returned < 0);
        if (!failed)
            rig_has(call.text, "joined: ");
        fake_call_fini(&call);
    }
    ck_assert_uint_eq(N_POSTS, 0);
}
END_TEST

/* Another session, or another server, has nothing to do with it. */
START_TEST(others_are_not_joined)
{
    struct fake_call call = {.session_id = "s2", .client_name = "x"};

    start_and_vanish();
    fake_host_script(rig.fake, finished, 2);
    if (_i == 0) {
        rig_call(START, START_ARGS, &call);
        rig_has(call.text, "flow_run_id: u2\n");
    } else {
        fake_host_set_server(rig.fake, KCAP_HTTP_SERVER_CONFIGURED, "https://other", NULL);
        rig_has(rig_ask(START, START_ARGS, finished, 2, false), "flow_run_id: u2\n");
    }
    fake_call_fini(&call);
}
END_TEST

/* Where there is no journal, this process knows its own. */
START_TEST(without_a_journal_this_process_knows)
{
    fake_host_stop(rig.fake);
    rig.plugin->fini(rig.ctx);
    fake_host_free(rig.fake);
    rig.fake = fake_host_new();
    fake_host_setenv(rig.fake, "KCAP_STATE_DIR", "/proc/none");
    fake_host_setenv(rig.fake, "KCAP_CONFIG_DIR", rig_config_dir);
    ck_assert_int_eq(rig.plugin->init(fake_host_table(rig.fake), &rig.ctx), 0);
    start_and_vanish();
    rig_has(rig_ask(START, START_ARGS, finished, 2, false), "joined: ");
    ck_assert_uint_eq(N_POSTS, 1);
}
END_TEST

/* A start that certainly failed is in nobody's way. */
START_TEST(failed_start_is_made_again)
{
    (void)rig_ask(START, START_ARGS,
                  &(struct fake_reply){.status = 400, .body = CODED("bad", "no")}, 1, true);
    rig_has(rig_ask(START, START_ARGS, finished, 2, false), "flow_run_id: u2\n");
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, rig_setup, rig_teardown);
    tcase_add_test(tests, four_times_the_same_call_is_one_run);
    tcase_add_test(tests, two_at_once_are_one);
    tcase_add_test(tests, start_of_a_dead_process_is_not_repeated);
    tcase_add_loop_test(tests, server_knows_what_became_of_a_start, 0, N_ROWS(lists));
    tcase_add_loop_test(tests, arrived_start_is_joined_whatever_was_seen, 0, 4);
    tcase_add_loop_test(tests, what_is_there_decides, 0, sizeof again / sizeof *again);
    tcase_add_loop_test(tests, delivered_run_is_not_joined, 0, sizeof fates / sizeof *fates);
    tcase_add_test(tests, unwanted_run_is_not_joined);
    tcase_add_test(tests, new_run_is_one_run);
    tcase_add_test(tests, each_host_call_may_fail);
    tcase_add_loop_test(tests, others_are_not_joined, 0, 2);
    tcase_add_test(tests, without_a_journal_this_process_knows);
    tcase_add_test(tests, failed_start_is_made_again);
}

int
main(void)
{
    return suite_run("flows-repeat", add);
}
