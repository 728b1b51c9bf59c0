/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/checklist/diff.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/auto.h"

#define MAX_LISTING ((size_t)256 << 20)
#define MAX_LINE    20000 /* a quoted path of PATH_MAX bytes, each as \ooo, fits */
#define MAX_FILES   200000

#define DIFF_OPTIONS                                                             \
    "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-abbrev", "-M", \
        "--ignore-submodules=dirty"

static struct file *
add_file(struct change *change, const char *path)
{
    struct file *files;

    if (change->count % 64 == 0) {
        if (change->count >= MAX_FILES)
            return NULL;
        files = reallocarray(change->files, change->count + 64, sizeof *files);
        if (!files)
            return NULL;
        change->files = files;
    }
    files = &change->files[change->count];
    *files = (struct file){.path = strdup(path)};
    if (!files->path)
        return NULL;
    change->count++;
    return files;
}

static int
out_of_memory(struct change *change)
{
    buf_clear(&change->git->error);
    buf_adds(&change->git->error, "the change has too many files, or memory ran out");
    return -ENOMEM;
}

static int
not_understood(struct change *change)
{
    buf_clear(&change->git->error);
    buf_adds(&change->git->error, "git's answer was not understood");
    return -EPROTO;
}

/* ---- files ---- */

/* The next text of a NUL-separated list; NULL at its end. */
static const char *
next_field(const char **at, const char *end)
{
    const char *field = *at;

    if (field >= end)
        return NULL;
    *at = field + strlen(field) + 1;
    return field;
}

/* ":OLDMODE NEWMODE OLDOID NEWOID STATUS" */
static bool
parse_entry(const char *entry, struct file *ret)
{
    char old_oid[72];

    return sscanf(entry, ":%o %o %71s %71s %c", &ret->old_mode, &ret->new_mode, old_oid,
                  ret->oid, &ret->status) == 5;
}

int
diff_files(struct change *change)
{
    AUTO_BUF struct buf out = BUF_INIT(MAX_LISTING);
    const char *const args[] = {
        DIFF_OPTIONS, "--raw", "-z", change->left, change->right ? change->right : "--", NULL};
    const char *at, *end, *entry, *path;
    int r = git_read(change->git, args, NULL, &out);

    if (r < 0)
        return r;
    at = buf_str(&out);
    end = at + out.len;
    while ((entry = next_field(&at, end)) != NULL) {
        struct file parsed = {0}, *file;
        if (!parse_entry(entry, &parsed) || !(path = next_field(&at, end)))
            return not_understood(change);
        if ((parsed.status == 'R' || parsed.status == 'C') && !(path = next_field(&at, end)))
            return not_understood(change);
        if (parsed.status == 'D' ||
            parsed.status == 'U') /* U: listed again as what it is now */
            continue;
        file = add_file(change, path);
        if (!file)
            return out_of_memory(change);
        parsed.path = file->path;
        *file = parsed;
        if (!change->right)
            file->oid[0] = '\0';
    }
    return 0;
}

int
diff_untracked(struct change *change)
{
    AUTO_BUF struct buf out = BUF_INIT(MAX_LISTING);
    static const char *const args[] = {"ls-files", "--others", "--exclude-standard", "-z",
                                       NULL};
    const char *at, *end, *path;
    int r = git_read(change->git, args, NULL, &out);

    if (r < 0)
        return r;
    at = buf_str(&out);
    end = at + out.len;
    while ((path = next_field(&at, end)) != NULL) {
        struct file *file;
        if (path[0] == '\0' || path[strlen(path) - 1] == '/')
            continue; /* another repository inside this one */
        file = add_file(change, path);
        if (!file)
            return out_of_memory(change);
        file->status = 'A';
        file->all_added = true;
    }
    return 0;
}

/* ---- lines ---- */

struct patch {
    struct change *change;
    char line[MAX_LINE];
    size_t line_len;           /* of a longer line only the beginning is kept */
    size_t old_left, new_left; /* lines of the hunk still to come */
    struct file *file;
    size_t cursor; /* where the last file was found: the patch has the list's order */
};

static struct file *
find_file(struct patch *patch, const char *path)
{
    struct change *change = patch->change;

    for (size_t i = 0; i < change->count; i++) {
        size_t at = (patch->cursor + i) % change->count;
        if (strcmp(change->files[at].path, path) == 0) {
            patch->cursor = at;
            return &change->files[at];
        }
    }
    return NULL;
}

/* A path as git quotes it, in place; returns false when it is none. */
static bool
unquote(char *text)
{
    static const char letters[] = "abtnvfr\"\\", bytes[] = "\a\b\t\n\v\f\r\"\\";
    char *to = text, *from = text;

    if (*from++ != '"')
        return false;
    while (*from && *from != '"') {
        const char *letter;
        if (*from != '\\') {
            *to++ = *from++;
            continue;
        }
        from++;
        letter = *from ? strchr(letters, *from) : NULL;
        if (letter) {
            *to++ = bytes[letter - letters];
            from++;
        } else if (from[0] >= '0' && from[0] <= '3' && from[1] >= '0' && from[1] <= '7' &&
                   from[2] >= '0' && from[2] <= '7') {
            *to++ = (char)((from[0] - '0') * 64 + (from[1] - '0') * 8 + (from[2] - '0'));
            from += 3;
        } else {
            return false;
        }
    }
    *to = '\0';
    return *from == '"';
}

/* "+++ b/PATH", quoted when it must be, with a tab behind when it has a blank. */
static void
begin_file(struct patch *patch)
{
    char *path = patch->line + 4;

    patch->file = NULL;
    if (path[0] == '"') {
        if (!unquote(path))
            return;
    } else if (strlen(path) > 0 && path[strlen(path) - 1] == '\t') {
        path[strlen(path) - 1] = '\0';
    }
    if (strncmp(path, "b/", 2) == 0)
        patch->file = find_file(patch, path + 2);
}

static int
begin_hunk(struct patch *patch)
{
    struct file *file = patch->file;
    size_t old_count = 1, new_first = 0, new_count = 1;
    const char *plus = strchr(patch->line, '+'), *comma;
    struct range *more;

    comma = strchr(patch->line, ',');
    if (!plus || sscanf(plus, "+%zu,%zu", &new_first, &new_count) < 1)
        return not_understood(patch->change);
    if (comma && comma < plus)
        old_count = strtoul(comma + 1, NULL, 10);
    patch->old_left = old_count;
    patch->new_left = new_count;
    if (!file || new_count == 0)
        return 0;
    more = reallocarray(file->added, file->added_count + 1, sizeof *more);
    if (!more)
        return out_of_memory(patch->change);
    file->added = more;
    file->added[file->added_count++] = (struct range){.first = new_first, .count = new_count};
    return 0;
}

static int
take_patch_line(struct patch *patch)
{
    patch->line[patch->line_len] = '\0';
    if (patch->old_left > 0 && patch->line[0] == '-')
        patch->old_left--;
    else if (patch->new_left > 0 && patch->line[0] == '+')
        patch->new_left--;
    else if (strncmp(patch->line, "+++ ", 4) == 0)
        begin_file(patch);
    else if (strncmp(patch->line, "@@ -", 4) == 0)
        return begin_hunk(patch);
    return 0;
}

static int
take_patch(void *arg, const char *data, size_t len)
{
    struct patch *patch = arg;
    int r = 0;

    while (len > 0 && r == 0) {
        const char *end = memchr(data, '\n', len);
        size_t part = end ? (size_t)(end - data) : len;
        size_t room = sizeof patch->line - 1 - patch->line_len;
        memcpy(patch->line + patch->line_len, data, part < room ? part : room);
        patch->line_len += part < room ? part : room;
        if (end) {
            r = take_patch_line(patch);
            patch->line_len = 0;
            part++;
        }
        data += part;
        len -= part;
    }
    return r;
}

int
diff_lines(struct change *change)
{
    AUTO_FREE struct patch *patch = calloc(1, sizeof *patch);
    const char *const args[] = {DIFF_OPTIONS,
                                "-U0",
                                "--inter-hunk-context=0",
                                "--src-prefix=a/",
                                "--dst-prefix=b/",
                                change->left,
                                change->right ? change->right : "--",
                                NULL};
    int r;

    if (!patch)
        return out_of_memory(change);
    patch->change = change;
    r = git_stream(change->git, args, NULL, take_patch, patch);
    return r > 0 ? -EIO : r;
}

/* ---- attributes ---- */

/* A list such as "trailing-space,-space-before-tab" on top of what is on already. */
static void
apply_whitespace(struct file *file, const char *list)
{
    while (*list) {
        size_t len = strcspn(list, ", \t");
        bool on = *list != '-';
        const char *word = on ? list : list + 1;
        size_t word_len = on ? len : len - 1;
        bool both = word_len == 14 && strncmp(word, "trailing-space", 14) == 0;
        if (both || (word_len == 12 && strncmp(word, "blank-at-eol", 12) == 0))
            file->check_eol_blanks = on;
        if (both || (word_len == 12 && strncmp(word, "blank-at-eof", 12) == 0))
            file->check_eof_blanks = on;
        if (word_len == 16 && strncmp(word, "space-before-tab", 16) == 0)
            file->check_tab_blanks = on;
        list += len;
        list += strspn(list, ", \t");
    }
}

static void
set_whitespace(struct file *file, bool on)
{
    file->check_eol_blanks = file->check_eof_blanks = file->check_tab_blanks = on;
}

int
diff_attributes(struct change *change)
{
    static const char *const args[] = {"check-attr", "-z", "--stdin", "whitespace", NULL};
    static const char *const config_args[] = {"config", "--get", "core.whitespace", NULL};
    AUTO_BUF struct buf paths = BUF_INIT(MAX_LISTING), out = BUF_INIT(MAX_LISTING);
    AUTO_FREE char *configured = NULL;
    const char *at, *end;
    int r = git_read_line(change->git, config_args, &configured);

    for (size_t i = 0; i < change->count; i++)
        buf_add(&paths, change->files[i].path, strlen(change->files[i].path) + 1);
    if (r == 0)
        r = buf_ok(&paths) ? git_read(change->git, args, &paths, &out) : out_of_memory(change);
    if (r < 0)
        return r;
    at = buf_str(&out);
    end = at + out.len;
    for (size_t i = 0; i < change->count; i++) {
        struct file *file = &change->files[i];
        const char *path = next_field(&at, end), *name = next_field(&at, end);
        const char *value = next_field(&at, end);
        if (!value || strcmp(path, file->path) != 0 || strcmp(name, "whitespace") != 0)
            return not_understood(change);
        set_whitespace(file, strcmp(value, "unset") != 0);
        if (strcmp(value, "unspecified") == 0)
            apply_whitespace(file, configured ? configured : "");
        else if (strcmp(value, "set") != 0 && strcmp(value, "unset") != 0)
            apply_whitespace(file, value);
    }
    return 0;
}
