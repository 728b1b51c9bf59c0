/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/vendor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct vendor *const vendors[] = {&vendor_checklist, &vendor_claude, &vendor_codex,
                                               &vendor_codex_exec, &vendor_command};

const struct vendor *
vendor_at(size_t index)
{
    return index < sizeof vendors / sizeof *vendors ? vendors[index] : NULL;
}

const struct vendor *
vendor_find(const char *name)
{
    const struct vendor *vendor;

    for (size_t i = 0; (vendor = vendor_at(i)) != NULL; i++) {
        if (strcmp(vendor->name, name) == 0)
            return vendor;
    }
    return NULL;
}

const char *
vendor_missing(const struct vendor *vendor, const struct settings *settings)
{
    return vendor->missing ? vendor->missing(settings) : NULL;
}

void
vendor_add_names(struct buf *to, const struct settings *settings)
{
    const struct vendor *vendor;
    const char *between = "";

    for (size_t i = 0; (vendor = vendor_at(i)) != NULL; i++) {
        if (vendor_missing(vendor, settings))
            continue;
        buf_addf(to, "%s%s", between, vendor->name);
        between = ", ";
    }
}

void
assignment_fini(struct assignment *job)
{
    flow_fini(&job->flow);
    round_fini(&job->round);
    participant_fini(&job->who);
    free(job->prompt);
    free(job->reminder);
    job->prompt = job->reminder = NULL;
}

void
vendor_plan_fini(struct vendor_plan *plan)
{
    for (size_t i = 0; i < plan->argc; i++)
        free(plan->argv[i]);
    for (size_t i = 0; i < plan->env_count; i++)
        free(plan->env[i]);
    *plan = (struct vendor_plan){.argc = 0};
}

void
vendor_plan_add(struct vendor_plan *plan, const char *word)
{
    char *copy = plan->argc < VENDOR_MAX_ARGS ? strdup(word) : NULL;

    if (copy)
        plan->argv[plan->argc++] = copy;
    else
        plan->failed = true;
}

void
vendor_plan_add_env(struct vendor_plan *plan, const char *name, const char *value)
{
    char *entry = NULL;

    if (plan->env_count < VENDOR_MAX_ENV && asprintf(&entry, "%s=%s", name, value) >= 0)
        plan->env[plan->env_count++] = entry;
    else
        plan->failed = true;
}
