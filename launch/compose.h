/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting an agent as a reviewer, so that of all MCP servers it sees ours and no other.
 *
 * Nothing here runs a program or waits, so that a command and an event loop can both use it: it
 * says what to run, is told what came of it, and ends with a plan or with the reasons why there
 * is none.
 *
 *     r = compose_new(&request, &compose);
 *     while (compose_next(compose, &step) == COMPOSE_RUN) {
 *         run step.argv (standard input: /dev/null; own process group), collect its output
 *         compose_answer(compose, &answer);
 *     }
 *     compose_plan(compose) when it said COMPOSE_READY, else compose_reasons(compose)
 *     compose_free(compose);
 *
 * A refusal is final. What is composed holds for this launch alone and for the moment: start
 * the plan at once, with its argv, environment and directory unchanged, and end its whole
 * process group at the end.
 *
 * What the caller of a plan still has to do:
 *
 * - Codex app-server: thread/start with the plan's directory, approvalPolicy "never", sandbox
 *   "read-only", and nothing in its config; the result server is required, so the start fails
 *   without it. Only then turn/start.
 * - Claude Code cannot be asked beforehand (verified is "static"): its first system/init event
 *   must show mcp_servers as exactly [{name: the plan's server, status: "connected"}]; end it
 *   otherwise.
 */
#ifndef KCAP_LAUNCH_COMPOSE_H
#define KCAP_LAUNCH_COMPOSE_H

#include <stddef.h>
#include <stdint.h>

enum compose_vendor { COMPOSE_CODEX, COMPOSE_CLAUDE };

enum compose_mode {
    /* One turn: codex exec --json, claude -p. Without a prompt it is read from standard input,
     * where it is not in every process list. */
    COMPOSE_EXEC,
    /* A conversation on standard input and output: codex app-server, claude with stream-json
     * both ways. */
    COMPOSE_APP_SERVER,
    /* The vendor's own screen. */
    COMPOSE_TUI
};

/* Everything is copied. */
struct compose_request {
    enum compose_vendor vendor;
    enum compose_mode mode;
    const char *program; /* of the vendor: a path, or NULL to find it in the PATH of envp */
    const char *dir;     /* where the reviewer works; a directory */
    const char *host_program; /* absolute path of kcap-host */
    const char *url;          /* of the flow server; without user and password */
    const char *agent_id;
    const char *model;             /* NULL: the vendor's default */
    const char *prompt;            /* NULL: none; never with COMPOSE_APP_SERVER */
    const char *const *envp;       /* the environment to start from; see compose_plan */
    const char *const *server_env; /* more NAME=VALUE for the result server, no secrets: they
                                      stand in argv; may be NULL */
};

enum compose_next {
    COMPOSE_RUN,    /* *ret_step is to be run */
    COMPOSE_READY,  /* there is a plan */
    COMPOSE_REFUSED /* there are reasons */
};

/* A program to run. Everything lives until the next compose_answer. */
struct compose_step {
    const char *what; /* for people, such as "codex mcp list" */
    const char *const *argv;
    const char *const *envp;
    const char *dir;
    int64_t limit_ms;
    size_t max_output; /* longer output is COMPOSE_OVERFLOWED */
};

/* How a step ended when it did not exit. */
#define COMPOSE_NOT_STARTED (-1)
#define COMPOSE_TIMED_OUT   (-2)
#define COMPOSE_KILLED      (-3) /* by a signal, or nobody knows */
#define COMPOSE_OVERFLOWED  (-4)

struct compose_answer {
    int status; /* exit status, or COMPOSE_* below zero */
    const char *output;
    size_t output_len;
    const char *errors; /* the beginning of its standard error; may be NULL */
    size_t errors_len;  /* 0 then */
};

/* What to start. The environment is the request's without the variables of other sessions and
 * other vendors' secrets and without any KCAP_ name, and with KCAP_REVIEWER=1: by that, and by
 * its descent, every kcap-host below refuses to be anything but the result server. */
struct compose_plan {
    const char *const *argv; /* argv[0] is an absolute path */
    const char *const *envp;
    const char *dir;      /* the request's, resolved */
    const char *server;   /* the result server's name in this launch */
    const char *verified; /* "codex mcp list" or "static" */
};

struct compose;

/* Returns 0, or -ENOMEM. What is wrong with the request comes as a refusal. */
int compose_new(const struct compose_request *request, struct compose **ret);
void compose_free(struct compose *compose);

enum compose_next compose_next(struct compose *compose, struct compose_step *ret_step);
void compose_answer(struct compose *compose, const struct compose_answer *answer);

/* Lives as long as compose. */
const struct compose_plan *compose_plan(const struct compose *compose);

/* Lines for people, one for each source that stands in the way, ended by NULL: what is wrong,
 * where, and the cure. Never empty after COMPOSE_REFUSED. Lives as long as compose. */
const char *const *compose_reasons(const struct compose *compose);

#endif
