/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/workspace_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/auto.h"

/* At any depth. */
static const char *const stripped[] = {
    ".mcp.json",
    ".amazonq/mcp.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".copilot/mcp-config.json",
    ".copilot/mcp.json",
    ".cursor/hooks.json",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".github/copilot/mcp.json",
    ".github/mcp.json",
    ".kilocode/mcp.json",
    ".kiro/settings/mcp.json",
    ".opencode/opencode.json",
    ".opencode/opencode.jsonc",
    ".qwen/settings.json",
    ".roo/mcp.json",
    ".vscode/mcp.json",
    "opencode.json",
    "opencode.jsonc",
};

/* Whether the path ends with the first len bytes of name, at a component's beginning. */
static bool
ends_with(const char *path, const char *name, size_t len)
{
    size_t path_len = strlen(path);

    return path_len >= len && memcmp(path + path_len - len, name, len) == 0 &&
           (path_len == len || path[path_len - len - 1] == '/');
}

static bool
is_stripped(const char *path)
{
    for (size_t i = 0; i < sizeof stripped / sizeof *stripped; i++) {
        if (ends_with(path, stripped[i], strlen(stripped[i])))
            return true;
    }
    return false;
}

/* Whether it has the name of a directory that such files are in: a link in its place would
 * bring them in from where they have other names. */
static bool
is_stripped_link(const char *path)
{
    for (size_t i = 0; i < sizeof stripped / sizeof *stripped; i++) {
        for (const char *slash = strchr(stripped[i], '/'); slash;
             slash = strchr(slash + 1, '/')) {
            if (ends_with(path, stripped[i], (size_t)(slash - stripped[i])))
                return true;
        }
    }
    return false;
}

/* ---- directories ---- */

int
files_open(struct files *files, const char *from, const char *to)
{
    *files = (struct files){.from_dir = -1, .to_dir = -1};
    files->from = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    files->to = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return files->from < 0 || files->to < 0 ? -errno : 0;
}

static void
leave_dir(struct files *files)
{
    if (files->from_dir >= 0)
        (void)close(files->from_dir);
    if (files->to_dir >= 0)
        (void)close(files->to_dir);
    free(files->dir);
    files->dir = NULL;
    files->from_dir = files->to_dir = -1;
}

void
files_close(struct files *files)
{
    leave_dir(files);
    if (files->from >= 0)
        (void)close(files->from);
    if (files->to >= 0)
        (void)close(files->to);
    files->from = files->to = -1;
}

/* Goes down the path of dir, of which it takes the slashes; with make it makes what is not
 * there. Returns a descriptor or -errno. */
static int
walk(int top, char *dir, bool make)
{
    AUTO_CLOSE int fd = fcntl(top, F_DUPFD_CLOEXEC, 3);
    char *rest = dir;
    const char *name;

    if (fd < 0)
        return -errno;
    while ((name = strsep(&rest, "/")) != NULL) {
        int next;
        if (make && mkdirat(fd, name, 0700) < 0 && errno != EEXIST)
            return -errno;
        next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return -errno;
        (void)close(fd);
        fd = next;
    }
    return take_fd(&fd);
}

/* A list is sorted, so the directory is mostly the one of the file before. */
static int
enter_dir(struct files *files, const char *path, size_t len)
{
    AUTO_FREE char *name = strndup(path, len);
    AUTO_FREE char *words = strndup(path, len);
    int r = 0;

    if (!name || !words)
        return -ENOMEM;
    if (files->dir && strcmp(files->dir, name) == 0)
        return 0;
    leave_dir(files);
    r = walk(files->from, words, false);
    if (r >= 0) {
        files->from_dir = r;
        memcpy(words, name, len);
        r = files->to_dir = walk(files->to, words, true);
    } else if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP) {
        r = 0;
    }
    files->dir = take_ptr(name);
    return r < 0 ? r : 0;
}

/* ---- files ---- */

static int
copy_link(int from_dir, int to_dir, const char *name)
{
    char target[4097];
    ssize_t len = readlinkat(from_dir, name, target, sizeof target - 1);

    if (len < 0)
        return -errno;
    target[len] = '\0';
    return symlinkat(target, to_dir, name) < 0 ? -errno : 0;
}

int
files_copy_bytes(int from, int to)
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

static int
copy_file(int from_dir, int to_dir, const char *name, bool is_executable)
{
    AUTO_CLOSE int from =
        openat(from_dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    AUTO_CLOSE int to = -1;

    if (from < 0)
        return errno == ENOENT ? 0 : -errno;
    to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                is_executable ? 0700 : 0600);
    return to < 0 ? -errno : files_copy_bytes(from, to);
}

/* The directory of the source that path is in, and its last component. Returns 0, -ENOENT when
 * there is no such directory, or -errno. */
static int
find(struct files *files, const char *path, int *ret_from, int *ret_to, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    int r = slash ? enter_dir(files, path, (size_t)(slash - path)) : 0;

    *ret_name = slash ? slash + 1 : path;
    *ret_from = slash ? files->from_dir : files->from;
    *ret_to = slash ? files->to_dir : files->to;
    return r == 0 && *ret_from < 0 ? -ENOENT : r;
}

/* Whether the path stays below the tops: an index can hold any name. */
static bool
is_below(const char *path)
{
    for (const char *part = path;; part++) {
        size_t len = strcspn(part, "/");
        if (len == 0 || (len == 1 && part[0] == '.') ||
            (len == 2 && memcmp(part, "..", 2) == 0) ||
            (len == 4 && strncasecmp(part, ".git", 4) == 0))
            return false;
        part += len;
        if (*part == '\0')
            return true;
    }
}

bool
files_leaves_out(struct files *files, const char *path)
{
    const char *name;
    struct stat st;
    int from, to;

    return (is_stripped(path) || is_stripped_link(path)) && is_below(path) &&
           find(files, path, &from, &to, &name) == 0 &&
           fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (is_stripped(path) || S_ISLNK(st.st_mode));
}

int
files_copy(struct files *files, const char *path)
{
    const char *name;
    struct stat st;
    int from, to, r;

    if (is_stripped(path) || !is_below(path))
        return FILES_DONE;
    r = find(files, path, &from, &to, &name);
    if (r == 0 && fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        r = -errno;
    if (r < 0)
        return r == -ENOENT ? FILES_DONE : r; /* git still knows what was there */
    if (S_ISDIR(st.st_mode))
        return mkdirat(to, name, 0700) < 0 && errno != EEXIST ? -errno : FILES_DIRECTORY;
    if (S_ISLNK(st.st_mode) && !is_stripped_link(path))
        return copy_link(from, to, name);
    if (S_ISREG(st.st_mode))
        return copy_file(from, to, name, (st.st_mode & 0100) != 0);
    return FILES_DONE;
}
