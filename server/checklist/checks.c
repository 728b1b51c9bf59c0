/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/checklist/checks.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_PATTERN_LINE 2000 /* longer lines are generated, and would be slow to match */

#define BEGIN "(^|[^A-Za-z0-9_-])"
#define END   "([^A-Za-z0-9_-]|$)"
#define JS    " .js .jsx .ts .tsx .mjs .cjs .mts .cts .vue .svelte "
#define C     " .c .h .cc .cpp .cxx .hh .hpp .m "

/* The patterns are narrow on purpose: a finding that is none costs more trust than one that is
 * missed. Each row has a hit and a near miss in tests/unit/test_checks.c. */
const struct check checks_table[] = {
    {.name = "conflict", .says = "conflict marker left behind", .whole = check_conflict},
    {.name = "trailing-blank",
     .says = "blank at the end of the line",
     .line = check_trailing_blank},
    {.name = "space-before-tab",
     .says = "space before a tab in the indentation",
     .line = check_space_before_tab},
    {.name = "blank-at-end",
     .says = "empty line at the end of the file",
     .whole = check_blank_at_end},

    {.name = "debugger",
     .says = "debugger statement",
     .endings = JS,
     .needle = "debugger",
     .pattern = "^[[:space:]]*debugger[[:space:]]*;?[[:space:]]*(//.*)?$"},
    {.name = "console-debug",
     .says = "debugging output",
     .endings = JS,
     .needle = "console.",
     .pattern = "^[[:space:]]*console\\.(log|debug|error|warn)\\([[:space:]]*[\"'`]"
                "(DEBUG|XXX|HERE|here)[^A-Za-z0-9_ ]"},
    {.name = "pdb",
     .says = "debugger call",
     .endings = " .py ",
     .needle = "set_trace",
     .pattern = "^[[:space:]]*(import i?pdb;[[:space:]]*)?i?pdb\\.set_trace\\(\\)"},
    {.name = "breakpoint",
     .says = "debugger call",
     .endings = " .py ",
     .needle = "breakpoint",
     .pattern = "^[[:space:]]*breakpoint\\(\\)"},
    {.name = "pry",
     .says = "debugger call",
     .endings = " .rb .rake .erb ",
     .needle = "b",
     .pattern = "^[[:space:]]*(binding\\.(pry|irb)|byebug)[[:space:]]*(#.*)?$"},
    {.name = "var-dump",
     .says = "debugging output",
     .endings = " .php ",
     .needle = "(",
     .pattern = "^[[:space:]]*(var_dump|dd)\\(.*\\);[[:space:]]*$"},
    {.name = "dbg",
     .says = "debugging output",
     .endings = " .rs ",
     .needle = "dbg!",
     .pattern = "^[[:space:]]*(let [a-z_]+ = )?dbg!\\("},
    {.name = "go-print",
     .says = "debugging output",
     .endings = " .go ",
     .needle = "fmt.Print",
     .pattern = "^[[:space:]]*fmt\\.Print(ln|f)?\\(\"(DEBUG|XXX|HERE|here)[^A-Za-z0-9_ ]"},
    {.name = "c-print",
     .says = "debugging output",
     .endings = C,
     .needle = "printf",
     .pattern = "^[[:space:]]*f?printf[[:space:]]*\\((stderr,[[:space:]]*)?"
                "\"(DEBUG|XXX|HERE|here)[^A-Za-z0-9_ ]"},

    {.name = "private-key", .says = "a private key", .line = check_private_key},
    {.name = "aws-key",
     .says = "an AWS access key id",
     .secret = true,
     .needle = "IA",
     .pattern = BEGIN "((AKIA|ASIA)[A-Z2-7]{16})" END,
     .value_group = 2,
     .plausible = check_is_no_example},
    {.name = "github-token",
     .says = "a GitHub token",
     .secret = true,
     .needle = "_",
     .pattern = BEGIN "(gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{60,90})" END,
     .value_group = 2,
     .plausible = check_is_random},
    {.name = "slack-token",
     .says = "a Slack token",
     .secret = true,
     .needle = "xox",
     .pattern = BEGIN "(xox[abeprs]-[0-9]+-[0-9A-Za-z-]{12,})" END,
     .value_group = 2,
     .plausible = check_is_random},
    {.name = "google-key",
     .says = "a Google API key",
     .secret = true,
     .needle = "AIza",
     .pattern = BEGIN "(AIza[0-9A-Za-z_-]{35})" END,
     .value_group = 2,
     .plausible = check_is_random},
    {.name = "sk-key",
     .says = "an API key",
     .secret = true,
     .needle = "sk",
     .pattern = BEGIN "(sk-[A-Za-z0-9_-]{32,}|sk_live_[0-9A-Za-z]{24,})" END,
     .value_group = 2,
     .plausible = check_is_random},
    {.name = "assigned-secret",
     .says = "a password or token",
     .secret = true,
     .pattern = "(^|[^A-Za-z:])([a-z]*passw(or)?d|[a-z]*secret|[a-z]*api_?key|access_?key|"
                "private_?key|((auth|access|api|bearer)_?)?token)[\"']?[[:space:]]*"
                "(=|:|:=|=>)[[:space:]]*[\"']([A-Za-z0-9+/=_.~!@#%^&*-]{16,})[\"']",
     .value_group = 7,
     .plausible = check_is_random},

    {.name = "binary",
     .says = "a compiled program or library was added",
     .whole = check_binary},
    {.name = "size", .says = "a file of more than 1 MiB was added", .whole = check_size},
    {.name = "mode", .says = "the executable bit was", .whole = check_mode},
    {.name = "shebang", .says = "executable without a #! line", .whole = check_shebang},
    {.name = "json", .says = "JSON does not parse", .endings = " .json ", .whole = check_json},
    {.name = "yaml",
     .says = "YAML does not parse",
     .endings = " .yaml .yml ",
     .whole = check_yaml},
};
const size_t checks_count = sizeof checks_table / sizeof *checks_table;

/* Compiled patterns, by row; written by checks_init and checks_fini only. */
static regex_t compiled[sizeof checks_table / sizeof *checks_table];
static bool compiled_ready;

int
checks_init(void)
{
    for (size_t i = 0; i < checks_count; i++) {
        const struct check *check = &checks_table[i];
        int flags = REG_EXTENDED | (check->needle ? 0 : REG_ICASE);
        if (check->pattern && regcomp(&compiled[i], check->pattern, flags) != 0)
            return -EINVAL;
    }
    compiled_ready = true;
    return 0;
}

void
checks_fini(void)
{
    for (size_t i = 0; compiled_ready && i < checks_count; i++) {
        if (checks_table[i].pattern)
            regfree(&compiled[i]);
    }
    compiled_ready = false;
}

const char *
check_base_name(const struct file *file)
{
    const char *slash = strrchr(file->path, '/');

    return slash ? slash + 1 : file->path;
}

bool
check_name_ends(const struct file *file, const char *endings)
{
    const char *name = check_base_name(file);
    size_t name_len = strlen(name);

    while (endings += strspn(endings, " "), *endings) {
        size_t len = strcspn(endings, " ");
        if (name_len >= len && strncasecmp(name + name_len - len, endings, len) == 0)
            return true;
        endings += len;
    }
    return false;
}

bool
check_next_line(const struct file *file, struct line *line)
{
    const char *end;

    if (line->number == 0)
        *line = (struct line){.file = file, .next = file->data, .next_len = file->len};
    if (line->next_len == 0)
        return false;
    end = memchr(line->next, '\n', line->next_len);
    line->number++;
    line->text = line->next;
    line->len = end ? (size_t)(end - line->next) : line->next_len;
    line->next += line->len + (end ? 1 : 0);
    line->next_len -= line->len + (end ? 1 : 0);
    if (line->len > 0 && line->text[line->len - 1] == '\r')
        line->len--; /* which line end a file uses is its own business */
    return true;
}

/* The part of the line that the row's pattern found. */
static bool
match_pattern(size_t row, const char *text, regmatch_t *ret)
{
    const struct check *check = &checks_table[row];
    regmatch_t groups[8];

    if ((check->needle && !strstr(text, check->needle)) ||
        regexec(&compiled[row], text, 8, groups, 0) != 0)
        return false;
    *ret = groups[check->value_group];
    return !check->plausible ||
           check->plausible(text + ret->rm_so, (size_t)(ret->rm_eo - ret->rm_so));
}

static void
run_line(size_t row, const struct line *line, const char *text, struct report *report)
{
    const struct check *check = &checks_table[row];
    regmatch_t match;

    if (check->line) {
        if (check->line(line))
            report_add(report, line->file->path, line->number, "%s", check->says);
    } else if (check->pattern && text && match_pattern(row, text, &match)) {
        if (check->secret)
            report_add(report, line->file->path, line->number, "looks like %s (%.4s...)",
                       check->says, text + match.rm_so);
        else
            report_add(report, line->file->path, line->number, "%s", check->says);
    }
}

static void
run_lines(const struct file *file, struct report *report)
{
    struct line line = {0};

    while (check_next_line(file, &line)) {
        char text[MAX_PATTERN_LINE + 1];
        bool short_enough = line.len <= MAX_PATTERN_LINE;
        if (!file_line_is_added(file, line.number))
            continue;
        if (short_enough) {
            memcpy(text, line.text, line.len);
            text[line.len] = '\0';
        }
        for (size_t i = 0; i < checks_count; i++) {
            const struct check *check = &checks_table[i];
            if (!check->whole && (!check->endings || check_name_ends(file, check->endings)))
                run_line(i, &line, short_enough ? text : NULL, report);
        }
    }
}

void
checks_run(const struct file *file, struct report *report)
{
    for (size_t i = 0; i < checks_count; i++) {
        const struct check *check = &checks_table[i];
        if (check->whole && (!check->endings || check_name_ends(file, check->endings)))
            check->whole(check, file, report);
    }
    if (file->data && !file->binary)
        run_lines(file, report);
}
