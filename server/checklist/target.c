/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/checklist/target.h"

#include <errno.h>
#include <string.h>

#include "lib/text.h"

#define MAX_KIND 64
#define MAX_SAID 200

enum meaning { MEANS_COMMIT, MEANS_RANGE, MEANS_WORK_TREE };

/* Drivers are free in their words. "branch", "pull_request" and the like are left out on
 * purpose: they name one side of a comparison and leave the other to be guessed. */
static const struct {
    const char *word; /* lower case, parts joined by _ */
    enum meaning meaning;
} words[] = {
    {"commit", MEANS_COMMIT},
    {"git_commit", MEANS_COMMIT},
    {"revision", MEANS_COMMIT},
    {"sha", MEANS_COMMIT},
    {"range", MEANS_RANGE},
    {"git_range", MEANS_RANGE},
    {"commit_range", MEANS_RANGE},
    {"revision_range", MEANS_RANGE},
    {"commits", MEANS_RANGE},
    {"working_tree", MEANS_WORK_TREE},
    {"work_tree", MEANS_WORK_TREE},
    {"worktree", MEANS_WORK_TREE},
    {"workingtree", MEANS_WORK_TREE},
    {"working_directory", MEANS_WORK_TREE},
    {"working_copy", MEANS_WORK_TREE},
    {"uncommitted", MEANS_WORK_TREE},
    {"uncommitted_changes", MEANS_WORK_TREE},
    {"local_changes", MEANS_WORK_TREE},
    {"changes", MEANS_WORK_TREE},
    {"diff", MEANS_WORK_TREE},
    {"git_diff", MEANS_WORK_TREE},
};

/* "Working-tree", "working tree" and "working_tree" are one word. */
static void
fold(const char *text, char ret[MAX_KIND])
{
    size_t n = 0;

    text += strspn(text, " \t\r\n");
    for (; *text && n < MAX_KIND - 1; text++) {
        bool is_joint = strchr("- \t_", *text) != NULL;
        if (is_joint && (n == 0 || ret[n - 1] == '_'))
            continue;
        ret[n++] = is_joint                         ? '_'
                   : (*text >= 'A' && *text <= 'Z') ? (char)(*text - 'A' + 'a')
                                                    : *text;
    }
    while (n > 0 && strchr("_\r\n", ret[n - 1]))
        n--;
    ret[n] = '\0';
    if (*text)
        ret[0] = '\0'; /* longer than any word */
}

static bool
find_word(const char *text, enum meaning *ret)
{
    char word[MAX_KIND];

    fold(text, word);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i].word, word) == 0) {
            *ret = words[i].meaning;
            return true;
        }
    }
    return false;
}

static int
refuse(struct buf *error, const char *before, const char *text, const char *after)
{
    buf_adds(error, before);
    text_add_line(error, text, text_prefix(text, strlen(text), MAX_SAID));
    buf_adds(error, after);
    return -EINVAL;
}

static int
read_range(const char *ref, struct target *ret, struct buf *error)
{
    if (ref[strspn(ref, ". \t")] == '\0')
        return refuse(error, "the range \"", ref, "\" has no end: name it as A..B or A...B");
    ret->range = ref;
    return 0;
}

int
target_read(const char *kind, const char *ref, struct target *ret, struct buf *error)
{
    enum meaning meaning, also;

    *ret = (struct target){.range = NULL};
    if (!find_word(kind, &meaning))
        return refuse(error, "the target_kind \"", kind,
                      "\" is none this reviewer knows: it looks at a \"commit\" (target_ref: a "
                      "revision), a \"range\" (A..B or A...B) or the \"working_tree\"");
    if (strstr(ref, "..")) /* no revision holds two dots: a range, whatever it is called */
        return read_range(ref, ret, error);
    if (meaning == MEANS_RANGE)
        return refuse(error, "the target_ref \"", ref,
                      "\" is no range: name it as A..B or A...B");
    if (meaning == MEANS_COMMIT) {
        if (text_is_blank(ref))
            return refuse(error, "the target_ref is blank: name the commit", "", "");
        ret->commit = ref;
        return 0;
    }
    /* a name for the tree itself says nothing more; any other must be what is checked out */
    if (!text_is_blank(ref) && strcmp(ref, ".") != 0 &&
        !(find_word(ref, &also) && also == MEANS_WORK_TREE))
        ret->against = ref;
    return 0;
}
