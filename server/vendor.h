/* SPDX-License-Identifier: Apache-2.0 */
/* What differs from one kind of reviewer to the next: the command line and what it reads. */
#ifndef KCAP_SERVER_VENDOR_H
#define KCAP_SERVER_VENDOR_H

#include <stdbool.h>

#include "lib/buf.h"
#include "server/store.h"

#define VENDOR_MAX_ARGS 7

struct vendor_plan {
    char *program; /* owned; argv[0] is this */
    const char *argv[VENDOR_MAX_ARGS + 1];
    struct buf input;    /* written to its standard input, which is then closed */
    bool has_note;       /* the last line of its standard output is for the driver */
    int hopeless_status; /* its exit status when no further try can do better; 0: none */
};

struct vendor {
    const char *name;
    /* Returns 0 or -errno, with a line for people in error. */
    int (*plan)(const struct flow *flow, const struct round *round, struct vendor_plan *ret,
                struct buf *error);
};

extern const struct vendor vendor_checklist;

/* NULL when this build has no such vendor. */
const struct vendor *vendor_find(const char *name);
/* Appends the names, for people: "a, b". */
void vendor_add_names(struct buf *to);

void vendor_plan_fini(struct vendor_plan *plan);

#endif
