/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The children's side. A copy is a clone that borrows the source's objects, with HEAD where it
 * is there and the files as they are there, so that git shows the same changes. Nothing of the
 * source is written: no index, no ref, no object.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/buf.h"
#include "lib/paths.h"
#include "lib/spawn.h"
#include "server/workspace.h"

#define MAX_LIST  ((size_t)256 << 20)
#define READ_SIZE 4096

/* What would give an agent servers, hooks or rules of the repository's. At any depth. */
static const char *const stripped[] = {
    ".mcp.json",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".kiro/settings/mcp.json",
    ".vscode/mcp.json",
    ".github/mcp.json",
    ".github/copilot/mcp.json",
    ".copilot/mcp.json",
    ".copilot/mcp-config.json",
    ".codex/config.toml",
    ".claude/settings.json",
    ".claude/settings.local.json",
};

static int
fail(const char *what, const char *name, int error)
{
    (void)fprintf(stderr, "%s %s: %s\n", what, name, strerror(error));
    return -error;
}

/* ---- git ---- */

/* Its hooks, its pager and its prompts are none of ours; output may be NULL. */
static int
run_git(const char *dir, const char *const *words, struct buf *output)
{
    const char *argv[24] = {
        "git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-C", dir};
    AUTO_CLOSE int out = -1, theirs = -1;
    struct spawn spawn = {
        .argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = STDERR_FILENO};
    size_t n = 7;
    int ends[2], status = 0, r;
    ssize_t got = 1;
    pid_t pid;

    for (; *words; words++)
        argv[n++] = *words;
    argv[n] = NULL;
    if (output && pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    if (output) {
        out = ends[0];
        spawn.stdout_fd = theirs = ends[1];
    }
    r = spawn_start(&spawn, &pid, NULL);
    if (r < 0)
        return fail("cannot start", "git", -r);
    if (output)
        (void)close(take_fd(&theirs));
    while (output && got > 0 && buf_reserve(output, READ_SIZE)) {
        got = read(out, output->data + output->len, READ_SIZE);
        if (got > 0)
            output->len += (size_t)got;
        else if (got < 0 && errno == EINTR)
            got = 1;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (output && !buf_ok(output))
        return fail("too many files in", dir, EFBIG);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

/* ---- files ---- */

static bool
is_stripped(const char *path)
{
    size_t len = strlen(path);

    for (size_t i = 0; i < sizeof stripped / sizeof *stripped; i++) {
        size_t n = strlen(stripped[i]);
        if (len >= n && strcmp(path + len - n, stripped[i]) == 0 &&
            (len == n || path[len - n - 1] == '/'))
            return true;
    }
    return false;
}

static int
make_parents(char *path)
{
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return fail("cannot make", path, errno);
        *slash = '/';
    }
    return 0;
}

static int
copy_link(int from_dir, int to_dir, const char *path)
{
    char target[4097];
    ssize_t len = readlinkat(from_dir, path, target, sizeof target - 1);

    if (len < 0)
        return -errno;
    target[len] = '\0';
    return symlinkat(target, to_dir, path) < 0 ? -errno : 0;
}

static int
copy_bytes(int from, int to)
{
    char space[65536];
    ssize_t n;

    while ((n = copy_file_range(from, NULL, to, NULL, (size_t)1 << 30, 0)) > 0)
        ;
    if (n == 0)
        return 0;
    while ((n = read(from, space, sizeof space)) >
           0) { /* from the beginning: nothing was done */
        for (ssize_t done = 0, put; done < n; done += put) {
            put = write(to, space + done, (size_t)(n - done));
            if (put < 0)
                return -errno;
        }
    }
    return n < 0 ? -errno : 0;
}

/* A file that went meanwhile is no fault. */
static int
copy_file(int from_dir, int to_dir, const char *path)
{
    AUTO_CLOSE int from = -1, to = -1;
    struct stat st;

    if (fstatat(from_dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
    if (S_ISLNK(st.st_mode))
        return copy_link(from_dir, to_dir, path);
    if (!S_ISREG(st.st_mode))
        return 0; /* a submodule, a socket */
    from = openat(from_dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (from < 0)
        return errno == ENOENT ? 0 : -errno;
    to = openat(to_dir, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                (st.st_mode & 0100) != 0 ? 0700 : 0600);
    return to < 0 ? -errno : copy_bytes(from, to);
}

static int
copy_files(const char *top, const struct buf *list)
{
    AUTO_CLOSE int from = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_CLOSE int to = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (from < 0 || to < 0)
        return fail("cannot open", top, errno);
    for (size_t at = 0; at < list->len; at += strlen(list->data + at) + 1) {
        char *path = list->data + at;
        int r = is_stripped(path) ? 0 : make_parents(path);
        if (r == 0 && !is_stripped(path)) {
            r = copy_file(from, to, path);
            if (r < 0)
                return fail("cannot copy", path, -r);
        }
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- removing ---- */

static int
remove_entry(const FTSENT *entry)
{
    switch (entry->fts_info) {
    case FTS_D:
        (void)chmod(entry->fts_accpath, 0700); /* or what is in it cannot be removed */
        return 0;
    case FTS_DP:
        return entry->fts_level > 0 ? rmdir(entry->fts_accpath) : 0;
    default:
        return unlink(entry->fts_accpath);
    }
}

/* All that is in it; the directory itself may be somebody's working directory. */
static int
empty(const char *dir)
{
    char *const roots[] = {(char *)(uintptr_t)dir, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_XDEV, NULL);
    FTSENT *entry;
    int r = walk ? 0 : -errno;

    while (walk && (entry = fts_read(walk)) != NULL) {
        if (remove_entry(entry) < 0 && r == 0)
            r = fail("cannot remove", entry->fts_path, errno);
    }
    if (walk)
        (void)fts_close(walk);
    return r;
}

int
workspace_remove(char *const *dirs)
{
    int status = 0;

    for (; *dirs; dirs++) {
        if (empty(*dirs) < 0 || rmdir(*dirs) < 0)
            status = 1;
    }
    return status;
}

/* ---- the copy ---- */

static int
find_top(const char *source, struct buf *top)
{
    static const char *const words[] = {"rev-parse", "--show-toplevel", NULL};
    int r = run_git(source, words, top);

    while (r == 0 && top->len > 0 && top->data[top->len - 1] == '\n')
        top->data[--top->len] = '\0';
    return r == 0 && top->len == 0 ? -EINVAL : r;
}

int
workspace_copy(const char *source, const char *dir)
{
    static const char *const list_words[] = {
        "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", NULL};
    static const char *const index_words[] = {"read-tree", "HEAD", NULL};
    static const char *const head_words[] = {"rev-parse", "-q", "--verify", "HEAD", NULL};
    AUTO_BUF struct buf top = BUF_INIT(4 * READ_SIZE), list = BUF_INIT(MAX_LIST),
                        head = BUF_INIT(4 * READ_SIZE);
    const char *clone_words[] = {
        "clone", "-q", "--shared", "--no-checkout", "--template=", "--", NULL, ".", NULL};
    int r;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* without the daemon nobody wants it */
    (void)umask(077);
    r = empty(dir);
    if (r == 0 && chdir(dir) < 0)
        r = fail("cannot enter", dir, errno);
    if (r == 0)
        r = find_top(source, &top);
    clone_words[6] = buf_str(&top);
    if (r == 0)
        r = run_git(".", clone_words, NULL);
    if (r == 0 &&
        run_git(buf_str(&top), head_words, &head) == 0) /* else nothing is committed */
        r = run_git(".", index_words, NULL);
    if (r == 0)
        r = run_git(buf_str(&top), list_words, &list);
    if (r == 0)
        r = copy_files(buf_str(&top), &list);
    return r == 0 ? 0 : 1;
}
