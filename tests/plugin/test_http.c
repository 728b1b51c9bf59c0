/* SPDX-License-Identifier: Apache-2.0 */
/* http.so as shipped, against a loopback server that misbehaves; time is real here. */
#include "config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "http-rig.h"
#include "lib/json.h"
#include "tests/unit/files.h"
#include "tests/unit/suite.h"

static const char scenario[] =
    "{\"routes\":["
    "{\"path\":\"/t/ok\",\"responses\":[{\"json\":{\"ok\":1},\"type\":"
    "\"Application/JSON; charset=utf-8\"}]},"
    "{\"path\":\"/base/t/ok\",\"responses\":[{\"json\":{\"base\":1}}]},"
    "{\"path\":\"/t/hang\",\"responses\":[{\"fault\":\"hang\"}]},"
    "{\"path\":\"/t/close\",\"responses\":[{\"fault\":\"close\"}]},"
    "{\"path\":\"/t/reset\",\"responses\":[{\"fault\":\"reset\"}]},"
    "{\"path\":\"/t/"
    "truncate\",\"responses\":[{\"fault\":\"truncate\",\"text\":\"0123456789\"}]},"
    "{\"path\":\"/t/stall\",\"responses\":[{\"body_delay_ms\":60000,\"text\":\"x\"}]},"
    "{\"path\":\"/t/redirect\",\"responses\":[{\"status\":302,\"headers\":{\"Location\":\"/t/"
    "ok\"}"
    "}]},"
    "{\"path\":\"/t/307\",\"responses\":[{\"status\":307,\"headers\":{\"Location\":\"/t/"
    "ok\"}}]},"
    "{\"path\":\"/t/401\",\"responses\":[{\"status\":401,\"text\":\"no\"}]},"
    "{\"path\":\"/t/204\",\"responses\":[{\"status\":204}]},"
    "{\"path\":\"/t/"
    "busy\",\"responses\":[{\"status\":429,\"headers\":{\"Retry-After\":\"7\"}}]},"
    "{\"path\":\"/t/date\",\"responses\":[{\"status\":503,\"headers\":{\"Retry-After\":"
    "\"Wed, 21 Oct 2099 07:28:00 GMT\"}}]},"
    "{\"path\":\"/t/drip\",\"responses\":[{\"text\":\"0123456789\",\"drip\":{\"bytes\":1,"
    "\"every_ms\":20}}]},"
    "{\"path\":\"/t/chunked\",\"responses\":[{\"text\":\"0123456789\",\"chunked\":true}]},"
    "{\"path\":\"/t/huge\",\"responses\":[{\"fill\":{\"count\":9000000}}]},"
    "{\"path\":\"/t/kept\",\"responses\":[{\"json\":{}},{\"fault\":\"close\"}]},"
    "{\"path\":\"/t/hung-up\",\"responses\":[{\"json\":{},\"hang_up\":true}]},"
    "{\"path\":\"/cap/flow-result\",\"responses\":[{\"json\":{\"cap\":1}}]}"
    "]}";

static char dir[32], url[64], socket_url[64];
static pid_t mocks[2];

/* ---- the server ---- */

static void
start_mock(int i, const char *socket_path, char *line, size_t size)
{
    char path[64];
    const char *argv[] = {"python3",
                          KCAP_SRCDIR "/tests/support/mock_flow_server.py",
                          "--scenario",
                          path,
                          "--max-seconds",
                          "120",
                          socket_path ? "--unix" : NULL,
                          socket_path,
                          NULL};
    posix_spawn_file_actions_t actions;
    int pipe_fds[2];
    size_t len = 0;

    (void)snprintf(path, sizeof path, "%s/scenario.json", dir);
    files_put(dir, "scenario.json", scenario);
    ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
    ck_assert_int_eq(posix_spawn_file_actions_init(&actions), 0);
    ck_assert_int_eq(posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 1), 0);
    ck_assert_int_eq(posix_spawnp(&mocks[i], argv[0], &actions, NULL,
                                  (char *const *)(uintptr_t)argv, environ),
                     0);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(pipe_fds[1]);
    while (len + 1 < size && read(pipe_fds[0], line + len, 1) == 1 && line[len] != '\n')
        len++;
    line[len] = '\0';
    (void)close(pipe_fds[0]);
}

static void
stop_mock(int i)
{
    (void)kill(mocks[i], SIGTERM);
    (void)waitpid(mocks[i], NULL, 0);
}

static void
start_server(void)
{
    char line[128], socket_path[48];

    (void)signal(SIGPIPE, SIG_IGN); /* as the host does */
    (void)strcpy(dir, "/tmp/kcap-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    start_mock(0, NULL, line, sizeof line);
    ck_assert_int_eq(strncmp(line, "PORT ", 5), 0);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%.8s", line + 5);
    (void)snprintf(socket_path, sizeof socket_path, "%s/mock.sock", dir);
    (void)snprintf(socket_url, sizeof socket_url, "unix://%s", socket_path);
    start_mock(1, socket_path, line, sizeof line);
    ck_assert_int_eq(strncmp(line, "UNIX ", 5), 0);
}

static void
stop_server(void)
{
    char path[64];

    stop_mock(0);
    stop_mock(1);
    (void)snprintf(path, sizeof path, "%s/scenario.json", dir);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/mock.sock", dir);
    (void)unlink(path);
    (void)rmdir(dir);
}

/* The server's records of a path, newest last; free it. */
static cJSON *
records(const struct kcap_http *http, const char *path)
{
    struct exchange x = {.http = http, .method = "GET", .path = "/__mock/requests"};
    cJSON *all, *one, *next;

    rig_ask(&x);
    ck_assert_int_eq(x.returned, 0);
    ck_assert_int_eq(x.response->outcome, KCAP_HTTP_ANSWER);
    all = json_parse(x.response->body, x.response->body_len, NULL);
    ck_assert_ptr_nonnull(all);
    for (one = all->child; one; one = next) {
        next = one->next;
        if (strcmp(json_str(one, "path"), path) != 0)
            cJSON_Delete(cJSON_DetachItemViaPointer(all, one));
    }
    rig_done(&x);
    return all;
}

/* ---- answers and faults ---- */

static const struct {
    const char *method, *path;
    int64_t limit_ms;
    uint64_t max_body_len;
    int32_t outcome, status;
    const char *says; /* in body or error */
    int64_t retry_after_ms, least_ms, most_ms;
} rows[] = {
    {"GET", "/t/ok", 0, 0, KCAP_HTTP_ANSWER, 200, "{\"ok\": 1}", -1, 0, 5000},
    {"POST", "/t/ok", 0, 0, KCAP_HTTP_ANSWER, 200, "{\"ok\": 1}", -1, 0, 5000},
    {"GET", "/t/none", 0, 0, KCAP_HTTP_ANSWER, 404, "", -1, 0, 5000},
    {"GET", "/t/401", 0, 0, KCAP_HTTP_ANSWER, 401, "no", -1, 0, 5000},
    {"POST", "/t/204", 0, 0, KCAP_HTTP_ANSWER, 204, "", -1, 0, 5000},
    {"POST", "/t/redirect", 0, 0, KCAP_HTTP_ANSWER, 302, "", -1, 0, 5000},
    {"POST", "/t/307", 0, 0, KCAP_HTTP_ANSWER, 307, "", -1, 0, 5000},
    {"GET", "/t/busy", 0, 0, KCAP_HTTP_ANSWER, 429, "", 7000, 0, 5000},
    {"GET", "/t/date", 0, 0, KCAP_HTTP_ANSWER, 503, "", -1, 0, 5000},
    {"GET", "/t/drip", 0, 0, KCAP_HTTP_ANSWER, 200, "0123456789", -1, 150, 5000},
    {"GET", "/t/chunked", 0, 0, KCAP_HTTP_ANSWER, 200, "0123456789", -1, 0, 5000},
    {"GET", "/t/huge", 0, 0, KCAP_HTTP_UNKNOWN, 0, "longer than allowed", -1, 0, 5000},
    {"GET", "/t/huge", 0, 10000000, KCAP_HTTP_ANSWER, 200, "xxxx", -1, 0, 5000},
    {"GET", "/t/chunked", 0, 9, KCAP_HTTP_UNKNOWN, 0, "longer than allowed", -1, 0, 5000},
    {"GET", "/t/chunked", 0, 10, KCAP_HTTP_ANSWER, 200, "0123456789", -1, 0, 5000},
    {"POST", "/t/hang", 200, 0, KCAP_HTTP_UNKNOWN, 0, "did not answer in time", -1, 190, 5000},
    {"GET", "/t/stall", 200, 0, KCAP_HTTP_UNKNOWN, 0, "did not answer in time", -1, 190, 5000},
    {"POST", "/t/close", 0, 0, KCAP_HTTP_UNKNOWN, 0, "without an answer", -1, 0, 5000},
    {"POST", "/t/reset", 0, 0, KCAP_HTTP_UNKNOWN, 0, "log", -1, 0, 5000},
    {"GET", "/t/truncate", 0, 0, KCAP_HTTP_UNKNOWN, 0, "cut short", -1, 0, 5000},
};

START_TEST(answers_and_faults)
{
    struct exchange x = {.http = rig_open(KCAP_CLASS_DRIVER, _i % 2 ? url : socket_url),
                         .method = rows[_i / 2].method,
                         .path = rows[_i / 2].path,
                         .body = rows[_i / 2].method[0] == 'P' ? "{\"a\":1}" : NULL,
                         .limit_ms = rows[_i / 2].limit_ms,
                         .max_body_len = rows[_i / 2].max_body_len};
    const char *text;
    cJSON *seen;
    int before;

    seen = records(x.http, x.path);
    before = cJSON_GetArraySize(seen);
    cJSON_Delete(seen);
    rig_ask(&x);
    ck_assert_int_eq(x.returned, 0);
    ck_assert_msg(x.response->outcome == rows[_i / 2].outcome, "%s: %d %s", x.path,
                  x.response->outcome, x.response->error ? x.response->error : "");
    ck_assert_int_eq(x.response->status, rows[_i / 2].status);
    ck_assert_int_eq(x.response->retry_after_ms, rows[_i / 2].retry_after_ms);
    /* a 401 is an answer that is explained */
    ck_assert((x.response->error == NULL) ==
              (rows[_i / 2].outcome == KCAP_HTTP_ANSWER && rows[_i / 2].status != 401));
    text = x.response->error ? x.response->error : x.response->body;
    ck_assert_msg(strstr(text, rows[_i / 2].says) != NULL, "%s: %.200s", x.path, text);
    ck_assert_msg(x.call.took_ms >= rows[_i / 2].least_ms &&
                      x.call.took_ms <= rows[_i / 2].most_ms,
                  "%s: %lld ms", x.path, (long long)x.call.took_ms);
    if (x.response->outcome != KCAP_HTTP_ANSWER)
        ck_assert_ptr_nonnull(strstr(x.response->error, _i % 2 ? url : socket_url));
    rig_done(&x);
    seen = records(x.http, x.path); /* never sent twice */
    ck_assert_int_eq(cJSON_GetArraySize(seen), before + 1);
    cJSON_Delete(seen);
}
END_TEST

START_TEST(headers_are_plain)
{
    static char body[2000001];
    struct exchange x = {.http = rig_open(KCAP_CLASS_DRIVER, url),
                         .method = "POST",
                         .path = "/t/ok",
                         .body = body};
    const cJSON *headers;
    cJSON *seen;

    memset(body, 'x', sizeof body - 1);
    rig_ask(&x);
    ck_assert_int_eq(x.response->status, 200);
    ck_assert_str_eq(x.response->content_type, "application/json");
    ck_assert_int_lt((int)x.call.took_ms, 900); /* no pause for "100 Continue" */
    rig_done(&x);
    seen = records(x.http, "/t/ok");
    headers = json_get(cJSON_GetArrayItem(seen, cJSON_GetArraySize(seen) - 1), "headers");
    ck_assert_str_eq(json_str(headers, "accept"), "application/json");
    ck_assert_str_eq(json_str(headers, "content-type"), "application/json");
    ck_assert_str_eq(json_str(headers, "content-length"), "2000000");
    ck_assert_str_eq(json_str(headers, "user-agent"), PACKAGE_NAME "/" PACKAGE_VERSION);
    ck_assert_str_eq(json_str(headers, "x-kcap-cli-version"), PACKAGE_VERSION);
    ck_assert_ptr_null(json_get(headers, "expect"));
    ck_assert_ptr_null(json_get(headers, "accept-encoding"));
    ck_assert_ptr_null(json_get(headers, "transfer-encoding"));
    ck_assert_ptr_null(json_get(headers, "authorization"));
    cJSON_Delete(seen);
}
END_TEST

/* A kept connection that dies under a POST makes libcurl send it again; ours are fresh. */
START_TEST(post_is_seen_once)
{
    static const char *const paths[] = {"/t/kept", "/t/hung-up"};
    const struct kcap_http *http = rig_open(KCAP_CLASS_DRIVER, url);
    cJSON *seen;

    for (int i = 0; i < 2; i++) {
        struct exchange x = {.http = http, .method = "POST", .path = paths[_i], .body = "{}"};
        rig_ask(&x);
        ck_assert_int_eq(x.returned, 0);
        ck_assert_int_eq(x.response->outcome,
                         _i == 0 && i == 1 ? KCAP_HTTP_UNKNOWN : KCAP_HTTP_ANSWER);
        rig_done(&x);
    }
    seen = records(http, paths[_i]);
    ck_assert_int_eq(cJSON_GetArraySize(seen), 2);
    cJSON_Delete(seen);
}
END_TEST

/* A busy machine may be late once, not three times. */
START_TEST(cancel_and_window_end_it_at_once)
{
    const struct kcap_http *http = rig_open(KCAP_CLASS_DRIVER, url);
    int64_t took_ms = INT64_MAX;
    cJSON *seen;

    for (int tries = 0; tries < 3 && took_ms >= 150; tries++) {
        struct exchange x = {.http = http, .method = "POST", .path = "/t/hang"};
        if (_i == 0)
            x.call.cancel_after_ms = 100;
        else
            x.call.window_ms = 100;
        rig_ask(&x);
        ck_assert_int_eq(x.returned, _i == 0 ? KCAP_WAIT_CANCELLED : KCAP_WAIT_DEADLINE);
        ck_assert_ptr_null(x.response);
        took_ms = x.call.took_ms;
        ck_assert_int_ge(took_ms, 100);
        rig_done(&x);
    }
    ck_assert_int_lt(took_ms, 150);
    seen = records(http, "/t/hang"); /* the connection is gone, too */
    ck_assert_str_eq(
        json_str(cJSON_GetArrayItem(seen, cJSON_GetArraySize(seen) - 1), "outcome"),
        "client_gone");
    cJSON_Delete(seen);
}
END_TEST

/* ---- nothing sent ---- */

/* A port of ours on which nobody listens. */
static int
closed_port(char *text, size_t size, const char *scheme)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    (void)snprintf(text, size, "%s://127.0.0.1:%d", scheme, ntohs(address.sin_port));
    return fd;
}

START_TEST(not_sent_is_certain)
{
    char server[80], other[80];
    int fd = closed_port(server, sizeof server, "http");
    struct exchange x = {.method = "POST", .path = "/t/ok", .body = "{}"};
    const char *says = "no connection could be made";

    if (_i == 1) { /* a socket that is not there */
        (void)snprintf(server, sizeof server, "unix://%.30s/none.sock", dir);
    } else if (_i == 2) { /* TLS to one who does not speak it */
        (void)snprintf(server, sizeof server, "https%s", url + 4);
        says = "TLS";
    } else if (_i == 3) { /* a dead proxy */
        (void)snprintf(other, sizeof other, "%s", server);
        ck_assert_int_eq(setenv("http_proxy", other, 1), 0);
        (void)snprintf(server, sizeof server, "http://192.0.2.1");
    }
    x.http = rig_open(KCAP_CLASS_DRIVER, server);
    rig_ask(&x);
    ck_assert_int_eq(x.returned, 0);
    ck_assert_msg(x.response->outcome == KCAP_HTTP_NOT_SENT, "%s", x.response->error);
    ck_assert_msg(strstr(x.response->error, says) != NULL, "%s", x.response->error);
    ck_assert_ptr_nonnull(strstr(x.response->error, "KCAP_URL"));
    rig_done(&x);
    (void)close(fd);
}
END_TEST

/* One who takes connections and says nothing. */
START_TEST(silent_server_got_it_or_not)
{
    char server[64];
    int fd = closed_port(server, sizeof server, _i == 0 ? "http" : "https");
    struct exchange x = {.method = "POST", .path = "/t/ok", .body = "{}", .limit_ms = 200};

    ck_assert_int_eq(listen(fd, 1), 0);
    x.http = rig_open(KCAP_CLASS_DRIVER, server);
    rig_ask(&x);
    ck_assert_int_eq(x.returned, 0);
    ck_assert_msg(x.response->outcome == (_i == 0 ? KCAP_HTTP_UNKNOWN : KCAP_HTTP_NOT_SENT),
                  "%s", x.response->error);
    ck_assert_ptr_nonnull(strstr(x.response->error, "in time"));
    rig_done(&x);
    (void)close(fd);
}
END_TEST

START_TEST(loopback_never_uses_a_proxy)
{
    char proxy[64];
    int fd = closed_port(proxy, sizeof proxy, "http");
    struct exchange x = {.method = "GET", .path = "/t/ok"};

    ck_assert_int_eq(setenv("http_proxy", proxy, 1), 0);
    x.http = rig_open(KCAP_CLASS_DRIVER, _i == 0 ? url : socket_url);
    rig_ask(&x);
    ck_assert_int_eq(x.response->outcome, KCAP_HTTP_ANSWER);
    rig_done(&x);
    (void)close(fd);
}
END_TEST

START_TEST(base_path_is_kept)
{
    char base[80];
    struct exchange x = {.method = "GET", .path = "/t/ok"};

    (void)snprintf(base, sizeof base, "%s/base/", url);
    x.http = rig_open(KCAP_CLASS_DRIVER, base);
    rig_ask(&x);
    ck_assert_str_eq(x.response->body, "{\"base\": 1}");
    rig_done(&x);
}
END_TEST

START_TEST(capability_has_its_own_paths)
{
    char capability[80];
    const struct kcap_http *driver = rig_open(KCAP_CLASS_DRIVER, url);
    struct exchange x = {.method = "POST", .path = "/api/flows/reviewer/result", .body = "{}"};
    cJSON *seen;

    (void)snprintf(capability, sizeof capability, "%s/cap/", url);
    fake_host_setenv(rig_fake, "KCAP_FLOW_CAPABILITY_URL", capability);
    x.http = rig_open(KCAP_CLASS_REVIEWER, NULL);
    rig_ask(&x);
    ck_assert_str_eq(x.response->body, "{\"cap\": 1}");
    rig_done(&x);
    seen = records(driver, "/cap/flow-result");
    ck_assert_ptr_null(
        json_get(json_get(cJSON_GetArrayItem(seen, 0), "headers"), "x-kcap-cli-version"));
    cJSON_Delete(seen);
}
END_TEST

/* ---- many at once ---- */

static void *
ask_some(void *arg)
{
    for (int i = 0; i < 5; i++) {
        struct exchange x = {.http = arg, .method = i % 2 ? "POST" : "GET", .path = "/t/drip"};
        rig_ask(&x);
        if (x.returned != 0 || x.response->status != 200)
            return arg;
        rig_done(&x);
    }
    return NULL;
}

START_TEST(workers_do_not_disturb_each_other)
{
    const struct kcap_http *http = rig_open(KCAP_CLASS_DRIVER, url);
    pthread_t threads[8];
    void *failed;

    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_some, (void *)(uintptr_t)http),
                         0);
    for (int i = 0; i < 8; i++) {
        ck_assert_int_eq(pthread_join(threads[i], &failed), 0);
        ck_assert_ptr_null(failed);
    }
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_unchecked_fixture(tests, start_server, stop_server);
    tcase_add_checked_fixture(tests, rig_setup, rig_teardown);
    tcase_add_loop_test(tests, answers_and_faults, 0, 2 * N_ROWS(rows));
    tcase_add_test(tests, headers_are_plain);
    tcase_add_loop_test(tests, post_is_seen_once, 0, 2);
    tcase_add_loop_test(tests, cancel_and_window_end_it_at_once, 0, 2);
    tcase_add_loop_test(tests, not_sent_is_certain, 0, 4);
    tcase_add_loop_test(tests, silent_server_got_it_or_not, 0, 2);
    tcase_add_loop_test(tests, loopback_never_uses_a_proxy, 0, 2);
    tcase_add_test(tests, base_path_is_kept);
    tcase_add_test(tests, capability_has_its_own_paths);
    tcase_add_test(tests, workers_do_not_disturb_each_other);
}

int
main(void)
{
    return suite_run("http", add);
}
