/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "render.h"

#include <stdlib.h>
#include <string.h>

#include "lib/auto.h"
#include "lib/text.h"

#define MAX_VALUE_LEN    600u
#define MAX_SHORT_LEN    200u /* of a role, a vendor, a model */
#define MAX_PARTICIPANTS 50

void
render_line(struct buf *to, const char *label, const char *value)
{
    size_t len = value ? strlen(value) : 0, kept = text_prefix(value, len, MAX_VALUE_LEN);

    if (!value)
        return;
    buf_addf(to, "%s: ", label);
    text_add_line(to, value, kept);
    buf_adds(to, kept < len ? " [cut]\n" : "\n");
}

void
render_head(struct buf *to, const struct head *head)
{
    render_line(to, "flow_run_id", head->run_id);
    render_line(to, "status", head->status);
    render_line(to, "next_step", head->next_step);
    if (head->round > 0)
        buf_addf(to, "round_number: %lld\n", (long long)head->round);
    render_line(to, "result_kind", head->result_kind);
}

static void
render_workspace(struct buf *to, const cJSON *doc)
{
    const char *mode = json_str(doc, "workspace_mode");
    const char *reason = json_str(doc, "fallback_reason");

    if (!mode || strcmp(mode, "fallback") != 0) {
        render_line(to, "workspace", mode ? mode : "unknown");
        return;
    }
    buf_adds(to, "workspace: fallback (");
    reason = reason ? reason : "no reason given";
    text_add_line(to, reason, text_prefix(reason, strlen(reason), MAX_VALUE_LEN));
    buf_adds(to, ")\nwarning: your working tree was not borrowed; of anything uncommitted the "
                 "reviewer saw only what the submitted context contained\n");
}

static void
render_budget(struct buf *to, const cJSON *doc)
{
    const cJSON *role, *roles = json_get(doc, "unmetered_roles");
    const char *budget = json_str(doc, "budget_enforcement"),
               *separator = " (unmetered roles: ";

    if (!budget)
        return;
    buf_adds(to, "budget enforcement: ");
    text_add_line(to, budget, text_prefix(budget, strlen(budget), MAX_VALUE_LEN));
    if (strcmp(budget, "partial") == 0 && cJSON_IsArray(roles)) {
        cJSON_ArrayForEach(role, roles)
        {
            const char *name = cJSON_GetStringValue(role);
            if (text_is_blank(name))
                continue;
            buf_adds(to, separator);
            text_add_line(to, name, text_prefix(name, strlen(name), 100));
            separator = ", ";
        }
        if (separator[0] == ',')
            buf_addc(to, ')');
    }
    buf_addc(to, '\n');
}

/* The reviewer who sits there is not the one the server says it applied. */
static void
render_vendor_warning(struct buf *to, const cJSON *doc)
{
    const char *applied = json_str(doc, "applied_reviewer_vendor");
    const cJSON *one, *participants = json_get(doc, "participants");
    bool mismatch = json_bool(doc, "reviewer_vendor_mismatch", false);

    if (cJSON_IsArray(participants)) {
        cJSON_ArrayForEach(one, participants)
        {
            const char *role = json_str(one, "role"), *vendor = json_str(one, "vendor");
            if (applied && role && strcmp(role, "reviewer") == 0 && !text_is_blank(vendor) &&
                !json_bool(one, "stopped", false) && strcmp(vendor, applied) != 0)
                mismatch = true;
        }
    }
    if (mismatch)
        buf_adds(to,
                 "warning: the reviewer is not of the vendor that was applied; do not trust "
                 "its results, close the flow and tell the user\n");
}

void
render_audit(struct buf *to, const cJSON *doc)
{
    static const char *const members[] = {
        "requested_reviewer_vendor", "applied_reviewer_vendor",
        "reviewer_vendor_source",    "requested_reviewer_model",
        "applied_reviewer_model",    "resolved_reviewer_model",
        "reviewer_model_source",     NULL};

    for (const char *const *name = members; *name; name++)
        render_line(to, *name, json_str(doc, *name));
    render_workspace(to, doc);
    render_budget(to, doc);
    render_vendor_warning(to, doc);
}

/* Servers tell only whether one may take part in a further round. */
static const char *
participant_state(const cJSON *one, const struct view *view)
{
    if (json_bool(one, "stopped", false) || view->run_ended)
        return "stopped";
    if (view->marker && strcmp(view->marker, "participant_died") == 0)
        return "died";
    if (view->marker)
        return "stopped";
    return !view->round_ended && strcmp(view->status, "running") == 0 ? "running" : "idle";
}

static void
add_short(struct buf *line, const char *text)
{
    size_t len = strlen(text), kept = text_prefix(text, len, MAX_SHORT_LEN);

    buf_add(line, text, kept);
    buf_adds(line, kept < len ? " [cut], " : ", ");
}

void
render_participants(struct buf *to, const struct view *view)
{
    const cJSON *one, *participants = json_get(view->doc, "participants");
    int n = 0;

    if (!cJSON_IsArray(participants))
        return;
    cJSON_ArrayForEach(one, participants)
    {
        AUTO_BUF struct buf line = BUF_INIT(MAX_VALUE_LEN * 8);
        const char *role = json_str(one, "role"), *vendor = json_str(one, "vendor");
        const char *model = json_str(one, "model");
        if (!role || ++n > MAX_PARTICIPANTS)
            continue;
        add_short(&line, role);
        add_short(&line, text_is_blank(vendor) ? "no vendor" : vendor);
        add_short(&line, text_is_blank(model) ? "no model" : model);
        buf_adds(&line, participant_state(one, view));
        render_line(to, "participant", buf_str(&line));
    }
}

/* Where in what is there to begin: at a character, and not behind the end. */
static size_t
first_byte(const struct api_text *words, size_t len, int64_t offset)
{
    int64_t wanted = offset - words->from;
    size_t first = wanted <= 0 ? 0 : wanted < (int64_t)len ? (size_t)wanted : len;

    while (first > 0 && first < len && ((unsigned char)words->text[first] & 0xc0) == 0x80)
        first++;
    return first;
}

/* What a character takes in an answer, marked and as JSON: the very text is sent twice. */
static size_t
shown_len(const char *p, size_t n)
{
    if (*p == '\n')
        return 4;
    if (*p == '"' || *p == '\\' || *p == '\t')
        return 2;
    return n == 1 && *p >= 0x20 && *p < 0x7f ? 1 : n > 3 ? n : 3;
}

size_t
render_fit(const char *text, size_t len, size_t *room)
{
    size_t at = 0;

    while (at < len) {
        size_t n = text_utf8_len(text + at, len - at), shown = shown_len(text + at, n);
        if (shown > *room)
            break;
        *room -= shown;
        at += n > 0 ? n : 1;
    }
    return at;
}

/* Without a copy: it may be long. */
static void
add_marked(struct buf *to, const char *text, size_t len)
{
    for (const char *p = text, *end = text + len; p < end;) {
        const char *line_end = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((line_end ? line_end : end) - p);
        buf_adds(to, "| ");
        text_add_clean(to, p, n);
        buf_addc(to, '\n');
        p += n + (line_end != NULL);
    }
}

void
render_words(struct buf *to, const char *heading, const char *text, size_t len)
{
    buf_addf(to, "\n%s (each line begins with \"| \"):\n", heading);
    add_marked(to, text, len);
}

void
render_reviewer(struct buf *to, const struct family *family, const char *heading,
                const struct api_text *words, int64_t offset)
{
    size_t len = words->text ? strlen(words->text) : 0, room = RENDER_ROOM, first, n;
    int64_t begin, end;

    if (words->total == 0)
        return;
    first = first_byte(words, len, offset);
    n = text_prefix(words->text + first, len - first, API_MAX_TEXT);
    n = render_fit(words->text + first, n, &room);
    begin = words->from + (int64_t)first;
    end = begin + (int64_t)n;
    buf_addf(to, "\n%s (each line begins with \"| \"", heading);
    if (begin > 0 || end < words->total) /* ahead of the text: clients cut off ends */
        buf_addf(to, "; bytes %lld to %lld of %lld", (long long)begin, (long long)end,
                 (long long)words->total);
    buf_adds(to, "):\n");
    add_marked(to, words->text + first, n);
    if (end < words->total)
        buf_addf(to,
                 "[cut here: for the rest call %s with this flow_run_id and \"offset\": "
                 "%lld]\n",
                 family->status, (long long)end);
}

static enum next
next_step(const struct view *view)
{
    bool is_told = view->round > 0 || view->round_status || !view->result_kind;
    const char *round = is_told ? view->round_status : view->result_kind; /* old servers */

    if (!round)
        return view->no_round ? NEXT_ADDRESS : NEXT_WAIT;
    if (strcmp(round, "findings") == 0)
        return NEXT_FIX;
    if (strcmp(round, "clean") == 0)
        return NEXT_CLOSE;
    if (strcmp(round, "waiting") == 0)
        return NEXT_ANSWER;
    if (strcmp(round, "failed") == 0)
        return NEXT_MEND;
    if (view->round_ended)
        return view->reason ? NEXT_READ : NEXT_REDO;
    return NEXT_WAIT;
}

const char *
render_next_step(const struct family *family, const struct view *view)
{
    if (!view->run_ended)
        return family->next[next_step(view)];
    return strcmp(view->status, "closed") == 0 ? "nothing: this flow is closed"
                                               : "tell the user why it failed; start "
                                                 "another flow only if the user wants it";
}

static void
add_member(struct buf *to, const char *name, const char *text)
{
    bool is_first = to->len > 0 && to->data[to->len - 1] == '{';

    if (!text)
        return;
    buf_addf(to, "%s\"%s\":", is_first ? "" : ",", name);
    text_add_json(to, text, strlen(text));
}

static void
add_candidates(struct buf *to, const struct runs *candidates)
{
    buf_adds(to, ",\"candidates\":[");
    for (size_t i = 0; i < candidates->n; i++) {
        const struct run *run = &candidates->items[i];
        buf_adds(to, i > 0 ? ",{" : "{");
        add_member(to, "flow_run_id", run->run_id);
        add_member(to, "definition_id", run->definition);
        add_member(to, "target_title", run->target_title);
        add_member(to, "target_ref", run->target_ref);
        add_member(to, "status", run->status);
        buf_addc(to, '}');
    }
    buf_addc(to, ']');
}

/* Not by way of a tree: that would hold the text once more. */
int32_t
render_result(const struct kcap_host *host, struct kcap_call *call, bool is_error,
              const struct head *head, const struct buf *text, const struct runs *candidates)
{
    AUTO_BUF struct buf json = BUF_INIT(MAX_ANSWER_TEXT);

    if (!buf_ok(text))
        return KCAP_E_NOMEM;
    (void)buf_reserve(&json, text->len); /* at once: growing holds it twice */
    buf_addc(&json, '{');
    add_member(&json, "flow_run_id", head->run_id);
    add_member(&json, "status", head->status);
    add_member(&json, "result_kind", head->result_kind);
    add_member(&json, "next_step", head->next_step);
    if (head->round > 0) /* of a run, which has a name */
        buf_addf(&json, ",\"round\":%lld", (long long)head->round);
    add_member(&json, "text", buf_str(text));
    if (candidates)
        add_candidates(&json, candidates);
    buf_addc(&json, '}');
    if (!buf_ok(&json))
        return KCAP_E_NOMEM;
    return host->result(call, is_error, buf_str(text), text->len, json.data, json.len);
}
