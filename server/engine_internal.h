/* SPDX-License-Identifier: Apache-2.0 */
/* What the files engine*.c share. */
#ifndef KCAP_SERVER_ENGINE_INTERNAL_H
#define KCAP_SERVER_ENGINE_INTERNAL_H

#include "server/engine.h"

/* Ends the run, the round that may be open, and every reviewer of it, also those that are alive
 * although their round has failed: none outlives its run. reason may be NULL. */
int engine_end_flow(struct engine *engine, const struct flow *flow, const char *status,
                    const char *reason);

#endif
