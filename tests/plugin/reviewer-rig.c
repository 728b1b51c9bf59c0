/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "reviewer-rig.h"

#include <stdio.h>
#include <string.h>

#include "lib/json.h"

const struct kcap_plugin *reviewer_plugin;
struct fake_host *reviewer_fake;
void *reviewer_ctx;
char reviewer_state[32];

void
reviewer_start(void)
{
    reviewer_fake = fake_host_new();
    fake_host_setenv(reviewer_fake, "KCAP_FLOW_AGENT_ID", "agent-1");
    fake_host_setenv(reviewer_fake, "KCAP_STATE_DIR", reviewer_state);
    ck_assert_int_eq(reviewer_plugin->init(fake_host_table(reviewer_fake), &reviewer_ctx), 0);
}

void
reviewer_stop(void)
{
    fake_host_stop(reviewer_fake);
    reviewer_plugin->fini(reviewer_ctx);
    fake_host_free(reviewer_fake);
}

void
reviewer_setup(void)
{
    reviewer_plugin = fake_host_load("plugins/flow-result/flow-result.so", "kcap_plugin_v1");
    (void)strcpy(reviewer_state, "/tmp/kcap-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(reviewer_state));
    reviewer_start();
}

void
reviewer_teardown(void)
{
    char command[64];

    reviewer_stop();
    (void)snprintf(command, sizeof command, "rm -rf '%s'", reviewer_state);
    ck_assert_int_eq(system(command), 0);
}

void
reviewer_call(const char *tool, const char *args, struct fake_call *call)
{
    fake_host_call(reviewer_fake, reviewer_plugin, reviewer_ctx, tool, args, call);
}

void
reviewer_check_outcome(const char *name, char outcome, const struct fake_call *call)
{
    static const struct {
        char outcome;
        const char *word, *lead;
    } outcomes[] = {{'D', "delivered", NULL},
                    {'N', "not_delivered", "Not delivered: "},
                    {'U', "unknown", "Outcome unknown: "}};
    cJSON *json;

    ck_assert_msg(call->has_result && call->json, "%s: no result", name);
    json = json_parse(call->json, strlen(call->json), NULL);
    for (size_t i = 0; i < 3; i++) {
        bool is_it = outcomes[i].outcome == outcome;
        ck_assert_msg((strcmp(json_str(json, "outcome"), outcomes[i].word) == 0) == is_it,
                      "%s: %s", name, call->json);
        ck_assert_msg(is_it || !outcomes[i].lead ||
                          strncmp(call->text, outcomes[i].lead, strlen(outcomes[i].lead)) != 0,
                      "%s: %s", name, call->text);
    }
    ck_assert_str_eq(json_str(json, "text"), call->text); /* some models see nothing else */
    ck_assert_msg(call->is_error == (outcome != 'D'), "%s: %s", name, call->text);
    cJSON_Delete(json);
}
