/* SPDX-License-Identifier: Apache-2.0 */
/* http.so waiting for the lock of a login that another process never lets go. Time is fake. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/service.h"
#include "tests/support/fake-host.h"
#include "tests/unit/files.h"
#include "tests/unit/suite.h"

#define SERVER "http://127.0.0.1:1"

static struct fake_host *fake;
static const struct kcap_http *http;
static const struct kcap_http *opened[4]; /* it lives as long as the process */
static char dir[32];
static int lock;

static void
setup(void)
{
    const struct kcap_service *service;
    char path[96];
    int n = 0;

    (void)strcpy(dir, "/tmp/kcap-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    files_make_dir(dir, "cache");
    files_make_dir(dir, "tokens");
    /* the fake host's time is November 2023 */
    files_put(dir, "cache/auth-providers.json",
              "{\"" SERVER "\":{\"provider\":\"GitHubApp\",\"fetched_at\":1700000000}}");
    files_put(dir, "tokens/default.json",
              "{\"access_token\":\"old\",\"provider\":\"GitHubApp\","
              "\"expires_at\":\"2023-01-01T00:00:00Z\"}");
    (void)snprintf(path, sizeof path, "%s/tokens/default.lock", dir);
    lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(lock, 0);
    ck_assert_int_eq(flock(lock, LOCK_EX | LOCK_NB), 0);

    fake = fake_host_new();
    fake_host_setenv(fake, "KCAP_CONFIG_DIR", dir);
    fake_host_setenv(fake, "KCAP_URL", SERVER);
    service = fake_host_load("services/http/http.so", "kcap_service_v1");
    http = service->open(fake_host_table(fake), KCAP_CLASS_REVIEWER);
    ck_assert_ptr_nonnull(http);
    while (opened[n])
        n++;
    opened[n] = http;
}

static void
teardown(void)
{
    char command[64];

    (void)close(lock);
    fake_host_free(fake);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", dir);
    ck_assert_int_eq(system(command), 0);
}

struct asked {
    int32_t returned;
    struct kcap_http_response *response;
};

static void
ask(struct kcap_call *call, void *arg)
{
    struct asked *asked = arg;
    struct kcap_http_request request = {
        .struct_size = sizeof request,
        .method = "POST",
        .path = "/api/flows/reviewer/result",
        .until_ns = KCAP_TIME_NEVER,
    };

    asked->returned = http->request(http, call, &request, &asked->response);
}

/* Fifteen seconds, and then the request goes out without a login, for the server to decide. */
START_TEST(the_lock_is_waited_for_fifteen_seconds)
{
    struct fake_call call = {.window_ms = 0};
    struct asked asked = {.response = NULL};

    fake_host_run(fake, &call, ask, &asked);
    ck_assert_int_eq(asked.returned, 0);
    ck_assert_int_eq(asked.response->outcome, KCAP_HTTP_NOT_SENT);
    ck_assert_int_ge(call.took_ms, 15000);
    ck_assert_int_lt(call.took_ms, 15500);
    http->response_free(http, asked.response);
    fake_call_fini(&call);
}
END_TEST

START_TEST(the_calls_window_ends_it_earlier)
{
    struct fake_call call = {.window_ms = 4000};
    struct asked asked = {.response = NULL};

    fake_host_run(fake, &call, ask, &asked);
    ck_assert_int_eq(asked.returned, KCAP_WAIT_DEADLINE);
    ck_assert_ptr_null(asked.response);
    ck_assert_int_eq(call.took_ms, 4000);
    fake_call_fini(&call);
}
END_TEST

START_TEST(a_cancel_ends_it_at_once)
{
    struct fake_call call = {.cancel_at_wait = 3};
    struct asked asked = {.response = NULL};

    fake_host_run(fake, &call, ask, &asked);
    ck_assert_int_eq(asked.returned, KCAP_WAIT_CANCELLED);
    ck_assert_int_lt(call.took_ms, 200);
    fake_call_fini(&call);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, the_lock_is_waited_for_fifteen_seconds);
    tcase_add_test(tests, the_calls_window_ends_it_earlier);
    tcase_add_test(tests, a_cancel_ends_it_at_once);
}

int
main(void)
{
    return suite_run("http-lock", add);
}
