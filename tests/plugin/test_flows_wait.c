/* SPDX-License-Identifier: Apache-2.0 */
/* flows.so as shipped: what is borne while a round is polled, and what ends it. */
#include "config.h"

#include "flows-rig.h"

#define GET_U1 "/api/flows/u1*"

static const struct {
    const char *name;
    struct fake_reply replies[5]; /* to the GETs behind a start of round 1 */
    size_t gets;
    int64_t took_ms;
    bool is_error;
    const char *says;
} rows[] = {
    {"findings at once", {{.body = STATUS_FINDINGS}}, 1, 0, false, "result_kind: findings"},
    {"404 at first",
     {{.status = 404, .times = 3}, {.body = STATUS_FINDINGS}},
     4,
     9000,
     false,
     "findings"},
    {"404 for good", {{.status = 404}}, 5, 12000, true, "HTTP 404"},
    {"coded 404 for good",
     {{.status = 404, .body = CODED("no_such_flow", "?")}},
     5,
     12000,
     true,
     "no_such_flow"},
    {"five failures",
     {{.outcome = KCAP_HTTP_UNKNOWN, .error = "reset", .times = 5}, {.body = STATUS_FINDINGS}},
     6,
     15000,
     false,
     "findings"},
    {"six failures",
     {{.outcome = KCAP_HTTP_UNKNOWN, .error = "reset"}},
     6,
     15000,
     true,
     "the 6th failure in a row"},
    {"six pages", {{.body = "<html>"}}, 6, 15000, true, "not the answer of a flow server"},
    {"six wrong types", {{.body = "{\"status\":7}"}}, 6, 15000, true, "wrong type"},
    {"six other runs",
     {{.body = "{\"flow_run_id\":\"u2\",\"status\":\"closed\"}"}},
     6,
     15000,
     true,
     "another flow_run_id"},
    {"a good one in between",
     {{.status = 500, .body = "x", .times = 4},
      {.body = STATUS_RUNNING, .times = 1},
      {.status = 500, .body = "x", .times = 4},
      {.body = STATUS_FINDINGS}},
     10,
     27000,
     false,
     "findings"},
    {"hangs", {{.delay_ms = FAKE_NEVER}}, 6, 120000, true, "did not answer"},
    {"429 with a wish",
     {{.status = 429, .retry_after_sec = 20, .times = 1}, {.body = STATUS_FINDINGS}},
     2,
     20000,
     false,
     "findings"},
    {"503 with a wild wish",
     {{.status = 503, .retry_after_sec = 100000, .times = 1}, {.body = STATUS_FINDINGS}},
     2,
     60000,
     false,
     "findings"},
    {"settling",
     {{.status = 409, .body = CODED("flow_settlement_busy", "m"), .times = 20},
      {.body = STATUS_FINDINGS}},
     21,
     60000,
     false,
     "findings"},
    {"catching up",
     {{.status = 409, .body = CODED("server_catching_up", "m")}},
     1,
     0,
     true,
     "temporary"},
    {"403", {{.status = 403, .body = "no"}}, 1, 0, true, "HTTP 403: no"},
    {"run failed",
     {{.body = "{\"status\":\"failed\",\"last_result_text\":\"budget\"}"}},
     1,
     0,
     true,
     "| budget"},
    {"run closed", {{.body = "{\"status\":\"closed\"}"}}, 1, 0, false, "status: closed"},
    {"a later round, at work",
     {{.body = "{\"status\":\"running\",\"round_number\":2,\"round_status\":"
               "\"running\"}",
       .times = 4},
      {.body = STATUS_FINDINGS}},
     5,
     12000,
     false,
     "round_number: 1\n"},
    {"a later round that is over",
     {{.body = "{\"status\":\"waiting\",\"round_number\":2,\"round_status\":"
               "\"clean\"}"}},
     1,
     0,
     false,
     "warning: this call waited for round 1, which the server does not show any more; what "
     "follows is of round 2\n"},
    {"reviewer died",
     {{.body = "{\"status\":\"waiting\",\"round_number\":1,\"round_status\":"
               "\"unclear\",\"round_result_text\":\"participant_died\"}"}},
     1,
     0,
     false,
     "round_reason: participant_died\n"},
    {"never shows the round",
     {{.body = "{\"status\":\"running\"}"}},
     21,
     60000,
     true,
     "does not show the round"},
    {"shows it late",
     {{.body = "{\"status\":\"running\"}", .times = 15}, {.body = STATUS_FINDINGS}},
     16,
     45000,
     false,
     "findings"},
};

START_TEST(polling)
{
    struct fake_reply replies[6] = {{"POST", "*/start/v2", .body = ANSWER_RUNNING}};
    const char *text;

    memcpy(replies + 1, rows[_i].replies, sizeof rows[_i].replies);
    text = rig_ask(START, START_ARGS, replies, 6, rows[_i].is_error);
    rig_has(text, rows[_i].says);
    /* whatever happens, the run is named first and the next step follows */
    ck_assert_msg(strncmp(text, "flow_run_id: u1\nstatus: ", 24) == 0, "%s", text);
    rig_has(text, "\nnext_step: ");
    ck_assert_msg(fake_host_count(rig.fake, "GET", GET_U1) == rows[_i].gets, "%s: %zu GETs",
                  rows[_i].name, fake_host_count(rig.fake, "GET", GET_U1));
    ck_assert_msg(fake_host_now_ms(rig.fake) - 1000 == rows[_i].took_ms, "%s: %lld ms",
                  rows[_i].name, (long long)fake_host_now_ms(rig.fake) - 1000);
    ck_assert_uint_eq(fake_host_count(rig.fake, "POST", "*"), 1);
}
END_TEST

START_TEST(died_reviewer_means_another_round)
{
    const struct fake_reply reply = {
        .body = "{\"status\":\"waiting\",\"round_number\":1,\"round_status\":\"unclear\","
                "\"round_result_text\":\"participant_died\"}"};
    const char *text =
        rig_ask(STATUS, "{\"flow_run_id\":\"u1\",\"wait\":true}", &reply, 1, false);

    rig_has(text, "next_step: the flow is open: call submit_review_round");
    rig_lacks(text, "| participant_died");
}
END_TEST

static const struct {
    const char *members, *says[3], *lacks;
} lost[] = {
    {"\"round_status\":\"unclear\",\"round_result_text\":\"participant_died\",\"round_reason\":"
     "\"the reviewer left without submitting, exit status 127: no such program\"",
     {"round_reason: participant_died\n",
      "what_happened: the reviewer left without submitting, exit status 127: no such program\n",
      "next_step: the flow is open. Read what happened first"},
     "next_step: the flow is open: call"},
    {"\"round_status\":\"unclear\",\"round_result_text\":\"participant_stopped\","
     "\"round_reason\":\"idle_timeout (300 s)\"",
     {"round_reason: participant_stopped\n", "what_happened: idle_timeout (300 s)\n"},
     "| participant_stopped"},
    {"\"round_status\":\"failed\",\"round_reason\":\"there is no commit \\\"x\\\"\"",
     {"round_reason: there is no commit \"x\"\n", "next_step: read round_reason and mend",
      "close the flow and start another"},
     "to have the round done again"},
    {"\"round_status\":\"clean\",\"round_note\":\"Looked at 3 files\"",
     {"round_note: Looked at 3 files\n", "next_step: call close_review_flow"},
     "round_reason"},
};

/* The marker is for programs; what happened is for whoever has to do something about it. */
START_TEST(lost_round_says_what_happened)
{
    char body[600];
    const struct fake_reply reply = {.body = body};
    const char *text;

    (void)snprintf(body, sizeof body, "{\"status\":\"waiting\",\"round_number\":1,%s}",
                   lost[_i].members);
    text = rig_ask(STATUS, "{\"flow_run_id\":\"u1\"}", &reply, 1, false);
    for (int i = 0; i < 3 && lost[_i].says[i]; i++)
        rig_has(text, lost[_i].says[i]);
    rig_lacks(text, lost[_i].lacks);
}
END_TEST

static const struct {
    const char *members, *state;
} states[] = {
    {"\"status\":\"running\",\"round_status\":\"running\"", "running"},
    {"\"status\":\"waiting\",\"round_status\":\"clean\"", "idle"},
    {"\"status\":\"waiting\"", "idle"},
    {"\"status\":\"waiting\",\"round_status\":\"unclear\",\"round_result_text\":"
     "\"participant_died\"",
     "died"},
    {"\"status\":\"waiting\",\"round_status\":\"unclear\",\"round_result_text\":"
     "\"participant_stopped\"",
     "stopped"},
    {"\"status\":\"closed\",\"round_status\":\"cancelled\"", "stopped"},
};

START_TEST(participants_run_only_while_they_do)
{
    char body[600], line[100];
    const struct fake_reply reply = {.body = body};

    (void)snprintf(body, sizeof body,
                   "{%s,\"participants\":[{\"role\":\"reviewer\",\"vendor\":\"v\",\"model\":"
                   "\"m\",\"stopped\":false}]}",
                   states[_i].members);
    (void)snprintf(line, sizeof line, "participant: reviewer, v, m, %s\n", states[_i].state);
    rig_has(rig_ask(STATUS, "{\"flow_run_id\":\"u1\"}", &reply, 1, false), line);
}
END_TEST

/* Round 2 was accepted; the findings of round 1 are not its result, however long they stand. */
START_TEST(earlier_result_never_counts)
{
    const struct fake_reply replies[] = {
        {"POST", "*/rounds",
         .body = "{\"flow_run_id\":\"u1\",\"round_number\":2,\"status\":\"running\"}"},
        {"GET", GET_U1, .body = STATUS_FINDINGS},
    };
    const char *text =
        rig_ask(ROUND, "{\"flow_run_id\":\"u1\",\"context\":\"c\"}", replies, 2, true);

    rig_lacks(text, "a.c:1: bad");
    rig_has(text, "round_number: 2\n");
    text = rig_ask(STATUS, "{\"flow_run_id\":\"u1\",\"wait\":true}", replies, 2, true);
    rig_lacks(text, "a.c:1: bad");
}
END_TEST

/* ---- whose result it is ---- */

#define OLD_FINDINGS "\"last_result_kind\":\"findings\",\"last_result_text\":\"old.c:1: bad\","

static const struct {
    const char *name, *members; /* of round 2, behind the findings of round 1 */
    bool is_current;
} results[] = {
    {"running", "\"status\":\"running\",\"round_number\":2,\"round_status\":\"running\"",
     false},
    {"cancelled", "\"status\":\"closed\",\"round_number\":2,\"round_status\":\"cancelled\"",
     false},
    {"waiting", "\"status\":\"waiting\",\"round_number\":2,\"round_status\":\"waiting\"",
     false},
    {"clean", "\"status\":\"waiting\",\"round_number\":2,\"round_status\":\"clean\"", false},
    {"died",
     "\"status\":\"waiting\",\"round_number\":2,\"round_status\":\"unclear\","
     "\"round_result_kind\":\"unclear\",\"round_result_text\":\"participant_died\"",
     false},
    {"only a number", "\"status\":\"running\",\"round_number\":2", false},
    {"only an id", "\"status\":\"running\",\"round_id\":\"r2\"", false},
    {"no round told", "\"status\":\"waiting\"", true},
    {"ended with it", "\"status\":\"waiting\",\"round_number\":2,\"round_status\":\"findings\"",
     true},
};

START_TEST(earlier_result_is_never_the_current_one)
{
    char body[600];
    const struct fake_reply reply = {.body = body};
    const char *text, *own, *old;

    (void)snprintf(body, sizeof body, "{" OLD_FINDINGS "%s}", results[_i].members);
    text = rig_ask(STATUS, "{\"flow_run_id\":\"u1\"}", &reply, 1, false);
    own = strstr(text, "\nresult_kind: findings\n");
    old = strstr(text, "\nprevious_result_kind: findings\n");
    ck_assert_msg((own != NULL) == results[_i].is_current, "%s: %s", results[_i].name, text);
    ck_assert_msg((old != NULL) != results[_i].is_current, "%s: %s", results[_i].name, text);
    rig_has(text, results[_i].is_current ? "The reviewer's words (" : "the earlier round (");
    rig_has(text, "| old.c:1: bad\n"); /* it is not lost either */
}
END_TEST

/* A round that is cancelled while its call waits has no result; the one before has. */
START_TEST(cancelled_round_has_no_result)
{
    const struct fake_reply replies[] = {
        {"POST", "*/rounds",
         .body = "{\"flow_run_id\":\"u1\",\"round_number\":2,\"status\":\"running\"}"},
        {"GET", GET_U1,
         .body = "{" OLD_FINDINGS "\"status\":\"running\",\"round_number\":2,"
                 "\"round_status\":\"running\"}",
         .times = 2},
        {"GET", GET_U1,
         .body = "{" OLD_FINDINGS "\"status\":\"waiting\",\"round_number\":2,"
                 "\"round_status\":\"cancelled\"}"},
    };
    struct fake_call call = {.window_ms = 270000};

    fake_host_script(rig.fake, replies, 3);
    rig_call(ROUND, "{\"flow_run_id\":\"u1\",\"context\":\"c\"}", &call);
    ck_assert(call.has_result && !call.is_error);
    rig_has(call.text, "round_status: cancelled\n");
    rig_lacks(call.text, "\nresult_kind: ");
    rig_lacks(call.text, "address the findings");
    rig_lacks(call.json, "\"result_kind\"");
    fake_call_fini(&call);
}
END_TEST

static const struct {
    const char *name, *body;
    bool waits;
} waits[] = {
    {"no round yet", "{\"status\":\"waiting\"}", false},
    {"completed", "{\"status\":\"completed\",\"round_number\":2,\"round_status\":\"clean\"}",
     false},
    {"closed", "{\"status\":\"closed\"}", false},
    {"running", "{\"status\":\"running\",\"round_number\":2,\"round_status\":\"running\"}",
     true},
    {"unknown word", "{\"status\":\"running\",\"round_number\":2,\"round_status\":\"odd\"}",
     true},
};

START_TEST(wait_returns_when_nothing_is_in_flight)
{
    const struct fake_reply reply = {.body = waits[_i].body};
    struct fake_call call = {.window_ms = 50000};

    fake_host_script(rig.fake, &reply, 1);
    rig_call(STATUS, "{\"flow_run_id\":\"u1\",\"wait\":true}", &call);
    ck_assert(call.has_result && !call.is_error);
    ck_assert_msg(call.took_ms == (waits[_i].waits ? 50000 : 0), "%s: %lld", waits[_i].name,
                  (long long)call.took_ms);
    fake_call_fini(&call);
}
END_TEST

/* A server that ignores wait_sec is asked every 3 s, one that holds it at once again. */
START_TEST(requests_keep_their_distance)
{
    static const struct {
        int64_t delay_ms;
        size_t gets;
    } servers[] = {{0, 20}, {15000, 4}};
    const struct fake_reply reply = {.delay_ms = servers[_i].delay_ms, .body = STATUS_RUNNING};
    struct fake_call call = {.window_ms = 59000};

    fake_host_script(rig.fake, &reply, 1);
    rig_call(STATUS, "{\"flow_run_id\":\"u1\",\"wait\":true}", &call);
    ck_assert_uint_eq(fake_host_count(rig.fake, "GET", RUN_POLL), servers[_i].gets);
    rig_has(call.text, "Flow still running: this call waited 59 s.");
    fake_call_fini(&call);
}
END_TEST

START_TEST(progress_has_the_last_sign_of_life)
{
    const struct fake_reply replies[] = {
        {"GET", RUN_POLL, .delay_ms = 15000,
         .body = "{\"status\":\"running\",\"round_number\":1,\"round_status\":\"running\","
                 "\"round_silence_ms\":4200}",
         .times = 2},
        {"GET", RUN_POLL, .body = STATUS_FINDINGS},
    };
    struct fake_call call = {.window_ms = 0};

    fake_host_script(rig.fake, replies, 2);
    rig_call(STATUS, "{\"flow_run_id\":\"u1\",\"wait\":true}", &call);
    ck_assert_uint_ge(call.n_progress, 1);
    rig_has(call.last_progress, "last sign of life 4 s ago");
    fake_call_fini(&call);
}
END_TEST

START_TEST(status_without_wait_asks_once)
{
    const struct fake_reply reply = {
        .body =
            "{\"flow_run_id\":\"u1\",\"status\":\"waiting\",\"round_count\":2,"
            "\"definition_id\":\"code-review\",\"target_title\":\"T\",\"last_result_kind\":"
            "\"findings\",\"last_result_text\":\"bad\",\"workspace_mode\":\"fallback\","
            "\"fallback_reason\":\"not_allowed\",\"applied_reviewer_vendor\":\"codex\","
            "\"budget_enforcement\":\"partial\",\"unmetered_roles\":[\"a\",7,\"\",\"b\"],"
            "\"participants\":[{\"role\":\"reviewer\",\"vendor\":\"claude\",\"model\":\"m\","
            "\"stopped\":false},7]}"};
    const char *text = rig_ask(STATUS, "{\"flow_run_id\":\"u1\"}", &reply, 1, false);

    ck_assert_uint_eq(fake_host_count(rig.fake, "GET", "/api/flows/u1"), 1);
    rig_has(text, "definition_id: code-review\ntarget_title: T\nround_count: 2\n");
    rig_has(text, "workspace: fallback (not_allowed)\nwarning: ");
    rig_has(text, "budget enforcement: partial (unmetered roles: a, b)\n");
    rig_has(text, "participant: reviewer, claude, m, idle\n");
    rig_has(text, "not of the vendor that was applied");
    rig_has(text, "| bad\n");
}
END_TEST

static const struct {
    const char *tool, *args;
    struct fake_reply reply;
    const char *says;
} errors[] = {
    {STATUS, "{\"flow_run_id\":\"u1\"}", {.status = 404, .body = "nope"}, "HTTP 404: nope"},
    {STATUS, "{\"flow_run_id\":\"u1\"}", {.body = "[]"}, "not the answer"},
    {STATUS, "{\"flow_run_id\":\"u1\"}", {.body = "{\"status\":1}"}, "cannot be used"},
    {STATUS, "{\"flow_run_id\":\"u1\"}", {.delay_ms = FAKE_NEVER}, "did not answer in time"},
    {CLOSE, "{\"flow_run_id\":\"u1\"}", {.status = 500, .body = "x"}, "was not closed"},
    {CLOSE, "{\"flow_run_id\":\"u1\"}", {.body = "<html>"}, "is unknown"},
    {CLOSE, "{\"flow_run_id\":\"u1\"}", {.delay_ms = FAKE_NEVER}, "is unknown"},
    {CLOSE, "{\"flow_run_id\":\"u1\"}", {.returns = KCAP_E_REFUSED}, "cannot be part"},
    {ROUND,
     "{\"flow_run_id\":\"u1\",\"context\":\"c\"}",
     {.status = 400, .body = "max_rounds (3) reached"},
     "max_rounds (3) reached"},
    {ROUND,
     "{\"flow_run_id\":\"u1\",\"context\":\"c\"}",
     {.body = "{\"flow_run_id\":\"u2\",\"status\":\"clean\"}"},
     "another flow_run_id"},
    {ROUND,
     "{\"flow_run_id\":\"u1\",\"context\":\"c\"}",
     {.outcome = KCAP_HTTP_UNKNOWN, .error = "reset"},
     "may have taken the round"},
};

START_TEST(errors_name_the_run)
{
    const char *text = rig_ask(errors[_i].tool, errors[_i].args, &errors[_i].reply, 1, true);

    ck_assert_msg(strncmp(text, "flow_run_id: u1\nstatus: ", 24) == 0, "%s", text);
    rig_has(text, "\nnext_step: ");
    rig_has(text, errors[_i].says);
}
END_TEST

START_TEST(unknown_id_points_to_the_look_up)
{
    static const struct {
        const char *tool, *args;
    } calls[] = {
        {STATUS, "{\"flow_run_id\":\"u1\"}"},
        {CLOSE, "{\"flow_run_id\":\"u1\"}"},
        {ROUND, "{\"flow_run_id\":\"u1\",\"context\":\"c\"}"},
    };
    const struct fake_reply reply = {.status = 404, .body = CODED("unknown_flow", "?")};

    rig_has(rig_ask(calls[_i].tool, calls[_i].args, &reply, 1, true),
            "next_step: call get_review_flow_status without an id");
}
END_TEST

/* Sooner when it grows: a line end is shown with a mark, a control character as three bytes. */
static const struct {
    const char *unit, *shown;
} long_results[] = {
    {"x", "262144"},    {"\\n", "98304"},       {"\x7f", "131072"},
    {"\\\"", "196608"}, {"\xc3\xa9", "262144"}, {"\xf0\x9f\x98\x80", "262144"},
};

START_TEST(long_result_is_cut_with_a_note)
{
    const char *unit = long_results[_i].unit, *shown = long_results[_i].shown;
    size_t len = strlen(unit), total = 300000 * (unit[0] == '\\' ? 1 : len);
    char *body = malloc(300000 * len + 200), *p = body, says[200];
    struct fake_reply reply = {.body = body};
    const char *text;

    p += sprintf(p, "{\"status\":\"waiting\",\"round_status\":\"findings\","
                    "\"round_result_text\":\"");
    for (size_t i = 0; i < 300000; i++, p += len)
        memcpy(p, unit, len);
    (void)strcpy(p, "\"}");
    text = rig_ask(STATUS, "{\"flow_run_id\":\"u1\"}", &reply, 1, false);
    (void)sprintf(says, "; bytes 0 to %s of %zu):\n", shown, total);
    rig_has(text, says);
    (void)sprintf(says,
                  "[cut here: for the rest call get_review_flow_status with this flow_run_id "
                  "and \"offset\": %s]\n",
                  shown);
    rig_has(text, says);
    free(body);
}
END_TEST

/* The pages, as the answers name them, are the whole text, and none begins in a character. */
START_TEST(pages_are_the_whole_text)
{
    const char *lead = _i == 0 ? "{\"status\":\"waiting\",\"round_status\":\"findings\","
                                 "\"round_result_text\":\"x"
                               : "{\"status\":\"waiting\",\"round_number\":2,\"round_status\":"
                                 "\"unclear\",\"last_result_text\":\"x";
    size_t len = 600000, got = 0, n_pages = 0;
    char *body = malloc(len + 200), *p = body, args[80];
    struct fake_reply reply = {.body = body};
    unsigned long long offset = 0;
    const char *text, *at;

    p += sprintf(p, "%s", lead);
    for (size_t i = 0; i < len; i += 2)
        memcpy(p + i, "\xc3\xa9", 2);
    (void)strcpy(p + len, "\"}");
    do {
        (void)sprintf(args, "{\"flow_run_id\":\"u1\",\"offset\":%llu}", offset);
        text = rig_ask(STATUS, args, &reply, 1, false);
        at = strstr(text, "\n| ");
        ck_assert_ptr_nonnull(at);
        ck_assert_ptr_null(strstr(text, "\xef\xbf\xbd"));
        got += strcspn(at + 3, "\n");
        at = strstr(text, "\"offset\": ");
        offset = at ? strtoull(at + strlen("\"offset\": "), NULL, 10) : 0;
    } while (++n_pages < 9 && offset > 0);
    ck_assert_uint_eq(n_pages, 3);
    ck_assert_uint_eq(got, len + 1);
    free(body);
}
END_TEST

/* Whatever the offset is, no character is torn and nothing lies behind the end. */
START_TEST(odd_offsets)
{
    static const struct {
        const char *args, *says;
    } offsets[] = {
        {"0", "| \xc3\xa9x\n"},
        {"1", "; bytes 2 to 3 of 3):\n| x\n"},
        {"3", "; bytes 3 to 3 of 3):\n"},
        {"9007199254740991", "; bytes 3 to 3 of 3):\n"},
    };
    const struct fake_reply reply = {.body =
                                         "{\"status\":\"waiting\",\"round_status\":"
                                         "\"findings\",\"round_result_text\":\"\xc3\xa9x\"}"};
    char args[80];

    (void)sprintf(args, "{\"flow_run_id\":\"u1\",\"offset\":%s}", offsets[_i].args);
    rig_has(rig_ask(STATUS, args, &reply, 1, false), offsets[_i].says);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, rig_setup, rig_teardown);
    tcase_add_loop_test(tests, polling, 0, N_ROWS(rows));
    tcase_add_test(tests, died_reviewer_means_another_round);
    tcase_add_loop_test(tests, lost_round_says_what_happened, 0, N_ROWS(lost));
    tcase_add_loop_test(tests, participants_run_only_while_they_do, 0, N_ROWS(states));
    tcase_add_test(tests, earlier_result_never_counts);
    tcase_add_loop_test(tests, earlier_result_is_never_the_current_one, 0, N_ROWS(results));
    tcase_add_test(tests, cancelled_round_has_no_result);
    tcase_add_loop_test(tests, wait_returns_when_nothing_is_in_flight, 0, N_ROWS(waits));
    tcase_add_loop_test(tests, requests_keep_their_distance, 0, 2);
    tcase_add_test(tests, progress_has_the_last_sign_of_life);
    tcase_add_test(tests, status_without_wait_asks_once);
    tcase_add_loop_test(tests, errors_name_the_run, 0, N_ROWS(errors));
    tcase_add_loop_test(tests, unknown_id_points_to_the_look_up, 0, 3);
    tcase_add_loop_test(tests, long_result_is_cut_with_a_note, 0, N_ROWS(long_results));
    tcase_add_loop_test(tests, pages_are_the_whole_text, 0, 2);
    tcase_add_loop_test(tests, odd_offsets, 0, 4);
}

int
main(void)
{
    return suite_run("flows-wait", add);
}
