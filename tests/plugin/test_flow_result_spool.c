/* SPDX-License-Identifier: Apache-2.0 */
/* flow-result.so keeping results on disk before they are sent. */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/atomic.h"
#include "lib/json.h"
#include "reviewer-rig.h"

#define ROUTE       "/api/flows/reviewer/result"
#define CODED(code) "{\"error\":\"" code "\",\"message\":\"as the server put it\"}"
#define REFUSED                                                          \
    {                                                                    \
        .outcome = KCAP_HTTP_NOT_SENT, .error = "flow server X: refused" \
    }
#define LOST                                                          \
    {                                                                 \
        .outcome = KCAP_HTTP_UNKNOWN, .error = "flow server X: reset" \
    }

static char path[256];

static void
submit(const char *token, struct fake_call *call)
{
    char args[160];

    (void)snprintf(args, sizeof args,
                   "{\"round_token\":\"%s\",\"kind\":\"findings\",\"findings\":\"f %s\"}",
                   token, token);
    reviewer_call("submit_review_result", args, call);
}

static void
submit_and_forget(const char *token, char outcome)
{
    struct fake_call call = {.window_ms = 0};

    submit(token, &call);
    reviewer_check_outcome(token, outcome, &call);
    fake_call_fini(&call);
}

/* How many results are kept; path is then one of them. */
static size_t
kept(void)
{
    char dir_path[64];
    struct dirent *entry;
    size_t n = 0;
    DIR *dir;

    (void)snprintf(dir_path, sizeof dir_path, "%s/spool", reviewer_state);
    dir = opendir(dir_path);
    while (dir && (entry = readdir(dir)) != NULL) {
        if (!strstr(entry->d_name, ".json"))
            continue;
        n++;
        (void)snprintf(path, sizeof path, "%s/%.150s", dir_path, entry->d_name);
    }
    if (dir)
        (void)closedir(dir);
    return n;
}

static cJSON *
read_kept(void)
{
    struct buf text = BUF_INIT(100000);
    cJSON *json;

    ck_assert_int_eq(atomic_read(path, &text), 0);
    json = json_parse(buf_str(&text), text.len, NULL);
    ck_assert_ptr_nonnull(json);
    buf_fini(&text);
    return json;
}

static void
script(const struct fake_reply *replies, size_t n)
{
    fake_host_script(reviewer_fake, replies, n);
}

/* What is kept after an outcome, and how an entry stands. */
static const struct {
    const char *name;
    struct fake_reply replies[2];
    char outcome;
    size_t kept;
    bool may_be_there;
} outcomes[] = {
    {"yes", {{.body = "{}"}}, 'D', 0, false},
    {"never: stale", {{.status = 409, .body = CODED("stale_round_token")}}, 'N', 0, false},
    {"never: 400", {{.status = 400, .body = "no"}}, 'N', 0, false},
    {"never: 413", {{.status = 413}}, 'N', 0, false},
    {"maybe later: 401", {{.status = 401}}, 'N', 1, false},
    {"maybe later: 404", {{.status = 404}}, 'N', 1, false},
    {"maybe later: 429", {{.status = 429}}, 'N', 1, false},
    {"maybe later: no round", {{.status = 409, .body = CODED("no_open_round")}}, 'N', 1, false},
    {"maybe later: refused", {REFUSED}, 'N', 1, false},
    {"unknown: lost", {LOST}, 'U', 1, true},
    {"unknown: 502", {{.status = 502}}, 'U', 1, true},
    {"unknown, probably there",
     {{.outcome = KCAP_HTTP_UNKNOWN, .error = "X: reset", .times = 1},
      {.status = 409, .body = CODED("stale_round_token")}},
     'U',
     0,
     false},
};

START_TEST(what_is_kept)
{
    struct fake_call call = {.window_ms = 0};
    struct stat st;
    cJSON *json;

    script(outcomes[_i].replies, 2);
    submit("r1", &call);
    reviewer_check_outcome(outcomes[_i].name, outcomes[_i].outcome, &call);
    fake_call_fini(&call);
    ck_assert_msg(kept() == outcomes[_i].kept, "%s: %zu", outcomes[_i].name, kept());
    if (outcomes[_i].kept == 0)
        return;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    ck_assert_ptr_null(strstr(path, "agent-1"));
    json = read_kept();
    ck_assert_msg(json_bool(json, "may_be_there", !outcomes[_i].may_be_there) ==
                      outcomes[_i].may_be_there,
                  "%s", outcomes[_i].name);
    cJSON_Delete(json);
}
END_TEST

/* Killed between the tool call and its answer: the next process delivers it, before anything
 * else and without being asked. */
START_TEST(a_killed_process_loses_nothing)
{
    struct fake_call call = {.shutdown_at_wait = 1};
    const struct fake_request *requests;
    char first[256];
    size_t n;

    script(&(struct fake_reply){.delay_ms = FAKE_NEVER}, 1);
    submit("r1", &call);
    ck_assert(!call.has_result);
    fake_call_fini(&call);
    (void)snprintf(first, sizeof first, "%s", fake_host_requests(reviewer_fake, &n)[0].body);
    ck_assert_uint_eq(n, 1);
    ck_assert_uint_eq(kept(), 1);
    reviewer_stop();

    reviewer_start();
    script(&(struct fake_reply){.body = "{}"}, 1);
    if (_i == 0) {
        fake_host_advance_ms(reviewer_fake, 300); /* by itself */
    } else {
        submit_and_forget("r2", 'D'); /* or with the first call, before it */
    }
    requests = fake_host_requests(reviewer_fake, &n);
    ck_assert_uint_eq(n, _i == 0 ? 1 : 2);
    ck_assert_str_eq(requests[0].body, first);
    ck_assert_uint_eq(kept(), 0);
    ck_assert_ptr_nonnull(strstr(fake_host_log(reviewer_fake), "delivered now"));
}
END_TEST

/* The reviewer repeats itself after the restart: nothing false is said, whatever the server
 * says. */
START_TEST(repeated_after_a_restart)
{
    struct fake_call call = {.window_ms = 0};

    script(&(struct fake_reply)LOST, 1);
    submit_and_forget("r1", 'U');
    reviewer_stop();
    reviewer_start();
    script((const struct fake_reply[]){{.body = "{}", .times = 1},
                                       {.status = 409, .body = CODED("no_open_round")}},
           2);
    submit("r1", &call);
    reviewer_check_outcome("repeated", 'U', &call);
    ck_assert_ptr_nonnull(strstr(call.text, "probably recorded"));
    fake_call_fini(&call);
    ck_assert_uint_eq(kept(), 0);
}
END_TEST

START_TEST(an_unwanted_one_is_dropped)
{
    script(&(struct fake_reply)REFUSED, 1);
    submit_and_forget("r1", 'N');
    reviewer_stop();
    reviewer_start();
    script(&(struct fake_reply){.status = 409, .body = CODED("stale_round_token")}, 1);
    fake_host_advance_ms(reviewer_fake, 300);
    ck_assert_uint_eq(kept(), 0);
    ck_assert_ptr_nonnull(strstr(fake_host_log(reviewer_fake), "not wanted any more"));
}
END_TEST

/* While the server is away it is tried once a call, and does not keep the new one waiting. */
START_TEST(a_later_round_comes_with_the_earlier_one)
{
    const struct fake_request *requests;
    size_t n, before;

    script(&(struct fake_reply)REFUSED, 1);
    submit_and_forget("r1", 'N');
    (void)fake_host_requests(reviewer_fake, &before);
    script(
        (const struct fake_reply[]){
            {.status = 409, .body = CODED("stale_round_token"), .times = 1}, {.body = "{}"}},
        2);
    submit_and_forget("r2", 'D');
    requests = fake_host_requests(reviewer_fake, &n);
    ck_assert_uint_eq(n - before, 2);
    ck_assert_ptr_nonnull(strstr(requests[before].body, "\"r1\""));
    ck_assert_ptr_nonnull(strstr(requests[before + 1].body, "\"r2\""));
    ck_assert_uint_eq(kept(), 0);
}
END_TEST

START_TEST(the_newest_text_of_a_round_counts)
{
    struct fake_call call = {.window_ms = 0};
    const struct fake_request *requests;
    size_t n;

    script(&(struct fake_reply)REFUSED, 1);
    submit_and_forget("r1", 'N');
    reviewer_call("submit_review_result", "{\"round_token\":\"r1\",\"kind\":\"clean\"}", &call);
    fake_call_fini(&call);
    ck_assert_uint_eq(kept(), 1);
    reviewer_stop();
    reviewer_start();
    script(&(struct fake_reply){.body = "{}"}, 1);
    fake_host_advance_ms(reviewer_fake, 300);
    requests = fake_host_requests(reviewer_fake, &n);
    ck_assert_uint_eq(n, 1);
    ck_assert_ptr_nonnull(strstr(requests[0].body, "clean"));
}
END_TEST

/* It goes where it was meant to go: not to another server, not for another agent. */
START_TEST(it_stays_with_its_server)
{
    size_t n;

    script(&(struct fake_reply)REFUSED, 1);
    submit_and_forget("r1", 'N');
    reviewer_stop();
    reviewer_start();
    fake_host_set_server(reviewer_fake, KCAP_HTTP_SERVER_CONFIGURED, "http://other", NULL);
    script(&(struct fake_reply){.body = "{}"}, 1);
    fake_host_advance_ms(reviewer_fake, 60000);
    (void)fake_host_requests(reviewer_fake, &n);
    ck_assert_uint_eq(n, 0);
    ck_assert_uint_eq(kept(), 1);
}
END_TEST

static const char *const damages[] = {
    "",
    "{",
    "[]",
    "{\"version\":1}",
    "{\"version\":2,\"agent_id\":\"agent-1\"}",
    ("{\"version\":1,\"may_be_there\":true,\"agent_id\":\"someone\",\"round_token\":\"r\","
     "\"server\":\"http://127.0.0.1:1\",\"source\":\"KCAP_URL\",\"body\":\"{}\"}"),
};

START_TEST(a_damaged_one_is_named_and_removed)
{
    FILE *file;
    size_t n;

    script(&(struct fake_reply)REFUSED, 1);
    submit_and_forget("r1", 'N');
    ck_assert_uint_eq(kept(), 1);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs(damages[_i], file);
    ck_assert_int_eq(fclose(file), 0);
    reviewer_stop();
    reviewer_start();
    script(&(struct fake_reply){.body = "{}"}, 1);
    fake_host_advance_ms(reviewer_fake, 300);
    (void)fake_host_requests(reviewer_fake, &n);
    ck_assert_uint_eq(n, 0);
    ck_assert_uint_eq(kept(), 0);
    ck_assert_ptr_nonnull(strstr(fake_host_log(reviewer_fake), "is damaged"));
    submit_and_forget("r1", 'D');
}
END_TEST

/* Damaged, and the round is over: it may have been this result that ended it. */
START_TEST(after_a_damaged_one_nothing_is_certain)
{
    struct fake_call call = {.window_ms = 0};

    script(&(struct fake_reply)LOST, 1);
    submit_and_forget("r1", 'U');
    ck_assert_uint_eq(kept(), 1);
    ck_assert_int_eq(truncate(path, 10), 0);
    reviewer_stop();
    reviewer_start();
    script(&(struct fake_reply){.status = 409, .body = CODED("stale_round_token")}, 1);
    submit("r1", &call);
    reviewer_check_outcome("damaged", 'U', &call);
    fake_call_fini(&call);
}
END_TEST

/* A server that hangs while older results are tried leaves time for the new one. */
START_TEST(the_older_ones_leave_time_for_the_new_one)
{
    struct fake_call call = {.window_ms = 9000};

    script(&(struct fake_reply)REFUSED, 1);
    submit_and_forget("r1", 'N');
    script((const struct fake_reply[]){{.delay_ms = FAKE_NEVER, .times = 1}, {.body = "{}"}},
           2);
    submit("r2", &call);
    reviewer_check_outcome("late", 'D', &call);
    ck_assert_int_eq(call.took_ms, 3000);
    fake_call_fini(&call);
    ck_assert_uint_eq(kept(), 1);
}
END_TEST

/* Killed while an older result was tried again: that it may be there now is on disk. */
START_TEST(a_second_try_is_noted_before_it_is_made)
{
    struct fake_call call = {.window_ms = 0};
    cJSON *json;

    script(&(struct fake_reply)REFUSED, 1);
    submit_and_forget("r1", 'N');
    reviewer_stop();
    reviewer_start();
    script(&(struct fake_reply){.delay_ms = FAKE_NEVER}, 1);
    fake_host_advance_ms(reviewer_fake, 1000);
    ck_assert_uint_eq(kept(), 1);
    json = read_kept();
    ck_assert(json_bool(json, "may_be_there", false));
    cJSON_Delete(json);
    reviewer_stop();
    reviewer_start();
    script(&(struct fake_reply){.status = 409, .body = CODED("stale_round_token")}, 1);
    submit("r1", &call);
    reviewer_check_outcome("second try", 'U', &call);
    fake_call_fini(&call);
}
END_TEST

/* Another process of the same reviewer is sending it: hands off. */
START_TEST(one_that_is_held_is_let_be)
{
    size_t n;
    int fd;

    script(&(struct fake_reply)REFUSED, 1);
    submit_and_forget("r1", 'N');
    ck_assert_uint_eq(kept(), 1);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
    reviewer_stop();
    reviewer_start();
    script(&(struct fake_reply){.body = "{}"}, 1);
    fake_host_advance_ms(reviewer_fake, 300);
    (void)fake_host_requests(reviewer_fake, &n);
    ck_assert_uint_eq(n, 0);
    (void)close(fd);
}
END_TEST

static const char *const bad_states[] = {"relative", "/dev/null/x", "/proc/kcap"};

START_TEST(without_a_place_it_goes_on_and_says_so_once)
{
    const char *line = "cannot be kept on disk", *first;

    reviewer_stop();
    reviewer_fake = fake_host_new();
    fake_host_setenv(reviewer_fake, "KCAP_FLOW_AGENT_ID", "agent-1");
    fake_host_setenv(reviewer_fake, "KCAP_STATE_DIR", bad_states[_i]);
    ck_assert_int_eq(reviewer_plugin->init(fake_host_table(reviewer_fake), &reviewer_ctx), 0);
    script(&(struct fake_reply){.body = "{}"}, 1);
    submit_and_forget("r1", 'D');
    submit_and_forget("r2", 'D');
    first = strstr(fake_host_log(reviewer_fake), line);
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_null(strstr(first + 1, line));
}
END_TEST

static void
make_stranger(int i, time_t mtime)
{
    char name[256];
    struct timespec times[2] = {{.tv_sec = mtime}, {.tv_sec = mtime}};
    FILE *file;

    (void)snprintf(name, sizeof name, "%s/spool/%032x-%032x.json", reviewer_state, i, i);
    file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, name, times, 0), 0);
}

/* Others' results go when there are too many, the oldest first; this agent's own stay. */
START_TEST(it_stays_small)
{
    char oldest[256];

    script(&(struct fake_reply)REFUSED, 1);
    submit_and_forget("r1", 'N');
    for (int i = 0; i < 63; i++)
        make_stranger(i, 1600000000 + i); /* three years before the fake host's time */
    ck_assert_uint_eq(kept(), 64);
    submit_and_forget("r2", 'N'); /* a month is over for all of them */
    ck_assert_uint_eq(kept(), 2);
    for (int i = 0; i < 62; i++)
        make_stranger(i, 1700000000 + 5000000 + i); /* from the future: a clock was set back */
    ck_assert_uint_eq(kept(), 64);
    submit_and_forget("r3", 'N');
    ck_assert_uint_eq(kept(), 64);
    (void)snprintf(oldest, sizeof oldest, "%s/spool/%032x-%032x.json", reviewer_state, 0, 0);
    ck_assert_int_ne(access(oldest, F_OK), 0);
    ck_assert_ptr_nonnull(strstr(fake_host_log(reviewer_fake), "too many are kept"));
    ck_assert_ptr_nonnull(strstr(fake_host_log(reviewer_fake), "a month old"));
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, reviewer_setup, reviewer_teardown);
    tcase_add_loop_test(tests, what_is_kept, 0, N_ROWS(outcomes));
    tcase_add_loop_test(tests, a_killed_process_loses_nothing, 0, 2);
    tcase_add_test(tests, repeated_after_a_restart);
    tcase_add_test(tests, an_unwanted_one_is_dropped);
    tcase_add_test(tests, a_later_round_comes_with_the_earlier_one);
    tcase_add_test(tests, the_newest_text_of_a_round_counts);
    tcase_add_test(tests, it_stays_with_its_server);
    tcase_add_loop_test(tests, a_damaged_one_is_named_and_removed, 0, N_ROWS(damages));
    tcase_add_test(tests, after_a_damaged_one_nothing_is_certain);
    tcase_add_test(tests, the_older_ones_leave_time_for_the_new_one);
    tcase_add_test(tests, a_second_try_is_noted_before_it_is_made);
    tcase_add_test(tests, one_that_is_held_is_let_be);
    tcase_add_loop_test(tests, without_a_place_it_goes_on_and_says_so_once, 0,
                        N_ROWS(bad_states));
    tcase_add_test(tests, it_stays_small);
}

int
main(void)
{
    return suite_run("flow-result-spool", add);
}
