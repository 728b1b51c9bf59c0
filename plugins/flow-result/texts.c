/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "texts.h"

#include <stdbool.h>

static const char reminder[] =
    "This tool is the only way your review is delivered. Call submit_review_result again with "
    "the same round_token and the same text; a marker or a summary in your reply delivers "
    "nothing.";

static const struct row {
    const char *lead;       /* what happened; NULL: the detail alone */
    bool shows_status;      /* "HTTP n" after the lead */
    bool shows_attempts;    /* how often it was tried */
    bool shows_detail;      /* the server's message or our error line */
    const char *without;    /* instead of a missing detail */
    const char *next;       /* what to do */
    bool reminds, is_error; /* STALE never reminds: a hint to try again or elsewhere would carry
                               a closed round's result past the guard that closed it */
} rows[N_VERDICTS] = {
    [VERDICT_RECORDED] = {.lead = "Recorded. Your review result is delivered; you may end your "
                                  "reply."},
    [VERDICT_NO_OPEN_ROUND] = {.lead = "Not recorded: the server has no open round for this "
                                       "result",
                               .shows_attempts = true,
                               .shows_detail = true,
                               .reminds = true,
                               .is_error = true},
    [VERDICT_STALE] = {.shows_detail = true,
                       .without = "This round is closed (stale_round_token): discard the "
                                  "result.",
                       .is_error = true},
    [VERDICT_CATCHING_UP] = {.lead = "Not recorded: the server is catching up",
                             .shows_detail = true,
                             .next = "It is rebuilding its state, which takes minutes: call "
                                     "again after some minutes, or ask the user.",
                             .is_error = true},
    [VERDICT_LOGIN] = {.lead = "Not recorded: the server refused this reviewer's login",
                       .shows_status = true,
                       .shows_detail = true,
                       .next = "Calling again will not help: whoever started this reviewer has "
                               "to renew the login.",
                       .is_error = true},
    [VERDICT_STATUS] = {.lead = "Not recorded: the server refused the result",
                        .shows_status = true,
                        .shows_detail = true,
                        .reminds = true,
                        .is_error = true},
    [VERDICT_NOT_AN_ANSWER] = {.lead = "Not confirmed: what answered is not the flow server",
                               .shows_status = true,
                               .shows_detail = true,
                               .reminds = true,
                               .is_error = true},
    [VERDICT_TRANSPORT] = {.lead = "Not confirmed: the server could not be reached",
                           .shows_attempts = true,
                           .shows_detail = true,
                           .reminds = true,
                           .is_error = true},
    [VERDICT_PROBABLY_RECORDED] = {.lead = "Outcome unknown, probably recorded: an earlier "
                                           "attempt lost its answer, and now the server says",
                                   .shows_detail = true,
                                   .without = "the round is closed",
                                   .next = "Do not submit it again; you may end your reply.",
                                   .is_error = true},
    [VERDICT_WINDOW] = {.lead =
                            "Not confirmed: the time for this call ran out before the server "
                            "confirmed the result",
                        .shows_attempts = true,
                        .shows_detail = true,
                        .reminds = true,
                        .is_error = true},
    [VERDICT_UNUSABLE] = {.lead = "Not sent",
                          .shows_detail = true,
                          .next = "Calling again will not help before that is changed.",
                          .is_error = true},
    [VERDICT_INTERNAL] = {.lead = "Not sent: something failed inside kcap-host",
                          .shows_detail = true,
                          .reminds = true,
                          .is_error = true},
};

int32_t
texts_add(struct buf *to, const struct delivery *delivery)
{
    const struct row *row = &rows[delivery->verdict];
    const char *detail = row->shows_detail ? delivery->detail : NULL;

    if (!detail || !detail[0])
        detail = row->without;
    if (row->lead)
        buf_adds(to, row->lead);
    if (row->shows_status)
        buf_addf(to, " (HTTP %d)", delivery->status);
    if (row->shows_attempts && delivery->attempts > 1)
        buf_addf(to, " after %d attempts", delivery->attempts);
    if (detail) {
        if (row->lead)
            buf_adds(to, ": ");
        buf_adds(to, detail);
    }
    if (row->next) {
        buf_addc(to, '\n');
        buf_adds(to, row->next);
    }
    if (row->reminds) {
        buf_addc(to, '\n');
        buf_adds(to, reminder);
    }
    return row->is_error;
}
