/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/vendor.h"

#include <stdlib.h>
#include <string.h>

static const struct vendor *const vendors[] = {&vendor_checklist};

const struct vendor *
vendor_find(const char *name)
{
    for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++) {
        if (strcmp(vendors[i]->name, name) == 0)
            return vendors[i];
    }
    return NULL;
}

void
vendor_add_names(struct buf *to)
{
    for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++) {
        if (i > 0)
            buf_adds(to, ", ");
        buf_adds(to, vendors[i]->name);
    }
}

void
vendor_plan_fini(struct vendor_plan *plan)
{
    free(plan->program);
    buf_fini(&plan->input);
    plan->program = NULL;
}
