/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of launch/ share. */
#ifndef KCAP_LAUNCH_INTERNAL_H
#define KCAP_LAUNCH_INTERNAL_H

#include <stdbool.h>

#include "launch/compose.h"
#include "launch/words.h"

enum stage {
    STAGE_ENUMERATE, /* Codex: which servers there are */
    STAGE_LIST,      /* Codex: which are left with our flags */
    STAGE_GET,       /* Codex: what it made of ours */
    STAGE_SELFTEST,  /* whether the result server could report */
    STAGE_READY
};

#define MAX_MODEL      256
#define MAX_ENV_VALUE  4096
#define RESULT_SERVER  "kcap-flow-result"
#define RESULT_TOOL    "submit_review_result"
#define MESSAGE_TOOL   "send_flow_message"
#define STEP_LIMIT_MS  15000
#define STEP_MAX_BYTES ((size_t)4 << 20)

struct compose {
    enum compose_vendor vendor;
    enum compose_mode mode;
    enum stage stage;
    char *program, *dir, *host_program, *model, *prompt;
    char *top;               /* of the repository around dir, or dir */
    char server[64];         /* its name in this launch */
    struct words env;        /* the reviewer's */
    struct words server_env; /* NAME=VALUE of the result server */
    struct words flags;      /* Codex: in front of any subcommand */
    struct words argv;       /* of the step, at last of the plan */
    struct words selftest_env;
    struct words reasons;
    struct compose_plan plan;
};

void compose_refuse(struct compose *compose, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Refuses an answer that is no exit status 0. False then. */
bool compose_check_step(struct compose *compose, const char *what,
                        const struct compose_answer *answer);

/* Codex: composes the flags, checks the answer of a stage and moves to the next, fills argv. */
void compose_codex_begin(struct compose *compose);
void compose_codex_add_step(struct compose *compose);
void compose_codex_check(struct compose *compose, const struct compose_answer *answer);
void compose_codex_add_plan(struct compose *compose);

/* Claude Code: static checks, then argv. */
void compose_claude_begin(struct compose *compose);
void compose_claude_add_plan(struct compose *compose);

#endif
