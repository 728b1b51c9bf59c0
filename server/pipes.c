/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lib/text.h"

#define MAX_UNSENT ((size_t)64 << 20) /* prompts of 4 MiB, escaped at worst, and some */
#define READ_SIZE  65536
#define MAX_DRAIN  1024 /* reads: what a grandchild goes on writing is not waited for */

static void
close_source(struct pipes *pipes, struct source *source)
{
    int fd = loop_remove(pipes->epoll_fd, source);

    if (fd >= 0)
        (void)close(fd);
}

static void
keep_last_line(struct last_line *last, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\n') {
            if (last->line.len < last->line.max)
                buf_addc(&last->line, text[i]);
            continue;
        }
        if (!text_is_blank(buf_str(&last->line))) {
            buf_clear(&last->words);
            buf_add(&last->words, buf_str(&last->line), last->line.len);
        }
        buf_clear(&last->line);
    }
}

const char *
pipes_said(const struct last_line *last)
{
    return last->words.len > 0 ? buf_str(&last->words) : NULL;
}

/* Reads once: 1 when there was something, 0 when there is nothing now, -1 at the end. */
static int
read_stream(const struct source *source, struct last_line *last, char *space, size_t *ret_len)
{
    ssize_t n = read(source->fd, space, READ_SIZE);

    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    keep_last_line(last, space, (size_t)n);
    *ret_len = (size_t)n;
    return 1;
}

static int
read_output(struct pipes *pipes)
{
    char space[READ_SIZE];
    size_t len;
    int r = read_stream(&pipes->output, &pipes->said, space, &len);

    if (r > 0)
        pipes->got(pipes, space, len);
    return r;
}

static void
output_ready(struct source *source, uint32_t events)
{
    struct pipes *pipes = SOURCE_OWNER(source, struct pipes, output);

    (void)events;
    if (read_output(pipes) >= 0)
        return;
    close_source(pipes, source);
    pipes->got(pipes, NULL, 0);
}

static int
read_errors(struct pipes *pipes)
{
    char space[READ_SIZE];
    size_t len;
    int r = read_stream(&pipes->errors, &pipes->complained, space, &len);

    if (r > 0)
        pipes->complaint(pipes);
    return r;
}

static void
errors_ready(struct source *source, uint32_t events)
{
    struct pipes *pipes = SOURCE_OWNER(source, struct pipes, errors);

    (void)events;
    if (read_errors(pipes) < 0)
        close_source(pipes, source);
}

/* ---- input ---- */

/* The descriptor is watched only while there is something to send or to close. */
static void
watch_input(struct pipes *pipes)
{
    bool wanted = pipes->fed && (pipes->unsent.len > 0 || pipes->end_input);
    int fd = loop_remove(pipes->epoll_fd, &pipes->input);

    if (fd >= 0 && loop_add(pipes->epoll_fd, &pipes->input, fd, wanted ? EPOLLOUT : 0) < 0)
        (void)close(fd); /* it reads the end of file and fails, which is noticed */
}

static void
send_input(struct source *source, uint32_t events)
{
    struct pipes *pipes = SOURCE_OWNER(source, struct pipes, input);
    ssize_t n = write(source->fd, buf_str(&pipes->unsent), pipes->unsent.len);

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n >= 0)
        buf_shift(&pipes->unsent, (size_t)n);
    if (n < 0 || (pipes->unsent.len == 0 && pipes->end_input))
        close_source(pipes, source);
    else if (pipes->unsent.len == 0)
        watch_input(pipes);
}

void
pipes_feed(struct pipes *pipes)
{
    pipes->fed = true;
    watch_input(pipes);
}

bool
pipes_send(struct pipes *pipes, const void *bytes, size_t len)
{
    bool idle = pipes->unsent.len == 0;

    buf_add(&pipes->unsent, bytes, len);
    if (idle)
        watch_input(pipes);
    return buf_ok(&pipes->unsent);
}

void
pipes_end_input(struct pipes *pipes)
{
    pipes->end_input = true;
    watch_input(pipes);
}

void
pipes_close_input(struct pipes *pipes)
{
    close_source(pipes, &pipes->input);
}

/* ---- life ---- */

/* A pipe whose end for us, ours, does not block. */
static int
make_pipe(struct pipes *pipes, struct source *source, int ours, int *ret_theirs)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *ret_theirs = ends[1 - ours];
    if (fcntl(ends[ours], F_SETFL, O_NONBLOCK) < 0 ||
        loop_add(pipes->epoll_fd, source, ends[ours], ours == 1 ? 0 : EPOLLIN) < 0) {
        (void)close(ends[ours]);
        return -EIO;
    }
    return 0;
}

void
pipes_init(struct pipes *pipes, void (*got)(struct pipes *pipes, const char *bytes, size_t len),
           void (*complaint)(struct pipes *pipes))
{
    *pipes = (struct pipes){.epoll_fd = -1,
                            .input = {.fd = -1, .ready = send_input},
                            .output = {.fd = -1, .ready = output_ready},
                            .errors = {.fd = -1, .ready = errors_ready},
                            .unsent = BUF_INIT(MAX_UNSENT),
                            .said = {BUF_INIT(PIPES_MAX_SAID), BUF_INIT(PIPES_MAX_SAID)},
                            .complained = {BUF_INIT(PIPES_MAX_SAID), BUF_INIT(PIPES_MAX_SAID)},
                            .got = got,
                            .complaint = complaint};
}

int
pipes_open(struct pipes *pipes, int epoll_fd, int ret_theirs[3])
{
    int r;

    pipes->epoll_fd = epoll_fd;
    r = make_pipe(pipes, &pipes->input, 1, &ret_theirs[0]);
    if (r == 0)
        r = make_pipe(pipes, &pipes->output, 0, &ret_theirs[1]);
    if (r == 0)
        r = make_pipe(pipes, &pipes->errors, 0, &ret_theirs[2]);
    return r;
}

void
pipes_close(struct pipes *pipes)
{
    close_source(pipes, &pipes->input);
    close_source(pipes, &pipes->output);
    close_source(pipes, &pipes->errors);
    buf_fini(&pipes->unsent);
    buf_fini(&pipes->said.line);
    buf_fini(&pipes->said.words);
    buf_fini(&pipes->complained.line);
    buf_fini(&pipes->complained.words);
}

void
pipes_look(struct pipes *pipes)
{
    if (pipes->output.fd >= 0)
        (void)read_output(pipes);
}

void
pipes_drain(struct pipes *pipes)
{
    for (int i = 0; i < MAX_DRAIN && pipes->output.fd >= 0 && read_output(pipes) > 0; i++)
        ;
    if (pipes->errors.fd >= 0)
        (void)read_errors(pipes);
    keep_last_line(&pipes->complained, "\n", 1);
}
