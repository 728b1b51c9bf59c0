/* SPDX-License-Identifier: Apache-2.0 */
/* What a kind of review is: who takes part, what they are told, what limits hold. */
#ifndef KCAP_SERVER_DEFINITION_H
#define KCAP_SERVER_DEFINITION_H

#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "server/clocks.h"

#define DEFINITION_MAX_PARTICIPANTS 8
#define DEFINITION_MAX_YAML         ((size_t)256 << 10)

#define WORKSPACE_BORROWED     "borrowed"
#define WORKSPACE_WORKTREE     "worktree"
#define WORKSPACE_CONTEXT_ONLY "context-only"

struct definition_participant {
    char *role;
    char *vendor; /* NULL: the request's, else the server's default */
    char *model;  /* NULL: the vendor's own */
    char *prompt; /* NULL: none besides ours */
    char *workspace;
};

struct definition {
    char *id;
    struct definition_participant participants[DEFINITION_MAX_PARTICIPANTS];
    size_t participant_count;
    int64_t max_rounds;      /* 0: no limit */
    int64_t idle_ttl_sec;    /* 0: the server's */
    int64_t budget_microusd; /* 0: none */
    struct clocks clocks;    /* CLOCKS_UNSET: the server's */
};

void definition_fini(struct definition *definition);

/* The definition of that name: of DIR/NAME.yaml (dir may be NULL), else a built-in one.
 * Returns 0, -ENOENT, or -EINVAL with a line for people in error. */
int definition_find(const char *dir, const char *name, struct definition *ret,
                    struct buf *error);

/* origin names the text in errors, which name line and key. Returns 0 or -errno. */
int definition_from_yaml(const char *text, size_t len, const char *origin,
                         struct definition *ret, struct buf *error);

/* For the store: a run keeps the definition it began with. */
char *definition_to_json(const struct definition *definition);
/* json may be NULL: no limits at all. Returns 0, -EINVAL or -ENOMEM. */
int definition_from_json(const char *json, struct definition *ret);

/* Appends the names of the built-in ones, for people. */
void definition_add_names(struct buf *to);

#endif
