/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "launch/environment.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/paths.h"

#define FOR_CODEX  1u
#define FOR_CLAUDE 2u
#define FOR_NONE   0u

/* The first row that fits decides; what fits none is kept. A name that ends in * is a
 * beginning. */
static const struct {
    const char *name;
    unsigned kept_for;
} rules[] = {
    {"KCAP_*", FOR_NONE},
    /* the session that starts us: its id, its sockets, its sandbox */
    {"AI_AGENT", FOR_NONE},
    {"CLAUDECODE", FOR_NONE},
    {"CLAUDE_PROJECT_DIR", FOR_NONE},
    {"CLAUDE_CODE_SESSION_ID", FOR_NONE},
    {"CLAUDE_CODE_ENTRYPOINT", FOR_NONE},
    {"CLAUDE_CODE_EXECPATH", FOR_NONE},
    {"CLAUDE_CODE_SSE_PORT", FOR_NONE},
    {"CLAUDE_CODE_MESSAGING_*", FOR_NONE},
    {"CLAUDE_CODE_CHILD_*", FOR_NONE},
    {"CLAUDE_CODE_LAUNCHED_BY_*", FOR_NONE},
    {"CODEX_THREAD_ID", FOR_NONE},
    {"CODEX_SESSION_ID", FOR_NONE},
    {"CODEX_TOOL_CALL_ID", FOR_NONE},
    {"CODEX_CI", FOR_NONE},
    {"CODEX_VERSION", FOR_NONE},
    {"CODEX_SANDBOX*", FOR_NONE},
    {"CODEX_INTERNAL_*", FOR_NONE},
    /* what only the other vendor needs, secrets among it */
    {"ANTHROPIC_*", FOR_CLAUDE},
    {"CLAUDE_*", FOR_CLAUDE},
    {"CODEX_*", FOR_CODEX},
    {"OPENAI_*", FOR_CODEX},
};

static bool
fits(const char *rule, const char *variable, size_t name_len)
{
    size_t len = strlen(rule);

    if (rule[len - 1] == '*')
        return name_len >= len - 1 && strncmp(variable, rule, len - 1) == 0;
    return name_len == len && strncmp(variable, rule, len) == 0;
}

static bool
is_kept(const char *variable, unsigned vendor)
{
    size_t len = strcspn(variable, "=");

    if (variable[len] != '=')
        return false;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (fits(rules[i].name, variable, len))
            return (rules[i].kept_for & vendor) != 0;
    }
    return true;
}

void
environment_for(enum compose_vendor vendor, const char *const *envp, struct words *to)
{
    for (; envp && *envp; envp++) {
        if (is_kept(*envp, vendor == COMPOSE_CODEX ? FOR_CODEX : FOR_CLAUDE))
            words_add(to, *envp);
    }
    words_add(to, "KCAP_REVIEWER=1");
}

const char *
environment_get(const char *const *envp, const char *name)
{
    size_t len = strlen(name);

    for (; envp && *envp; envp++) {
        if (strncmp(*envp, name, len) == 0 && (*envp)[len] == '=')
            return *envp + len + 1;
    }
    return NULL;
}

static bool
is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

char *
environment_find_program(const char *const *envp, const char *name)
{
    const char *path = environment_get(envp, "PATH");

    if (strchr(name, '/')) {
        AUTO_FREE char *absolute = name[0] == '/' ? strdup(name) : realpath(name, NULL);
        return absolute && is_program(absolute) ? take_ptr(absolute) : NULL;
    }
    for (path = path ? path : "/usr/bin:/bin"; path; path = strchr(path, ':')) {
        AUTO_FREE char *dir = NULL, *absolute = NULL;

        path += *path == ':';
        dir = strndup(path, strcspn(path, ":"));
        /* a relative part of PATH would mean another program in the reviewer's directory */
        if (!dir || dir[0] != '/')
            continue;
        absolute = paths_join(dir, name);
        if (absolute && is_program(absolute))
            return take_ptr(absolute);
    }
    return NULL;
}
