/* SPDX-License-Identifier: Apache-2.0 */
/* http.so as shipped: which server it finds, and which routes each class may ask for. No
 * network. */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include "http-rig.h"

/* ---- look-up ---- */

static const struct {
    uint32_t trust_class;
    const char *option, *kcap_url, *capability;
    uint32_t kind;
    const char *url, *source, *error;
} servers[] = {
    {1, "http://a/", "http://b", NULL, 1, "http://a", "server-url=", NULL},
    {1, NULL, "https://b:8443/base///", NULL, 1, "https://b:8443/base", "KCAP_URL", NULL},
    {1, " ", "http://b", NULL, 1, "http://b", "KCAP_URL", NULL},
    {1, NULL, "http://user:pass@b/x", NULL, 1, "http://b/x", "KCAP_URL", NULL},
    {1, NULL, "unix:///run/f.sock", NULL, 1, "unix:///run/f.sock", "KCAP_URL", NULL},
    {1, NULL, NULL, NULL, 2, "unix:///tmp/kcap-none/flowd.sock", "local kcap-flowd", NULL},
    {1, NULL, "", NULL, 2, "unix:///tmp/kcap-none/flowd.sock", "local kcap-flowd", NULL},
    {1, NULL, "http://b", "http://127.0.0.1:1/cap", 1, "http://b", "KCAP_URL", NULL},
    {2, NULL, "http://b", "http://127.0.0.1:1/secret", 1, "http://127.0.0.1:1",
     "KCAP_FLOW_CAPABILITY_URL", NULL},
    {2, NULL, "http://b", NULL, 1, "http://b", "KCAP_URL", NULL},
    {2, NULL, NULL, "unix:///run/c.sock", 1, "unix:///run/c.sock", "KCAP_FLOW_CAPABILITY_URL",
     NULL},
    {2, NULL, NULL, "http://evil.example/cap", 3, NULL, "KCAP_FLOW_CAPABILITY_URL", "loopback"},
    {1, NULL, "127.0.0.1:5108", NULL, 3, NULL, "KCAP_URL", "https://"},
    {1, NULL, "ftp://h/", NULL, 3, NULL, "KCAP_URL", "https://"},
    {1, NULL, "http://", NULL, 3, NULL, "KCAP_URL", "not a valid URL"},
    {1, NULL, "http://b/?q=1", NULL, 3, NULL, "KCAP_URL", "'?'"},
    {1, NULL, "unix://run/f.sock", NULL, 3, NULL, "KCAP_URL", "absolute path"},
    {1, NULL,
     "unix:///"
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaaaaaaaaaaaaaaaaaaaaaaa",
     NULL, 3, NULL, "KCAP_URL", "longer than the system allows"},
};

START_TEST(server_is_looked_up)
{
    struct kcap_http_server server = {.struct_size = sizeof server};
    const struct kcap_http *http;
    struct exchange x = {.method = "GET", .path = "/x"};

    fake_host_setenv(rig_fake, "KCAP_STATE_DIR", "/tmp/kcap-none");
    if (servers[_i].option)
        fake_host_set_option(rig_fake, "server-url", servers[_i].option);
    if (servers[_i].capability)
        fake_host_setenv(rig_fake, "KCAP_FLOW_CAPABILITY_URL", servers[_i].capability);
    http = rig_open(servers[_i].trust_class, servers[_i].kcap_url);
    http->server(http, &server);
    (void)rmdir("/tmp/kcap-none");
    ck_assert_uint_eq(server.kind, servers[_i].kind);
    ck_assert_str_eq(server.source, servers[_i].source);
    if (servers[_i].url)
        ck_assert_str_eq(server.url, servers[_i].url);
    if (!servers[_i].error) {
        ck_assert_ptr_null(server.error);
        return;
    }
    ck_assert_msg(strstr(server.error, servers[_i].error) != NULL, "%s", server.error);
    ck_assert_ptr_nonnull(strstr(server.error, servers[_i].source));
    if (servers[_i].trust_class == KCAP_CLASS_DRIVER) {
        x.http = http;
        rig_ask(&x);
        ck_assert_int_eq(x.returned, KCAP_E_INVALID);
        ck_assert_ptr_null(x.response);
        rig_done(&x);
    }
}
END_TEST

/* ---- the wall ---- */

#define RESULT  "/api/flows/reviewer/result"
#define MESSAGE "/api/flows/participant/message"

static const struct {
    uint32_t trust_class;
    const char *method, *path;
    bool allowed;
} walls[] = {
    {2, "POST", RESULT, true},
    {2, "POST", MESSAGE, true},
    {2, "GET", RESULT, false},
    {2, "POST", RESULT "/", false},
    {2, "POST", RESULT "?x=1", false},
    {2, "POST", "/api/flows/reviewer/../review", false},
    {2, "POST", "/api/flows/reviewer/%2e%2e/x", false},
    {2, "POST", "//api/flows/reviewer/result", false},
    {2, "POST", "/api/flows/u1/rounds", false},
    {2, "GET", "/auth/config", false},
    {1, "POST", "/api/flows/u1/rounds", true},
    {1, "GET", "/api/flows/a%2Fb%20c%3F?wait_sec=15", true},
    {1, "GET", "/api/flows/100%25", true},
    {1, "GET", "/api/flows/100%2525%25zz", true},
    {1, "POST", "/api/flows/%25%72eviewer/../reviewer%2525/result", false},
    {1, "POST", "/api/flows/%252e%252e/x", false},
    {1, "GET", "/api/flows/%2500", false},
    {1, "GET", "/api/flows/session/s1?state=open", true},
    {1, "GET", "/api/flows/u1/", true},
    {1, "POST", RESULT, false},
    {1, "POST", RESULT "/", false},
    {1, "POST", RESULT "?a=b", false},
    {1, "POST", MESSAGE, false},
    {1, "POST", "/API/flows/Reviewer/result", false},
    {1, "POST", "/api/flows/reviewer%2Fresult", false},
    {1, "POST", "/api/flows/reviewer%2fresult", false},
    {1, "POST", "/api/flows/reviewer%252fresult", false},
    {1, "POST", "/api/flows/%72eviewer/result", false},
    {1, "POST", "/api/flows/x/../reviewer/result", false},
    {1, "POST", "/api/flows/x/%2e%2e/reviewer/result", false},
    {1, "POST", "/api/flows/..%2F..%2Fx", false},
    {1, "POST", "/api//flows/reviewer/result", false},
    {1, "POST", "/api/./flows/u1", false},
    {1, "GET", "/api/flows/%00", false},
    {1, "GET", "/api/flows/%zz", false},
    {1, "GET", "/api/flows/%2", false},
    {1, "GET", "/api/flows/a b", false},
    {1, "GET", "/api/flows/a\nHost: x", false},
    {1, "GET", "/api/flows/a#b", false},
    {1, "GET", "/api\\flows", false},
    {1, "GET", "/api/a%5C..%5Cb", false},
    {1, "GET", "api/flows", false},
    {1, "GET", "", false},
    {1, "GET", "@evil.example/", false},
    {1, "DELETE", "/api/flows/u1", false},
    {3, "GET", "/auth/config", false},
    {4, "GET", "/auth/config", false},
};

START_TEST(routes_by_class)
{
    /* an unusable server tells what the wall let through from what it did not */
    struct exchange x = {.http = rig_open(walls[_i].trust_class, "nonsense"),
                         .method = walls[_i].method,
                         .path = walls[_i].path};

    rig_ask(&x);
    ck_assert_msg(x.returned == (walls[_i].allowed ? KCAP_E_INVALID : KCAP_E_REFUSED),
                  "%u %s %s: %d", walls[_i].trust_class, walls[_i].method, walls[_i].path,
                  x.returned);
    rig_done(&x);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, rig_setup, rig_teardown);
    tcase_add_loop_test(tests, server_is_looked_up, 0, N_ROWS(servers));
    tcase_add_loop_test(tests, routes_by_class, 0, N_ROWS(walls));
}

int
main(void)
{
    return suite_run("http-server", add);
}
