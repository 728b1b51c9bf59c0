/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codex over "codex app-server": one process and one thread for a whole run. Messages go both
 * ways, a line of JSON each; both sides make requests, with ids of their own.
 */
#include "config.h"

#include "server/vendor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/auto.h"
#include "lib/jscan.h"
#include "lib/json.h"
#include "lib/text.h"
#include "server/become.h"
#include "server/codex_track.h"

#define MAX_SENT    ((size_t)40 << 20) /* a prompt, escaped */
#define MAX_METHOD  128
#define RESULT_TOOL "submit_review_result"

/* What is done now; each but the last two is a request that is not answered yet. */
#define SERVER_START_SEC 10 /* Codex's own limit for the start of our MCP server */

enum stage {
    STAGE_LAUNCH,
    STAGE_INITIALIZE,
    STAGE_THREAD,
    STAGE_SERVERS, /* are there others than ours? */
    STAGE_READY,
    STAGE_UNFIT
};

struct codex {
    enum stage stage;
    char *server; /* the name of our MCP server in this launch */
    int64_t last_id;
    int64_t asked_id; /* the request of this stage, or turn/start */
    struct codex_track track;
    bool in_turn;
    struct buf trouble; /* what the last error said */
};

static struct codex *
codex_of(const struct reviewer *reviewer)
{
    return reviewer_state(reviewer);
}

/* ---- sending ---- */

static void
send_json(struct reviewer *reviewer, cJSON *message)
{
    AUTO_FREE char *text = json_print(message);

    if (!text) {
        reviewer_refuse(reviewer, "out_of_memory", NULL);
        return;
    }
    reviewer_send(reviewer, text, strlen(text));
    reviewer_send(reviewer, "\n", 1);
}

/* Takes params. Returns the id. */
static int64_t
send_request(struct reviewer *reviewer, const char *method, cJSON *params)
{
    struct codex *codex = codex_of(reviewer);
    AUTO_JSON cJSON *message = cJSON_CreateObject();

    codex->last_id++;
    if (!cJSON_AddNumberToObject(message, "id", (double)codex->last_id) ||
        !json_add_str(message, "method", method) || !params ||
        !cJSON_AddItemToObject(message, "params", params)) {
        cJSON_Delete(params);
        reviewer_refuse(reviewer, "out_of_memory", NULL);
        return codex->last_id;
    }
    send_json(reviewer, message);
    return codex->last_id;
}

static void
send_initialize(struct reviewer *reviewer)
{
    struct codex *codex = codex_of(reviewer);
    cJSON *params = cJSON_CreateObject();
    cJSON *client = cJSON_AddObjectToObject(params, "clientInfo");

    (void)json_add_str(client, "name", "kcap-flowd");
    (void)json_add_str(client, "version", PACKAGE_VERSION);
    codex->stage = STAGE_INITIALIZE;
    reviewer_step(reviewer, "the answer to initialize", 0);
    codex->asked_id = send_request(reviewer, "initialize", params);
}

static void
send_thread_start(struct reviewer *reviewer)
{
    static const char initialized[] = "{\"method\":\"initialized\"}\n";
    struct codex *codex = codex_of(reviewer);
    const struct assignment *job = reviewer_job(reviewer);
    cJSON *params = cJSON_CreateObject();

    reviewer_send(reviewer, initialized, sizeof initialized - 1);
    (void)json_add_str(params, "cwd", job->who.dir);
    (void)json_add_str(params, "approvalPolicy", "never");
    (void)json_add_str(params, "sandbox", "read-only");
    (void)cJSON_AddTrueToObject(params, "ephemeral");
    (void)json_add_str(params, "model", job->who.model);
    codex->stage = STAGE_THREAD;
    reviewer_step(reviewer, "the answer to thread/start", SERVER_START_SEC);
    codex->asked_id = send_request(reviewer, "thread/start", params);
}

static void
send_servers_question(struct reviewer *reviewer)
{
    struct codex *codex = codex_of(reviewer);
    cJSON *params = cJSON_CreateObject();

    (void)json_add_str(params, "threadId", track_root(&codex->track));
    codex->stage = STAGE_SERVERS;
    reviewer_step(reviewer, "the answer to mcpServerStatus/list", 0);
    codex->asked_id = send_request(reviewer, "mcpServerStatus/list", params);
}

static void
turn(struct reviewer *reviewer, const struct assignment *job, const char *text)
{
    struct codex *codex = codex_of(reviewer);
    cJSON *params = cJSON_CreateObject();
    cJSON *input = NULL, *item = cJSON_CreateObject();

    (void)job;
    (void)json_add_str(params, "threadId", track_root(&codex->track));
    input = cJSON_AddArrayToObject(params, "input");
    if (!item || !cJSON_AddItemToArray(input, item)) {
        cJSON_Delete(item);
        item = NULL;
    }
    (void)json_add_str(item, "type", "text");
    (void)json_add_str(item, "text", text);
    (void)cJSON_AddArrayToObject(item, "text_elements");
    track_begin_turn(&codex->track);
    buf_clear(&codex->trouble);
    codex->in_turn = true;
    codex->asked_id = send_request(reviewer, "turn/start", params);
}

/* Without a turn's id, since turn/start was never answered, any turn is meant. */
static bool
interrupt(struct reviewer *reviewer)
{
    struct codex *codex = codex_of(reviewer);
    cJSON *params;

    if (!codex || !codex->in_turn)
        return false;
    params = cJSON_CreateObject();
    (void)json_add_str(params, "threadId", track_root(&codex->track));
    (void)json_add_str(params, "turnId", track_turn(&codex->track));
    (void)send_request(reviewer, "turn/interrupt", params);
    return true;
}

/* ---- answers to our requests ---- */

/* A text of the message, as far as it is one. */
static char *
text_of(struct span value)
{
    size_t len;

    return span_type(value) == '"' ? span_string(value, &len) : NULL;
}

static void
fail_stage(struct reviewer *reviewer, const char *what, struct span error)
{
    AUTO_BUF struct buf detail = BUF_INIT(8192);
    AUTO_FREE char *message = text_of(span_get(error, "message"));

    codex_of(reviewer)->stage = STAGE_UNFIT;
    buf_addf(&detail, "%s: %s", what, message ? message : "no answer that can be read");
    reviewer_refuse(reviewer, "protocol_error", buf_str(&detail));
}

static bool
has_result_tool(struct span server)
{
    return span_get(span_get(server, "tools"), RESULT_TOOL).p != NULL;
}

/* Exactly our server may be there for the thread, connected and with its tool; others only as
 * what they were disabled to. Returns what is wrong, or NULL. */
static const char *
check_servers(const struct codex *codex, struct span result, struct buf *space)
{
    struct span_iter iter;
    struct span server, next = span_get(result, "nextCursor");
    bool found = false;

    if (span_type(span_get(result, "data")) != '[' || (next.p && span_type(next) != 'n'))
        return "the list of its MCP servers cannot be read";
    span_elements(span_get(result, "data"), &iter);
    while (span_next_element(&iter, &server)) {
        struct span status = span_get(server, "runtimeStatus");
        AUTO_FREE char *name = text_of(span_get(server, "name"));
        if (name && strcmp(name, codex->server) == 0) {
            found = has_result_tool(server);
        } else if (!span_is(status, "disabled")) {
            buf_addf(space, "it also has the MCP server \"%s\"", name ? name : "?");
            return buf_str(space);
        }
    }
    return found ? NULL : "it has not got our result server";
}

static void
servers_answered(struct reviewer *reviewer, struct span result)
{
    AUTO_BUF struct buf space = BUF_INIT(8192);
    struct codex *codex = codex_of(reviewer);
    const char *fault = check_servers(codex, result, &space);

    if (fault) {
        codex->stage = STAGE_UNFIT;
        reviewer_refuse(reviewer, "isolation_violation", fault);
        return;
    }
    codex->stage = STAGE_READY;
    reviewer_ready(reviewer);
}

static void
turn_start_answered(struct reviewer *reviewer, struct span result, struct span error)
{
    struct codex *codex = codex_of(reviewer);
    AUTO_FREE char *message = text_of(span_get(error, "message"));

    codex->asked_id = 0;
    if (!error.p) {
        track_set_turn(&codex->track, span_get(span_get(result, "turn"), "id"));
    } else if (codex->in_turn) {
        codex->in_turn = false;
        reviewer_turn_ended(reviewer, "failed", message);
    }
}

static void
answered(struct reviewer *reviewer, struct span message)
{
    struct codex *codex = codex_of(reviewer);
    struct span id = span_get(message, "id"), result = span_get(message, "result");
    struct span error = span_get(message, "error");
    char expected[24];

    (void)snprintf(expected, sizeof expected, "%lld", (long long)codex->asked_id);
    if (id.len != strlen(expected) || memcmp(id.p, expected, id.len) != 0)
        return; /* of an interrupt: the end of the turn is what counts */
    if (codex->stage == STAGE_READY) {
        turn_start_answered(reviewer, result, error);
        return;
    }
    if (codex->stage == STAGE_INITIALIZE && !error.p)
        send_thread_start(reviewer);
    else if (codex->stage == STAGE_THREAD && !error.p &&
             track_set_root(&codex->track, span_get(span_get(result, "thread"), "id")))
        send_servers_question(reviewer);
    else if (codex->stage == STAGE_SERVERS && !error.p)
        servers_answered(reviewer, result);
    else
        fail_stage(reviewer,
                   codex->stage == STAGE_INITIALIZE ? "initialize"
                   : codex->stage == STAGE_THREAD   ? "thread/start"
                                                    : "mcpServerStatus/list",
                   error);
}

/* ---- its requests ---- */

/* Each is answered at once: an unanswered one would stop the turn without a word. */
static void
requested(struct reviewer *reviewer, struct span id, const char *method)
{
    AUTO_BUF struct buf line = BUF_INIT(8192);

    buf_adds(&line, "{\"id\":");
    buf_add(&line, id.p, id.len);
    if (strcmp(method, "item/commandExecution/requestApproval") == 0 ||
        strcmp(method, "item/fileChange/requestApproval") == 0)
        buf_adds(&line, ",\"result\":{\"decision\":\"decline\"}}\n");
    else if (strcmp(method, "mcpServer/elicitation/request") == 0)
        buf_adds(&line, ",\"result\":{\"action\":\"decline\",\"content\":null}}\n");
    else
        buf_adds(&line, ",\"error\":{\"code\":-32601,\"message\":\"nobody is here to answer\"}"
                        "}\n");
    if (buf_ok(&line))
        reviewer_send(reviewer, buf_str(&line), line.len);
}

/* ---- its notifications ---- */

static void
keep_trouble(struct codex *codex, struct span error)
{
    AUTO_FREE char *message = text_of(span_get(error, "message"));
    struct span info = span_get(error, "codexErrorInfo");

    if (!message)
        return;
    buf_clear(&codex->trouble);
    buf_adds(&codex->trouble, message);
    if (info.p && span_type(info) != 'n' && info.len < 200) {
        buf_adds(&codex->trouble, " (");
        buf_add(&codex->trouble, info.p, info.len);
        buf_adds(&codex->trouble, ")");
    }
}

static void
ended(struct reviewer *reviewer, struct span the_turn)
{
    struct codex *codex = codex_of(reviewer);
    struct span status = span_get(the_turn, "status");

    codex->in_turn = false;
    track_begin_turn(&codex->track);
    keep_trouble(codex, span_get(the_turn, "error"));
    if (span_is(status, "completed"))
        reviewer_turn_ended(reviewer, NULL, NULL);
    else if (span_is(status, "interrupted"))
        reviewer_turn_ended(reviewer, "interrupted", "somebody else stopped the turn");
    else
        reviewer_turn_ended(reviewer, "failed", buf_str(&codex->trouble));
}

static void
notified(struct reviewer *reviewer, const char *method, struct span params)
{
    struct codex *codex = codex_of(reviewer);
    unsigned mcp_calls, commands;

    if (!codex->in_turn)
        return;
    switch (track_read(&codex->track, method, params)) {
    case TRACK_NOTHING:
        break;
    case TRACK_ALIVE:
        track_count_open(&codex->track, &mcp_calls, &commands);
        reviewer_waits(reviewer, mcp_calls, commands);
        reviewer_sign(reviewer);
        break;
    case TRACK_RETRYING:
        keep_trouble(codex, span_get(params, "error"));
        reviewer_explain(reviewer, buf_str(&codex->trouble));
        break;
    case TRACK_BROKEN:
        keep_trouble(codex, span_get(params, "error"));
        break;
    case TRACK_ENDED:
        ended(reviewer, span_get(params, "turn"));
        break;
    case TRACK_CLOSED:
        codex->in_turn = false;
        reviewer_refuse(reviewer, "failed", "its thread was closed");
        break;
    }
}

static void
read_line(struct reviewer *reviewer, const char *line, size_t len)
{
    struct codex *codex = codex_of(reviewer);
    struct jscan scan;
    struct span name, id;
    AUTO_FREE char *method = NULL;

    if (!codex || codex->stage == STAGE_UNFIT)
        return;
    if (codex->stage == STAGE_LAUNCH) {
        if (become_read(reviewer, line, len, &codex->server) == BECOME_DONE)
            send_initialize(reviewer);
        return;
    }
    if (jscan(line, len, &scan) != JSCAN_OK || span_type(scan.value) != '{')
        return; /* neither does it care for such lines */
    name = span_get(scan.value, "method");
    id = span_get(scan.value, "id");
    if (!name.p) {
        answered(reviewer, scan.value);
        return;
    }
    method = name.len <= MAX_METHOD ? text_of(name) : NULL;
    if (!method)
        return;
    if (id.p) /* its ids are its own and may be equal to ours */
        requested(reviewer, id, method);
    else
        notified(reviewer, method, span_get(scan.value, "params"));
}

/* ---- life ---- */

static int
plan(const struct settings *settings, const struct assignment *job, const char *url,
     struct vendor_plan *ret, struct buf *error)
{
    return become_plan(settings, job, url, "codex", "app-server", ret, error);
}

static int
open_session(struct reviewer *reviewer, const struct assignment *job)
{
    struct codex *codex = calloc(1, sizeof *codex);

    (void)job;
    if (!codex)
        return -ENOMEM;
    buf_init(&codex->trouble, 4096);
    reviewer_set_state(reviewer, codex);
    return 0;
}

static void
close_session(void *state)
{
    struct codex *codex = state;

    free(codex->server);
    buf_fini(&codex->trouble);
    free(codex);
}

static const char *
missing(const struct settings *settings)
{
    return become_missing(settings, "codex");
}

static const char *const env[] = {"CODEX_*", "OPENAI_*", BECOME_NET_ENV, NULL};

const struct vendor vendor_codex = {
    .name = "codex",
    .keeps = true,
    .has_model = true,
    .knows_agent_id = true,
    .env = env,
    .missing = missing,
    .plan = plan,
    .open = open_session,
    .turn = turn,
    .line = read_line,
    .interrupt = interrupt,
    .close = close_session,
};
