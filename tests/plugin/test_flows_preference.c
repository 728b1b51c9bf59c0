/* SPDX-License-Identifier: Apache-2.0 */
/* flows.so as shipped: a server that wants a reviewer named gets the one the user has saved. */
#include "config.h"

#include <stdio.h>
#include <sys/stat.h>

#include "flows-rig.h"
#include "tests/unit/files.h"

#define V2 "*/start/v2"
#define V4 "*/start/v4"
#define REQUIRED                                                                     \
    {                                                                                \
        "POST", V2, .status = 400, .body = CODED("reviewer_vendor_required", "who?") \
    }
#define SAVED(vendor) \
    "{\"profiles\":{\"default\":{\"flows\":{\"reviewer_vendor\":\"" vendor "\"}}}}"
#define CLEAN(applied)                                                                         \
    "{\"flow_run_id\":\"u1\",\"status\":\"clean\",\"applied_reviewer_vendor\":\"" applied "\"" \
    "}"

static const struct {
    const char *name, *config, *extra; /* config NULL: no file */
    struct fake_reply replies[3];
    const char *profile; /* KCAP_PROFILE */
    bool is_error;
    size_t n_posts;
    const char *says;
} rows[] = {
    {"saved",
     SAVED(" Codex "),
     "",
     {REQUIRED, {"POST", V4, .body = CLEAN("codex")}},
     NULL,
     false,
     2,
     "reviewer_from_saved_preference: codex\n"},
    {"saved, old server",
     SAVED("codex"),
     "",
     {{"POST", V2, .status = 400, .body = CODED("reviewer_vendor_required", "who?"),
       .times = 1},
      {"POST", V4, .status = 404},
      {"POST", V2, .body = CLEAN("codex")}},
     NULL,
     false,
     3,
     "reviewer_from_saved_preference: codex\n"},
    {"saved, wrong echo",
     SAVED("codex"),
     "",
     {REQUIRED, {"POST", V4, .body = CLEAN("claude")}, {"POST", "*/close", .body = "{}"}},
     NULL,
     true,
     3,
     "did not confirm the reviewer's vendor"},
    {"none",
     "{}",
     "",
     {REQUIRED},
     NULL,
     true,
     1,
     "No reviewer is saved in the profile default."},
    {"no file",
     NULL,
     "",
     {REQUIRED},
     NULL,
     true,
     1,
     "Error (reviewer_vendor_required): who?\n"},
    {"blank", SAVED("  "), "", {REQUIRED}, NULL, true, 1, "No reviewer is saved"},
    {"no text",
     "{\"profiles\":{\"default\":{\"flows\":{\"reviewer_vendor\":5}}}}",
     "",
     {REQUIRED},
     NULL,
     true,
     1,
     "No reviewer is saved"},
    {"active profile",
     "{\"active_profile\":\"p\",\"profiles\":{\"p\":{\"flows\":{\"reviewer_vendor\":\"codex\"}}"
     "}}",
     "",
     {REQUIRED, {"POST", V4, .body = CLEAN("codex")}},
     NULL,
     false,
     2,
     "codex"},
    {"selected profile",
     "{\"profiles\":{\"default\":{\"flows\":{\"reviewer_vendor\":\"x\"}},\"q\":{\"server_url\":"
     "\"http://127.0.0.1:1\",\"flows\":{\"reviewer_vendor\":\"codex\"}}}}",
     "",
     {REQUIRED, {"POST", V4, .body = CLEAN("codex")}},
     "q",
     false,
     2,
     "codex"},
    {"stale",
     SAVED("codex"),
     "",
     {REQUIRED, {"POST", V4, .status = 400, .body = CODED("unknown_vendor", "?")}},
     NULL,
     true,
     2,
     "The saved reviewer codex in the profile default no longer works here."},
    {"unavailable",
     SAVED("codex"),
     "",
     {REQUIRED, {"POST", V4, .status = 409, .body = CODED("reviewer_vendor_unavailable", "?")}},
     NULL,
     true,
     2,
     "Error (reviewer_vendor_unavailable): ?\nThe saved reviewer codex"},
    {"another failure",
     SAVED("codex"),
     "",
     {REQUIRED, {"POST", V4, .status = 400, .body = CODED("bad_target", "?")}},
     NULL,
     true,
     2,
     "Error (bad_target): ?\n"},
    {"required again",
     SAVED("codex"),
     "",
     {{"POST", "*", .status = 400, .body = CODED("reviewer_vendor_required", "who?")}},
     NULL,
     true,
     2,
     "Error (reviewer_vendor_required): who?\n"},
    {"vendor named",
     SAVED("codex"),
     ",\"vendor\":\"claude\"",
     {{"POST", "*", .status = 400, .body = CODED("reviewer_vendor_required", "who?")}},
     NULL,
     true,
     1,
     "Error (reviewer_vendor_required): who?\n"},
    {"not coded",
     SAVED("codex"),
     "",
     {{"POST", V2, .status = 400, .body = "reviewer_vendor_required"}},
     NULL,
     true,
     1,
     "HTTP 400"},
};

static void
write_config(const char *text)
{
    ck_assert_int_eq(mkdir(rig_config_dir, 0700), 0);
    files_put(rig_config_dir, "config.json", text);
}

START_TEST(saved_reviewer_is_used)
{
    char args[400];
    const char *text, *body;
    cJSON *json;
    size_t n;

    if (rows[_i].config)
        write_config(rows[_i].config);
    fake_host_setenv(rig.fake, "KCAP_PROFILE", rows[_i].profile);
    fake_host_setenv(rig.fake, "CLAUDE_PROJECT_DIR", rig_state_dir);
    (void)snprintf(args, sizeof args, "%.*s%s}", (int)strlen(START_ARGS) - 1, START_ARGS,
                   rows[_i].extra);
    text = rig_ask(START, args, rows[_i].replies, 3, rows[_i].is_error);
    rig_has(text, rows[_i].says);
    if (strncmp(text, "flow_run_id", 11) != 0)
        ck_assert(rows[_i].is_error);
    ck_assert_msg(fake_host_count(rig.fake, "POST", "*") == rows[_i].n_posts, "%s",
                  rows[_i].name);
    if (rows[_i].n_posts > 1) {
        body = fake_host_requests(rig.fake, &n)[1].body;
        json = json_parse(body, strlen(body), NULL);
        ck_assert_str_eq(json_str(json, "vendor"), "codex");
        cJSON_Delete(json);
    }
}
END_TEST

/* Saved after an error asked for it: the very next start knows. */
START_TEST(saved_reviewer_is_read_afresh)
{
    const struct fake_reply replies[] = {REQUIRED, {"POST", V4, .body = CLEAN("codex")}};

    fake_host_setenv(rig.fake, "CLAUDE_PROJECT_DIR", rig_state_dir);
    write_config("{}");
    rig_has(rig_ask(START, START_ARGS, replies, 2, true), "No reviewer is saved");
    files_put(rig_config_dir, "config.json", SAVED("codex"));
    rig_has(rig_ask(START, START_ARGS, replies, 2, false),
            "reviewer_from_saved_preference: codex\n");
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, rig_setup, rig_teardown);
    tcase_add_loop_test(tests, saved_reviewer_is_used, 0, N_ROWS(rows));
    tcase_add_test(tests, saved_reviewer_is_read_afresh);
}

int
main(void)
{
    return suite_run("flows-preference", add);
}
