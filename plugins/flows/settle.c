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

int32_t
settle_post(struct flows *flows, struct kcap_call *call, const struct api_request *request,
            bool is_round, struct api_answer *ret, int *ret_attempts)
{
    const struct kcap_host *host = flows->host;
    int64_t began_ns = host->now_ns(host), progress_ns = began_ns, mark = -1, seen;

    for (*ret_attempts = 1;; ++*ret_attempts) {
        int64_t now_ns, end_ns, until_ns;
        int32_t r = api_request(flows, call, request, ret);
        if (r != 0 || !may_repeat(ret, is_round))
            return r;
        now_ns = host->now_ns(host);
        if (json_int(ret->json, "last_processed_seq", &seen) && seen > mark) {
            mark = seen;
            progress_ns = now_ns;
        }
        end_ns = progress_ns + NO_PROGRESS_NS;
        if (end_ns > began_ns + HARD_END_NS)
            end_ns = began_ns + HARD_END_NS;
        if (now_ns >= end_ns)
            return 0;
        until_ns = now_ns + pause_ns(*ret_attempts, now_ns);
        r = host->wait(call, KCAP_SEQ_NONE, NULL, 0, until_ns < end_ns ? until_ns : end_ns);
        if (r != KCAP_WAIT_TIMEOUT) {
            api_answer_fini(ret);
            return r;
        }
        api_answer_fini(ret);
    }
}
