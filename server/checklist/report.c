/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/checklist/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/auto.h"
#include "lib/text.h"

#define MAX_FINDINGS 200
#define MAX_TEXT     ((size_t)8 << 20)

void
report_init(struct report *report)
{
    *report = (struct report){.lines = BUF_INIT(MAX_TEXT)};
}

void
report_fini(struct report *report)
{
    buf_fini(&report->lines);
}

void
report_add(struct report *report, const char *path, size_t line, const char *format, ...)
{
    char text[512];
    va_list args;

    if (++report->count > MAX_FINDINGS)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text_add_line(&report->lines, path, strlen(path));
    if (line > 0)
        buf_addf(&report->lines, ":%zu", line);
    buf_adds(&report->lines, ": ");
    text_add_line(&report->lines, text, strlen(text));
    buf_addc(&report->lines, '\n');
}

char *
report_text(const struct report *report, const char *label, size_t file_count)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_TEXT + 4096);

    buf_addf(&text, "Looked at %s: %zu file%s, %zu finding%s.\n", label, file_count,
             file_count == 1 ? "" : "s", report->count, report->count == 1 ? "" : "s");
    buf_add(&text, buf_str(&report->lines), report->lines.len);
    if (report->count > MAX_FINDINGS)
        buf_addf(&text, "... and %zu more.\n", report->count - MAX_FINDINGS);
    return buf_ok(&report->lines) ? buf_take(&text, NULL) : NULL;
}
