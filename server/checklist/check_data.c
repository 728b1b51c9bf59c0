/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a program will want to parse. */
#include "config.h"

#include "server/checklist/checks.h"

#include <cjson/cJSON.h>
#include <string.h>
#include <yaml.h>

#include "lib/jscan.h"

/* Read by programs that allow comments. */
#define WITH_COMMENTS                                                                     \
    " .eslintrc.json .babelrc.json .swcrc.json tslint.json tsdoc.json devcontainer.json " \
    "api-extractor.json rush.json jsconfig.json "

static bool
allows_comments(const struct file *file)
{
    const char *name = check_base_name(file);

    return strncmp(name, "tsconfig", 8) == 0 || check_name_ends(file, WITH_COMMENTS) ||
           strncmp(file->path, ".vscode/", 8) == 0 || strstr(file->path, "/.vscode/") != NULL;
}

/* Text that becomes JSON or YAML once a program has filled it in. (${{ }} of a workflow is in
 * plain YAML.) */
static bool
is_template(const struct file *file)
{
    for (const char *p = file->data; (p = strstr(p, "{{")) != NULL; p += 2) {
        if (p == file->data || p[-1] != '$')
            return true;
    }
    return strstr(file->data, "{%") != NULL || strstr(file->data, "<%") != NULL;
}

static bool
is_parsable(const struct file *file)
{
    return file->data && file->len > 0 && !file->binary && !check_has_conflict(file);
}

static size_t
line_of(const struct file *file, size_t offset)
{
    size_t line = 1;

    for (size_t i = 0; i < offset && i < file->len; i++)
        line += file->data[i] == '\n' ? 1 : 0;
    return line;
}

/* Repeated names are no fault of the syntax (and how package.json carries its comments), but
 * the scan ends there: the rest is for the laxer parser. */
static bool
parses_with_repeats(const struct file *file, size_t *ret_at)
{
    const char *end = NULL;
    cJSON *value = cJSON_ParseWithLengthOpts(file->data, file->len + 1, &end, 1);

    *ret_at = end ? (size_t)(end - file->data) : 0;
    cJSON_Delete(value);
    return value != NULL;
}

void
check_json(const struct check *check, const struct file *file, struct report *report)
{
    struct jscan scan;
    size_t at;
    int r;

    if (!is_parsable(file) || allows_comments(file))
        return;
    if (file->len >= 3 && memcmp(file->data, "\xef\xbb\xbf", 3) == 0) {
        report_add(report, file->path, 1, "%s: it begins with a byte order mark", check->says);
        return;
    }
    r = jscan(file->data, file->len, &scan);
    at = scan.error_at;
    if (r == JSCAN_OK || r == JSCAN_DEPTH || r == JSCAN_NOMEM ||
        (r == JSCAN_DUPLICATE && parses_with_repeats(file, &at)) || is_template(file))
        return;
    report_add(report, file->path, line_of(file, at), "%s: %s", check->says,
               r == JSCAN_DUPLICATE ? jscan_message(JSCAN_SYNTAX) : jscan_message(r));
}

void
check_yaml(const struct check *check, const struct file *file, struct report *report)
{
    yaml_parser_t parser;
    yaml_event_t event;
    bool done = false, failed = false;

    if (!is_parsable(file) || yaml_parser_initialize(&parser) == 0)
        return;
    yaml_parser_set_input_string(&parser, (const unsigned char *)file->data, file->len);
    while (!done && !failed) {
        failed = yaml_parser_parse(&parser, &event) == 0;
        if (!failed) {
            done = event.type == YAML_STREAM_END_EVENT;
            yaml_event_delete(&event);
        }
    }
    if (failed && parser.error != YAML_MEMORY_ERROR && !is_template(file))
        report_add(report, file->path, parser.problem_mark.line + 1, "%s: %s", check->says,
                   parser.problem ? parser.problem : "not understood");
    yaml_parser_delete(&parser);
}
