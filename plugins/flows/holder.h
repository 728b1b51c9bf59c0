/* SPDX-License-Identifier: Apache-2.0 */
/* Which process has sent an order that nobody has heard of since, and whether it is still there
 * to hear of it. */
#ifndef KCAP_FLOWS_HOLDER_H
#define KCAP_FLOWS_HOLDER_H

#include <stdbool.h>

/* This process, as "pid-start time"; "" when that cannot be told. Lives as long as it does. */
const char *holder_self(void);

/* Whether that process (not this one) still runs. NULL and what makes no sense do not. */
bool holder_is_elsewhere(const char *holder);

#endif
