/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/checklist/git.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>

#include "lib/auto.h"
#include "lib/spawn.h"
#include "lib/text.h"

#define MAX_ARGS  40
#define MAX_LINE  8192
#define MAX_ERROR 1000

extern char **environ;

/* Before each command: whatever the configuration says, run nothing and decorate nothing. */
static const char *const options[] = {
    "git",
    "--no-pager",
    "--no-optional-locks",
    "--literal-pathspecs",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.quotePath=false",
    "-c",
    "core.untrackedCache=false",
    "-c",
    "color.ui=false",
};
#define OPTION_COUNT (sizeof options / sizeof *options)

int
git_init(struct git *git, const char *dir)
{
    static char locale[] = "LC_ALL=C", no_prompt[] = "GIT_TERMINAL_PROMPT=0";
    size_t count = 0, n = 0;

    *git = (struct git){.error = BUF_INIT(8 * MAX_ERROR)};
    while (environ && environ[count])
        count++;
    git->dir = strdup(dir);
    git->env = calloc(count + 3, sizeof *git->env);
    if (!git->dir || !git->env) {
        git_fini(git);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        if (strncmp(environ[i], "GIT_", 4) != 0 && strncmp(environ[i], "LC_ALL=", 7) != 0)
            git->env[n++] = environ[i];
    }
    git->env[n++] = locale;
    git->env[n++] = no_prompt;
    return 0;
}

void
git_fini(struct git *git)
{
    free(git->dir);
    free(git->env);
    buf_fini(&git->error);
    git->dir = NULL;
    git->env = NULL;
}

static int
fail(struct git *git, int code, const char *what, const char *why, size_t why_len)
{
    buf_clear(&git->error);
    buf_addf(&git->error, "git %s: ", what);
    text_add_line(&git->error, why, why_len);
    return code;
}

/* A file without a name that holds bytes, at its start. */
static int
memory_file(const struct buf *bytes)
{
    AUTO_CLOSE int fd = memfd_create("git-input", MFD_CLOEXEC);
    size_t done = 0;

    while (fd >= 0 && bytes && done < bytes->len) {
        ssize_t n = write(fd, bytes->data + done, bytes->len - done);
        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0 && lseek(fd, 0, SEEK_SET) < 0)
        return -errno;
    return fd < 0 ? -errno : take_fd(&fd);
}

/* The line that says what was wrong: hints on what to do may stand before and after it. */
static const char *
find_verdict(const char *text, size_t *ret_len)
{
    static const char *const marks[] = {"fatal: ", "error: "};
    const char *line = text, *last = text;

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        for (line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
            if (strncmp(line, marks[i], strlen(marks[i])) == 0) {
                *ret_len = strcspn(line, "\n");
                return line;
            }
            if (*line != '\n')
                last = line;
        }
    }
    *ret_len = strcspn(last, "\n");
    return last;
}

/* What git wrote to its standard error, or a stand-in. */
static int
fail_with_stderr(struct git *git, int code, const char *what, int stderr_fd)
{
    char text[MAX_ERROR + 1];
    ssize_t n = pread(stderr_fd, text, MAX_ERROR, 0);
    const char *line;
    size_t len;

    text[n > 0 ? n : 0] = '\0';
    line = find_verdict(text, &len);
    if (len == 0)
        return fail(git, code, what, "failed without a word", 21);
    return fail(git, code, what, line, len);
}

static int
pump(int fd, git_sink sink, void *arg)
{
    char space[65536];

    for (;;) {
        ssize_t n = read(fd, space, sizeof space);
        int r = n > 0 ? sink(arg, space, (size_t)n) : 0;
        if (r < 0)
            return r;
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return 0;
    }
}

static int
start(struct git *git, const char *const *args, int in, int out, int err, pid_t *ret_pid)
{
    const char *argv[OPTION_COUNT + MAX_ARGS + 1];
    struct spawn spawn = {.argv = argv,
                          .envp = (const char *const *)git->env,
                          .dir = git->dir,
                          .stdin_fd = in,
                          .stdout_fd = out,
                          .stderr_fd = err};
    size_t n = OPTION_COUNT;

    memcpy(argv, options, sizeof options);
    for (; *args; args++) {
        if (n == OPTION_COUNT + MAX_ARGS)
            return -E2BIG;
        argv[n++] = *args;
    }
    argv[n] = NULL;
    return spawn_start(&spawn, ret_pid, NULL);
}

static int
reap(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int
git_stream(struct git *git, const char *const *args, const struct buf *input, git_sink sink,
           void *arg)
{
    AUTO_CLOSE int in = memory_file(input);
    AUTO_CLOSE int err = memory_file(NULL);
    AUTO_CLOSE int from = -1, to = -1;
    int ends[2], r, status;
    pid_t pid;

    if (in < 0 || err < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return fail(git, -EIO, args[0], strerror(errno), strlen(strerror(errno)));
    from = ends[0];
    to = ends[1];
    r = start(git, args, in, to, err, &pid);
    (void)close(take_fd(&to));
    if (r < 0)
        return fail(git, r, args[0], strerror(-r), strlen(strerror(-r)));
    r = pump(from, sink, arg);
    (void)close(take_fd(&from)); /* ends a git whose output nobody wants */
    status = reap(pid);
    if (r < 0)
        return fail(git, r, args[0], r == -EFBIG ? "too much output" : strerror(-r),
                    r == -EFBIG ? 15 : strlen(strerror(-r)));
    if (status != 0)
        (void)fail_with_stderr(git, 0, args[0], err);
    return status;
}

static int
add_to_buf(void *arg, const char *data, size_t len)
{
    struct buf *buf = arg;

    buf_add(buf, data, len);
    return buf_ok(buf) ? 0 : -EFBIG;
}

int
git_read(struct git *git, const char *const *args, const struct buf *input, struct buf *ret)
{
    int r = git_stream(git, args, input, add_to_buf, ret);

    return r > 0 ? -EIO : r;
}

int
git_read_line(struct git *git, const char *const *args, char **ret)
{
    AUTO_BUF struct buf out = BUF_INIT(MAX_LINE);
    int r = git_stream(git, args, NULL, add_to_buf, &out);

    *ret = NULL;
    if (r == 1 && out.len == 0)
        return 0;
    if (r != 0)
        return r > 0 ? -EIO : r;
    if (out.len > 0 && out.data[out.len - 1] == '\n')
        out.data[--out.len] = '\0';
    *ret = buf_take(&out, NULL);
    return *ret ? 0 : -ENOMEM;
}
