/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KCAP_LAUNCH_CLAUDE_SETTINGS_H
#define KCAP_LAUNCH_CLAUDE_SETTINGS_H

#include "launch/internal.h"

/* Refuses for each setting of the administrator or the user that takes our server, or one of
 * its tools, away from Claude Code, or that cannot be read. */
void compose_check_claude_settings(struct compose *compose);

#endif
