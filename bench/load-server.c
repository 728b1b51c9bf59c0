/* SPDX-License-Identifier: Apache-2.0 */
/* The server under load: a process on two pipes, from its start to its end. */
#define _GNU_SOURCE
#include "bench/load.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

void
die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "mcp_load: ");
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(2);
}

double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void *
load_alloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);

    if (!p)
        die("out of memory");
    return p;
}

void
server_spawn(struct server *s)
{
    int a[2], b[2];
    *s = (struct server){.rx = BUF_INIT(LOAD_MAX)};
    if (pipe2(a, O_CLOEXEC) || pipe2(b, O_CLOEXEC))
        die("pipe: %s", strerror(errno));
    posix_spawn_file_actions_t fa;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, a[0], 0);
    posix_spawn_file_actions_adddup2(&fa, b[1], 1);
    posix_spawn_file_actions_addopen(&fa, 2, options.errfile ? options.errfile : "/dev/null",
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
    posix_spawnattr_t at;
    posix_spawnattr_init(&at);
    sigset_t def;
    sigemptyset(&def);
    sigaddset(&def, SIGPIPE);
    posix_spawnattr_setsigdefault(&at, &def);
    posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGDEF);
    s->t_spawn = now();
    int rc = posix_spawnp(&s->pid, options.argv[0], &fa, &at, options.argv, environ);
    if (rc)
        die("cannot start %s: %s", options.argv[0], strerror(rc));
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&at);
    close(a[0]);
    close(b[1]);
    s->in = a[1];
    s->out = b[0];
    fcntl(s->in, F_SETFL, O_NONBLOCK);
    fcntl(s->out, F_SETFL, O_NONBLOCK);
}

double
server_stop(struct server *s, int *status)
{
    double t0 = now(), ms = -1;
    int st = 0;
    if (s->in >= 0)
        close(s->in);
    s->in = -1;
    char junk[65536];
    for (int stage = 0; stage < 3; stage++) {
        if (stage == 1)
            kill(s->pid, SIGTERM);
        if (stage == 2)
            kill(s->pid, SIGKILL);
        double lim = now() + (stage == 2 ? 10 : 3);
        while (now() < lim) {
            while (s->out >= 0 && read(s->out, junk, sizeof junk) > 0) {
            }
            pid_t r = waitpid(s->pid, &st, WNOHANG);
            if (r == s->pid) {
                ms = (now() - t0) * 1e3;
                if (stage)
                    ms = -ms;
                goto gone;
            }
            usleep(200);
        }
    }
gone:
    if (s->out >= 0)
        close(s->out);
    buf_fini(&s->rx);
    s->out = -1;
    if (status)
        *status = st;
    return ms;
}

int
server_io(struct server *s, struct buf *tx, size_t *off, double deadline, char **line,
          size_t *len, bool stop_when_sent)
{
    for (;;) {
        char *nl = s->rx.len > s->scan ? memchr(s->rx.data + s->scan, '\n', s->rx.len - s->scan)
                                       : NULL;
        if (nl && line) {
            *line = s->rx.data + s->head;
            *len = (size_t)(nl - s->rx.data) - s->head;
            return 1;
        }
        s->scan = nl ? s->scan : s->rx.len;
        bool want_tx = tx && *off < tx->len && s->in >= 0;
        if (want_tx) {
            ssize_t w = write(s->in, tx->data + *off, tx->len - *off);
            if (w > 0) {
                *off += (size_t)w;
                want_tx = *off < tx->len;
            } else if (w < 0 && errno != EAGAIN && errno != EINTR) {
                close(s->in);
                s->in = -1;
                want_tx = false;
            }
        }
        if (stop_when_sent && !want_tx)
            return 2;
        if (s->eof)
            return -1;
        if (s->head) {
            buf_shift(&s->rx, s->head);
            s->scan -= s->head;
            s->head = 0;
        }
        if (!buf_reserve(&s->rx, 1 << 16))
            die("out of memory");
        ssize_t r = read(s->out, s->rx.data + s->rx.len, s->rx.cap - s->rx.len - 1);
        if (r > 0) {
            s->rx.len += (size_t)r;
            continue;
        }
        if (r == 0) {
            s->eof = true;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR) {
            s->eof = true;
            continue;
        }
        double left = deadline - now();
        if (left <= 0)
            return 0;
        if (options.spin)
            continue;
        struct pollfd pf[2] = {{s->out, POLLIN, 0}, {want_tx ? s->in : -1, POLLOUT, 0}};
        poll(pf, 2, (int)(left * 1e3) + 1);
    }
}

void
server_take(struct server *s, size_t len)
{ /* line and newline */
    s->head += len + 1;
    s->scan = s->head;
}
