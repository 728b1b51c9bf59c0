/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/definition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/json.h"
#include "lib/paths.h"

struct builtin {
    const char *id;
    const char *prompt;
};

static const struct builtin builtins[] = {
    {"code-review",
     "Review the change as a colleague who will have to maintain it. Look for what is wrong: "
     "faults of behaviour, lost or corrupted data, unhandled errors and edge cases, races, "
     "security holes, broken contracts with callers, tests that cannot fail or that are "
     "missing. Read the code around the change as far as you need it to be sure. Leave taste "
     "alone. Each finding names file and line, says what goes wrong and when, and what would "
     "mend it; the gravest comes first. Report only what you have verified."},
    {"spec-review",
     "Review the document as someone who has to build what it describes. Look for what is "
     "missing, contradictory, ambiguous, untestable or wrong about the system as it is; check "
     "its claims against the repository. Each finding names the place, says which question "
     "stays open or what goes wrong, and what would settle it; the gravest comes first. Leave "
     "taste alone."},
};

void
definition_fini(struct definition *definition)
{
    free(definition->id);
    for (size_t i = 0; i < definition->participant_count; i++) {
        struct definition_participant *who = &definition->participants[i];
        free(who->role);
        free(who->vendor);
        free(who->model);
        free(who->prompt);
        free(who->workspace);
    }
    *definition = (struct definition){.id = NULL};
}

static int
make_builtin(const struct builtin *builtin, struct definition *ret)
{
    struct definition_participant *who = &ret->participants[0];

    clocks_clear(&ret->clocks);
    ret->participant_count = 1;
    ret->id = strdup(builtin->id);
    who->role = strdup("reviewer");
    who->prompt = strdup(builtin->prompt);
    who->workspace = strdup(WORKSPACE_BORROWED);
    return ret->id && who->role && who->prompt && who->workspace ? 0 : -ENOMEM;
}

/* A name that is a file name and nothing else. */
static bool
is_plain_name(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "-_.");

    return len > 0 && len <= 64 && name[len] == '\0' && name[0] != '.';
}

static int
find_file(const char *dir, const char *name, struct definition *ret, struct buf *error)
{
    AUTO_BUF struct buf file = BUF_INIT(256), text = BUF_INIT(DEFINITION_MAX_YAML);
    AUTO_FREE char *path = NULL;
    int r;

    buf_addf(&file, "%s.yaml", name);
    path = paths_join(dir, buf_str(&file));
    if (!path)
        return -ENOMEM;
    r = atomic_read(path, &text);
    if (r == -ENOENT || r == -ENOTDIR)
        return -ENOENT;
    if (r < 0) {
        buf_addf(error, "%s cannot be read: %s", path, strerror(-r));
        return -EINVAL;
    }
    r = definition_from_yaml(buf_str(&text), text.len, path, ret, error);
    if (r == 0) {
        free(ret->id);
        ret->id = strdup(name);
        if (!ret->id)
            r = -ENOMEM;
    }
    return r;
}

int
definition_find(const char *dir, const char *name, struct definition *ret, struct buf *error)
{
    AUTO_FREE char *dashed = strdup(name);
    int r = -ENOENT;

    *ret = (struct definition){.id = NULL};
    if (!dashed)
        return -ENOMEM;
    if (dir && is_plain_name(name))
        r = find_file(dir, name, ret, error);
    if (r != -ENOENT)
        return r;
    for (char *p = dashed; *p; p++)
        *p = *p == '_' ? '-' : *p;
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++) {
        if (strcmp(builtins[i].id, dashed) == 0)
            return make_builtin(&builtins[i], ret);
    }
    return -ENOENT;
}

void
definition_add_names(struct buf *to)
{
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
        buf_addf(to, "%s%s", i > 0 ? ", " : "", builtins[i].id);
}

/* ---- for the store ---- */

static bool
add_number(cJSON *object, const char *name, int64_t value)
{
    return cJSON_AddNumberToObject(object, name, (double)value) != NULL;
}

/* Participants are rows of their own. */
char *
definition_to_json(const struct definition *definition)
{
    AUTO_JSON cJSON *json = cJSON_CreateObject();
    struct clocks clocks = definition->clocks;
    bool ok = json_add_str(json, "id", definition->id) &&
              add_number(json, "max_rounds", definition->max_rounds) &&
              add_number(json, "idle_ttl_sec", definition->idle_ttl_sec) &&
              add_number(json, "budget_microusd", definition->budget_microusd);

    for (int i = 0; i < CLOCKS_COUNT && ok; i++)
        ok = add_number(json, clocks_names[i].name, *clocks_place(&clocks, i));
    return ok ? json_print(json) : NULL;
}

int
definition_from_json(const char *text, struct definition *ret)
{
    AUTO_JSON cJSON *json = NULL;
    bool ok = true;

    *ret = (struct definition){.id = NULL};
    clocks_clear(&ret->clocks);
    if (!text)
        return 0;
    json = json_parse(text, strlen(text), NULL);
    ok = json_int(json, "max_rounds", &ret->max_rounds) &&
         json_int(json, "idle_ttl_sec", &ret->idle_ttl_sec) &&
         json_int(json, "budget_microusd", &ret->budget_microusd);
    for (int i = 0; i < CLOCKS_COUNT; i++) /* those of a later version are absent */
        (void)json_int(json, clocks_names[i].name, clocks_place(&ret->clocks, i));
    return ok ? 0 : -EINVAL;
}
