/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/log.h"

#include <kcap/plugin.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/text.h"

#define LINE_MAX_LEN 1024

static const char *log_name; /* written by log_set_name only */

void
log_set_name(const char *name)
{
    log_name = name;
}

void
log_line(int32_t level, const char *line)
{
    static const char *const words[] = {
        [KCAP_LOG_ERROR] = "error: ", [KCAP_LOG_WARN] = "warning: "};
    struct pollfd writable = {.fd = STDERR_FILENO, .events = POLLOUT};
    AUTO_BUF struct buf text = BUF_INIT(4 * LINE_MAX_LEN);
    size_t len;

    if (level >= KCAP_LOG_DEBUG)
        return;
    buf_adds(&text, "kcap-host");
    if (log_name)
        buf_addf(&text, "[%.64s]", log_name);
    buf_adds(&text, ": ");
    if (level == KCAP_LOG_ERROR || level == KCAP_LOG_WARN)
        buf_adds(&text, words[level]);
    text_add_line(&text, line, text_prefix(line, strlen(line), LINE_MAX_LEN));
    buf_addc(&text, '\n');
    /* A pipe that is writable takes PIPE_BUF bytes at once, so a line of that size cannot
     * block. */
    len = text.len < 4096 ? text.len : 4096;
    if (buf_ok(&text) && poll(&writable, 1, 0) == 1 && (writable.revents & POLLOUT)) {
        ssize_t written = write(STDERR_FILENO, text.data, len);
        (void)written; /* nowhere left to report it */
    }
}

void
log_linef(int32_t level, const char *format, ...)
{
    char line[LINE_MAX_LEN];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    log_line(level, line);
}
