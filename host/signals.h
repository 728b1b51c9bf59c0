/* SPDX-License-Identifier: Apache-2.0 */
/* What signals do. Serving, SIGTERM, SIGINT and SIGHUP end the process at once: harnesses kill
 * 20 to 500 ms later, and state on disk is safe at every instruction. From the shell, ^C
 * cancels first. */
#ifndef KCAP_HOST_SIGNALS_H
#define KCAP_HOST_SIGNALS_H

struct kcap_call;

/* Both ignore SIGPIPE and undo what the parent had ignored or blocked. Main thread, before any
 * other. */
void signals_exit_at_once(void);

/* The first SIGINT or SIGTERM cancels call; a second one, or half a second, ends the process
 * with 128 + the signal's number. Returns 0 or -1. */
int signals_cancel_on_interrupt(struct kcap_call *call);

/* The signal that cancelled the call, or 0. */
int signals_caught(void);

#endif
