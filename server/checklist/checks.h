/* SPDX-License-Identifier: Apache-2.0 */
/* Everything the checklist looks for, one row each in checks_table. */
#ifndef KCAP_CHECKLIST_CHECKS_H
#define KCAP_CHECKLIST_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

#include "server/checklist/change.h"
#include "server/checklist/report.h"

/* A line of a file, without its end. */
struct line {
    const struct file *file;
    size_t number;
    const char *text; /* not ended by a NUL */
    size_t len;
    const char *next; /* what follows the line, up to the file's end */
    size_t next_len;
};

/* Exactly one of pattern, line and whole is set. */
struct check {
    const char *name;
    const char *says; /* the finding's text; of a secret, its kind */
    const char
        *endings; /* file name endings it is for, with blanks around each; NULL: any text */
    const char *pattern; /* extended regular expression, on added lines */
    const char *needle; /* text that each match holds: saves running the pattern; may be NULL */
    size_t value_group; /* the part of the pattern that is the finding; 0: all of it */
    bool (*plausible)(const char *value, size_t len); /* a second look at that part, or NULL */
    bool secret; /* shown by its first four characters only */
    bool (*line)(const struct line *line);
    void (*whole)(const struct check *check, const struct file *file, struct report *report);
};

extern const struct check checks_table[];
extern const size_t checks_count;

/* Patterns are compiled once per process; 0 or -EINVAL. */
int checks_init(void);
void checks_fini(void);

/* Looks at one file. The checks of a whole file come first; a file with a conflict is not
 * reported again for what follows from it. */
void checks_run(const struct file *file, struct report *report);

/* Whether the file's name has one of the endings, such as " .c .h ". */
bool check_name_ends(const struct file *file, const char *endings);
/* The name without its directories. */
const char *check_base_name(const struct file *file);
/* Walks the lines of a file; line->number 0 begins. */
bool check_next_line(const struct file *file, struct line *line);

/* check_white.c */
bool check_trailing_blank(const struct line *line);
bool check_space_before_tab(const struct line *line);
void check_blank_at_end(const struct check *check, const struct file *file,
                        struct report *report);
/* check_conflict.c: also whether a file has one */
bool check_has_conflict(const struct file *file);
void check_conflict(const struct check *check, const struct file *file, struct report *report);
/* check_secret.c */
bool check_private_key(const struct line *line);
bool check_is_random(const char *text, size_t len);
bool check_is_no_example(const char *text, size_t len);
/* check_file.c */
void check_binary(const struct check *check, const struct file *file, struct report *report);
void check_size(const struct check *check, const struct file *file, struct report *report);
void check_mode(const struct check *check, const struct file *file, struct report *report);
void check_shebang(const struct check *check, const struct file *file, struct report *report);
/* check_data.c */
void check_json(const struct check *check, const struct file *file, struct report *report);
void check_yaml(const struct check *check, const struct file *file, struct report *report);

#endif
