/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for people, on stderr. Never blocks: a client that does not read stderr loses lines,
 * not the host. */
#ifndef KCAP_HOST_LOG_H
#define KCAP_HOST_LOG_H

#include <stdint.h>

/* What stands before each line after "kcap-host"; the plugin's name. Set once, before any
 * thread. */
void log_set_name(const char *name);

/* One line: capped at 1 KiB, control characters and bad UTF-8 escaped. level is KCAP_LOG_*. */
void log_line(int32_t level, const char *line);
void log_linef(int32_t level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
