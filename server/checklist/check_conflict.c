/* SPDX-License-Identifier: Apache-2.0 */
/* What git leaves in a file it could not merge: one finding per conflict, at its first line. */
#include "config.h"

#include "server/checklist/checks.h"

#include <string.h>

#define PATCHES   " .patch .diff .eml .mbox "
#define DOCUMENTS " .md .markdown .mdx .mkd .rst .adoc .asciidoc .txt .html "

struct conflict {
    size_t begin; /* 0: not in one */
    bool separated;
    bool fenced; /* inside a document's block of quoted text */
};

static bool
is_marker(const struct line *line, char c)
{
    if (line->len < 7 || (line->len > 7 && line->text[7] != ' '))
        return false;
    for (size_t i = 0; i < 7; i++) {
        if (line->text[i] != c)
            return false;
    }
    return true;
}

/* A line of = alone is a heading in some languages, a line of > a quotation in mail: a marker
 * counts with its siblings, or alone when it can be nothing else. Returns where a conflict that
 * ends in this line began, or 0. */
static size_t
take_line(struct conflict *conflict, const struct line *line, bool document)
{
    size_t begin = conflict->begin;

    if (document && line->len >= 3 &&
        (strncmp(line->text, "```", 3) == 0 || strncmp(line->text, "~~~", 3) == 0))
        conflict->fenced = !conflict->fenced;
    if (conflict->fenced)
        return 0;
    if (is_marker(line, '<')) {
        *conflict = (struct conflict){.begin = line->number};
        return document ? 0 : begin; /* the one before has lost its end */
    }
    if (is_marker(line, '=') && line->len == 7)
        conflict->separated = begin > 0;
    if (!is_marker(line, '>'))
        return 0;
    *conflict = (struct conflict){0};
    if (document)
        return begin;
    return begin > 0 ? begin : line->len > 7 ? line->number : 0;
}

static size_t
find_conflicts(const struct file *file, const char *says, struct report *report)
{
    struct conflict conflict = {0};
    struct line line = {0};
    bool document = check_name_ends(file, DOCUMENTS);
    size_t count = 0;

    if (!file->data || file->binary || check_name_ends(file, PATCHES))
        return 0;
    while (check_next_line(file, &line)) {
        size_t begin = take_line(&conflict, &line, document);
        if (begin == 0 || !file_line_is_added(file, begin))
            continue;
        count++;
        if (report)
            report_add(report, file->path, begin, "%s", says);
    }
    if (conflict.begin > 0 && (conflict.separated || !document) &&
        file_line_is_added(file, conflict.begin)) {
        count++;
        if (report)
            report_add(report, file->path, conflict.begin, "%s", says);
    }
    return count;
}

void
check_conflict(const struct check *check, const struct file *file, struct report *report)
{
    (void)find_conflicts(file, check->says, report);
}

bool
check_has_conflict(const struct file *file)
{
    return find_conflicts(file, NULL, NULL) > 0;
}
