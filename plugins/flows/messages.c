/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "messages.h"

#include <stdlib.h>
#include <string.h>

#include "lib/auto.h"
#include "lib/text.h"

#define MAX_MARK_LEN ((size_t)8 << 20)
#define MAX_MESSAGES 50u
#define MAX_LINE     4096u
#define MAX_LOG      16384u
#define ACK_LIMIT_MS 5000 /* both attempts */
#define GRACE_NS     NS_PER_SEC
#define ACK_PAUSE_NS (2 * NS_PER_SEC)

struct message {
    const char *id, *from, *text; /* id may be NULL */
};

/* ---- which were shown ---- */

/* One name for a message: by its id, or else by what it says. */
static uint64_t
mark(const char *run_id, const struct message *message)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_MARK_LEN);

    buf_addf(&text, "%s\n%s\n", run_id, message->id ? "id" : "text");
    buf_adds(&text, message->id ? message->id : message->from);
    if (!message->id) {
        buf_addc(&text, '\n');
        buf_adds(&text, message->text);
    }
    return text_hash(buf_str(&text), UINT64_C(0xcbf29ce484222325));
}

/* Remembers that the call shows it. Returns whether an earlier one did. */
static bool
note_seen(const struct subject *subject, uint64_t of_message)
{
    struct flows *flows = subject->flows;
    uint64_t serial = flows->host->serial(subject->call);
    bool seen = false;

    (void)pthread_mutex_lock(&flows->lock);
    for (size_t i = 0; i < MAX_SEEN && !seen; i++)
        seen = flows->seen[i].serial != 0 && flows->seen[i].mark == of_message;
    if (!seen)
        flows->seen[flows->n_seen++ % MAX_SEEN] =
            (struct seen_message){.serial = serial, .mark = of_message};
    (void)pthread_mutex_unlock(&flows->lock);
    return seen;
}

/* ---- showing ---- */

static bool
read_message(const cJSON *item, struct message *ret)
{
    const char *from = json_str(item, "from_participant");

    *ret = (struct message){.id = json_str(item, "message_id"),
                            .from = text_is_blank(from) ? "(unnamed)" : from,
                            .text = json_str(item, "text")};
    if (text_is_blank(ret->id))
        ret->id = NULL;
    return ret->text != NULL;
}

/* Its text was too much for one answer of the server's; see shorten.h. */
static bool
has_no_room(const cJSON *item)
{
    return json_str(item, "message_id") && cJSON_IsNull(json_get(item, "text"));
}

static void
add_id(struct buf *ids, const char *id)
{
    buf_adds(ids, ids->len == 0 ? "{\"message_ids\":[" : ",");
    text_add_json(ids, id, strlen(id));
}

static void
render_one(struct buf *text, const struct message *message, size_t kept, bool again)
{
    buf_addc(text, '\n');
    render_line(text, "message_from", message->from);
    render_line(text, "message_id", message->id);
    if (again)
        buf_adds(text, "message_note: shown before; act on it once\n");
    if (message->text[kept])
        buf_addf(text, "message_note: cut, its first %zu bytes are shown\n", kept);
    render_words(text, "The message", message->text, kept);
}

void
messages_render(const struct subject *subject, const char *run_id, const cJSON *doc,
                struct buf *text, struct buf *ids)
{
    const cJSON *item, *list = json_get(doc, "pending_messages");
    AUTO_BUF struct buf shown = BUF_INIT(MAX_ANSWER_TEXT);
    size_t n = 0, n_left = 0, room = RENDER_ROOM;
    struct message message;

    if (!cJSON_IsArray(list))
        return;
    cJSON_ArrayForEach(item, list)
    {
        size_t left = room, kept;
        bool again;
        if (!read_message(item, &message)) {
            n_left += has_no_room(item);
            continue;
        }
        kept = render_fit(message.text, strlen(message.text), &left);
        if (n == MAX_MESSAGES || (n > 0 && message.text[kept])) {
            n_left++; /* comes again, being unacknowledged */
            continue;
        }
        again = note_seen(subject, mark(run_id, &message));
        if (again && !message.id)
            continue; /* nothing can stop the server from sending it */
        render_one(&shown, &message, kept, again);
        if (message.id)
            add_id(ids, message.id);
        room = left;
        n++;
    }
    if (ids->len > 0)
        buf_adds(ids, "]}");
    if (n == 0)
        return;
    buf_addf(text, "\nmessages: %zu", n);
    if (n_left > 0)
        buf_addf(text, " (%zu more with the next call)", n_left);
    buf_addc(text, '\n');
    buf_adds(text, buf_str(&shown));
}

/* ---- acknowledging ---- */

/* Messages an answer shows, until it is known to have arrived. */
struct ack {
    struct ack *next;
    struct flows *flows;
    uint64_t serial; /* of the call that shows them */
    bool unseen;     /* its client gave up at that moment */
    char *path, *body;
};

static void
ack_free(struct ack *ack)
{
    if (!ack)
        return;
    free(ack->path);
    free(ack->body);
    free(ack);
}

/* With the lock held. */
static struct ack **
find_ack(struct flows *flows, uint64_t serial)
{
    struct ack **place = &flows->acks;

    while (*place && (*place)->serial != serial)
        place = &(*place)->next;
    return place;
}

static struct ack *
take_ack(struct flows *flows, uint64_t serial)
{
    struct ack **place, *ack;

    (void)pthread_mutex_lock(&flows->lock);
    place = find_ack(flows, serial);
    ack = *place;
    if (ack)
        *place = ack->next;
    (void)pthread_mutex_unlock(&flows->lock);
    return ack;
}

static int32_t
post(struct flows *flows, struct kcap_call *call, const char *path, const char *body)
{
    const struct kcap_host *host = flows->host;
    AUTO_BUF struct buf line = BUF_INIT(MAX_LOG);
    int64_t end_ns = host->now_ns(host) + ACK_LIMIT_MS * NS_PER_MS;
    int32_t r = KCAP_WAIT_TIMEOUT;

    for (int attempt = 0; attempt < 2 && r == KCAP_WAIT_TIMEOUT; attempt++) {
        AUTO_ANSWER struct api_answer answer = {.kind = API_REFUSED};
        r = api_request(
            flows, call,
            &(struct api_request){.method = "POST",
                                  .path = path,
                                  .body = body,
                                  .body_len = strlen(body),
                                  .limit_ms = (end_ns - host->now_ns(host)) / NS_PER_MS},
            &answer);
        if (r != 0)
            break;
        if (answer.status >= 200 && answer.status < 300)
            return 0;
        buf_clear(&line);
        api_add_error(&line, &answer);
        if (attempt == 1 || host->now_ns(host) + ACK_PAUSE_NS >= end_ns)
            break;
        r = host->wait(call, KCAP_SEQ_NONE, NULL, 0, host->now_ns(host) + ACK_PAUSE_NS);
    }
    kcap_logf(host, KCAP_LOG_WARN,
              "flows: messages could not be acknowledged and will come again: %s",
              line.len > 0 ? buf_str(&line) : "no answer in time");
    return r;
}

static bool
is_unseen(const struct ack *ack)
{
    bool unseen;

    (void)pthread_mutex_lock(&ack->flows->lock);
    unseen = ack->unseen;
    (void)pthread_mutex_unlock(&ack->flows->lock);
    return unseen;
}

/* A client that gave up as the answer was written says so within a moment. */
static void
acknowledge(struct kcap_call *bg_call, void *arg)
{
    struct ack *ack = arg;
    const struct kcap_host *host = ack->flows->host;
    int32_t r = host->wait(bg_call, KCAP_SEQ_NONE, NULL, 0, host->now_ns(host) + GRACE_NS);

    if (r == KCAP_WAIT_TIMEOUT && !is_unseen(ack))
        (void)post(ack->flows, bg_call, ack->path, ack->body);
    ack_free(take_ack(ack->flows, ack->serial));
}

static void
drop_ack(void *arg)
{
    struct ack *ack = arg;

    ack_free(take_ack(ack->flows, ack->serial));
}

/* Who calls from a shell sees what is written, and the process ends with it. */
static bool
is_shell(const struct subject *subject)
{
    struct kcap_client client = {.struct_size = sizeof client};

    subject->flows->host->client(subject->call, &client);
    return client.harness && strcmp(client.harness, "shell") == 0;
}

void
messages_expect(const struct subject *subject, const char *run_id, struct buf *ids)
{
    struct flows *flows = subject->flows;
    struct ack *ack;

    if (ids->len == 0 || !buf_ok(ids))
        return;
    ack = calloc(1, sizeof *ack);
    if (!ack)
        return; /* they come again */
    ack->flows = flows;
    ack->serial = flows->host->serial(subject->call);
    ack->path = api_path("/api/flows", run_id, "/messages/ack");
    ack->body = buf_take(ids, NULL);
    if (!ack->path || !ack->body) {
        ack_free(ack);
        return;
    }
    if (is_shell(subject)) {
        (void)post(flows, subject->call, ack->path, ack->body);
        ack_free(ack);
        return;
    }
    (void)pthread_mutex_lock(&flows->lock);
    ack->next = flows->acks;
    flows->acks = ack;
    (void)pthread_mutex_unlock(&flows->lock);
}

/* The answer's fate. */
static void
settle_ack(struct flows *flows, uint64_t serial, uint32_t outcome)
{
    struct ack *ack;

    (void)pthread_mutex_lock(&flows->lock);
    ack = *find_ack(flows, serial);
    if (ack && outcome == KCAP_SETTLED_LATE_CANCEL)
        ack->unseen = true; /* its background job is at work and looks */
    (void)pthread_mutex_unlock(&flows->lock);
    if (!ack || outcome == KCAP_SETTLED_LATE_CANCEL)
        return;
    if (outcome != KCAP_SETTLED_WRITTEN ||
        flows->host->background(flows->host, acknowledge, drop_ack, ack) < 0)
        ack_free(take_ack(flows, serial));
}

void
messages_settled(struct flows *flows, uint64_t serial, uint32_t outcome)
{
    settle_ack(flows, serial, outcome);
    if (outcome == KCAP_SETTLED_WRITTEN)
        return;
    (void)pthread_mutex_lock(&flows->lock);
    for (size_t i = 0; i < MAX_SEEN; i++) {
        if (flows->seen[i].serial == serial)
            flows->seen[i].serial = 0;
    }
    (void)pthread_mutex_unlock(&flows->lock);
}

void
messages_fini(struct flows *flows)
{
    while (flows->acks)
        ack_free(take_ack(flows, flows->acks->serial));
}
