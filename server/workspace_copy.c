/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The children's side. A copy is a clone that borrows the source's objects, with HEAD, the
 * index and the files as they are there, so that git shows the same changes. Nothing of the
 * source is written: no index, no ref, no object.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/buf.h"
#include "lib/paths.h"
#include "lib/spawn.h"
#include "server/workspace.h"
#include "server/workspace_files.h"

#define MAX_LIST   ((size_t)256 << 20)
#define READ_SIZE  4096
#define MAX_NESTED 16 /* submodules in submodules */

static int
fail(const char *what, const char *name, int error)
{
    (void)fprintf(stderr, "%s %s: %s\n", what, name, strerror(error));
    return -error;
}

/* ---- git ---- */

/* Its hooks, its pager and its prompts are none of ours. input_fd may be -1, output NULL. */
static int
run_git(const char *dir, const char *const *words, int input_fd, struct buf *output)
{
    const char *argv[24] = {
        "git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-C", dir};
    AUTO_CLOSE int out = -1, theirs = -1;
    struct spawn spawn = {
        .argv = argv, .stdin_fd = input_fd, .stdout_fd = -1, .stderr_fd = STDERR_FILENO};
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

/* ---- the copy ---- */

/* What git says in one line. */
static int
ask_git(const char *dir, const char *const *words, struct buf *ret)
{
    int r = run_git(dir, words, -1, ret);

    while (r == 0 && ret->len > 0 && ret->data[ret->len - 1] == '\n')
        ret->data[--ret->len] = '\0';
    return r == 0 && ret->len == 0 ? -EINVAL : r;
}

/* With the index as it is there the copy shows what is staged, and what a sparse checkout
 * leaves out does not look deleted. One that git cannot read alone (a split index) is no use.
 */
static bool
copy_index(const char *top)
{
    static const char *const path_words[] = {"rev-parse", "--path-format=absolute",
                                             "--git-path", "index", NULL};
    static const char *const check_words[] = {"ls-files", "-z", "--", ".git", NULL};
    AUTO_BUF struct buf path = BUF_INIT(4 * READ_SIZE), output = BUF_INIT(READ_SIZE);
    AUTO_CLOSE int from = -1, to = -1;

    if (ask_git(top, path_words, &path) < 0)
        return false;
    from = open(buf_str(&path), O_RDONLY | O_CLOEXEC);
    to = from < 0 ? -1 : open(".git/index", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to >= 0 && files_copy_bytes(from, to) == 0 &&
        run_git(".", check_words, -1, &output) == 0)
        return true;
    (void)unlink(".git/index");
    return false;
}

static int
read_index(const char *top)
{
    static const char *const read_words[] = {"read-tree", "HEAD", NULL};
    static const char *const head_words[] = {"rev-parse", "-q", "--verify", "HEAD", NULL};
    AUTO_BUF struct buf head = BUF_INIT(4 * READ_SIZE);

    if (copy_index(top))
        return 0;
    return ask_git(top, head_words, &head) == 0 /* else nothing is committed */
               ? run_git(".", read_words, -1, NULL)
               : 0;
}

/* What is left out must not look deleted: a reviewer would tell so. */
static int
hide_left_out(struct files *files)
{
    static const char *const list_words[] = {"ls-files", "-z", NULL};
    static const char *const hide_words[] = {"update-index", "-z", "--skip-worktree", "--stdin",
                                             NULL};
    AUTO_BUF struct buf list = BUF_INIT(MAX_LIST);
    AUTO_CLOSE int hidden = memfd_create("left out", MFD_CLOEXEC);
    bool any = false;
    int r = hidden < 0 ? -errno : run_git(".", list_words, -1, &list);

    for (size_t at = 0; at < list.len && r == 0; at += strlen(list.data + at) + 1) {
        size_t size = strlen(list.data + at) + 1;
        if (!files_leaves_out(files, list.data + at))
            continue;
        any = true;
        if (write(hidden, list.data + at, size) != (ssize_t)size)
            r = -EIO;
    }
    if (r < 0 || !any)
        return r;
    return lseek(hidden, 0, SEEK_SET) < 0 ? -errno : run_git(".", hide_words, hidden, NULL);
}

static int copy_files(struct files *files, const char *top, const char *below, int depth);

/* What is checked out of a submodule. Not so a repository that git does not know of. */
static int
copy_submodule(struct files *files, const char *top, const char *path, int depth)
{
    AUTO_FREE char *dir = paths_join(top, path);
    AUTO_FREE char *git = dir ? paths_join(dir, ".git") : NULL;

    if (!git)
        return -ENOMEM;
    return depth < MAX_NESTED && access(git, F_OK) == 0
               ? copy_files(files, top, path, depth + 1)
               : 0;
}

/* Copies what git knows, or would take up, of the repository at below, which is "" or a
 * submodule's path. */
static int
copy_files(struct files *files, const char *top, const char *below, int depth)
{
    static const char *const words[] = {
        "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", NULL};
    AUTO_BUF struct buf list = BUF_INIT(MAX_LIST);
    AUTO_FREE char *dir = paths_join(top, below);
    int r = dir ? run_git(dir, words, -1, &list) : -ENOMEM;

    for (size_t at = 0; at < list.len && r == 0; at += strlen(list.data + at) + 1) {
        const char *name = list.data + at;
        AUTO_FREE char *path = below[0] ? paths_join(below, name) : strdup(name);
        if (!path)
            return -ENOMEM;
        if (path[strlen(path) - 1] == '/')
            continue; /* a repository in there that git does not know of */
        r = files_copy(files, path);
        if (r == FILES_DIRECTORY)
            r = copy_submodule(files, top, path, depth);
        else if (r < 0)
            r = fail("cannot copy", path, -r);
    }
    return r;
}

int
workspace_copy(const char *source, const char *dir)
{
    static const char *const top_words[] = {"rev-parse", "--show-toplevel", NULL};
    AUTO_BUF struct buf top = BUF_INIT(4 * READ_SIZE);
    const char *clone_words[] = {
        "clone", "-q", "--shared", "--no-checkout", "--template=", "--", NULL, ".", NULL};
    struct files files = {.from = -1, .to = -1, .from_dir = -1, .to_dir = -1};
    int r;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* without the daemon nobody wants it */
    (void)umask(077);
    r = workspace_empty(dir);
    if (r == 0 && chdir(dir) < 0)
        r = fail("cannot enter", dir, errno);
    if (r == 0)
        r = ask_git(source, top_words, &top);
    clone_words[6] = buf_str(&top);
    if (r == 0)
        r = run_git(".", clone_words, -1, NULL);
    if (r == 0)
        r = read_index(buf_str(&top));
    if (r == 0) {
        r = files_open(&files, buf_str(&top), ".");
        if (r < 0)
            r = fail("cannot open", buf_str(&top), -r);
    }
    if (r == 0)
        r = copy_files(&files, buf_str(&top), "", 0);
    if (r == 0)
        r = hide_left_out(&files);
    files_close(&files);
    return r == 0 ? 0 : 1;
}
