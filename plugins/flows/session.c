/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "flows.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/auto.h"
#include "lib/buf.h"
#include "lib/paths.h"
#include "lib/session-id.h"
#include "lib/text.h"

#define MAX_KEY_LEN 8192

void
session_fini(struct session *session)
{
    free(session->key);
    free(session->id);
    free(session->source);
    free(session->project);
    free(session->repository);
    *session = (struct session){.key = NULL};
}

static bool
is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Who types a command means the directory he is in, whatever the shell inherited. */
static bool
is_shell(const struct kcap_client *client)
{
    return client->harness && strcmp(client->harness, "shell") == 0;
}

static char *
find_project(const struct kcap_host *host, const struct kcap_client *client)
{
    const char *dir = host->env(host, "CLAUDE_PROJECT_DIR");
    const char *codex = host->env(host, "CODEX_THREAD_ID");

    if (!is_shell(client) && text_is_blank(codex) && dir && dir[0] == '/' && is_dir(dir))
        return strdup(dir);
    return getcwd(NULL, 0);
}

/* The nearest directory upwards that holds .git (a file in linked work trees), or NULL. */
static char *
find_repository(const char *from)
{
    AUTO_FREE char *dir = strdup(from);

    while (dir && dir[0] == '/' && dir[1]) {
        AUTO_FREE char *git = paths_join(dir, ".git");
        if (!git)
            return NULL;
        if (access(git, F_OK) == 0)
            return take_ptr(dir);
        *strrchr(dir, '/') = '\0';
    }
    return NULL;
}

static int
use_id(struct session *session, const char *id, const char *source)
{
    session->id = session_id_normalise(id);
    session->key = session->id ? strdup(session->id) : NULL;
    session->source = strdup(source);
    return session->key && session->source ? 0 : KCAP_E_NOMEM;
}

static int
use_place(struct session *session, const char *client)
{
    struct buf key = BUF_INIT(MAX_KEY_LEN), source = BUF_INIT(MAX_KEY_LEN);

    buf_addf(&key, "%s\n%s", client, session->project);
    buf_adds(&source, "client ");
    text_add_line(&source, client, text_prefix(client, strlen(client), 80));
    buf_adds(&source, " in ");
    text_add_line(&source, session->project, strlen(session->project));
    session->key = buf_take(&key, NULL);
    session->source = buf_take(&source, NULL);
    return session->key && session->source ? 0 : KCAP_E_NOMEM;
}

int
session_find(const struct subject *subject, const char *argument)
{
    const struct kcap_host *host = subject->flows->host;
    struct kcap_client client = {.struct_size = sizeof client};
    struct session *ret = subject->session;

    host->client(subject->call, &client);
    *ret = (struct session){.project = find_project(host, &client)};
    if (!ret->project && !(ret->project = strdup("/")))
        return KCAP_E_NOMEM;
    ret->repository = find_repository(ret->project);
    if (!text_is_blank(argument))
        return use_id(ret, argument, "the session_id argument");
    if (!text_is_blank(client.session_id))
        return use_id(ret, client.session_id,
                      client.session_source ? client.session_source : "the client");
    if (!client.name)
        client.name = host->option(host, "driver");
    return use_place(ret, client.name ? client.name : "(unnamed)");
}
