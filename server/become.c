/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/become.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/compose.h"
#include "launch/words.h"
#include "lib/auto.h"
#include "lib/json.h"
#include "lib/paths.h"
#include "lib/spawn.h"
#include "lib/text.h"
#include "server/util.h"

#define MAX_ERRORS   ((size_t)64 << 10)
#define EXIT_REFUSED 3

extern char **environ;

/* Words after BECOME_WORD; "" stands for none. */
enum { WORD_VENDOR = 2, WORD_MODE, WORD_DIR, WORD_URL, WORD_MODEL, WORD_PROGRAM, WORD_COUNT };

int
become_plan(const struct settings *settings, const struct assignment *job, const char *url,
            const char *vendor, const char *mode, struct vendor_plan *ret, struct buf *error)
{
    AUTO_FREE char *self = paths_program("kcap-flowd");
    const char *model =
        job->who.model ? job->who.model : json_str(settings_vendor(settings, vendor), "model");

    if (!self) {
        buf_adds(error, "kcap-flowd is not where it was started from: install it anew");
        return -ENOENT;
    }
    vendor_plan_add(ret, self);
    vendor_plan_add(ret, BECOME_WORD);
    vendor_plan_add(ret, vendor);
    vendor_plan_add(ret, mode);
    vendor_plan_add(ret, job->who.dir);
    vendor_plan_add(ret, url);
    vendor_plan_add(ret, model ? model : "");
    vendor_plan_add(ret, settings_program(settings, vendor, ""));
    return 0;
}

static bool
is_program(const char *dir, size_t dir_len, const char *name)
{
    char path[4096];
    int len = snprintf(path, sizeof path, "%.*s/%s", (int)dir_len, dir, name);

    return len > 0 && (size_t)len < sizeof path && access(path, X_OK) == 0;
}

const char *
become_missing(const struct settings *settings, const char *vendor)
{
    const char *program = settings_program(settings, vendor, vendor);
    const char *path = getenv("PATH");

    if (strchr(program, '/'))
        return program[0] == '/' && access(program, X_OK) == 0
                   ? NULL
                   : "the program that flowd.json names for it is not there";
    for (path = path ? path : "/usr/bin:/bin"; path; path = strchr(path, ':')) {
        path += *path == ':';
        if (is_program(path, strcspn(path, ":"), program))
            return NULL;
    }
    return "its program is not in the PATH that kcap-flowd was started with; flowd.json can "
           "name "
           "it: \"vendors\": {NAME: {\"program\": PATH}}";
}

/* ---- saying what happens ---- */

static void
say(const char *member, cJSON *value)
{
    AUTO_JSON cJSON *line = cJSON_CreateObject();
    cJSON *launch = cJSON_AddObjectToObject(line, "kcap_launch");
    AUTO_FREE char *text = NULL;

    if (!value || !launch || !cJSON_AddItemToObject(launch, member, value))
        cJSON_Delete(value);
    text = json_print(line);
    if (text)
        (void)printf("%s\n", text);
    (void)fflush(stdout);
}

static int
refuse(const char *const *reasons)
{
    cJSON *list = cJSON_CreateArray();

    for (; *reasons; reasons++) {
        cJSON *item = cJSON_CreateString(*reasons);
        if (!item || !cJSON_AddItemToArray(list, item))
            cJSON_Delete(item);
    }
    say("refused", list);
    return EXIT_REFUSED;
}

/* ---- the steps ---- */

/* Reads one stream that is ready. Returns false at its end, or when there is too much. */
static bool
take(int fd, struct buf *to)
{
    char space[16384];
    ssize_t n = read(fd, space, sizeof space);

    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    buf_add(to, space, (size_t)n);
    return n > 0 && buf_ok(to);
}

/* Until both streams are at their end, the time is over, or there is too much. */
static int
collect(int out_fd, int err_fd, int64_t until_ns, struct buf *output, struct buf *errors)
{
    struct pollfd fds[2] = {{.fd = out_fd, .events = POLLIN}, {.fd = err_fd, .events = POLLIN}};

    while (fds[0].fd >= 0) {
        int64_t left_ms = (until_ns - util_now_ns()) / 1000000;
        int n = left_ms > 0 ? poll(fds, 2, (int)left_ms + 1) : 0;
        if (n == 0)
            return COMPOSE_TIMED_OUT;
        if (n < 0 && errno != EINTR)
            return COMPOSE_KILLED;
        if (n > 0 && fds[0].revents && !take(fds[0].fd, output))
            fds[0].fd = -1;
        if (n > 0 && fds[1].revents && !take(fds[1].fd, errors))
            fds[1].fd = -1;
        if (!buf_ok(output))
            return COMPOSE_OVERFLOWED;
    }
    return 0;
}

/* Its end is waited for as long as the step may last; then it is killed. */
static int
await_exit(pid_t pid, int pidfd, int64_t until_ns)
{
    struct pollfd fd = {.fd = pidfd, .events = POLLIN};
    int64_t left_ms = (until_ns - util_now_ns()) / 1000000;
    int status, n;

    do
        n = poll(&fd, 1, left_ms > 0 ? (int)left_ms + 1 : 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return COMPOSE_KILLED;
    }
    if (n <= 0)
        return COMPOSE_TIMED_OUT;
    return WIFEXITED(status) ? WEXITSTATUS(status) : COMPOSE_KILLED;
}

/* In our own process group, so that whoever ends us ends it. */
static int
run_step(const struct compose_step *step, struct buf *output, struct buf *errors)
{
    AUTO_CLOSE int out = -1, err = -1, out_theirs = -1, err_theirs = -1, pidfd = -1;
    int64_t until_ns = util_now_ns() + step->limit_ms * 1000000;
    struct spawn spawn = {
        .argv = step->argv, .envp = step->envp, .dir = step->dir, .stdin_fd = -1};
    int ends[2], r, status;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return COMPOSE_NOT_STARTED;
    out = ends[0];
    spawn.stdout_fd = out_theirs = ends[1];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return COMPOSE_NOT_STARTED;
    err = ends[0];
    spawn.stderr_fd = err_theirs = ends[1];
    if (spawn_start(&spawn, &pid, &pidfd) < 0)
        return COMPOSE_NOT_STARTED;
    (void)close(take_fd(&out_theirs));
    (void)close(take_fd(&err_theirs));
    r = collect(out, err, until_ns, output, errors);
    if (r < 0)
        (void)kill(pid, SIGKILL);
    status = await_exit(pid, pidfd, until_ns);
    return r < 0 ? r : status;
}

static enum compose_next
compose_all(struct compose *compose)
{
    struct compose_step step;
    enum compose_next next;

    while ((next = compose_next(compose, &step)) == COMPOSE_RUN) {
        AUTO_BUF struct buf output = BUF_INIT(step.max_output), errors = BUF_INIT(MAX_ERRORS);
        struct compose_answer answer = {.status = 0};
        say("step", cJSON_CreateString(step.what));
        answer.status = run_step(&step, &output, &errors);
        answer.output = buf_str(&output);
        answer.output_len = output.len;
        answer.errors = buf_str(&errors);
        answer.errors_len = errors.len;
        compose_answer(compose, &answer);
    }
    return next;
}

/* ---- turning into it ---- */

/* Its environment has a mark of this launch, by which a later daemon finds what is left. */
static int
exec_plan(const struct compose_plan *plan, const char *mark)
{
    struct words envp = {.n = 0};
    AUTO_BUF struct buf entry = BUF_INIT(4096), reason = BUF_INIT(8192);
    const char *reasons[2] = {NULL, NULL};
    sigset_t none;

    for (const char *const *each = plan->envp; *each; each++) {
        if (strncmp(*each, "KCAP_REVIEWER=", 14) != 0)
            words_add(&envp, *each);
    }
    buf_addf(&entry, "KCAP_REVIEWER=%s", mark);
    words_add_buf(&envp, &entry);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (!envp.failed && chdir(plan->dir) == 0) {
        say("server", cJSON_CreateString(plan->server));
        (void)execve(plan->argv[0], (char *const *)(uintptr_t)plan->argv,
                     (char *const *)(uintptr_t)words_list(&envp));
    }
    buf_addf(&reason, "%s cannot be started in %s: %s", plan->argv[0], plan->dir,
             envp.failed ? "out of memory" : strerror(errno));
    words_fini(&envp);
    reasons[0] = buf_str(&reason);
    return refuse(reasons);
}

static const char *
word_or_null(const char *word)
{
    return word[0] ? word : NULL;
}

int
become(int argc, char **argv)
{
    static const char *const out_of_memory[] = {"out of memory", NULL};
    static const char *const usage[] = {"this is not to be called by hand", NULL};
    const char *agent_id = getenv("KCAP_FLOW_AGENT_ID"), *mark = getenv("KCAP_REVIEWER");
    const char *state_dir = getenv("KCAP_STATE_DIR");
    AUTO_FREE char *host = paths_program("kcap-host"), *state = NULL;
    const char *server_env[2] = {NULL, NULL};
    struct compose_request request = {.host_program = host,
                                      .agent_id = agent_id,
                                      .envp = (const char *const *)(uintptr_t)environ,
                                      .server_env = server_env};
    struct compose *compose;
    int status;

    if (argc != WORD_COUNT || !agent_id || !mark)
        return refuse(usage);
    request.vendor = strcmp(argv[WORD_VENDOR], "claude") == 0 ? COMPOSE_CLAUDE : COMPOSE_CODEX;
    request.mode = strcmp(argv[WORD_MODE], "exec") == 0 ? COMPOSE_EXEC : COMPOSE_APP_SERVER;
    request.dir = argv[WORD_DIR];
    request.url = argv[WORD_URL];
    request.model = word_or_null(argv[WORD_MODEL]);
    request.program = word_or_null(argv[WORD_PROGRAM]);
    if (state_dir && asprintf(&state, "KCAP_STATE_DIR=%s", state_dir) < 0)
        state = NULL;
    server_env[0] = state;
    if (compose_new(&request, &compose) < 0)
        return refuse(out_of_memory);
    status = compose_all(compose) == COMPOSE_READY ? exec_plan(compose_plan(compose), mark)
                                                   : refuse(compose_reasons(compose));
    compose_free(compose);
    return status;
}

/* ---- the daemon's side ---- */

static void
refuse_launch(struct reviewer *reviewer, const cJSON *reasons)
{
    AUTO_BUF struct buf text = BUF_INIT(8192);
    const cJSON *reason;

    cJSON_ArrayForEach(reason, reasons)
    {
        if (cJSON_IsString(reason))
            buf_addf(&text, "%s%s", text.len > 0 ? "; " : "", reason->valuestring);
    }
    reviewer_refuse(reviewer, "isolation_violation", buf_str(&text));
}

enum become_line
become_read(struct reviewer *reviewer, const char *line, size_t len, char **ret_server)
{
    AUTO_JSON cJSON *json = json_parse(line, len, NULL);
    const cJSON *launch = json_get(json, "kcap_launch");
    const char *server = json_str(launch, "server");

    if (!launch)
        return BECOME_OTHER;
    reviewer_step(reviewer, "its program to begin", 0);
    if (cJSON_IsArray(json_get(launch, "refused"))) {
        refuse_launch(reviewer, json_get(launch, "refused"));
        return BECOME_REFUSED;
    }
    if (!server)
        return BECOME_STEP;
    *ret_server = strdup(server);
    if (*ret_server)
        return BECOME_DONE;
    reviewer_refuse(reviewer, "out_of_memory", NULL);
    return BECOME_REFUSED;
}
