/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "view.h"

#include <stddef.h>
#include <string.h>

#include "lib/text.h"

static bool
is_one_of(const char *word, const char *const *words)
{
    for (; word && *words; words++) {
        if (strcmp(word, *words) == 0)
            return true;
    }
    return false;
}

bool
view_is_run_end(const char *status)
{
    static const char *const words[] = {"closed", "failed", NULL};

    return is_one_of(status, words);
}

static bool
is_round_end(const char *status)
{
    static const char *const words[] = {"findings", "clean",     "waiting", "unclear",
                                        "failed",   "cancelled", NULL};

    return is_one_of(status, words);
}

/* Why a reviewer is gone, told in the place of a result. */
static bool
is_reason(const char *text)
{
    static const char *const words[] = {"participant_died", "participant_stopped",
                                        "participant_parked", NULL};

    return is_one_of(text, words);
}

/* Absent, null or of the type. */
static bool
is_text_or_nothing(const cJSON *doc, const char *name)
{
    const cJSON *item = json_get(doc, name);

    return !item || cJSON_IsNull(item) || cJSON_IsString(item);
}

static const char *
check_types(const cJSON *doc)
{
    static const char *const texts[] = {"flow_run_id",       "status",
                                        "round_id",          "round_status",
                                        "round_participant", "result_kind",
                                        "result_text",       "last_result_kind",
                                        "last_result_text",  "round_result_kind",
                                        "round_result_text", "round_reason",
                                        "round_note",        NULL};
    const cJSON *round = json_get(doc, "round_number");
    int64_t number;

    for (const char *const *name = texts; *name; name++) {
        if (!is_text_or_nothing(doc, *name))
            return "a member has the wrong type";
    }
    if (round && !cJSON_IsNull(round) &&
        (!json_int(doc, "round_number", &number) || number < 1))
        return "round_number is not a positive whole number";
    if (text_is_blank(json_str(doc, "status")))
        return "status is missing";
    return NULL;
}

static void
take_reason(struct view *view)
{
    view->reason = json_str(view->doc, "round_reason");
    view->note = json_str(view->doc, "round_note");
    if (!is_reason(view->result.text))
        return;
    view->marker = view->result.text;
    view->result = (struct api_text){.text = NULL};
}

/* last_result_* is of the newest round that had a result: of the one shown only if that one has
 * ended with just such a result, or if the server speaks of no round at all. */
static void
take_last_result(struct view *view)
{
    const char *kind = json_str(view->doc, "last_result_kind");
    struct api_text text = api_text(view->doc, "last_result_text");
    bool names_round = view->round > 0 || view->round_status || json_str(view->doc, "round_id");
    bool has_own = view->result_kind || view->result.text;
    bool same = kind && view->round_status && strcmp(kind, view->round_status) == 0;

    if (!names_round || (same && !has_own)) {
        view->result_kind = kind;
        view->result = text;
    } else if (!same) {
        view->previous_kind = kind;
        view->previous = text;
    }
}

const char *
view_read_round(const cJSON *doc, struct view *ret)
{
    const char *fault = check_types(doc);

    if (fault)
        return fault;
    *ret = (struct view){
        .doc = doc,
        .run_id = json_str(doc, "flow_run_id"),
        .status = json_str(doc, "status"),
        .result_kind = json_str(doc, "result_kind"),
        .result = api_text(doc, "result_text"),
    };
    (void)json_int(doc, "round_number", &ret->round);
    if (text_is_blank(ret->run_id))
        return "flow_run_id is missing";
    ret->run_ended = view_is_run_end(ret->status);
    /* "anything but running": but a word nobody knows ends nothing by itself */
    ret->round_ended =
        is_round_end(ret->status) || ret->run_ended || strcmp(ret->status, "completed") == 0 ||
        (strcmp(ret->status, "running") != 0 && (ret->result_kind || ret->result.text));
    ret->no_round =
        !ret->round_ended && !ret->round && text_is_blank(json_str(doc, "round_id"));
    ret->round_status = ret->round_ended ? ret->status : NULL;
    take_reason(ret);
    return NULL;
}

const char *
view_read_status(const cJSON *doc, const char *run_id, struct view *ret)
{
    const char *fault = check_types(doc), *id = json_str(doc, "flow_run_id");

    if (fault)
        return fault;
    if (id && strcmp(id, run_id) != 0)
        return "it is about another flow_run_id";
    *ret = (struct view){
        .doc = doc,
        .run_id = run_id,
        .status = json_str(doc, "status"),
        .round_status = json_str(doc, "round_status"),
        .round_role = json_str(doc, "round_participant"),
        .result_kind = json_str(doc, "round_result_kind"),
        .result = api_text(doc, "round_result_text"),
    };
    (void)json_int(doc, "round_number", &ret->round);
    ret->run_ended = view_is_run_end(ret->status);
    ret->round_ended = is_round_end(ret->round_status);
    ret->no_round = !ret->round && !ret->round_status && !json_str(doc, "round_id") &&
                    !json_str(doc, "last_result_kind");
    take_reason(ret);
    take_last_result(ret);
    return NULL;
}
