/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/boundary.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/buf.h"

#define MAX_LEVELS 32
#define MAX_ENVIRONMENT \
    (2u << 20) /* the kernel's own limit for arguments and environment together */

static const char *const reviewer_marks[] = {"KCAP_FLOW_AGENT_ID", "KCAP_REVIEWER"};
#define N_MARKS (sizeof reviewer_marks / sizeof reviewer_marks[0])

/* Nothing but this table decides a built-in plugin's class: no option, file or variable. */
static const struct {
    const char *name;
    uint32_t trust_class;
} built_in[] = {
    {"flows", KCAP_CLASS_DRIVER},
    {"flow-result", KCAP_CLASS_REVIEWER},
    {"codex-setup", KCAP_CLASS_SETUP},
};

const char *
boundary_class_name(uint32_t trust_class)
{
    static const char *const names[] = {"unknown", "driver", "reviewer", "setup", "service"};

    return trust_class < sizeof names / sizeof names[0] ? names[trust_class] : names[0];
}

uint32_t
boundary_class_of(const char *plugin_name)
{
    for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++) {
        if (strcmp(plugin_name, built_in[i].name) == 0)
            return built_in[i].trust_class;
    }
    return KCAP_CLASS_DRIVER;
}

/* Reads a file of proc whole; empty when it cannot be read. */
static void
read_proc(const char *proc, pid_t pid, const char *name, struct buf *ret)
{
    char path[512];
    AUTO_CLOSE int fd = -1;

    buf_clear(ret);
    (void)snprintf(path, sizeof path, "%s/%ld/%s", proc, (long)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && buf_reserve(ret, 4096)) {
        ssize_t n = read(fd, ret->data + ret->len, 4096);
        if (n <= 0)
            break;
        ret->len += (size_t)n;
    }
    if (buf_reserve(ret, 1))
        ret->data[ret->len] = '\0';
}

/* The mark set in an environment as /proc shows it, or NULL. Empty counts: somebody meant to
 * set it. */
static const char *
find_mark(const struct buf *environment)
{
    const char *p = buf_str(environment), *end = p + environment->len;

    for (; p < end; p += strlen(p) + 1) {
        for (size_t i = 0; i < N_MARKS; i++) {
            size_t len = strlen(reviewer_marks[i]);
            if (strncmp(p, reviewer_marks[i], len) == 0 && p[len] == '=')
                return reviewer_marks[i];
        }
    }
    return NULL;
}

static pid_t
parent_of(const struct buf *status)
{
    const char *line = strstr(buf_str(status), "\nPPid:");

    return line ? (pid_t)strtol(line + 6, NULL, 10) : 0;
}

bool
boundary_reviewer_ancestor(const char *proc, pid_t pid, char *ret_why, size_t why_len)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_ENVIRONMENT);

    for (int level = 0; level < MAX_LEVELS && pid > 1; level++) {
        const char *mark;

        read_proc(proc, pid, "comm", &text);
        if (strcmp(buf_str(&text), "kcap-flowd\n") == 0) {
            (void)snprintf(ret_why, why_len, "its ancestor %ld is kcap-flowd", (long)pid);
            return true;
        }
        read_proc(proc, pid, "environ", &text);
        mark = find_mark(&text);
        if (mark) {
            (void)snprintf(ret_why, why_len, "%s is set in its ancestor %ld", mark, (long)pid);
            return true;
        }
        read_proc(proc, pid, "status", &text);
        pid = parent_of(&text);
    }
    return false;
}

bool
boundary_inside_reviewer(char *ret_why, size_t why_len)
{
    for (size_t i = 0; i < N_MARKS; i++) {
        if (getenv(reviewer_marks[i])) {
            (void)snprintf(ret_why, why_len, "%s is set", reviewer_marks[i]);
            return true;
        }
    }
    return boundary_reviewer_ancestor("/proc", getppid(), ret_why, why_len);
}
