/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/chores.h"

#include "lib/buf.h"
#include "server/log.h"
#include "server/settings.h"
#include "server/util.h"
#include "server/workspace.h"

#define FORGET_SEC (24 * 3600) /* from one look for old runs to the next */
#define IDLE_SEC   60          /* at most, from one look for idle runs to the next */

/* Runs a change of many runs at once. There is a next time when it fails. */
static int
change_all(struct chores *chores,
           int (*change)(struct chores *chores, const struct settings *settings))
{
    AUTO_BUF struct buf error = BUF_INIT(8192);
    const struct launcher *launcher = &chores->turn->launcher;
    struct store *store = chores->turn->engine.store;
    struct settings settings;
    int r = settings_read(launcher->settings_path, launcher->override, &settings, &error);

    if (r < 0) { /* the defaults could end or forget what the user wants kept */
        log_line("%s; until then no run is ended or forgotten for its age", buf_str(&error));
        settings_fini(&settings);
        return r;
    }
    r = store_begin(store);
    if (r == 0)
        r = change(chores, &settings);
    if (r == 0)
        r = store_commit(store);
    if (r < 0) {
        log_line("old runs could not be looked after: %s", store_error(store));
        store_rollback(store);
        engine_drop_effects(&chores->turn->engine, 0);
    }
    settings_fini(&settings);
    return r;
}

static int
forget_old(struct chores *chores, const struct settings *settings)
{
    return engine_forget(&chores->turn->engine,
                         util_wall_ms() - settings->keep_days * 24 * 3600 * 1000);
}

static int
end_idle(struct chores *chores, const struct settings *settings)
{
    int64_t now_ms = util_wall_ms(), next_ms;
    int r = engine_end_idle(&chores->turn->engine, settings->idle_ttl_sec, now_ms, &next_ms);

    if (r == 0 && next_ms - now_ms < IDLE_SEC * 1000)
        chores->idle_at_ns = util_now_ns() + (next_ms - now_ms + 1) * (UTIL_SEC_NS / 1000);
    return r;
}

static bool
is_in_use(const void *arg, const char *agent_id)
{
    const struct turn *turn = arg;

    return reviewers_place(turn->reviewers, agent_id) != REVIEWER_NONE ||
           queue_copies_for(&turn->launcher.queue, agent_id);
}

/* One remover at a time: a thousand runs that end together are no thousand processes. */
static void
remove_workspaces(struct chores *chores)
{
    struct turn *turn = chores->turn;

    if (!turn->sweep_due || chores->remover > 0)
        return;
    turn->sweep_due = false;
    chores->remover =
        workspace_sweep(turn->launcher.work_dir, turn->engine.store, is_in_use, turn);
}

void
chores_run(struct chores *chores)
{
    int64_t now_ns = util_now_ns();

    if (chores->forget_at_ns <= now_ns) {
        chores->forget_at_ns = now_ns + FORGET_SEC * UTIL_SEC_NS;
        (void)change_all(chores, forget_old);
    }
    if (chores->idle_at_ns <= now_ns) {
        chores->idle_at_ns = now_ns + IDLE_SEC * UTIL_SEC_NS;
        if (change_all(chores, end_idle) == 0)
            turn_carry_out(chores->turn);
    }
    remove_workspaces(chores);
}

int64_t
chores_deadline_ns(const struct chores *chores)
{
    return util_earlier(chores->forget_at_ns, chores->idle_at_ns);
}

bool
chores_child_ended(struct chores *chores, pid_t pid, int status)
{
    if (pid != chores->remover)
        return false;
    chores->remover = 0;
    if (status == 0) /* there may have been more than it could take */
        chores->turn->sweep_due = true;
    return true;
}
