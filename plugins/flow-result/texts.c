/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "texts.h"

#include "lib/text.h"

static const char reminder[] =
    "This tool is the only way your review is delivered. Call submit_review_result again with "
    "the same round_token and the same text; a marker or a summary in your reply delivers "
    "nothing.";

/* An error begins with what is true, "Not delivered: " or "Outcome unknown: ", unless the
 * server's words stand alone. */
static const struct row {
    const char *lead;    /* what happened; NULL: the detail alone */
    bool shows_status;   /* "HTTP n" after the lead */
    bool shows_attempts; /* how often it was tried */
    bool shows_detail;   /* the server's message or our error line */
    const char *without; /* instead of a missing detail */
    const char *next;    /* what to do */
    bool reminds;        /* STALE never reminds: a hint to try again or elsewhere would carry a
                            closed round's result past the guard that closed it */
} results[N_VERDICTS] = {
    [VERDICT_RECORDED] = {.lead = "Recorded. Your review result is delivered; you may end your "
                                  "reply."},
    [VERDICT_NO_OPEN_ROUND] = {.lead = "the server has no open round for this result",
                               .shows_attempts = true,
                               .shows_detail = true,
                               .reminds = true},
    [VERDICT_STALE] = {.shows_detail = true,
                       .without = "This round is closed (stale_round_token): discard the "
                                  "result."},
    [VERDICT_CATCHING_UP] = {.lead = "the server is catching up",
                             .shows_detail = true,
                             .next = "It is rebuilding its state, which takes minutes: call "
                                     "again after some minutes, or ask the user."},
    [VERDICT_LOGIN] = {.lead = "the server refused this reviewer's login",
                       .shows_status = true,
                       .shows_detail = true,
                       .next = "Calling again will not help before that is mended."},
    [VERDICT_STATUS] = {.lead = "the server refused the result",
                        .shows_status = true,
                        .shows_detail = true,
                        .reminds = true},
    [VERDICT_SERVER_FAULT] = {.lead = "the server failed",
                              .shows_status = true,
                              .shows_detail = true,
                              .reminds = true},
    [VERDICT_NOT_AN_ANSWER] = {.lead = "what answered is not the flow server",
                               .shows_status = true,
                               .shows_detail = true,
                               .reminds = true},
    [VERDICT_TRANSPORT] = {.lead = "the server did not confirm it",
                           .shows_attempts = true,
                           .shows_detail = true,
                           .reminds = true},
    [VERDICT_PROBABLY_RECORDED] = {.lead = "probably recorded. An earlier attempt lost its "
                                           "answer, and now the server says",
                                   .shows_detail = true,
                                   .without = "the round is closed",
                                   .next = "Do not submit it again; you may end your reply."},
    [VERDICT_WINDOW] = {.lead = "the time for this call ran out before the server confirmed it",
                        .shows_attempts = true,
                        .shows_detail = true,
                        .reminds = true},
    [VERDICT_UNUSABLE] = {.lead = "nothing was sent",
                          .shows_detail = true,
                          .next = "Calling again will not help before that is changed."},
    [VERDICT_INTERNAL] = {.lead = "something failed inside kcap-host",
                          .shows_detail = true,
                          .reminds = true},
};

/* Where a message is told something else. */
static const struct row messages[N_VERDICTS] = {
    [VERDICT_RECORDED] = {.lead =
                              "Sent. Go on with your work; an answer, if there is one, comes "
                              "with the next round."},
    [VERDICT_NO_OPEN_ROUND] = {.lead = "the server could not take it now",
                               .shows_attempts = true,
                               .shows_detail = true},
    [VERDICT_CLOSED] = {.shows_detail = true, .without = "The run is closed (run_closed)."},
    [VERDICT_STATUS] = {.lead = "the server refused the message",
                        .shows_status = true,
                        .shows_detail = true},
};

static const struct row *
row_of(enum errand_kind kind, enum verdict verdict)
{
    const struct row *own = &messages[verdict];

    return kind == ERRAND_MESSAGE && (own->lead || own->without) ? own : &results[verdict];
}

static const char *const leads[] = {
    [OUTCOME_DELIVERED] = "",
    [OUTCOME_NOT_DELIVERED] = "Not delivered: ",
    [OUTCOME_UNKNOWN] = "Outcome unknown: ",
};

const char *
texts_outcome(enum outcome outcome)
{
    static const char *const names[] = {
        [OUTCOME_DELIVERED] = "delivered",
        [OUTCOME_NOT_DELIVERED] = "not_delivered",
        [OUTCOME_UNKNOWN] = "unknown",
    };

    return names[outcome];
}

/* What the login lacks says more than the server's body. */
static const char *
detail_of(const struct row *row, const struct delivery *delivery)
{
    const char *detail = delivery->verdict == VERDICT_LOGIN && delivery->login
                             ? delivery->login
                             : delivery->detail;

    return row->shows_detail && detail && detail[0] ? detail : row->without;
}

/* A clear word of the server's, so that what is unknown is an earlier attempt. */
static bool
is_answer(enum verdict verdict)
{
    return verdict == VERDICT_STATUS || verdict == VERDICT_LOGIN ||
           verdict == VERDICT_CATCHING_UP || verdict == VERDICT_CLOSED ||
           verdict == VERDICT_NO_OPEN_ROUND;
}

int32_t
texts_add(struct buf *to, enum errand_kind kind, const struct delivery *delivery)
{
    const struct row *row = row_of(kind, delivery->verdict);
    const char *detail = detail_of(row, delivery);

    if (row->lead) {
        buf_adds(to, leads[delivery->outcome]);
        buf_adds(to, row->lead);
    }
    if (row->shows_status)
        buf_addf(to, " (HTTP %d)", delivery->status);
    if (row->shows_attempts && delivery->attempts > 1)
        buf_addf(to, " after %d attempts", delivery->attempts);
    if (detail) {
        if (row->lead)
            buf_adds(to, ": ");
        buf_adds(to, detail);
    }
    if (delivery->outcome == OUTCOME_UNKNOWN && is_answer(delivery->verdict))
        buf_adds(to, "\nAn earlier attempt lost its answer and may have been recorded.");
    if (row->next) {
        buf_addc(to, '\n');
        buf_adds(to, row->next);
    }
    /* A message is a help, not the result: it never sends the reviewer round in circles. */
    if (row->reminds && kind == ERRAND_RESULT) {
        buf_addc(to, '\n');
        buf_adds(to, reminder);
    }
    return delivery->outcome != OUTCOME_DELIVERED;
}

void
texts_add_json(struct buf *to, const struct delivery *delivery, const struct buf *text)
{
    buf_addf(to, "{\"outcome\":\"%s\",\"text\":", texts_outcome(delivery->outcome));
    text_add_json(to, buf_str(text), text->len);
    buf_addf(to, ",\"attempts\":%d", delivery->attempts);
    if (delivery->status)
        buf_addf(to, ",\"http_status\":%d", delivery->status);
    buf_addc(to, '}');
}
