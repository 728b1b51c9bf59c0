/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/text.h"
#include "server/ask.h"

#define EXIT_NOT_RUNNING 3
#define STOP_MS          20000 /* reviewers are ended first */
#define WATCH_MS         1000

struct command {
    const char *name;
    int least, most; /* words after it */
    int (*run)(const struct place *place, int argc, char **argv, struct buf *error);
};

static int
not_running(void)
{
    (void)puts("kcap-flowd is not running: it is started when it is needed");
    return EXIT_NOT_RUNNING;
}

/* Prints a text of others as one line. */
static void
put_line(const char *label, const char *text)
{
    AUTO_BUF struct buf line = BUF_INIT((size_t)32 << 20);

    if (!text)
        return;
    text_add_line(&line, text, strlen(text));
    (void)printf("%s%s\n", label, buf_str(&line));
}

static int64_t
number(const cJSON *object, const char *name)
{
    int64_t value = 0;

    (void)json_int(object, name, &value);
    return value;
}

static int
ask_or_say(const struct place *place, const char *path, cJSON **ret, struct buf *error)
{
    int r = ask(place, path, ret, error);

    return r == -ENOENT ? not_running() : r < 0 ? 1 : 0;
}

static int
show_status(const struct place *place, int argc, char **argv, struct buf *error)
{
    AUTO_JSON cJSON *json = NULL;
    int r = ask_or_say(place, "/api/flowd/status", &json, error);

    (void)argc;
    (void)argv;
    if (r != 0)
        return r;
    put_line("version: ", json_str(json, "version"));
    put_line("url: ", place->url);
    put_line("state: ", place->dir);
    put_line("config: ", json_str(json, "config_dir"));
    (void)printf("pid: %lld\nuptime: %lld s\nturns: %lld running, %lld waiting\n"
                 "reviewers: %lld processes\n",
                 (long long)number(json, "pid"), (long long)number(json, "uptime_sec"),
                 (long long)number(json, "turns"), (long long)number(json, "queued"),
                 (long long)number(json, "reviewers"));
    return 0;
}

/* ---- list ---- */

static const char *
or_dash(const char *text)
{
    return text ? text : "-";
}

static void
put_run(const cJSON *run)
{
    AUTO_BUF struct buf title = BUF_INIT((size_t)32 << 20);
    const char *words = or_dash(json_str(run, "target_title"));
    const char *first =
        json_str(cJSON_GetArrayItem(json_get(run, "participants"), 0), "vendor");
    const char *vendor = json_str(run, "round_vendor");
    const char *state = json_str(run, "reviewer_state");
    char times[64] = "-";

    text_add_line(&title, words, text_prefix(words, strlen(words), 60));
    if (state && number(run, "round_elapsed_ms") > 0)
        (void)snprintf(times, sizeof times, "%llds/%llds",
                       (long long)number(run, "round_elapsed_ms") / 1000,
                       (long long)number(run, "round_silence_ms") / 1000);
    (void)printf("%-32s %-8s %5lld  %-10s %-10s %-12s %s\n",
                 or_dash(json_str(run, "flow_run_id")), or_dash(json_str(run, "status")),
                 (long long)number(run, "round_number"), or_dash(vendor ? vendor : first),
                 state ? state : or_dash(json_str(run, "round_status")), times,
                 buf_str(&title));
}

static int
put_runs(const struct place *place, bool all, struct buf *error)
{
    AUTO_JSON cJSON *json = NULL;
    const cJSON *run;
    int r = ask_or_say(place, all ? "/api/flowd/runs" : "/api/flowd/open-runs", &json, error);

    if (r != 0)
        return r;
    (void)printf("%-32s %-8s %5s  %-10s %-10s %-12s %s\n", "RUN", "STATUS", "ROUND", "VENDOR",
                 "STATE", "TIME/SILENT", "TITLE");
    cJSON_ArrayForEach(run, json_get(json, "runs")) put_run(run);
    if (cJSON_IsTrue(json_get(json, "has_more")))
        (void)printf("(and older ones; %d are shown)\n",
                     cJSON_GetArraySize(json_get(json, "runs")));
    return 0;
}

/* Until the terminal hangs up, or the user has seen enough. */
static int
watch_runs(const struct place *place, bool all, struct buf *error)
{
    struct pollfd fd = {.fd = STDOUT_FILENO};
    int r;

    for (;;) {
        (void)fputs("\033[H\033[2J", stdout);
        r = put_runs(place, all, error);
        if ((r != 0 && r != EXIT_NOT_RUNNING) || fflush(stdout) == EOF)
            return r;
        if (poll(&fd, 1, WATCH_MS) > 0 && (fd.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0)
            return 0;
    }
}

static int
list(const struct place *place, int argc, char **argv, struct buf *error)
{
    bool all = false, watch = false;

    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--all") == 0)
            all = true;
        else if (strcmp(argv[i], "--watch") == 0)
            watch = true;
        else
            return 2;
    }
    return watch ? watch_runs(place, all, error) : put_runs(place, all, error);
}

/* ---- show, tail ---- */

static int
path_of(const char *prefix, const char *id, const char *suffix, struct buf *ret,
        struct buf *error)
{
    if (strspn(id, "0123456789abcdef") != strlen(id) || strlen(id) > 64 || !id[0]) {
        buf_adds(error, "a run's id has nothing but the digits 0-9 and a-f (kcap-flowd list "
                        "shows them)");
        return 2;
    }
    buf_addf(ret, "%s%s%s", prefix, id, suffix);
    return 0;
}

static void
put_text(const char *text)
{
    AUTO_BUF struct buf clean = BUF_INIT((size_t)32 << 20);

    if (!text)
        return;
    text_add_clean(&clean, text, strlen(text));
    (void)printf("%s\n", buf_str(&clean));
}

static void
put_round(const cJSON *round)
{
    (void)printf("\nround %lld (%s): %s", (long long)number(round, "round_number"),
                 or_dash(json_str(round, "round_participant")),
                 or_dash(json_str(round, "round_status")));
    if (number(round, "round_elapsed_ms") > 0)
        (void)printf(", %lld s, silent for %lld s",
                     (long long)number(round, "round_elapsed_ms") / 1000,
                     (long long)number(round, "round_silence_ms") / 1000);
    (void)putchar('\n');
    put_line("state: ", json_str(round, "reviewer_state"));
    put_line("memory: ", json_str(round, "reviewer_memory"));
    put_line("reason: ", json_str(round, "round_reason"));
    put_line("note: ", json_str(round, "round_note"));
    put_text(json_str(round, "round_result_text"));
}

static int
show(const struct place *place, int argc, char **argv, struct buf *error)
{
    static const char *const members[] = {"flow_run_id",   "status",      "end_reason",
                                          "definition_id", "target_kind", "target_ref",
                                          "target_title",  "started_at",  "updated_at"};
    AUTO_BUF struct buf path = BUF_INIT(256);
    AUTO_JSON cJSON *json = NULL;
    const cJSON *item;
    int r = path_of("/api/flowd/runs/", argv[0], "", &path, error);

    (void)argc;
    if (r == 0)
        r = ask_or_say(place, buf_str(&path), &json, error);
    if (r != 0)
        return r;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        char label[64];
        (void)snprintf(label, sizeof label, "%s: ", members[i]);
        put_line(label, json_str(json, members[i]));
    }
    cJSON_ArrayForEach(item, json_get(json, "people"))
    {
        (void)printf("participant: %s, %s%s%s, %s\n", or_dash(json_str(item, "role")),
                     or_dash(json_str(item, "vendor")), json_str(item, "model") ? " " : "",
                     json_str(item, "model") ? json_str(item, "model") : "",
                     or_dash(json_str(item, "workspace")));
        put_line("  environment: ", json_str(item, "environment"));
    }
    cJSON_ArrayForEach(item, json_get(json, "rounds")) put_round(item);
    cJSON_ArrayForEach(item, json_get(json, "pending_messages"))
    {
        (void)printf("\nmessage from %s: ", or_dash(json_str(item, "from_participant")));
        put_text(json_str(item, "text"));
    }
    return 0;
}

/* Follows the run until it is the driver's turn. */
static int
tail(const struct place *place, int argc, char **argv, struct buf *error)
{
    AUTO_BUF struct buf path = BUF_INIT(256);
    int r = path_of("/api/flows/", argv[0], "?wait_sec=5", &path, error);

    (void)argc;
    while (r == 0) {
        AUTO_JSON cJSON *json = NULL;
        const char *status, *state;
        r = ask_or_say(place, buf_str(&path), &json, error);
        if (r != 0)
            break;
        status = or_dash(json_str(json, "status"));
        state = strcmp(status, "running") == 0 ? json_str(json, "reviewer_state") : NULL;
        if (number(json, "round_number") > 0)
            (void)printf("round %lld: %s, %lld s, silent for %lld s\n",
                         (long long)number(json, "round_number"),
                         state ? state : or_dash(json_str(json, "round_status")),
                         (long long)number(json, "round_elapsed_ms") / 1000,
                         (long long)number(json, "round_silence_ms") / 1000);
        else
            (void)printf("no round yet, %s\n", status);
        if (strcmp(status, "running") != 0) {
            put_line("reason: ", json_str(json, "round_reason"));
            put_text(json_str(json, "round_result_text"));
            return 0;
        }
        if (fflush(stdout) == EOF)
            return 0;
    }
    return r;
}

/* ---- stop, backup ---- */

static int
stop(const struct place *place, int argc, char **argv, struct buf *error)
{
    AUTO_CLOSE int pidfd = -1;
    struct pollfd fd = {.events = POLLIN};
    pid_t pid = 0;
    int r = ask_pid(place, &pid);

    (void)argc;
    (void)argv;
    if (r == -ENOENT)
        return not_running();
    fd.fd = pidfd = r < 0 ? r : pidfd_open(pid, 0);
    if (pidfd < 0 || pidfd_send_signal(pidfd, SIGTERM, NULL, 0) < 0) {
        buf_addf(error, "the daemon cannot be told to stop: %s", strerror(r < 0 ? -r : errno));
        return 1;
    }
    if (poll(&fd, 1, STOP_MS) <= 0) {
        buf_addf(error, "process %ld was told to stop and is still there", (long)pid);
        return 1;
    }
    return 0;
}

/* A copy of the store as it is at one moment, also while the daemon writes to it. */
static int
backup(const struct place *place, int argc, char **argv, struct buf *error)
{
    AUTO_CLOSE int fd = -1;
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    int r;

    (void)argc;
    (void)umask(077);
    if (access(argv[0], F_OK) == 0) {
        buf_addf(error, "%s is there already", argv[0]);
        return 1;
    }
    if (access(place->store_path, F_OK) < 0 && errno == ENOENT) {
        buf_addf(error, "there is no store in %s: no kcap-flowd has run there", place->dir);
        return 1;
    }
    r = sqlite3_open_v2(place->store_path, &db, SQLITE_OPEN_READWRITE, NULL);
    if (r == SQLITE_OK)
        r = sqlite3_busy_timeout(db, 10000);
    if (r == SQLITE_OK)
        r = sqlite3_prepare_v2(db, "VACUUM INTO ?", -1, &stmt, NULL);
    if (r == SQLITE_OK)
        r = sqlite3_bind_text(stmt, 1, argv[0], -1, SQLITE_STATIC);
    if (r == SQLITE_OK)
        r = sqlite3_step(stmt);
    if (r != SQLITE_DONE)
        buf_addf(error, "%s cannot be copied: %s", place->store_path,
                 db ? sqlite3_errmsg(db) : "out of memory");
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    if (r != SQLITE_DONE) {
        (void)unlink(argv[0]); /* what there is of it; it was not there before */
        return 1;
    }
    fd = open(argv[0], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0) {
        buf_addf(error, "%s: %s", argv[0], strerror(errno));
        return 1;
    }
    return 0;
}

static const struct command commands[] = {
    {"status", 0, 0, show_status}, {"list", 0, 2, list}, {"show", 1, 1, show},
    {"tail", 1, 1, tail},          {"stop", 0, 0, stop}, {"backup", 1, 1, backup},
};

static const struct command *
find(const char *word)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(commands[i].name, word) == 0)
            return &commands[i];
    }
    return NULL;
}

bool
commands_has(const char *word)
{
    return find(word) != NULL;
}

int
commands_run(int argc, char **argv)
{
    const struct command *command = find(argv[1]);
    AUTO_BUF struct buf error = BUF_INIT(8192);
    struct place place;
    int words = argc - 2, status = 2;

    if (place_init(&place, &error) == 0 && words >= command->least && words <= command->most)
        status = command->run(&place, words, argv + 2, &error);
    else if (error.len > 0)
        status = 1;
    place_fini(&place);
    if (error.len > 0)
        (void)fprintf(stderr, "kcap-flowd: %s\n", buf_str(&error));
    else if (status == 2)
        (void)fputs("kcap-flowd: see kcap-flowd --help\n", stderr);
    return status;
}
