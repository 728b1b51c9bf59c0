/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a reviewer started like this could report, found out without reporting anything. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reviewer.h"

#define LIMIT_NS INT64_C(15000000000)

/* What launchers go by; 2 is the host's own, when the plugin does not start. */
enum exit_status {
    EXIT_WELL = 0,
    EXIT_TROUBLE = 1, /* interrupted, or out of memory */
    EXIT_NO_SERVER = 3,
    EXIT_NOT_REACHED = 4,
    EXIT_NO_LOGIN = 5
};

static int32_t
say(enum exit_status status, const char *what, const char *line)
{
    (void)dprintf(STDOUT_FILENO, "%s: %s\n", what, line);
    return (int32_t)status;
}

static int32_t
judge(const struct kcap_http_response *answer, bool is_capability)
{
    if (answer->outcome != KCAP_HTTP_ANSWER)
        return say(EXIT_NOT_REACHED, "reached", answer->error);
    if (answer->status == 401) {
        (void)say(EXIT_WELL, "reached", "yes");
        return say(EXIT_NO_LOGIN, "login", answer->error);
    }
    if (answer->status != 200)
        return say(EXIT_NOT_REACHED, "reached", answer->error);
    (void)say(EXIT_WELL, "reached", "yes");
    return say(EXIT_WELL, "login",
               is_capability ? "not asked for: the address stands for it"
                             : "usable, or none needed");
}

static int32_t
check(struct reviewer *self, struct kcap_call *call, const struct kcap_http *http,
      const struct kcap_http_server *server)
{
    bool is_capability = strcmp(server->source, "KCAP_FLOW_CAPABILITY_URL") == 0;
    struct kcap_http_response *answer = NULL;
    int32_t r = http->check(http, call, self->host->now_ns(self->host) + LIMIT_NS, &answer);

    r = r == 0 ? judge(answer, is_capability)
               : say(EXIT_TROUBLE, "reached", "the check did not come to an end");
    http->response_free(http, answer);
    return r;
}

static void
say_kept(struct reviewer *self)
{
    const char *dir = spool_dir(&self->spool);

    if (dir)
        (void)dprintf(STDOUT_FILENO, "kept results: %zu, in %s\n", spool_count(&self->spool),
                      dir);
    else
        (void)say(EXIT_WELL, "kept results", "none can be kept (that is allowed)");
}

static int32_t
run_selftest(void *ctx, struct kcap_call *call, int32_t argc, const char *const *argv)
{
    struct reviewer *self = ctx;
    struct kcap_http_server server = {.struct_size = sizeof server};
    struct delivery nowhere = {.detail = NULL};
    const struct kcap_http *http;
    int32_t status;

    (void)argc;
    (void)argv;
    (void)pthread_mutex_lock(&self->lock);
    self->is_command = true;
    (void)pthread_mutex_unlock(&self->lock);
    (void)say(EXIT_WELL, "agent id", "set");
    say_kept(self);
    http = reviewer_find_server(self, &server, &nowhere);
    if (!http) {
        status = say(EXIT_NO_SERVER, "server", nowhere.detail ? nowhere.detail : "none");
        delivery_fini(&nowhere);
        return status;
    }
    (void)dprintf(STDOUT_FILENO, "server: %s (from %s)\n", server.url, server.source);
    return check(self, call, http, &server);
}

static const struct kcap_command selftest = {
    .struct_size = sizeof(struct kcap_command),
    .name = "selftest",
    .summary = "check environment, server and login; submits nothing; the exit status tells",
    .run = run_selftest,
};

const struct kcap_command *const reviewer_commands[] = {&selftest, NULL};
