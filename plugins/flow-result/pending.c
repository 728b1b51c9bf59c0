/* SPDX-License-Identifier: Apache-2.0 */
/* Results that an earlier process, or an earlier call, kept and could not deliver. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "reviewer.h"
#include "texts.h"

#define NS_PER_MS      INT64_C(1000000)
#define START_PAUSE_NS (250 * NS_PER_MS)
#define QUICK_LIMIT_NS (5000 * NS_PER_MS)
#define BUSY_LIMIT_NS  (15000 * NS_PER_MS)
#define MAX_NAMES_LEN  16384u

static bool
may_go_to(const struct spool_entry *entry, const struct kcap_http_server *server)
{
    static const char capability[] = "KCAP_FLOW_CAPABILITY_URL";

    /* a capability has another port each time, and is on this machine each time */
    return strcmp(entry->server, server->url) == 0 ||
           (strcmp(entry->source, capability) == 0 && strcmp(server->source, capability) == 0);
}

/* Whether the next one is worth a try. */
static bool
settle(struct reviewer *self, struct spool_entry *entry, const struct delivery *delivery,
       bool is_patient)
{
    bool unwanted = delivery_is_final(delivery) ||
                    (is_patient && delivery->verdict == VERDICT_NO_OPEN_ROUND);

    if (delivery->outcome == OUTCOME_DELIVERED || unwanted) {
        kcap_logf(self->host, KCAP_LOG_INFO, "flow-result: a result kept from before is %s",
                  delivery->outcome == OUTCOME_DELIVERED ? "delivered now"
                                                         : "not wanted any more and dropped");
        spool_remove(entry);
        if (delivery->outcome != OUTCOME_NOT_DELIVERED)
            reviewer_set_unsure(self, entry->round_token);
        return true;
    }
    if (delivery->outcome == OUTCOME_NOT_DELIVERED)
        spool_set_state(&self->spool, entry, false);
    return delivery->verdict == VERDICT_STATUS || delivery->verdict == VERDICT_NO_OPEN_ROUND;
}

/* A third of what is left of the call at most: the rest is for its own result. */
static int64_t
share_ns(const struct reviewer *self, struct kcap_call *call, int64_t limit_ns)
{
    int64_t left_ms = self->host->remaining_ms(call);

    return left_ms < limit_ns / NS_PER_MS * 3 ? left_ms * NS_PER_MS / 3 : limit_ns;
}

static int32_t
deliver_entry(struct reviewer *self, struct kcap_call *call, const struct kcap_http *http,
              struct spool_entry *entry, bool is_patient, bool *ret_go_on)
{
    struct errand errand = {
        .kind = ERRAND_RESULT,
        .body = entry->body,
        .body_len = entry->body_len,
        .may_be_there = entry->may_be_there,
        .max_attempts = is_patient ? ERRAND_ATTEMPTS : 1,
        .attempt_limit_ns = is_patient ? ERRAND_LIMIT_NS : share_ns(self, call, QUICK_LIMIT_NS),
    };
    struct delivery delivery;
    int32_t r;

    (void)pthread_mutex_lock(&self->lock);
    spool_set_state(&self->spool, entry, true);
    (void)pthread_mutex_unlock(&self->lock);
    r = deliver(self->host, call, http, &errand, &delivery);
    if (r != 0)
        return r;
    (void)pthread_mutex_lock(&self->lock);
    *ret_go_on = settle(self, entry, &delivery, is_patient);
    (void)pthread_mutex_unlock(&self->lock);
    delivery_fini(&delivery);
    return 0;
}

static int32_t
deliver_name(struct reviewer *self, struct kcap_call *call, const struct kcap_http *http,
             const struct kcap_http_server *server, const char *name, const char *skip_token,
             bool *ret_go_on)
{
    struct spool_entry entry;
    bool found;
    int32_t r = 0;

    (void)pthread_mutex_lock(&self->lock);
    found = spool_open(&self->spool, name, &entry);
    (void)pthread_mutex_unlock(&self->lock);
    if (found && may_go_to(&entry, server) && !(skip_token && spool_is_for(&entry, skip_token)))
        r = deliver_entry(self, call, http, &entry, skip_token == NULL, ret_go_on);
    spool_entry_fini(&entry);
    return r;
}

static int32_t
deliver_all(struct reviewer *self, struct kcap_call *call, const struct kcap_http *http,
            const struct kcap_http_server *server, const char *skip_token)
{
    AUTO_BUF struct buf names = BUF_INIT(MAX_NAMES_LEN);
    bool go_on = true;
    int32_t r = 0;

    (void)pthread_mutex_lock(&self->lock);
    spool_list(&self->spool, &names);
    (void)pthread_mutex_unlock(&self->lock);
    for (char *name = names.data, *end; name && *name && r == 0 && go_on; name = end + 1) {
        end = strchr(name, '\n');
        *end = '\0';
        r = deliver_name(self, call, http, server, name, skip_token, &go_on);
    }
    return r;
}

/* ---- in a call ---- */

int32_t
pending_run(struct reviewer *self, struct kcap_call *call, const struct kcap_http *http,
            const struct kcap_http_server *server, const char *skip_token)
{
    const struct kcap_host *host = self->host;
    int64_t limit_ns = host->now_ns(host) + share_ns(self, call, BUSY_LIMIT_NS);

    for (;;) {
        uint64_t seen = host->seq(host);
        bool is_busy;
        int32_t r;

        (void)pthread_mutex_lock(&self->lock);
        is_busy = self->is_busy;
        (void)pthread_mutex_unlock(&self->lock);
        if (!is_busy)
            return deliver_all(self, call, http, server, skip_token);
        r = host->wait(call, seen, NULL, 0, limit_ns);
        if (r == KCAP_WAIT_TIMEOUT)
            return 0;
        if (r != KCAP_WAIT_CHANGED)
            return r;
    }
}

/* ---- in the background ---- */

static void
set_busy(struct reviewer *self, bool is_busy)
{
    (void)pthread_mutex_lock(&self->lock);
    self->is_busy = is_busy;
    (void)pthread_mutex_unlock(&self->lock);
    self->host->notify(self->host);
}

static bool
is_command(struct reviewer *self)
{
    bool is_command;

    (void)pthread_mutex_lock(&self->lock);
    is_command = self->is_command;
    (void)pthread_mutex_unlock(&self->lock);
    return is_command;
}

static void
run_in_background(struct kcap_call *call, void *arg)
{
    struct reviewer *self = arg;
    const struct kcap_host *host = self->host;
    struct kcap_http_server server = {.struct_size = sizeof server};
    struct delivery nowhere = {.detail = NULL};
    const struct kcap_http *http;

    /* the client is answered first, and a command has said by then that it is one */
    if (host->wait(call, KCAP_SEQ_NONE, NULL, 0, host->now_ns(host) + START_PAUSE_NS) ==
            KCAP_WAIT_TIMEOUT &&
        !is_command(self)) {
        http = reviewer_find_server(self, &server, &nowhere);
        if (http)
            (void)deliver_all(self, call, http, &server, NULL);
        delivery_fini(&nowhere);
    }
    set_busy(self, false);
}

static void
drop(void *arg)
{
    set_busy(arg, false);
}

void
pending_start(struct reviewer *self)
{
    if (spool_count(&self->spool) == 0)
        return;
    self->is_busy = true;
    if (self->host->background(self->host, run_in_background, drop, self) < 0)
        self->is_busy = false;
}
