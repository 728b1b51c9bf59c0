/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/text.h"
#include "server/util.h"

#define MAX_FILE ((off_t)1 << 20)
#define MAX_LINE 2000

static const char *log_path; /* set by log_to_file, once, before there is a loop */

int
log_to_file(const char *path)
{
    AUTO_CLOSE int fd =
        open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0 || dup2(fd, STDERR_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
        return -errno;
    log_path = path;
    return 0;
}

static void
keep_small(void)
{
    char old[4096];
    struct stat st;
    int len;

    if (!log_path || fstat(STDERR_FILENO, &st) < 0 || st.st_size < MAX_FILE)
        return;
    len = snprintf(old, sizeof old, "%s.old", log_path);
    if (len > 0 && (size_t)len < sizeof old && rename(log_path, old) == 0)
        (void)log_to_file(log_path);
}

void
log_line(const char *format, ...)
{
    AUTO_BUF struct buf line = BUF_INIT(8 * MAX_LINE);
    char text[MAX_LINE], when[32];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    util_format_time(util_wall_ms(), when);
    if (log_path) { /* for programs */
        buf_addf(&line, "{\"time\":\"%s\",\"pid\":%ld,\"message\":", when, (long)getpid());
        text_add_json(&line, text, strlen(text));
        buf_adds(&line, "}\n");
    } else {
        buf_addf(&line, "%s kcap-flowd[%ld]: ", when, (long)getpid());
        text_add_line(&line, text, strlen(text));
        buf_addc(&line, '\n');
    }
    keep_small();
    if (buf_ok(&line) && write(STDERR_FILENO, line.data, line.len) < 0)
        return; /* nobody left to tell */
}
