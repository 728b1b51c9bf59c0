/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs from one kind of reviewer to the next: how its process is started, what it is
 * told, and what its output means. One file per vendor, and its line in vendor.c.
 *
 * The processes themselves, the clocks, the ladder that ends them and what is recorded of them
 * are the same for all: reviewer.c.
 */
#ifndef KCAP_SERVER_VENDOR_H
#define KCAP_SERVER_VENDOR_H

#include <stdbool.h>

#include "lib/buf.h"
#include "server/clocks.h"
#include "server/settings.h"
#include "server/store.h"

/* One turn: whose, on what, within which limits. Everything is owned. */
struct assignment {
    struct flow flow;
    struct round round;
    struct participant who;
    struct clocks clocks;
    char *prompt;
    char *reminder; /* what is said when the turn ended without a result */
};

void assignment_fini(struct assignment *job);

#define VENDOR_MAX_ARGS 96
#define VENDOR_MAX_ENV  8

/* A command line. A failed addition sticks. */
struct vendor_plan {
    char *argv[VENDOR_MAX_ARGS + 1]; /* owned */
    size_t argc;
    char *env[VENDOR_MAX_ENV + 1]; /* owned: NAME=VALUE, besides what every reviewer gets */
    size_t env_count;
    bool failed;
};

void vendor_plan_fini(struct vendor_plan *plan);
void vendor_plan_add(struct vendor_plan *plan, const char *word);
void vendor_plan_add_env(struct vendor_plan *plan, const char *name, const char *value);

struct reviewer;

struct vendor {
    const char *name;
    bool keeps;          /* one process takes turn after turn and remembers the earlier ones */
    bool has_model;      /* "model" means something to it */
    bool shows_nothing;  /* while it works: the idle clocks do not count */
    bool tells_cost;     /* reviewer_cost */
    bool knows_agent_id; /* runs the reviewer's host itself, so its process gets the id */
    bool has_note;       /* the last line of its standard output is for the driver */
    int hopeless_status; /* exit status when no further try can do better; 0: none */
    size_t max_output;   /* without line: how much of its output is kept for exited */
    const char *const *env; /* what it may need of flowd.env; "X_*": all that begin so */

    /* NULL when it can be run, else why not, for people. NULL function: it always can. */
    const char *(*missing)(const struct settings *settings);
    /* Returns 0 or -errno, with a line for people in error. */
    int (*plan)(const struct settings *settings, const struct assignment *job, const char *url,
                struct vendor_plan *ret, struct buf *error);
    /* The process is on record: begin to speak; reviewer_ready when it can take a turn. NULL:
     * it can at once. Returns 0 or -ENOMEM. */
    int (*open)(struct reviewer *reviewer, const struct assignment *job);
    /* Has it take a turn: text is the prompt, or the reminder. */
    void (*turn)(struct reviewer *reviewer, const struct assignment *job, const char *text);
    /* A line of its standard output, without its end. NULL: any output is a sign of life. */
    void (*line)(struct reviewer *reviewer, const char *line, size_t len);
    /* The time of reviewer_later has come. */
    void (*later)(struct reviewer *reviewer);
    /* Asks it to stop its turn; the end of the turn is the answer. False: it cannot be asked.
     */
    bool (*interrupt)(struct reviewer *reviewer);
    /* The process has ended; the turn is lost unless this reports something. May be NULL. */
    void (*exited)(struct reviewer *reviewer, int status);
    void (*close)(void *state);
};

extern const struct vendor vendor_checklist;
extern const struct vendor vendor_claude;
extern const struct vendor vendor_codex;
extern const struct vendor vendor_codex_exec;
extern const struct vendor vendor_command;

/* NULL when this build has no such vendor. */
const struct vendor *vendor_find(const char *name);
/* The index-th of all, or NULL. */
const struct vendor *vendor_at(size_t index);
/* Why it cannot be run here, or NULL. */
const char *vendor_missing(const struct vendor *vendor, const struct settings *settings);
/* Appends the names of those that can be run, for people: "a, b". */
void vendor_add_names(struct buf *to, const struct settings *settings);

/* ---- what a vendor can do ---- */

void reviewer_set_state(struct reviewer *reviewer, void *state);
void *reviewer_state(const struct reviewer *reviewer);
/* The turn in hand, or NULL. */
const struct assignment *reviewer_job(const struct reviewer *reviewer);
/* What it wrote so far, when the vendor has no line. */
const struct buf *reviewer_output(const struct reviewer *reviewer);

void reviewer_send(struct reviewer *reviewer, const void *bytes, size_t len);
void reviewer_end_input(struct reviewer *reviewer);

/* A step of the handshake is done. next: what is waited for now, a constant; it may take
 * more_sec longer than handshake_sec. */
void reviewer_step(struct reviewer *reviewer, const char *next, int64_t more_sec);
void reviewer_ready(struct reviewer *reviewer);
/* Has the vendor's later called once, so much later. */
void reviewer_later(struct reviewer *reviewer, int64_t ms);
/* The turn goes on. */
void reviewer_sign(struct reviewer *reviewer);
/* What the turn waits for now. */
void reviewer_waits(struct reviewer *reviewer, unsigned mcp_calls, unsigned commands);
/* What is known about a turn that does not go on, such as "the provider cannot be reached". */
void reviewer_explain(struct reviewer *reviewer, const char *text);
void reviewer_verdict(struct reviewer *reviewer, const char *kind, const char *text);
void reviewer_cost(struct reviewer *reviewer, int64_t microusd);
/* code is NULL for a turn that came to its end, else what the reason begins with. */
void reviewer_turn_ended(struct reviewer *reviewer, const char *code, const char *detail);
/* It is not fit for use: the turn is failed, the process ended. */
void reviewer_refuse(struct reviewer *reviewer, const char *code, const char *detail);

#endif
