/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "flows-rig.h"

#include <stdio.h>
#include <unistd.h>

#include "tests/unit/files.h"

struct rig rig;
char rig_state_dir[64], rig_config_dir[80];
static struct fake_call last;

const struct fake_reply rig_running[3] = {
    {"POST", "*/start/v2", .body = ANSWER_RUNNING},
    {"GET", RUN_POLL, .delay_ms = 15000, .body = STATUS_RUNNING},
    {"GET", SESSION_LIST, .status = 404},
};

const struct fake_reply rig_finished[2] = {
    {"GET", "/api/flows/u1*", .body = STATUS_FINDINGS},
    {"GET", SESSION_LIST, .status = 404},
};

static void
begin(void)
{
    rig.fake = fake_host_new();
    fake_host_setenv(rig.fake, "KCAP_STATE_DIR", rig_state_dir);
    fake_host_setenv(rig.fake, "KCAP_CONFIG_DIR", rig_config_dir);
    ck_assert_int_eq(rig.plugin->init(fake_host_table(rig.fake), &rig.ctx), 0);
}

static void
end(void)
{
    fake_host_stop(rig.fake);
    rig.plugin->fini(rig.ctx);
    fake_host_free(rig.fake);
}

void
rig_setup(void)
{
    (void)snprintf(rig_state_dir, sizeof rig_state_dir, "/tmp/kcap-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(rig_state_dir));
    (void)snprintf(rig_config_dir, sizeof rig_config_dir, "%s/config", rig_state_dir);
    rig.plugin = fake_host_load("plugins/flows/flows.so", "kcap_plugin_v1");
    begin();
}

void
rig_teardown(void)
{
    end();
    fake_call_fini(&last);
    files_remove(rig_state_dir);
}

void
rig_restart(void)
{
    end();
    begin();
}

void
rig_call(const char *tool, const char *args, struct fake_call *call)
{
    if (!call->session_id) {
        call->client_name = "codex-mcp-client";
        call->session_id = "s1";
        call->session_source = "_meta.threadId";
    }
    fake_host_call(rig.fake, rig.plugin, rig.ctx, tool, args, call);
}

const char *
rig_ask(const char *tool, const char *args, const struct fake_reply *replies, size_t n,
        bool want_error)
{
    fake_call_fini(&last);
    fake_host_script(rig.fake, replies, n);
    rig_call(tool, args, &last);
    ck_assert_msg(last.has_result, "%s %s: no result", tool, args);
    ck_assert_msg(last.is_error == want_error, "%s %s: %s", tool, args, last.text);
    return last.text;
}

void
rig_settle(const struct fake_call *call, uint32_t outcome)
{
    rig.plugin->settled(rig.ctx, call->serial, outcome);
}

void
rig_has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "\"%s\" is missing in:\n%s", part, text);
}

void
rig_lacks(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) == NULL, "\"%s\" is in:\n%s", part, text);
}
