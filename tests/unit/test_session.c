/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "host/session.h"
#include "lib/jscan.h"
#include "lib/session-id.h"
#include "tests/unit/suite.h"

static const char *const variables[] = {"CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID",
                                        "KCAP_SESSION_ID", "COPILOT_AGENT_SESSION_ID"};

static const struct {
    const char *values[4]; /* of the variables above */
    const char *meta;
    const char *id, *source;
} rows[] = {
    {{NULL}, NULL, NULL, NULL},
    {{"c1"}, NULL, "c1", "CLAUDE_CODE_SESSION_ID"},
    {{" c1\n"}, NULL, "c1", "CLAUDE_CODE_SESSION_ID"},
    {{"c1", "x1"}, NULL, "x1", "CODEX_THREAD_ID"},
    {{"c1", "x1", "k1"}, NULL, "k1", "KCAP_SESSION_ID"},
    {{"c1", NULL, "k1"}, NULL, "c1", "CLAUDE_CODE_SESSION_ID"},
    {{NULL, NULL, "k1", "p1"}, NULL, "k1", "KCAP_SESSION_ID"},
    {{NULL, NULL, NULL, "p1"}, NULL, "p1", "COPILOT_AGENT_SESSION_ID"},
    {{"c1"}, "{\"sessionId\":\"s1\",\"threadId\":\"t1\"}", "s1", "_meta.sessionId"},
    {{NULL}, "{\"threadId\":\"t1\"}", "t1", "_meta.threadId"},
    {{NULL},
     "{\"x-codex-turn-metadata\":{\"session_id\":\"m1\"}}",
     "m1",
     "_meta.x-codex-turn-metadata"},
    {{"c1"}, "{\"sessionId\":7,\"threadId\":\"  \"}", "c1", "CLAUDE_CODE_SESSION_ID"},
    {{"0199A5B2-77F6-7D13-A1C2-000000000ABC"},
     NULL,
     "0199a5b277f67d13a1c2000000000abc",
     "CLAUDE_CODE_SESSION_ID"},
    {{"ses_abc-DEF"}, NULL, "ses_abc-DEF", "CLAUDE_CODE_SESSION_ID"},
    {{"0199A5B2-77F6-7D13-A1C2-00000000XABC"},
     NULL,
     "0199A5B2-77F6-7D13-A1C2-00000000XABC",
     "CLAUDE_CODE_SESSION_ID"},
    {{""}, NULL, NULL, NULL},
};

START_TEST(session_row)
{
    struct caller caller = {.name = NULL};
    struct jscan scan = {.value = {NULL, 0}};

    for (int v = 0; v < N_ROWS(variables); v++) {
        if (rows[_i].values[v])
            (void)setenv(variables[v], rows[_i].values[v], 1);
        else
            (void)unsetenv(variables[v]);
    }
    if (rows[_i].meta)
        ck_assert_int_eq(jscan(rows[_i].meta, strlen(rows[_i].meta), &scan), JSCAN_OK);
    ck_assert_int_eq(session_find(scan.value, &caller), rows[_i].id != NULL);
    ck_assert_pstr_eq(caller.session_id, rows[_i].id);
    ck_assert_pstr_eq(caller.session_source, rows[_i].source);
    caller_fini(&caller);
}
END_TEST

START_TEST(an_endless_id_is_none)
{
    char id[400];

    memset(id, 'x', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    ck_assert_ptr_null(session_id_normalise(id));
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_loop_test(tests, session_row, 0, N_ROWS(rows));
    tcase_add_test(tests, an_endless_id_is_none);
}

int
main(void)
{
    return suite_run("session", add);
}
