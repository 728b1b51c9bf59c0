/* SPDX-License-Identifier: Apache-2.0 */
/* The findings, one line each; beyond a number of them they are only counted. */
#ifndef KCAP_CHECKLIST_REPORT_H
#define KCAP_CHECKLIST_REPORT_H

#include <stddef.h>

#include "lib/buf.h"

struct report {
    struct buf lines;
    size_t count;
};

void report_init(struct report *report);
void report_fini(struct report *report);

/* "path:line: text"; line 0 is left out. The path may be anything. */
void report_add(struct report *report, const char *path, size_t line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The whole text, what was looked at first. NULL when out of memory; to be freed. */
char *report_text(const struct report *report, const char *label, size_t file_count);

#endif
