/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of http.so that need no network: moments, token expiry, repository names. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "services/http/jwt.h"
#include "services/http/repository.h"
#include "services/http/when.h"
#include "tests/unit/files.h"
#include "tests/unit/suite.h"

static const struct {
    const char *text;
    int64_t ms; /* -1: no moment */
} moments[] = {
    {"1970-01-01T00:00:00Z", 0},
    {"2026-08-01T12:00:00+00:00", 1785585600000},
    {"2026-08-01T14:00:00.1239999+02:00", 1785585600123},
    {"2026-08-01T07:30:00-04:30", 1785585600000},
    {"2026-08-01t12:00:00.5z", 1785585600500},
    {NULL, -1},
    {"", -1},
    {"2026-08-01", -1},
    {"2026-08-01T12:00:00", -1}, /* whose time? */
    {"2026-08-01T12:00:00.Z", -1},
    {"2026-13-01T12:00:00Z", -1},
    {"2026-00-01T12:00:00Z", -1},
    {"2026-08-01T12:00:00Z ", -1},
    {"2026-08-01T12:00:00+2:00", -1},
    {"1969-12-31T23:59:59Z", -1},
};

START_TEST(moment)
{
    int64_t ms = -1, again = -1;
    char text[WHEN_TEXT_LEN];

    ck_assert_int_eq(when_parse(moments[_i].text, &ms), moments[_i].ms >= 0);
    ck_assert_int_eq(ms, moments[_i].ms);
    if (ms < 0)
        return;
    when_format(ms, text);
    ck_assert(when_parse(text, &again));
    ck_assert_int_eq(again, ms / 1000 * 1000);
}
END_TEST

static const struct {
    const char *token;
    int64_t ms; /* -1: cannot be told */
} jwts[] = {
    {"e30.eyJleHAiOjE3ODU1ODU2MDB9.sig", 1785585600000}, /* {"exp":1785585600} */
    {"e30.eyJhIjoi4oKsIiwiZXhwIjoxfQ.sig", 1000},        /* {"a":"EUR","exp":1} */
    {"e30.eyJleHAiOiIxIn0.sig", -1},                     /* {"exp":"1"} */
    {"e30.e30.sig", -1},                                 /* {} */
    {"e30.eyJleHAiOi0xfQ.sig", -1},                      /* {"exp":-1} */
    {"opaque", -1},
    {"a.b", -1},
    {"e30.!!!.sig", -1},
    {"..", -1},
};

START_TEST(jwt)
{
    int64_t ms = -1;

    ck_assert_int_eq(jwt_expiry(jwts[_i].token, &ms), jwts[_i].ms >= 0);
    ck_assert_int_eq(ms, jwts[_i].ms);
}
END_TEST

static const struct {
    const char *url, *name; /* NULL: none */
} urls[] = {
    {"git@github.com:acme/tool.git", "github.com/acme/tool"},
    {"github.com:acme/tool", "github.com/acme/tool"},
    {"ssh://git@github.com:2222/acme/tool.git", "github.com/acme/tool"},
    {"https://user:p@ss@github.com/acme/tool.git/", "github.com/acme/tool"},
    {"http://h:8080/grp/sub/proj", "h/grp/sub/proj"},
    {"https://[::1]/a/b", "[::1]/a/b"},
    {"/srv/git/tool.git", NULL},
    {"../tool", NULL},
    {"./a:b/tool", NULL},
    {"file:///srv/git/tool.git", NULL},
    {"https://github.com", NULL},
    {"https:///a/b", NULL},
    {"", NULL},
};

START_TEST(remote_name)
{
    char *name = repository_normalise(urls[_i].url);

    if (!urls[_i].name)
        ck_assert_ptr_null(name);
    else
        ck_assert_str_eq(name, urls[_i].name);
    free(name);
}
END_TEST

static char top[64];

START_TEST(repository_and_worktree)
{
    struct repository repository;
    char path[256], command[128];

    (void)snprintf(top, sizeof top, "/tmp/kcap-test-repo.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(top));
    files_make_dir(top, "main");
    files_make_dir(top, "main/.git");
    files_make_dir(top, "main/.git/worktrees");
    files_make_dir(top, "main/.git/worktrees/side");
    files_make_dir(top, "main/sub");
    files_make_dir(top, "side");
    files_put(top, "main/.git/config",
              "[core]\n\turl = not/this\n[remote \"origin\"]\n\tfetch = x\n"
              "\tURL = \"git@github.com:acme/tool.git\" ; why\n"
              "[remote \"b\"]\n url=https://h/o/r # c\n[branch \"x\"]\nurl=y:z\n");
    files_put(top, "main/.git/worktrees/side/commondir", "../..\n");
    files_put(top, "side/.git", "gitdir: ../main/.git/worktrees/side\n");
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", top, i == 0 ? "main/sub" : "side");
        ck_assert_int_eq(repository_find(path, &repository), 0);
        (void)snprintf(path, sizeof path, "%s/%s", top, i == 0 ? "main" : "side");
        ck_assert_str_eq(repository.root, path);
        ck_assert_uint_eq(repository.n_remotes, 2);
        ck_assert_str_eq(repository.remotes[0], "github.com/acme/tool");
        ck_assert_str_eq(repository.remotes[1], "h/o/r");
        repository_fini(&repository);
    }
    ck_assert_int_eq(repository_find(top, &repository), 0);
    ck_assert_str_eq(repository.root, top);
    ck_assert_uint_eq(repository.n_remotes, 0);
    repository_fini(&repository);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", top);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_loop_test(tests, moment, 0, N_ROWS(moments));
    tcase_add_loop_test(tests, jwt, 0, N_ROWS(jwts));
    tcase_add_loop_test(tests, remote_name, 0, N_ROWS(urls));
    tcase_add_test(tests, repository_and_worktree);
}

int
main(void)
{
    return suite_run("http-parts", add);
}
