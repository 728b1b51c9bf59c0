/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wall between reviewer and driver. A host that runs inside a reviewer loads the reviewer's
 * plugin or nothing. Defence in depth: what cannot be read is passed over; the launch recipe is
 * the real wall.
 */
#ifndef KCAP_HOST_BOUNDARY_H
#define KCAP_HOST_BOUNDARY_H

#include <kcap/plugin.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* "driver", "reviewer", "setup", "service", or "unknown". */
const char *boundary_class_name(uint32_t trust_class);

/* The class a plugin of this name must have: the built-in table, else driver. */
uint32_t boundary_class_of(const char *plugin_name);

/* Whether this process runs inside a reviewer; ret_why then says what showed it. */
bool boundary_inside_reviewer(char *ret_why, size_t why_len);

/* The same for the ancestors from pid upwards, with proc in place of /proc (tests give their
 * own tree). */
bool boundary_reviewer_ancestor(const char *proc, pid_t pid, char *ret_why, size_t why_len);

#endif
