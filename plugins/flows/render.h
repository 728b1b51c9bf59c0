/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: run id, status and next step first, then what else there is. What others wrote is
 * kept on one line or marked line by line, so that none of it can pass for ours.
 */
#ifndef KCAP_FLOWS_RENDER_H
#define KCAP_FLOWS_RENDER_H

#include "flows.h"
#include "lib/buf.h"
#include "view.h"

#define MAX_ANSWER_TEXT ((size_t)4 << 20)
#define RENDER_ROOM                                                                 \
    ((size_t)384 << 10) /* for a text, as it is sent: text 256 KiB long fits in any \
                           script */

/* What every answer that can know it begins with. NULL and 0 are left out. */
struct head {
    const char *run_id, *status, *result_kind, *next_step;
    int64_t round;
};

void render_head(struct buf *to, const struct head *head);

/* "label: value", the value on one line; nothing when value is NULL. */
void render_line(struct buf *to, const char *label, const char *value);

/* Who reviewed, what he saw, what it cost: as far as the server tells. */
void render_audit(struct buf *to, const cJSON *doc);
void render_participants(struct buf *to, const struct view *view);

/* How much of the text fits, as it will be sent, into *room, which it takes. */
size_t render_fit(const char *text, size_t len, size_t *room);

/* Text under a heading, each line marked. */
void render_words(struct buf *to, const char *heading, const char *text, size_t len);

/* The reviewer's words under a heading, each line marked: as many as an answer may hold, from
 * that byte on, with a note of what is left out. Nothing when there are none. */
void render_reviewer(struct buf *to, const struct family *family, const char *heading,
                     const struct api_text *words, int64_t offset);

/* Gives the answer: text, and head and text once more as structured content, since some clients
 * show their model that alone. candidates may be NULL. */
int32_t render_result(const struct kcap_host *host, struct kcap_call *call, bool is_error,
                      const struct head *head, const struct buf *text,
                      const struct runs *candidates);

/* What to do next, by what is known of the run. */
const char *render_next_step(const struct family *family, const struct view *view);

#endif
