/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clocks of one turn. Silence and total time are separate: what a reviewer does moves the
 * one and never the other.
 */
#ifndef KCAP_SERVER_CLOCKS_H
#define KCAP_SERVER_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

struct clocks {
    int64_t idle_sec;
    int64_t idle_mcp_call_sec; /* while it waits for a tool; the longer one of the two counts */
    int64_t idle_command_sec;  /* while it waits for a command, likewise */
    int64_t hard_ceiling_sec;
    int64_t foreground_ceiling_sec; /* 0: off */
    int64_t handshake_sec;          /* for each step until it can take a turn */
};

#define CLOCKS_UNSET (-1)
#define CLOCKS_DEFAULT                            \
    ((struct clocks){.idle_sec = 300,             \
                     .idle_mcp_call_sec = 315,    \
                     .idle_command_sec = 600,     \
                     .hard_ceiling_sec = 2700,    \
                     .foreground_ceiling_sec = 0, \
                     .handshake_sec = 10})
#define CLOCKS_MAX_SEC (INT64_C(366) * 24 * 3600)

/* The settings by the names that people use for them. */
struct clocks_name {
    const char *name;
    int64_t least; /* the smallest value allowed */
};
#define CLOCKS_COUNT 6
extern const struct clocks_name clocks_names[CLOCKS_COUNT];
int64_t *clocks_place(struct clocks *clocks, int which);

void clocks_clear(struct clocks *clocks); /* all CLOCKS_UNSET */
/* Every clock that is set in over replaces the one in *base. */
void clocks_overlay(struct clocks *base, const struct clocks *over);

struct watch {
    struct clocks clocks;
    int64_t began_ns;
    int64_t sign_ns;       /* the last sign of life */
    int64_t step_ns;       /* the last step of the handshake */
    int64_t step_more_sec; /* what the next may take beyond handshake_sec */
    bool in_handshake;
    bool ceilings_only;           /* silence says nothing */
    unsigned mcp_calls, commands; /* open now */
};

void watch_begin(struct watch *watch, const struct clocks *clocks, int64_t now_ns);

struct watch_end {
    const char *code; /* NULL: none has run out */
    int64_t sec;
};

/* The clock that has run out; the ceilings are looked at first. */
struct watch_end watch_look(const struct watch *watch, int64_t now_ns);
/* When the next one would. */
int64_t watch_until_ns(const struct watch *watch);

#endif
