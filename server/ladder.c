/* SPDX-License-Identifier: Apache-2.0 */
/* The one way in which turns and processes are ended. Less than ten seconds from top to bottom.
 */
#include "config.h"

#include <signal.h>

#include "lib/text.h"
#include "server/log.h"
#include "server/reviewer_internal.h"

#define INTERRUPT_SEC 5 /* an honest one needs 0.1 */
#define CLOSE_SEC     2
#define TERM_SEC      2

#define MAX_REASON 4096

static void
stand_on(struct reviewer *reviewer, enum rung rung, int64_t sec)
{
    reviewer->rung = rung;
    reviewer->rung_until_ns = util_now_ns() + sec * UTIL_SEC_NS;
}

/* Also after an interrupt that was heard: commands go on until the process is gone. */
static void
close_input(struct reviewer *reviewer)
{
    bool open = reviewer->pipes.input.fd >= 0;

    reviewer->may_live = false;
    pipes_close_input(&reviewer->pipes);
    stand_on(reviewer, RUNG_CLOSE, open ? CLOSE_SEC : 0);
    if (!open)
        ladder_next(reviewer);
}

static void
keep_reason(struct reviewer *reviewer, const struct loss *loss)
{
    reviewer->end = *loss;
    buf_init(&reviewer->end_reason, MAX_REASON);
    buf_adds(&reviewer->end_reason, loss->reason);
    reviewer->end.reason = NULL;
    reviewer->end.silence_ms = (util_now_ns() - reviewer->watch.sign_ns) / 1000000;
}

static void
lose(struct reviewer *reviewer)
{
    struct loss loss = reviewer->end;

    loss.reason = buf_str(&reviewer->end_reason);
    reviewer_lose(reviewer, &loss);
}

void
ladder_begin(struct reviewer *reviewer, const struct loss *loss)
{
    if (reviewer->rung != RUNG_NONE)
        return;
    keep_reason(reviewer, loss);
    if (reviewer->in_turn && reviewer->vendor->interrupt &&
        reviewer->vendor->interrupt(reviewer))
        stand_on(reviewer, RUNG_INTERRUPT, INTERRUPT_SEC);
    else
        close_input(reviewer);
}

void
ladder_begin_close(struct reviewer *reviewer, const struct loss *loss)
{
    if (reviewer->rung != RUNG_NONE)
        return;
    keep_reason(reviewer, loss);
    close_input(reviewer);
}

void
ladder_next(struct reviewer *reviewer)
{
    switch (reviewer->rung) {
    case RUNG_NONE:
        break;
    case RUNG_INTERRUPT:
        close_input(reviewer);
        break;
    case RUNG_CLOSE:
        stand_on(reviewer, RUNG_TERM, TERM_SEC);
        (void)kill(-reviewer->pid, SIGTERM);
        break;
    case RUNG_TERM:
        reviewer->rung = RUNG_KILL;
        reviewer->rung_until_ns = UTIL_NEVER;
        (void)kill(-reviewer->pid, SIGKILL);
        lose(reviewer); /* its end may never be seen */
        break;
    case RUNG_KILL:
        break;
    }
}

void
ladder_turn_ended(struct reviewer *reviewer)
{
    if (reviewer->rung != RUNG_INTERRUPT)
        return; /* its process goes anyway, and that is waited for */
    if (reviewer->may_live) {
        reviewer->rung = RUNG_NONE;
        reviewer->may_live = false;
        buf_fini(&reviewer->end_reason);
        reviewer_drop_turn(reviewer);
        return;
    }
    lose(reviewer);
    close_input(reviewer);
}
