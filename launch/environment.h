/* SPDX-License-Identifier: Apache-2.0 */
/* What of the launcher's environment a reviewer gets. */
#ifndef KCAP_LAUNCH_ENVIRONMENT_H
#define KCAP_LAUNCH_ENVIRONMENT_H

#include "launch/compose.h"
#include "launch/words.h"

/* Appends envp without what is not for this vendor's reviewer, and KCAP_REVIEWER=1. */
void environment_for(enum compose_vendor vendor, const char *const *envp, struct words *to);

/* The value of a variable, or NULL. Borrowed. */
const char *environment_get(const char *const *envp, const char *name);

/* Resolves a program as a shell would with this environment. An absolute path, or NULL. */
char *environment_find_program(const char *const *envp, const char *name);

#endif
