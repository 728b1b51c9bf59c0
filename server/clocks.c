/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/clocks.h"

#include <stddef.h>

#include "server/util.h"

const struct clocks_name clocks_names[CLOCKS_COUNT] = {
    {"idle_sec", 1},         {"idle_mcp_call_sec", 1},      {"idle_command_sec", 1},
    {"hard_ceiling_sec", 1}, {"foreground_ceiling_sec", 0}, {"handshake_sec", 1}};

int64_t *
clocks_place(struct clocks *clocks, int which)
{
    int64_t *const places[CLOCKS_COUNT] = {
        &clocks->idle_sec,         &clocks->idle_mcp_call_sec,      &clocks->idle_command_sec,
        &clocks->hard_ceiling_sec, &clocks->foreground_ceiling_sec, &clocks->handshake_sec};

    return places[which];
}

void
clocks_clear(struct clocks *clocks)
{
    for (int i = 0; i < CLOCKS_COUNT; i++)
        *clocks_place(clocks, i) = CLOCKS_UNSET;
}

void
clocks_overlay(struct clocks *base, const struct clocks *over)
{
    struct clocks from = *over;

    for (int i = 0; i < CLOCKS_COUNT; i++) {
        if (*clocks_place(&from, i) != CLOCKS_UNSET)
            *clocks_place(base, i) = *clocks_place(&from, i);
    }
}

void
watch_begin(struct watch *watch, const struct clocks *clocks, int64_t now_ns)
{
    *watch = (struct watch){
        .clocks = *clocks, .began_ns = now_ns, .sign_ns = now_ns, .step_ns = now_ns};
}

/* The silence that is allowed now. */
static int64_t
idle_sec(const struct watch *watch)
{
    const struct clocks *clocks = &watch->clocks;
    int64_t sec = clocks->idle_sec;

    if (watch->mcp_calls > 0 && clocks->idle_mcp_call_sec > sec)
        sec = clocks->idle_mcp_call_sec;
    if (watch->commands > 0 && clocks->idle_command_sec > sec)
        sec = clocks->idle_command_sec;
    return sec;
}

static struct watch_end
limit(const struct watch *watch, int which, int64_t *ret_at_ns)
{
    const struct clocks *clocks = &watch->clocks;

    switch (which) {
    case 0:
        *ret_at_ns = watch->began_ns + clocks->hard_ceiling_sec * UTIL_SEC_NS;
        return (struct watch_end){"hard_ceiling", clocks->hard_ceiling_sec};
    case 1:
        *ret_at_ns = clocks->foreground_ceiling_sec > 0
                         ? watch->began_ns + clocks->foreground_ceiling_sec * UTIL_SEC_NS
                         : UTIL_NEVER;
        return (struct watch_end){"foreground_ceiling", clocks->foreground_ceiling_sec};
    default:
        if (watch->in_handshake) {
            int64_t sec = clocks->handshake_sec + watch->step_more_sec;
            *ret_at_ns = watch->step_ns + sec * UTIL_SEC_NS;
            return (struct watch_end){"handshake_timeout", sec};
        }
        *ret_at_ns =
            watch->ceilings_only ? UTIL_NEVER : watch->sign_ns + idle_sec(watch) * UTIL_SEC_NS;
        return (struct watch_end){"idle_timeout", idle_sec(watch)};
    }
}

struct watch_end
watch_look(const struct watch *watch, int64_t now_ns)
{
    for (int i = 0; i < 3; i++) {
        int64_t at_ns;
        struct watch_end end = limit(watch, i, &at_ns);
        if (at_ns <= now_ns)
            return end;
    }
    return (struct watch_end){NULL, 0};
}

int64_t
watch_until_ns(const struct watch *watch)
{
    int64_t until_ns = UTIL_NEVER;

    for (int i = 0; i < 3; i++) {
        int64_t at_ns;
        (void)limit(watch, i, &at_ns);
        until_ns = util_earlier(until_ns, at_ns);
    }
    return until_ns;
}
