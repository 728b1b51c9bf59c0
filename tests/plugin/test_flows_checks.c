/* SPDX-License-Identifier: Apache-2.0 */
/* flows.so as shipped: what is looked at before anything is sent, and in which order. What a
 * definition and its participants need is in test_flows_family.c. */
#include "config.h"

#include "flows-rig.h"

static const struct {
    const char *tool, *args, *names;
} bad_args[] = {
    {START, "{}", "kind"},
    {START,
     "{\"kind\":\"k\",\"target_kind\":\"t\",\"target_ref\":\"\",\"target_title\":\"\","
     "\"context\":\" \"}",
     "context"},
    {START, "{\"kind\":\"k\",\"target_kind\":\"t\",\"context\":\"c\"}", "target_ref"},
    {START, "{\"kind\":\"k\",\"target_ref\":\"\",\"target_title\":\"\",\"context\":\"c\"}",
     "target_kind"},
    {START, "{\"kind\":\"k\",\"target_kind\":\"t\",\"target_ref\":\"\",\"context\":\"c\"}",
     "target_ref and target_title are needed"},
    {START,
     "{\"kind\":\"k\",\"target_kind\":\"t\",\"target_ref\":\"\",\"target_title\":\"\","
     "\"context\":\"c\",\"vendor\":\" \"}",
     "vendor"},
    {START,
     "{\"kind\":\"k\",\"target_kind\":\"t\",\"target_ref\":\"\",\"target_title\":\"\","
     "\"context\":\"c\",\"vendor\":\"v\",\"model\":\"\"}",
     "model"},
    {START,
     "{\"kind\":\"k\",\"target_kind\":\"t\",\"target_ref\":\"\",\"target_title\":\"\","
     "\"context\":\"c\",\"model\":\"m\"}",
     "model needs vendor"},
    {START, "{\"kind\":5}", "kind"},
    {ROUND, "{\"flow_run_id\":\"u1\"}", "context"},
    {ROUND, "{\"flow_run_id\":\" \",\"context\":\" \"}", "context"},
    {ROUND, "{\"context\":\"c\"}", "flow_run_id"},
    {ROUND, "{\"context\":\"c\",\"flow_run_id\":\" \"}", "flow_run_id"},
    {STATUS, "{\"flow_run_id\":\" \"}", "flow_run_id"},
    {STATUS, "{\"session_id\":\"\"}", "session_id"},
    {CLOSE, "{}", "flow_run_id"},
    {CLOSE, "{\"flow_run_id\":[]}", "flow_run_id"},
};

START_TEST(bad_arguments_are_named)
{
    const char *text = rig_ask(bad_args[_i].tool, bad_args[_i].args, NULL, 0, true);

    ck_assert_msg(strncmp(text, bad_args[_i].names, strlen(bad_args[_i].names)) == 0, "%s",
                  text);
    ck_assert_uint_eq(fake_host_count(rig.fake, "GET", "*"), 0);
    ck_assert_uint_eq(fake_host_count(rig.fake, "POST", "*"), 0);
}
END_TEST

/* That no server can be asked is the same error for every tool, ahead of its arguments. */
static const struct {
    const char *tool, *args, *begins;
} serverless[] = {
    {START, START_ARGS, "Error: KCAP_URL has no scheme; nothing was sent."},
    {START,
     "{\"kind\":\" \",\"target_kind\":\"t\",\"target_ref\":\"\",\"target_title\":\"\","
     "\"context\":\"c\"}",
     "Error: KCAP_URL has no scheme; nothing was sent."},
    {ROUND, "{\"flow_run_id\":\" \",\"context\":\"c\"}", "Error: KCAP_URL has no scheme"},
    {ROUND, "{\"flow_run_id\":\"u1\",\"context\":\"c\"}", "flow_run_id: u1\nstatus: unknown\n"},
    {STATUS, "{}", "Error: KCAP_URL has no scheme"},
    {STATUS, "{\"flow_run_id\":\"u1\",\"wait\":true}", "flow_run_id: u1\nstatus: unknown\n"},
    {CLOSE, "{\"flow_run_id\":\"u1\"}", "flow_run_id: u1\nstatus: unknown\n"},
    {"list_reviewer_vendors", "{}", "Error: KCAP_URL has no scheme"},
    {"start_flow",
     "{\"definition_id\":\"d\",\"target_kind\":\"t\",\"target_ref\":\"\","
     "\"target_title\":\"\",\"context\":\"c\"}",
     "Error: KCAP_URL has no scheme"},
    {"send_to_participant", "{\"flow_run_id\":\"u1\",\"participant\":\"p\",\"message\":\"m\"}",
     "flow_run_id: u1\nstatus: unknown\n"},
    {"get_flow_status", "{}", "Error: KCAP_URL has no scheme"},
    {"close_flow", "{\"flow_run_id\":\"u1\"}", "flow_run_id: u1\nstatus: unknown\n"},
};

START_TEST(no_usable_server_comes_first)
{
    const char *text;

    fake_host_set_server(rig.fake, KCAP_HTTP_SERVER_UNUSABLE, "", "KCAP_URL has no scheme");
    text = rig_ask(serverless[_i].tool, serverless[_i].args, NULL, 0, true);
    ck_assert_msg(strncmp(text, serverless[_i].begins, strlen(serverless[_i].begins)) == 0,
                  "%s", text);
    rig_has(text, "Error: KCAP_URL has no scheme; nothing was sent.");
    ck_assert_uint_eq(fake_host_count(rig.fake, NULL, "*"), 0);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, rig_setup, rig_teardown);
    tcase_add_loop_test(tests, bad_arguments_are_named, 0, N_ROWS(bad_args));
    tcase_add_loop_test(tests, no_usable_server_comes_first, 0, N_ROWS(serverless));
}

int
main(void)
{
    return suite_run("flows-checks", add);
}
