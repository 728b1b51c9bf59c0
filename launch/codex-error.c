/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "launch/codex-error.h"

#include <string.h>
#include <strings.h>

#include "lib/text.h"

#define MAX_LINES 5

/* What follows is an excerpt of a file, or addresses. */
static const char *const ends[] = {"Stack backtrace", "TOML parse error"};
static const char *const skipped[] = {"warning", "Caused by:"};

static bool
begins(const char *line, size_t len, const char *word)
{
    return len >= strlen(word) && strncasecmp(line, word, strlen(word)) == 0;
}

static bool
is_end(const char *line, size_t len)
{
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (memmem(line, len, ends[i], strlen(ends[i])))
            return true;
    }
    return false;
}

static bool
is_skipped(const char *line, size_t len)
{
    for (size_t i = 0; i < sizeof skipped / sizeof skipped[0]; i++) {
        if (begins(line, len, skipped[i]))
            return true;
    }
    return len == 0;
}

/* Values stand in double quotes; names, in others. */
static void
add_unquoted(struct buf *to, const char *line, size_t len)
{
    while (len > 0) {
        const char *quote = memchr(line, '"', len);
        size_t before = quote ? (size_t)(quote - line) : len;
        const char *close = quote ? memchr(quote + 1, '"', len - before - 1) : NULL;

        text_add_line(to, line, before);
        if (!quote)
            return;
        buf_adds(to, "\"...\"");
        if (!close) /* it goes on to the end of the line */
            return;
        len -= (size_t)(close + 1 - line);
        line = close + 1;
    }
}

void
codex_error_add(struct buf *to, const char *errors, size_t len)
{
    const char *end = errors + len;
    int n = 0;

    for (const char *line = errors; line && line < end && n < MAX_LINES;) {
        const char *lf = memchr(line, '\n', (size_t)(end - line)), *next = lf ? lf + 1 : end;
        size_t line_len = (size_t)((lf ? lf : end) - line);

        while (line_len > 0 && (*line == ' ' || *line == '\t')) {
            line++;
            line_len--;
        }
        if (is_end(line, line_len))
            return;
        if (!is_skipped(line, line_len)) {
            buf_adds(to, n++ == 0 ? ": " : " ");
            add_unquoted(to, line, text_prefix(line, line_len, 400));
        }
        line = next;
    }
}
