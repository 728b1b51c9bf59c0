/* SPDX-License-Identifier: Apache-2.0 */
/* flow-result.so: the two things an unattended reviewer may do, and nothing else. */
#include "config.h"

#include <kcap/http.h>
#include <kcap/plugin.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/json.h"
#include "lib/text.h"
#include "reviewer.h"
#include "texts.h"

#define MAX_BODY_LEN   ((size_t)16 << 20)
#define MAX_TEXT_LEN   16384u
#define MESSAGE_ID_LEN 16

static int32_t
flow_result_init(const struct kcap_host *host, void **ret_ctx)
{
    const char *agent_id = host->env(host, "KCAP_FLOW_AGENT_ID");
    struct reviewer *self;

    if (text_is_blank(agent_id)) {
        host->log(host, KCAP_LOG_ERROR,
                  "flow-result: KCAP_FLOW_AGENT_ID is not set; only a flow server starts this, "
                  "with that variable naming the reviewer");
        return KCAP_E_REFUSED;
    }
    self = calloc(1, sizeof *self);
    if (!self)
        return KCAP_E_NOMEM;
    self->host = host;
    self->agent_id = agent_id;
    (void)pthread_mutex_init(&self->lock, NULL);
    spool_init(&self->spool, host, agent_id);
    pending_start(self);
    *ret_ctx = self;
    return KCAP_OK;
}

void
reviewer_set_unsure(struct reviewer *self, const char *round_token)
{
    free(self->unsure_token);
    self->unsure_token = round_token ? strdup(round_token) : NULL;
}

/* ---- arguments ---- */

/* What the schema cannot say; NULL when all is well. */
static const char *
check_result(const cJSON *args)
{
    const char *token = json_str(args, "round_token"), *kind = json_str(args, "kind");

    if (text_is_blank(token))
        return "round_token is missing or blank: give the token that stands in this round's "
               "instructions.";
    if (!kind || (strcmp(kind, "findings") != 0 && strcmp(kind, "clean") != 0))
        return "kind must be \"findings\" or \"clean\".";
    if (strcmp(kind, "findings") == 0 && text_is_blank(json_str(args, "findings")))
        return "findings is missing or blank: kind \"findings\" needs the text of the findings "
               "(use kind \"clean\" when there are none).";
    return NULL;
}

static const char *
check_message(const cJSON *args)
{
    return text_is_blank(json_str(args, "text")) ? "text is missing or blank: give the message."
                                                 : NULL;
}

static void
add_member(struct buf *to, const char *name, const char *value)
{
    buf_addf(to, "%s\"%s\":", to->len == 0 ? "{" : ",", name);
    text_add_json(to, value, strlen(value));
}

static void
add_result_body(struct buf *to, const struct reviewer *self, const cJSON *args)
{
    const char *kind = json_str(args, "kind");

    add_member(to, "agent_id", self->agent_id);
    add_member(to, "round_token", json_str(args, "round_token"));
    add_member(to, "kind", kind);
    if (strcmp(kind, "findings") == 0)
        add_member(to, "text", json_str(args, "findings"));
    buf_addc(to, '}');
}

/* The id is the same in every attempt, so that the server can tell a repetition. */
static bool
add_message_body(struct buf *to, const struct reviewer *self, const cJSON *args)
{
    unsigned char id[MESSAGE_ID_LEN];
    char digits[2 * MESSAGE_ID_LEN + 1];

    if (getrandom(id, sizeof id, 0) != (ssize_t)sizeof id)
        return false;
    for (size_t i = 0; i < sizeof id; i++)
        (void)snprintf(digits + 2 * i, 3, "%02x", id[i]);
    add_member(to, "agent_id", self->agent_id);
    add_member(to, "message_id", digits);
    add_member(to, "text", json_str(args, "text"));
    buf_addc(to, '}');
    return true;
}

/* ---- the server ---- */

static const struct kcap_http *
no_server(struct delivery *ret, const char *why)
{
    *ret = (struct delivery){
        .verdict = VERDICT_UNUSABLE, .outcome = OUTCOME_NOT_DELIVERED, .detail = strdup(why)};
    return NULL;
}

const struct kcap_http *
reviewer_find_server(struct reviewer *self, struct kcap_http_server *server,
                     struct delivery *ret)
{
    const struct kcap_http *http = self->host->extension(self->host, KCAP_HTTP_EXTENSION);
    bool said;

    if (!http)
        return no_server(ret, "kcap-host's HTTP service (http.so) could not be loaded; its log "
                              "has the reason");
    http->server(http, server);
    if (server->kind == KCAP_HTTP_SERVER_UNUSABLE)
        return no_server(ret, server->error ? server->error : "no usable flow server");
    (void)pthread_mutex_lock(&self->lock);
    said = self->said_where;
    self->said_where = true;
    (void)pthread_mutex_unlock(&self->lock);
    if (!said)
        kcap_logf(self->host, KCAP_LOG_INFO, "flow-result: results go to %s (from %s)",
                  server->url, server->source);
    return http;
}

/* ---- calls ---- */

static int32_t
give(const struct reviewer *self, struct kcap_call *call, enum errand_kind kind,
     struct delivery *delivery)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_TEXT_LEN);
    AUTO_BUF struct buf json = BUF_INIT(8 * MAX_TEXT_LEN);
    int32_t is_error = texts_add(&text, kind, delivery);

    texts_add_json(&json, delivery, &text);
    delivery_fini(delivery);
    if (!buf_ok(&text) || !buf_ok(&json))
        return KCAP_E_NOMEM;
    return self->host->result(call, is_error, text.data, text.len, json.data, json.len);
}

/* Nothing was sent. */
static int32_t
give_error(const struct reviewer *self, struct kcap_call *call, const char *line)
{
    const struct delivery nothing = {.outcome = OUTCOME_NOT_DELIVERED};
    AUTO_BUF struct buf text = BUF_INIT(MAX_TEXT_LEN);
    AUTO_BUF struct buf json = BUF_INIT(8 * MAX_TEXT_LEN);

    buf_adds(&text, line);
    texts_add_json(&json, &nothing, &text);
    if (!buf_ok(&text) || !buf_ok(&json))
        return KCAP_E_NOMEM;
    return self->host->result(call, 1, text.data, text.len, json.data, json.len);
}

/* On disk first, then sent. */
static bool
keep(struct reviewer *self, const struct kcap_http_server *server, const char *round_token,
     const struct buf *body, struct spool_entry *ret)
{
    bool may_be_there;

    (void)pthread_mutex_lock(&self->lock);
    spool_put(&self->spool, round_token, server->url, server->source, body->data, body->len,
              ret);
    may_be_there = ret->may_be_there ||
                   (self->unsure_token && strcmp(self->unsure_token, round_token) == 0);
    (void)pthread_mutex_unlock(&self->lock);
    return may_be_there;
}

static void
settle(struct reviewer *self, const char *round_token, struct spool_entry *entry,
       const struct delivery *delivery)
{
    (void)pthread_mutex_lock(&self->lock);
    reviewer_set_unsure(self, delivery->outcome == OUTCOME_UNKNOWN ? round_token : NULL);
    if (delivery->outcome == OUTCOME_DELIVERED || delivery_is_final(delivery))
        spool_remove(entry);
    else if (delivery->outcome == OUTCOME_NOT_DELIVERED)
        spool_set_state(&self->spool, entry, false);
    (void)pthread_mutex_unlock(&self->lock);
}

static int32_t
deliver_result(struct reviewer *self, struct kcap_call *call, const struct kcap_http *http,
               const struct kcap_http_server *server, const char *round_token,
               const struct buf *body, struct delivery *ret)
{
    struct errand errand = {
        .kind = ERRAND_RESULT,
        .body = body->data,
        .body_len = body->len,
        .max_attempts = ERRAND_ATTEMPTS,
        .attempt_limit_ns = ERRAND_LIMIT_NS,
    };
    struct spool_entry entry;
    int32_t r = pending_run(self, call, http, server, round_token);

    if (r == KCAP_WAIT_CANCELLED || r == KCAP_WAIT_SHUTDOWN)
        return r;
    errand.may_be_there = keep(self, server, round_token, body, &entry);
    r = deliver(self->host, call, http, &errand, ret);
    if (r == 0)
        settle(self, round_token, &entry, ret);
    spool_entry_fini(&entry);
    return r;
}

static int32_t
call_result(struct reviewer *self, struct kcap_call *call, const cJSON *args)
{
    AUTO_BUF struct buf body = BUF_INIT(MAX_BODY_LEN);
    struct kcap_http_server server = {.struct_size = sizeof server};
    const struct kcap_http *http;
    struct delivery delivery;
    const char *fault = check_result(args);
    int32_t r;

    if (fault)
        return give_error(self, call, fault);
    add_result_body(&body, self, args);
    if (!buf_ok(&body))
        return give_error(self, call, "findings is longer than 16 MiB: shorten it.");
    http = reviewer_find_server(self, &server, &delivery);
    r = http ? deliver_result(self, call, http, &server, json_str(args, "round_token"), &body,
                              &delivery)
             : 0;
    return r != 0 ? KCAP_OK : give(self, call, ERRAND_RESULT, &delivery);
}

static int32_t
call_message(struct reviewer *self, struct kcap_call *call, const cJSON *args)
{
    AUTO_BUF struct buf body = BUF_INIT(MAX_BODY_LEN);
    struct errand errand = {.kind = ERRAND_MESSAGE,
                            .max_attempts = ERRAND_ATTEMPTS,
                            .attempt_limit_ns = ERRAND_LIMIT_NS};
    struct kcap_http_server server = {.struct_size = sizeof server};
    const struct kcap_http *http;
    struct delivery delivery;
    const char *fault = check_message(args);
    int32_t r;

    if (fault)
        return give_error(self, call, fault);
    if (!add_message_body(&body, self, args))
        return give_error(self, call,
                          "Not delivered: the system gave no random bytes; call again.");
    if (!buf_ok(&body))
        return give_error(self, call, "text is longer than 16 MiB: shorten it.");
    errand.body = body.data;
    errand.body_len = body.len;
    http = reviewer_find_server(self, &server, &delivery);
    r = http ? deliver(self->host, call, http, &errand, &delivery) : 0;
    return r != 0 ? KCAP_OK : give(self, call, ERRAND_MESSAGE, &delivery);
}

static int32_t
flow_result_call(void *ctx, struct kcap_call *call, const struct kcap_tool *tool,
                 const char *args_text, size_t args_len)
{
    AUTO_JSON cJSON *args = json_parse(args_text, args_len, NULL);

    return tool == reviewer_tools[0] ? call_result(ctx, call, args)
                                     : call_message(ctx, call, args);
}

static void
flow_result_fini(void *ctx)
{
    struct reviewer *self = ctx;

    spool_fini(&self->spool);
    free(self->unsure_token);
    free(self);
}

KCAP_REGISTER(KCAP_CLASS_REVIEWER, .threads = KCAP_THREADS_SERIAL, .name = "flow-result",
              .version = PACKAGE_VERSION,
              .summary = "the reviewer's side: delivers the result of a review round",
              .tools = reviewer_tools, .commands = reviewer_commands, .init = flow_result_init,
              .call = flow_result_call, .fini = flow_result_fini);
