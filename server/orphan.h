/* SPDX-License-Identifier: Apache-2.0 */
/* What a killed kcap-flowd left behind. */
#ifndef KCAP_SERVER_ORPHAN_H
#define KCAP_SERVER_ORPHAN_H

#include "server/engine.h"

/* Ends the reviewers of the former process and marks their rounds; their runs stay open.
 * Returns 0 or -EIO. */
int orphans_end(struct engine *engine);

#endif
