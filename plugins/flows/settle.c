/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "settle.h"

#include <string.h>

#define FIRST_PAUSE_MS   500
#define LONGEST_PAUSE_MS 10000
#define NO_PROGRESS_NS   (180 * NS_PER_SEC)
#define HARD_END_NS      (480 * NS_PER_SEC)

bool
settle_is_asked(const struct api_answer *answer)
{
    return answer->kind == API_CODED &&
           (strcmp(answer->code, "flow_settlement_busy") == 0 ||
            strcmp(answer->code, "reviewer_launch_incarnation_superseded") == 0);
}

static bool
may_repeat(const struct api_answer *answer, bool is_round)
{
    return settle_is_asked(answer) ||
           (is_round && answer->kind == API_CODED && answer->status == 409 &&
            strcmp(answer->code, "participant_unreachable") == 0);
}

/* From half of the doubling pause to the whole of it, so that many clients do not come at once.
 * The clock's fine digits are chance enough. */
static int64_t
pause_ns(int attempt, int64_t now_ns)
{
    int64_t longest_ms = attempt > 5 ? LONGEST_PAUSE_MS : FIRST_PAUSE_MS << (attempt - 1);

    if (longest_ms > LONGEST_PAUSE_MS)
        longest_ms = LONGEST_PAUSE_MS;
    return (longest_ms / 2 + now_ns / 1000 % (longest_ms / 2)) * NS_PER_MS;
}

/* Takes the server's mark in; returns when patience ends. */
static int64_t
note_progress(struct settling *settling, const struct api_answer *answer, int64_t now_ns)
{
    int64_t seen, end_ns;

    if (json_int(answer->json, "last_processed_seq", &seen) &&
        (!settling->has_mark || seen > settling->mark)) {
        settling->mark = seen;
        settling->has_mark = true;
        settling->progress_ns = now_ns;
    }
    end_ns = settling->progress_ns + NO_PROGRESS_NS;
    return end_ns < settling->began_ns + HARD_END_NS ? end_ns
                                                     : settling->began_ns + HARD_END_NS;
}

int32_t
settle_post(struct flows *flows, struct kcap_call *call, const struct api_request *request,
            bool is_round, struct settling *settling, struct api_answer *ret)
{
    const struct kcap_host *host = flows->host;

    if (settling->began_ns == 0)
        settling->began_ns = settling->progress_ns = host->now_ns(host);
    for (;;) {
        int64_t now_ns, end_ns, until_ns;
        int32_t r = api_request(flows, call, request, ret);
        if (r != 0 || !may_repeat(ret, is_round))
            return r;
        settling->refusals++;
        now_ns = host->now_ns(host);
        end_ns = note_progress(settling, ret, now_ns);
        if (now_ns >= end_ns) {
            settling->gave_up = true;
            return 0;
        }
        until_ns = now_ns + pause_ns(settling->refusals, now_ns);
        r = host->wait(call, KCAP_SEQ_NONE, NULL, 0, until_ns < end_ns ? until_ns : end_ns);
        api_answer_fini(ret);
        if (r != KCAP_WAIT_TIMEOUT)
            return r;
    }
}
