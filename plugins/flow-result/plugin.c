/* SPDX-License-Identifier: Apache-2.0 */
/* flow-result.so: the one thing an unattended reviewer may do, and nothing else. */
#include "config.h"

#include <kcap/http.h>
#include <kcap/plugin.h>
#include <stdlib.h>
#include <string.h>

#include "deliver.h"
#include "lib/json.h"
#include "lib/text.h"
#include "texts.h"

#define MAX_BODY_LEN ((size_t)16 << 20)
#define MAX_TEXT_LEN 16384u

struct flow_result {
    const struct kcap_host *host;
    const char *agent_id;
    bool said_where; /* SERIAL: no lock */
};

static const struct kcap_tool submit_review_result = {
    .struct_size = sizeof(struct kcap_tool),
    .name = "submit_review_result",
    .title = "Submit the review result",
    .description =
        "Deliver the result of the review round you were asked to do. This call is the only "
        "way the result reaches anybody: text in your reply is not read. Call it once per "
        "round, when the review is finished, with the round token from the round's "
        "instructions. Use kind \"findings\" with the whole text of the findings, or kind "
        "\"clean\" when there is nothing to change. If it answers with an error, do what the "
        "error says. The call may take a minute when the server is slow; it retries by itself.",
    .input_schema =
        "{\"type\":\"object\",\"properties\":{"
        "\"round_token\":{\"type\":\"string\",\"minLength\":1,\"description\":\"The round "
        "token "
        "from this round's instructions, exactly as given.\"},"
        "\"kind\":{\"type\":\"string\",\"enum\":[\"findings\",\"clean\"],\"description\":"
        "\"findings: something has to be changed. clean: nothing has.\"},"
        "\"findings\":{\"type\":\"string\",\"description\":\"All findings, most severe first; "
        "required for kind findings, left out for kind clean.\"}},"
        "\"required\":[\"round_token\",\"kind\"],\"additionalProperties\":false}",
    /* a round takes one result: the same call again changes nothing more */
    .hints = KCAP_HINT_IDEMPOTENT,
};

static const struct kcap_tool *const tools[] = {&submit_review_result, NULL};

static int32_t
flow_result_init(const struct kcap_host *host, void **ret_ctx)
{
    const char *agent_id = host->env(host, "KCAP_FLOW_AGENT_ID");
    struct flow_result *self;

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
    *ret_ctx = self;
    return KCAP_OK;
}

static int32_t
give_error(const struct flow_result *self, struct kcap_call *call, const char *text)
{
    return self->host->result(call, 1, text, strlen(text), NULL, 0);
}

/* What the schema cannot say; NULL when all is well. */
static const char *
check_arguments(const cJSON *args)
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

static void
add_member(struct buf *to, const char *name, const char *value)
{
    buf_addf(to, "%s\"%s\":", to->len == 0 ? "{" : ",", name);
    text_add_json(to, value, strlen(value));
}

static void
add_body(struct buf *to, const struct flow_result *self, const cJSON *args)
{
    const char *kind = json_str(args, "kind");

    add_member(to, "agent_id", self->agent_id);
    add_member(to, "round_token", json_str(args, "round_token"));
    add_member(to, "kind", kind);
    if (strcmp(kind, "findings") == 0)
        add_member(to, "text", json_str(args, "findings"));
    buf_addc(to, '}');
}

/* The service, once it is known to have a server; else the reason in *ret. */
static const struct kcap_http *
find_server(struct flow_result *self, struct delivery *ret)
{
    const struct kcap_http *http = self->host->extension(self->host, KCAP_HTTP_EXTENSION);
    struct kcap_http_server server = {.struct_size = sizeof server};

    if (!http) {
        *ret =
            (struct delivery){.verdict = VERDICT_UNUSABLE,
                              .detail = strdup("kcap-host's HTTP service (http.so) could not "
                                               "be loaded; its log has the reason")};
        return NULL;
    }
    http->server(http, &server);
    if (server.kind == KCAP_HTTP_SERVER_UNUSABLE) {
        *ret = (struct delivery){
            .verdict = VERDICT_UNUSABLE,
            .detail = strdup(server.error ? server.error : "no usable flow server")};
        return NULL;
    }
    if (!self->said_where) {
        kcap_logf(self->host, KCAP_LOG_INFO, "flow-result: results go to %s (from %s)",
                  server.url, server.source);
        self->said_where = true;
    }
    return http;
}

static int32_t
flow_result_call(void *ctx, struct kcap_call *call, const struct kcap_tool *tool,
                 const char *args_text, size_t args_len)
{
    struct flow_result *self = ctx;
    AUTO_JSON cJSON *args = json_parse(args_text, args_len, NULL);
    AUTO_BUF struct buf body = BUF_INIT(MAX_BODY_LEN);
    AUTO_BUF struct buf text = BUF_INIT(MAX_TEXT_LEN);
    const struct kcap_http *http;
    struct delivery delivery;
    const char *fault = check_arguments(args);
    int32_t r, is_error;

    (void)tool;
    if (fault)
        return give_error(self, call, fault);
    add_body(&body, self, args);
    if (!buf_ok(&body))
        return give_error(self, call, "findings is longer than 16 MiB: shorten it.");

    http = find_server(self, &delivery);
    r = http ? deliver(self->host, call, http, body.data, body.len, &delivery) : 0;
    if (r != 0)
        return KCAP_OK;
    is_error = texts_add(&text, &delivery);
    delivery_fini(&delivery);
    if (!buf_ok(&text))
        return KCAP_E_NOMEM;
    return self->host->result(call, is_error, text.data, text.len, NULL, 0);
}

static void
flow_result_fini(void *ctx)
{
    free(ctx);
}

KCAP_REGISTER(KCAP_CLASS_REVIEWER, .threads = KCAP_THREADS_SERIAL, .name = "flow-result",
              .version = PACKAGE_VERSION,
              .summary = "the reviewer's side: delivers the result of a review round",
              .tools = tools, .init = flow_result_init, .call = flow_result_call,
              .fini = flow_result_fini);
