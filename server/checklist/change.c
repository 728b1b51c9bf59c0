/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/checklist/change.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/text.h"
#include "server/checklist/diff.h"

#define MAX_CONTENT  ((size_t)4 << 20) /* what is larger is not looked into */
#define BINARY_PROBE 8000              /* where git looks for a NUL */
#define MAX_LABEL    1000

static int
fail(struct git *git, const char *before, const char *text, const char *after)
{
    buf_clear(&git->error);
    buf_adds(&git->error, before);
    text_add_line(&git->error, text, strlen(text));
    buf_adds(&git->error, after);
    return -ENOENT;
}

/* ---- revisions ---- */

/* The commit's full name, or NULL in *ret when there is no such revision. */
static int
find_commit(struct git *git, const char *revision, const char *suffix, char **ret)
{
    AUTO_BUF struct buf name = BUF_INIT(4096);
    const char *const args[] = {"rev-parse",        "--verify", "--quiet",
                                "--end-of-options", NULL,       NULL};
    const char *filled[sizeof args / sizeof *args];

    buf_adds(&name, revision);
    buf_adds(&name, suffix);
    *ret = NULL;
    if (!buf_ok(&name) || strlen(buf_str(&name)) != name.len)
        return 0;
    memcpy(filled, args, sizeof args);
    filled[4] = buf_str(&name);
    return git_read_line(git, filled, ret);
}

static int
resolve_commit(struct git *git, const char *revision, char **ret)
{
    int r = find_commit(git, revision[0] ? revision : "HEAD", "^{commit}", ret);

    if (r == 0 && !*ret)
        return fail(git, "there is no commit \"", revision[0] ? revision : "HEAD",
                    "\" in this repository");
    return r;
}

static int
empty_tree(struct git *git, char **ret)
{
    static const char *const args[] = {"hash-object", "-t", "tree", "/dev/null", NULL};

    return git_read_line(git, args, ret);
}

static void __attribute__((format(printf, 2, 3)))
label(struct change *change, const char *format, ...)
{
    AUTO_BUF struct buf clean = BUF_INIT(8 * MAX_LABEL);
    char space[MAX_LABEL];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(space, sizeof space, format, args);
    va_end(args);
    text_add_line(&clean, space, strlen(space));
    change->label = buf_take(&clean, NULL);
}

static int
load_range(struct change *change, const char *range)
{
    const char *dots = strstr(range, "..");
    bool from_base = dots[2] == '.';
    AUTO_FREE char *a = strndup(range, (size_t)(dots - range));
    const char *b = dots + (from_base ? 3 : 2);
    int r = a ? resolve_commit(change->git, a, &change->left) : -ENOMEM;

    if (r == 0)
        r = resolve_commit(change->git, b, &change->right);
    if (r == 0 && from_base) {
        AUTO_FREE char *side = take_ptr(change->left);
        const char *const args[] = {"merge-base", "--", side, change->right, NULL};
        r = git_read_line(change->git, args, &change->left);
        if (r == 0 && !change->left)
            return fail(change->git, "the two sides of \"", range,
                        "\" have no commit in common");
    }
    if (r == 0)
        label(change, "the range %s (%.12s)", range, change->right);
    return r;
}

static int
load_commit(struct change *change, const char *revision)
{
    int r = resolve_commit(change->git, revision, &change->right);

    if (r == 0)
        r = find_commit(change->git, change->right, "^1", &change->left);
    if (r < 0)
        return r;
    if (change->left) {
        label(change, "commit %.12s (%s) against its first parent", change->right,
              revision[0] ? revision : "HEAD");
        return 0;
    }
    label(change, "commit %.12s (%s), which has no parent", change->right,
          revision[0] ? revision : "HEAD");
    return empty_tree(change->git, &change->left);
}

static int
check_against(struct change *change, const char *against)
{
    AUTO_FREE char *named = NULL;
    int r = find_commit(change->git, against, "^{commit}", &named);

    if (r < 0 || (named && change->left && strcmp(named, change->left) == 0))
        return r;
    return fail(change->git, "what is not committed is compared with HEAD, and \"", against,
                "\" is not what is checked out: leave target_ref empty, or name a range");
}

static int
load_work_tree(struct change *change, const char *against)
{
    int r = find_commit(change->git, "HEAD", "^{commit}", &change->left);

    if (r == 0 && against)
        r = check_against(change, against);
    if (r == 0 && change->left)
        label(change, "the working tree against HEAD (%.12s)", change->left);
    else if (r == 0)
        label(change, "the working tree, before its first commit");
    if (r == 0 && !change->left)
        r = empty_tree(change->git, &change->left);
    return r;
}

/* A commit of a bare repository can be looked at without a work tree. */
static int
enter_top(struct git *git, bool needs_work_tree)
{
    static const char *const bare[] = {"rev-parse", "--is-bare-repository", NULL};
    static const char *const args[] = {"rev-parse", "--show-toplevel", NULL};
    AUTO_FREE char *answer = NULL, *top = NULL;
    int r = git_read_line(git, bare, &answer);

    if (r == 0 && answer && strcmp(answer, "true") == 0)
        return needs_work_tree ? fail(git, "", git->dir,
                                      " is a bare repository, so there is nothing "
                                      "uncommitted to look at")
                               : 0;
    if (r == 0)
        r = git_read_line(git, args, &top);
    if (r < 0)
        return r;
    if (!top || top[0] != '/')
        return fail(git, "", git->dir, " is not inside a git work tree");
    free(git->dir);
    git->dir = take_ptr(top);
    return 0;
}

int
change_load(struct change *change, struct git *git, const struct target *target)
{
    int r = enter_top(git, !target->range && !target->commit);

    *change = (struct change){.git = git};
    if (r == 0)
        r = target->range    ? load_range(change, target->range)
            : target->commit ? load_commit(change, target->commit)
                             : load_work_tree(change, target->against);
    if (r == 0)
        r = diff_files(change);
    if (r == 0)
        r = diff_lines(change);
    if (r == 0 && !change->right)
        r = diff_untracked(change);
    if (r == 0 && change->count > 0)
        r = diff_attributes(change);
    return r;
}

void
change_fini(struct change *change)
{
    for (size_t i = 0; i < change->count; i++) {
        free(change->files[i].path);
        free(change->files[i].added);
    }
    free(change->files);
    free(change->label);
    free(change->left);
    free(change->right);
    *change = (struct change){0};
}

/* ---- contents ---- */

bool
file_line_is_added(const struct file *file, size_t line)
{
    size_t low = 0, high = file->added_count;

    if (file->all_added)
        return true;
    while (low < high) { /* ranges are in order and apart */
        size_t middle = low + (high - low) / 2;
        const struct range *range = &file->added[middle];
        if (line < range->first)
            high = middle;
        else if (line - range->first >= range->count)
            low = middle + 1;
        else
            return true;
    }
    return false;
}

void
file_set_content(struct file *file, const char *data, size_t len)
{
    file->data = data;
    file->len = len;
    file->size = (int64_t)len;
    file->binary = memchr(data, '\0', len < BINARY_PROBE ? len : BINARY_PROBE) != NULL;
}

/* Reads a file of the working tree; it may be anything, and it may change under us. */
static int
read_work_file(int dir_fd, struct file *file, struct buf *content)
{
    AUTO_CLOSE int fd =
        openat(dir_fd, file->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -ENOENT; /* a link, a directory, or gone by now */
    file->size = st.st_size;
    if (file->new_mode == 0)
        file->new_mode = (st.st_mode & 0100) != 0 ? 0100755u : 0100644u;
    buf_clear(content);
    while (content->len < MAX_CONTENT && buf_reserve(content, 65536)) {
        ssize_t n = read(fd, content->data + content->len, 65536);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            break;
        content->len += n > 0 ? (size_t)n : 0;
        content->data[content->len] = '\0';
    }
    return buf_ok(content) ? 0 : -ENOMEM;
}

static int
visit_work_tree(struct change *change, void (*visit)(void *arg, const struct file *file),
                void *arg)
{
    AUTO_CLOSE int dir_fd = open(change->git->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_BUF struct buf content = BUF_INIT(MAX_CONTENT + ((size_t)1 << 20));

    if (dir_fd < 0)
        return fail(change->git, "", change->git->dir, " cannot be opened");
    for (size_t i = 0; i < change->count; i++) {
        struct file *file = &change->files[i];
        if (file->new_mode != 0 && (file->new_mode & 0170000u) != 0100000u)
            continue;
        if (read_work_file(dir_fd, file, &content) < 0)
            continue;
        if (file->size <= (int64_t)MAX_CONTENT)
            file_set_content(file, buf_str(&content), content.len);
        visit(arg, file);
        file->data = NULL;
    }
    return 0;
}

struct blobs {
    struct change *change;
    void (*visit)(void *arg, const struct file *file);
    void *arg;
    size_t at; /* the file whose blob is being read */
    struct buf header;
    struct buf content;
    size_t content_left; /* with the line end after it; 0: a header is next */
};

/* Whether the file has a blob of its own to look at. */
static bool
has_blob(const struct file *file)
{
    return (file->new_mode & 0170000u) == 0100000u;
}

/* "OID blob SIZE" */
static int
take_header(struct blobs *blobs)
{
    struct change *change = blobs->change;
    char type[16] = "";
    unsigned long long size = 0;

    while (blobs->at < change->count && !has_blob(&change->files[blobs->at]))
        blobs->at++;
    if (blobs->at == change->count ||
        sscanf(buf_str(&blobs->header), "%*s %15s %llu", type, &size) != 2 ||
        strcmp(type, "blob") != 0) {
        (void)fail(change->git, "an object is missing: ", buf_str(&blobs->header), "");
        return -ENODATA;
    }
    change->files[blobs->at].size = (int64_t)size;
    blobs->content_left = (size_t)size + 1;
    buf_clear(&blobs->header);
    buf_clear(&blobs->content);
    return 0;
}

static void
finish_blob(struct blobs *blobs)
{
    struct file *file = &blobs->change->files[blobs->at++];

    if (file->size <= (int64_t)MAX_CONTENT)
        file_set_content(file, buf_str(&blobs->content), blobs->content.len);
    blobs->visit(blobs->arg, file);
    file->data = NULL;
}

static int
take_blobs(void *arg, const char *data, size_t len)
{
    struct blobs *blobs = arg;

    while (len > 0) {
        if (blobs->content_left == 0) {
            const char *end = memchr(data, '\n', len);
            size_t part = end ? (size_t)(end - data) : len;
            int r;
            buf_add(&blobs->header, data, part);
            if (!buf_ok(&blobs->header))
                return -EFBIG;
            data += part + (end ? 1 : 0);
            len -= part + (end ? 1 : 0);
            r = end ? take_header(blobs) : 0;
            if (r < 0)
                return r;
        } else {
            size_t part = len < blobs->content_left ? len : blobs->content_left;
            size_t text = part == blobs->content_left ? part - 1 : part;
            if (blobs->content.len + text <= MAX_CONTENT)
                buf_add(&blobs->content, data, text);
            if (!buf_ok(&blobs->content))
                return -ENOMEM;
            data += part;
            len -= part;
            blobs->content_left -= part;
            if (blobs->content_left == 0)
                finish_blob(blobs);
        }
    }
    return 0;
}

static int
visit_blobs(struct change *change, void (*visit)(void *arg, const struct file *file), void *arg)
{
    static const char *const args[] = {"cat-file", "--batch", NULL};
    AUTO_BUF struct buf names = BUF_INIT((size_t)64 << 20);
    struct blobs blobs = {.change = change,
                          .visit = visit,
                          .arg = arg,
                          .header = BUF_INIT(1000),
                          .content = BUF_INIT(MAX_CONTENT)};
    int r;

    for (size_t i = 0; i < change->count; i++) {
        if (has_blob(&change->files[i]))
            buf_addf(&names, "%s\n", change->files[i].oid);
    }
    if (!buf_ok(&names))
        return fail(change->git, "", "the change has too many files", "");
    r = names.len > 0 ? git_stream(change->git, args, &names, take_blobs, &blobs) : 0;
    buf_fini(&blobs.header);
    buf_fini(&blobs.content);
    return r > 0 ? -EIO : r;
}

int
change_visit(struct change *change, void (*visit)(void *arg, const struct file *file),
             void *arg)
{
    return change->right ? visit_blobs(change, visit, arg)
                         : visit_work_tree(change, visit, arg);
}
