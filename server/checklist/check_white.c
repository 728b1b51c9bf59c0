/* SPDX-License-Identifier: Apache-2.0 */
/* Blanks that nobody sees and every later diff shows. */
#include "config.h"

#include "server/checklist/checks.h"

#include <string.h>

#define DOCUMENTS " .md .markdown .mdx .mkd "
/* Here blanks at the end are data, or somebody else's. */
#define VERBATIM " .patch .diff .tsv .csv .eml .mbox "

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

bool
check_trailing_blank(const struct line *line)
{
    size_t len = line->len;

    if (len == 0 || !is_blank(line->text[len - 1]) || !line->file->check_eol_blanks ||
        check_name_ends(line->file, VERBATIM))
        return false;
    /* two blanks behind a word are Markdown's line break */
    return !(len > 2 && check_name_ends(line->file, DOCUMENTS) && line->text[len - 1] == ' ' &&
             line->text[len - 2] == ' ' && !is_blank(line->text[len - 3]));
}

bool
check_space_before_tab(const struct line *line)
{
    if (!line->file->check_tab_blanks || check_name_ends(line->file, VERBATIM))
        return false;
    for (size_t i = 0; i + 1 < line->len && is_blank(line->text[i]); i++) {
        if (line->text[i] == ' ' && line->text[i + 1] == '\t')
            return true;
    }
    return false;
}

void
check_blank_at_end(const struct check *check, const struct file *file, struct report *report)
{
    struct line line = {0};
    size_t first_empty = 0;
    bool has_text = false;

    if (!file->data || file->binary || !file->check_eof_blanks ||
        check_name_ends(file, VERBATIM))
        return;
    while (check_next_line(file, &line)) {
        if (line.len > 0)
            first_empty = 0;
        else if (first_empty == 0)
            first_empty = line.number;
        has_text = has_text || line.len > 0;
    }
    if (has_text && first_empty > 0 && file_line_is_added(file, line.number))
        report_add(report, file->path, first_empty, "%s", check->says);
}
