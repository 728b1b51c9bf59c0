/* SPDX-License-Identifier: Apache-2.0 */
/* What happens, a line each: for a person on standard error, or as JSON in flowd.log. */
#ifndef KCAP_SERVER_LOG_H
#define KCAP_SERVER_LOG_H

/* Sends standard error and output to the file, which never grows beyond a mebibyte: it is then
 * renamed to PATH.old and begun anew. path is borrowed for good. Returns 0 or -errno. */
int log_to_file(const char *path);

void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
