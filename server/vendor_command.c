/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any program as a reviewer: the prompt on its standard input, and on its standard output one
 * JSON object {"kind": "findings"|"clean", "findings": TEXT}. Or it reports through
 * kcap-host --plugin flow-result, for which it has the environment, and writes what it likes.
 */
#include "config.h"

#include "server/vendor.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "lib/json.h"
#include "lib/text.h"
#include "server/engine.h"

#define MAX_VERDICT ((size_t)4 << 20)

static const cJSON *
argv_of(const struct settings *settings)
{
    return json_get(settings_vendor(settings, "command"), "argv");
}

static const char *
missing(const struct settings *settings)
{
    return argv_of(settings)
               ? NULL
               : "flowd.json names no command: {\"vendors\": {\"command\": {\"argv\": [...]}}}";
}

static int
plan(const struct settings *settings, const struct assignment *job, const char *url,
     struct vendor_plan *ret, struct buf *error)
{
    const cJSON *word;

    (void)job;
    (void)url;
    if (missing(settings)) {
        buf_adds(error, missing(settings));
        return -ENOENT;
    }
    cJSON_ArrayForEach(word, argv_of(settings)) vendor_plan_add(ret, word->valuestring);
    if (ret->argv[0] && ret->argv[0][0] != '/' && strchr(ret->argv[0], '/')) {
        buf_addf(error, "flowd.json: the command's program must be an absolute path or a name "
                        "to be found in PATH");
        return -EINVAL;
    }
    return 0;
}

static void
turn(struct reviewer *reviewer, const struct assignment *job, const char *prompt)
{
    (void)job;
    reviewer_send(reviewer, prompt, strlen(prompt));
    reviewer_end_input(reviewer);
}

/* Its words when they are a verdict, else what is wrong with them. */
static const char *
read_verdict(const struct buf *output, cJSON **ret, const char **ret_kind,
             const char **ret_text)
{
    const char *error = NULL;
    const cJSON *findings;

    *ret = NULL;
    if (!buf_ok(output))
        return "it wrote more than 4 MiB";
    if (text_is_blank(buf_str(output)))
        return "it wrote nothing to its standard output and submitted nothing";
    *ret = json_parse(buf_str(output), output->len, &error);
    if (!cJSON_IsObject(*ret))
        return "what it wrote to its standard output is not one JSON object";
    findings = json_get(*ret, "findings");
    *ret_kind = json_str(*ret, "kind");
    *ret_text = cJSON_GetStringValue(findings);
    if (!*ret_kind ||
        (strcmp(*ret_kind, ROUND_FINDINGS) != 0 && strcmp(*ret_kind, ROUND_CLEAN) != 0))
        return "the object it wrote has no \"kind\" that is \"findings\" or \"clean\"";
    if (findings && !*ret_text)
        return "the \"findings\" it wrote are no text";
    if (strcmp(*ret_kind, ROUND_CLEAN) == 0)
        *ret_text = NULL;
    else if (text_is_blank(*ret_text))
        return "it said \"findings\" without any text in \"findings\"";
    return NULL;
}

static void
exited(struct reviewer *reviewer, int status)
{
    AUTO_JSON cJSON *object = NULL;
    const char *kind, *text, *fault;

    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return; /* whatever it wrote, it does not stand by it */
    fault = read_verdict(reviewer_output(reviewer), &object, &kind, &text);
    if (fault)
        reviewer_turn_ended(reviewer, "no_verdict", fault);
    else
        reviewer_verdict(reviewer, kind, text);
}

const struct vendor vendor_command = {
    .name = "command",
    .knows_agent_id = true,
    .max_output = MAX_VERDICT,
    .missing = missing,
    .plan = plan,
    .turn = turn,
    .exited = exited,
};
