/* SPDX-License-Identifier: Apache-2.0 */
/* What a start tells of where it comes from: the machine's id and the repository's name. */
#include "config.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flows-rig.h"
#include "plugins/flows/origin.h"
#include "tests/unit/files.h"

#define N_PROCESSES 8

/* The body of the start that is sent now; NULL members are absent ones. */
static cJSON *
start_body(void)
{
    const struct fake_reply reply = {.body = "{\"flow_run_id\":\"u1\",\"status\":\"clean\"}"};
    const char *body;
    size_t n;

    static int n_started;
    char args[200]; /* each is another start */

    (void)snprintf(args, sizeof args,
                   "{\"kind\":\"k\",\"target_kind\":\"commit\",\"target_ref\":\"%d\","
                   "\"target_title\":\"T\",\"context\":\"c\"}",
                   n_started++);
    (void)rig_ask(START, args, &reply, 1, false);
    body = fake_host_requests(rig.fake, &n)[0].body;
    return json_parse(body, strlen(body), NULL);
}

static char *
machine_path(void)
{
    static char path[128];

    (void)snprintf(path, sizeof path, "%s/machine.json", rig_config_dir);
    return path;
}

START_TEST(machine_is_named_by_the_first_start)
{
    char id[64];
    struct stat st;
    cJSON *json;

    (void)rig_ask(STATUS, "{}", rig_finished, 2, true);
    ck_assert_int_lt(stat(machine_path(), &st), 0); /* looking makes nothing */
    rig_restart();
    json = start_body();
    (void)snprintf(id, sizeof id, "%s", json_str(json, "requester_machine_id"));
    ck_assert_uint_eq(strspn(id, "0123456789abcdef"), 32);
    ck_assert_uint_eq(strlen(id), 32);
    cJSON_Delete(json);
    ck_assert_int_eq(stat(machine_path(), &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0600);
    ck_assert_int_eq((int)st.st_nlink, 1);
    rig_restart();
    json = start_body();
    ck_assert_str_eq(json_str(json, "requester_machine_id"), id);
    cJSON_Delete(json);
}
END_TEST

/* Somebody else's file counts, and what is no id is left alone and not sent. */
static const struct {
    const char *file, *id;
} files[] = {
    {"{\"id\":\"00112233445566778899aabbccddeeff\",\"more\":1}",
     "00112233445566778899aabbccddeeff"},
    {"{\"id\":\"00112233445566778899AABBCCDDEEFF\"}", NULL},
    {"{\"id\":\"0011\"}", NULL},
    {"{\"id\":5}", NULL},
    {"", NULL},
};

START_TEST(file_that_is_there)
{
    char text[128] = "";
    FILE *file;
    cJSON *json;

    ck_assert_int_eq(mkdir(rig_config_dir, 0700), 0);
    files_put(rig_config_dir, "machine.json", files[_i].file);
    json = start_body();
    if (files[_i].id)
        ck_assert_str_eq(json_str(json, "requester_machine_id"), files[_i].id);
    else
        ck_assert_ptr_null(json_get(json, "requester_machine_id"));
    ck_assert_int_eq(strstr(fake_host_log(rig.fake), "this machine has no id") == NULL,
                     files[_i].id != NULL);
    cJSON_Delete(json);
    file = fopen(machine_path(), "r");
    ck_assert_uint_eq(fread(text, 1, sizeof text - 1, file), strlen(files[_i].file));
    (void)fclose(file);
    ck_assert_str_eq(text, files[_i].file);
}
END_TEST

START_TEST(no_place_for_an_id_stops_nothing)
{
    cJSON *json;

    fake_host_setenv(rig.fake, "KCAP_CONFIG_DIR", "/proc/none");
    json = start_body();
    ck_assert_ptr_null(json_get(json, "requester_machine_id"));
    rig_has(fake_host_log(rig.fake), "/proc/none/machine.json");
    cJSON_Delete(json);
}
END_TEST

static const char *
env_of_child(const struct kcap_host *host, const char *name)
{
    (void)host;
    return strcmp(name, "KCAP_CONFIG_DIR") == 0 ? rig_config_dir : NULL;
}

/* All that are first at once say the same. */
START_TEST(machine_has_one_id)
{
    static const struct kcap_host host = {.struct_size = sizeof host, .env = env_of_child};
    int ends[2];
    char first[128], other[128];
    FILE *lines;

    ck_assert_int_eq(pipe(ends), 0);
    for (int i = 0; i < N_PROCESSES; i++) {
        if (fork() == 0) {
            struct buf body = BUF_INIT(1000);
            origin_add_machine(&body, &host);
            buf_addc(&body, '\n');
            _exit(write(ends[1], body.data, body.len) == (ssize_t)body.len ? 0 : 1);
        }
    }
    (void)close(ends[1]);
    lines = fdopen(ends[0], "r");
    ck_assert_ptr_nonnull(fgets(first, sizeof first, lines));
    ck_assert_uint_gt(strlen(first), 32);
    for (int i = 1; i < N_PROCESSES; i++) {
        ck_assert_ptr_nonnull(fgets(other, sizeof other, lines));
        ck_assert_str_eq(other, first);
    }
    (void)fclose(lines);
    while (wait(NULL) > 0)
        continue;
}
END_TEST

static const struct {
    const char *config, *owner, *name;
} repositories[] = {
    {"[remote \"origin\"]\n\turl = https://u@example.org/own/repo.git\n", "own", "repo"},
    {"[remote \"origin\"]\n\turl = git@example.org:grp/sub/proj\n", "grp/sub", "proj"},
    {"[remote \"up\"]\n\turl = https://example.org/a/b\n[remote \"origin\"]\n\turl = "
     "ssh://git@example.org:22/own/repo/\n",
     "own", "repo"},
    {"[remote \"origin2\"]\n\turl = https://example.org/a/b\n", NULL, NULL},
    {"[remote \"origin\"]\n\turl = /srv/repo.git\n", NULL, NULL},
    {"[remote \"origin\"]\n\turl = https://example.org/alone\n", NULL, NULL},
    {"", NULL, NULL},
};

START_TEST(repository_is_named_by_origin)
{
    cJSON *json;

    files_make_dir(rig_state_dir, ".git");
    files_put(rig_state_dir, ".git/config", repositories[_i].config);
    fake_host_setenv(rig.fake, "CLAUDE_PROJECT_DIR", rig_state_dir);
    json = start_body();
    ck_assert_str_eq(json_str(json, "repo_path"), rig_state_dir);
    if (repositories[_i].owner) {
        ck_assert_str_eq(json_str(json, "repo_owner"), repositories[_i].owner);
        ck_assert_str_eq(json_str(json, "repo_name"), repositories[_i].name);
    } else {
        ck_assert_ptr_null(json_get(json, "repo_owner"));
        ck_assert_ptr_null(json_get(json, "repo_name"));
    }
    cJSON_Delete(json);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_checked_fixture(tests, rig_setup, rig_teardown);
    tcase_add_test(tests, machine_is_named_by_the_first_start);
    tcase_add_loop_test(tests, file_that_is_there, 0, sizeof files / sizeof *files);
    tcase_add_test(tests, no_place_for_an_id_stops_nothing);
    tcase_add_test(tests, machine_has_one_id);
    tcase_add_loop_test(tests, repository_is_named_by_origin, 0,
                        sizeof repositories / sizeof *repositories);
}

int
main(void)
{
    return suite_run("flows-origin", add);
}
