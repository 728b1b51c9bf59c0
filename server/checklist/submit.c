/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/checklist/submit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/json.h"
#include "lib/paths.h"
#include "lib/spawn.h"
#include "lib/text.h"

#define PROTOCOL   "2025-06-18"
#define MAX_LINE   ((size_t)1 << 20)
#define MAX_RESULT ((size_t)16 << 20)

/* A client's side of one server over pipes. It waits without a limit of its own: whoever runs
 * reviewers has a clock on them. */
struct client {
    pid_t pid;
    int to, from;
    struct buf input; /* read, not yet taken as lines */
};

static int
client_start(struct client *client, struct buf *error)
{
    AUTO_FREE char *program = paths_program("kcap-host");
    const char *const argv[] = {program, "--plugin", "flow-result", NULL};
    AUTO_CLOSE int in = -1, out = -1;
    struct spawn spawn = {.argv = argv, .stderr_fd = STDERR_FILENO};
    int to[2], from[2], r;

    if (!program) {
        buf_adds(error, "kcap-host is not beside kcap-checklist: install it there");
        return -ENOENT;
    }
    if (pipe2(to, O_CLOEXEC) < 0)
        return -errno;
    in = to[0];
    client->to = to[1];
    if (pipe2(from, O_CLOEXEC) < 0)
        return -errno;
    client->from = from[0];
    out = from[1];
    spawn.stdin_fd = in;
    spawn.stdout_fd = out;
    r = spawn_start(&spawn, &client->pid, NULL);
    if (r < 0)
        buf_addf(error, "%s cannot be started: %s", program, strerror(-r));
    return r;
}

static int
send_line(const struct client *client, const struct buf *line)
{
    size_t done = 0;

    if (!buf_ok(line))
        return -ENOMEM;
    while (done < line->len) {
        ssize_t n = write(client->to, line->data + done, line->len - done);
        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* The next line, owned, without its end. */
static int
receive_line(struct client *client, struct buf *ret)
{
    for (;;) {
        const char *start = buf_str(&client->input);
        const char *end = memchr(start, '\n', client->input.len);
        ssize_t n;
        if (end) {
            buf_clear(ret);
            buf_add(ret, start, (size_t)(end - start));
            buf_shift(&client->input, (size_t)(end - start) + 1);
            return buf_ok(ret) ? 0 : -ENOMEM;
        }
        if (!buf_reserve(&client->input, 65536))
            return -EFBIG;
        n = read(client->from, client->input.data + client->input.len, 65536);
        if (n == 0)
            return -EPIPE;
        if (n < 0 && errno != EINTR)
            return -errno;
        client->input.len += n > 0 ? (size_t)n : 0;
        client->input.data[client->input.len] = '\0';
    }
}

/* Waits for the answer to request id; what comes before it (notifications) is not for us.
 * *ret_result is owned. */
static int
receive_answer(struct client *client, int64_t id, cJSON **ret_result, struct buf *error)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_LINE);

    for (;;) {
        AUTO_JSON cJSON *message = NULL;
        int64_t message_id;
        int r = receive_line(client, &line);
        if (r < 0) {
            buf_addf(error, "kcap-host gave no answer: %s", strerror(-r));
            return r;
        }
        message = json_parse(line.data, line.len, NULL);
        if (!json_int(message, "id", &message_id) || message_id != id ||
            json_get(message, "method"))
            continue;
        *ret_result = cJSON_DetachItemFromObjectCaseSensitive(message, "result");
        if (cJSON_IsObject(*ret_result))
            return 0;
        cJSON_Delete(*ret_result);
        *ret_result = NULL;
        buf_adds(error, "kcap-host refused: ");
        text_add_line(error, line.data, text_prefix(line.data, line.len, 1000));
        return -EPROTO;
    }
}

static int
greet(struct client *client, struct buf *error)
{
    AUTO_BUF struct buf line = BUF_INIT(4096);
    AUTO_JSON cJSON *result = NULL;
    int r;

    buf_adds(&line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":"
                    "{\"protocolVersion\":\"" PROTOCOL "\",\"capabilities\":{},\"clientInfo\":"
                    "{\"name\":\"kcap-checklist\",\"version\":\"" PACKAGE_VERSION "\"}}}\n");
    r = send_line(client, &line);
    if (r == 0)
        r = receive_answer(client, 1, &result, error);
    if (r < 0)
        return r;
    buf_clear(&line);
    buf_adds(&line, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    return send_line(client, &line);
}

static int
call_tool(struct client *client, const char *round_token, const char *findings,
          struct buf *error)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_RESULT);
    AUTO_JSON cJSON *result = NULL;
    const char *text;
    int r;

    buf_adds(&line, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":"
                    "{\"name\":\"submit_review_result\",\"arguments\":{\"round_token\":");
    text_add_json(&line, round_token, strlen(round_token));
    buf_addf(&line, ",\"kind\":\"%s\"", findings ? "findings" : "clean");
    if (findings) {
        buf_adds(&line, ",\"findings\":");
        text_add_json(&line, findings, strlen(findings));
    }
    buf_adds(&line, "}}}\n");
    r = send_line(client, &line);
    if (r == 0)
        r = receive_answer(client, 2, &result, error);
    if (r < 0)
        return r;
    text = json_str(cJSON_GetArrayItem(json_get(result, "content"), 0), "text");
    if (json_bool(result, "isError", false)) {
        text = text ? text : "without a text";
        buf_adds(error, "the result was not taken: ");
        text_add_line(error, text, text_prefix(text, strlen(text), 1000));
        return -EREMOTEIO;
    }
    return 0;
}

/* End of input makes the server leave. */
static void
client_stop(struct client *client)
{
    if (client->to >= 0)
        (void)close(client->to);
    if (client->from >= 0)
        (void)close(client->from);
    while (client->pid > 0 && waitpid(client->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    buf_fini(&client->input);
}

int
submit_result(const char *round_token, const char *findings, struct buf *error)
{
    struct client client = {.to = -1, .from = -1, .input = BUF_INIT(MAX_LINE)};
    int r;

    (void)signal(SIGPIPE, SIG_IGN);
    r = client_start(&client, error);
    if (r == 0)
        r = greet(&client, error);
    if (r == 0)
        r = call_tool(&client, round_token, findings, error);
    client_stop(&client);
    if (r < 0 && error->len == 0)
        buf_addf(error, "kcap-host: %s", strerror(-r));
    return r;
}
