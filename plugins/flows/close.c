/* SPDX-License-Identifier: Apache-2.0 */
/* close_review_flow and close_flow */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "ledger.h"
#include "lib/auto.h"
#include "lib/text.h"
#include "messages.h"
#include "show.h"

#define CLOSE_LIMIT_MS 30000

static int32_t
show_closed(const struct subject *subject, const char *run_id, const cJSON *doc)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_ANSWER_TEXT), ids = BUF_INIT(MAX_IDS_LEN);
    const char *status = json_str(doc, "status");
    bool is_over = !status || view_is_run_end(status);
    struct head head = {.run_id = run_id,
                        .status = status ? status : "closed",
                        .next_step = is_over ? "nothing: this flow is over"
                                             : subject->family->next[NEXT_CLOSE]};

    if (is_over)
        ledger_note(subject->flows, subject->call,
                    &(struct event){.kind = EVENT_CLOSED,
                                    .session = subject->session->key,
                                    .run_id = run_id});
    render_head(&text, &head);
    render_audit(&text, doc);
    messages_render(subject, run_id, doc, &text, &ids); /* closing has acknowledged them */
    return render_result(subject->flows->host, subject->call, !is_over, &head, &text, NULL);
}

static bool
is_about(const char *run_id, const cJSON *doc)
{
    const char *id = json_str(doc, "flow_run_id");

    return !id || strcmp(id, run_id) == 0;
}

static int32_t
show_not_closed(const struct subject *subject, const char *run_id,
                const struct api_answer *answer)
{
    AUTO_BUF struct buf error = BUF_INIT(MAX_ANSWER_TEXT);
    bool no_such_run = answer && (answer->status == 404 || answer->kind == API_REFUSED);
    bool unknown = !answer || answer->kind == API_UNKNOWN || answer->kind == API_BAD ||
                   answer->kind == API_OK;

    if (answer && answer->kind == API_OK)
        buf_adds(&error, "Error: the server answered, but about another flow");
    else if (answer)
        api_add_error(&error, answer);
    else
        buf_adds(&error, "Error: the server did not answer while this call could wait");
    buf_adds(&error, unknown ? "\nWhether the flow was closed is unknown; to close it again is "
                               "harmless."
                             : "\nThe flow was not closed by this call.");
    return show_run_error(
        subject,
        &(struct head){.run_id = run_id,
                       .status = "unknown",
                       .next_step = subject->family->next[no_such_run ? NEXT_FIND : NEXT_LOOK]},
        buf_str(&error));
}

int32_t
close_flow(struct subject *subject, const cJSON *args)
{
    AUTO_ANSWER struct api_answer answer = {.kind = API_REFUSED};
    AUTO_FREE char *run_id = args_trim(json_str(args, "flow_run_id"), false);
    AUTO_FREE char *path = NULL;
    int32_t r;

    if (text_is_blank(run_id))
        return show_error(subject, "flow_run_id is missing or blank; nothing was closed. The "
                                   "status tool without an id finds the flow.");
    path = api_path("/api/flows", run_id, "/close");
    if (!path || session_find(subject, NULL) < 0)
        return KCAP_E_NOMEM;
    r = api_request(
        subject->flows, subject->call,
        &(struct api_request){.method = "POST", .path = path, .limit_ms = CLOSE_LIMIT_MS},
        &answer);
    if (r == KCAP_WAIT_DEADLINE)
        return show_not_closed(subject, run_id, NULL);
    if (r != 0)
        return show_end(r);
    if (answer.kind == API_OK && is_about(run_id, answer.json))
        return show_closed(subject, run_id, answer.json);
    if (answer.status == 404)
        ledger_note(subject->flows, subject->call,
                    &(struct event){.kind = EVENT_CLOSED,
                                    .session = subject->session->key,
                                    .run_id = run_id});
    return show_not_closed(subject, run_id, &answer);
}
