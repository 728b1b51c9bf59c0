/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/session.h"

#include <stdlib.h>
#include <string.h>

#include "lib/auto.h"
#include "lib/session-id.h"

void
caller_fini(struct caller *caller)
{
    free(caller->name);
    free(caller->version);
    free(caller->session_id);
    free(caller->meta);
    *caller = (struct caller){.name = NULL};
}

static bool
take(const char *id, const char *source, struct caller *ret)
{
    ret->session_id = id ? session_id_normalise(id) : NULL;
    if (ret->session_id)
        ret->session_source = source;
    return ret->session_id != NULL;
}

static bool
take_span(struct span id, const char *source, struct caller *ret)
{
    AUTO_FREE char *text = span_type(id) == '"' ? span_string(id, NULL) : NULL;

    return text && take(text, source, ret);
}

bool
session_find(struct span meta, struct caller *ret)
{
    struct span turn = span_get(meta, "x-codex-turn-metadata");
    const char *codex = getenv("CODEX_THREAD_ID");
    bool inside_codex = codex && codex[0];

    /* A request's own word first: one host process can outlive several sessions of its client.
     */
    if (take_span(span_get(meta, "sessionId"), "_meta.sessionId", ret) ||
        take_span(span_get(meta, "threadId"), "_meta.threadId", ret) ||
        take_span(span_get(turn, "session_id"), "_meta.x-codex-turn-metadata", ret))
        return true;
    /* Claude's variable is inherited by a Codex started from within Claude, so it counts only
     * alone. */
    if (!inside_codex && take(getenv("CLAUDE_CODE_SESSION_ID"), "CLAUDE_CODE_SESSION_ID", ret))
        return true;
    return take(getenv("KCAP_SESSION_ID"), "KCAP_SESSION_ID", ret) ||
           take(codex, "CODEX_THREAD_ID", ret) ||
           take(getenv("COPILOT_AGENT_SESSION_ID"), "COPILOT_AGENT_SESSION_ID", ret);
}
