/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program to its end and keeps what it says. */
#ifndef KCAP_CODEX_SETUP_RUN_H
#define KCAP_CODEX_SETUP_RUN_H

#include <kcap/plugin.h>

#include "lib/buf.h"

struct run {
    const char *const *argv;
    const char *const *envp; /* NULL: ours */
    const char *dir;         /* NULL: ours */
    int64_t limit_ms;
};

enum run_end {
    RUN_EXITED,
    RUN_NOT_STARTED,
    RUN_KILLED,     /* by a signal that was not ours */
    RUN_TIMED_OUT,  /* it and its process group were ended */
    RUN_OVERFLOWED, /* likewise, as output did not fit */
    RUN_LEFT,       /* likewise, as our own caller cancelled or is out of time */
};

/* Standard input is empty. Output and errors go to the buffers, whose caps hold; only the
 * beginning of long errors is kept. *ret_status is the exit status of RUN_EXITED, the errno of
 * RUN_NOT_STARTED, else -1. */
enum run_end run_program(const struct kcap_host *host, struct kcap_call *call,
                         const struct run *run, struct buf *output, struct buf *errors,
                         int *ret_status);

#endif
