/* SPDX-License-Identifier: Apache-2.0 */
/* A stored login. The file is the user's and shared with kcap: unknown members stay. */
#ifndef KCAP_SERVICES_HTTP_TOKEN_H
#define KCAP_SERVICES_HTTP_TOKEN_H

#include "lib/json.h"
#include "server.h"

#define TOKEN_EARLY_MS 30000 /* counts as expired that long before it is */

struct token {
    char *path;        /* where it is saved; NULL when nowhere */
    char *legacy_path; /* where it came from, when that is the file of before profiles */
    cJSON *json;       /* NULL: no login */
    bool damaged;      /* there is a file, and it is none we can read */
    /* borrowed from json; NULL when absent */
    const char *access, *refresh, *user, *provider, *client_id, *server_url;
    int64_t expires_ms;
};

/* Looks for the login of the server's profile. Returns 0 or KCAP_E_NOMEM. */
int token_load(const struct http_server *server, struct token *ret);
void token_fini(struct token *token);

/* Whether it may be sent to this server: not bound, or bound to this one. */
bool token_is_for(const struct token *token, const struct http_server *server);

bool token_is_expired(const struct token *token, int64_t now_ms);

/* Whether text can stand in a header as a token. */
bool token_is_sound(const char *text);

/* What a refresh brought; members that are NULL stay as they were. */
struct token_news {
    const char *access, *refresh, *user;
    int64_t expires_ms;
};

/* Puts the news into *token and into the file. Returns 0, or -errno when only the file could
 * not be written. */
int token_renew(struct token *token, const struct http_server *server,
                const struct token_news *news);

#endif
