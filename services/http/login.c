/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "login.h"

#include <stdlib.h>
#include <string.h>

#include "discovery.h"
#include "lib/buf.h"
#include "lib/text.h"
#include "machine.h"
#include "refresh.h"
#include "token.h"

#define NS_PER_MS          INT64_C(1000000)
#define DISCOVERY_LIMIT_NS (3000 * NS_PER_MS)
#define ANSWER_LIFE_NS     (86400000 * NS_PER_MS)
#define FAILURE_LIFE_NS    (60000 * NS_PER_MS)
#define MAX_LINE           2048

void
login_init(struct login *login, const struct kcap_host *host, const struct http_server *server)
{
    *login = (struct login){.host = host, .server = server};
    (void)pthread_mutex_init(&login->lock, NULL);
}

void
bearer_fini(struct bearer *bearer)
{
    free(bearer->token);
    free(bearer->user);
    free(bearer->other);
    free(bearer->why);
    *bearer = (struct bearer){.state = LOGIN_NONE};
}

/* ---- whether one is wanted ---- */

static void
set_wants_none(struct login *login, bool wants_none, int64_t life_ns)
{
    (void)pthread_mutex_lock(&login->lock);
    login->asked = true;
    login->wants_none = wants_none;
    login->until_ns = login->host->now_ns(login->host) + life_ns;
    (void)pthread_mutex_unlock(&login->lock);
}

static void
forget_wants_none(struct login *login)
{
    (void)pthread_mutex_lock(&login->lock);
    login->asked = false;
    (void)pthread_mutex_unlock(&login->lock);
    discovery_remember(login->host, login->server, NULL);
}

/* A server that does not say is taken to want what we have. */
static int32_t
discover(struct login *login, struct kcap_call *call, int64_t until_ns, bool *ret_wants_none)
{
    const struct kcap_host *host = login->host;
    struct kcap_http_response *answer = NULL;
    int64_t limit_ns = host->now_ns(host) + DISCOVERY_LIMIT_NS;
    char *provider = discovery_recall(host, login->server);
    int32_t r = 0;

    if (!provider) {
        r = discovery_ask(host, login->server, call, limit_ns < until_ns ? limit_ns : until_ns,
                          &provider, &answer);
        exchange_response_free(answer);
        if (r == 0 && provider)
            discovery_remember(host, login->server, provider);
    }
    if (r == 0) {
        *ret_wants_none = provider && strcmp(provider, "None") == 0;
        set_wants_none(login, *ret_wants_none, provider ? ANSWER_LIFE_NS : FAILURE_LIFE_NS);
    }
    free(provider);
    return r;
}

static int32_t
wants_none(struct login *login, struct kcap_call *call, int64_t until_ns, bool *ret)
{
    bool known;

    (void)pthread_mutex_lock(&login->lock);
    known = login->asked && login->host->now_ns(login->host) < login->until_ns;
    *ret = login->wants_none;
    (void)pthread_mutex_unlock(&login->lock);
    return known ? 0 : discover(login, call, until_ns, ret);
}

/* ---- stored logins ---- */

static int32_t
set_text(char **to, const char *text)
{
    free(*to);
    *to = text ? strdup(text) : NULL;
    return text && !*to ? KCAP_E_NOMEM : 0;
}

/* What a token that was read means; it is put into *ret when it may be sent. */
static int32_t
assess(const struct login *login, const struct token *token, struct bearer *ret)
{
    int64_t now_ms = login->host->wall_ms(login->host);

    if (set_text(&ret->user, token->user) < 0 || set_text(&ret->other, token->server_url) < 0 ||
        set_text(&ret->token, NULL) < 0)
        return KCAP_E_NOMEM;
    ret->expires_ms = token->expires_ms;
    if (token->damaged)
        ret->state = LOGIN_DAMAGED;
    else if (!token->json)
        ret->state = LOGIN_MISSING;
    else if (!token_is_for(token, login->server))
        ret->state = LOGIN_ELSEWHERE;
    else if (token_is_expired(token, now_ms))
        ret->state = LOGIN_EXPIRED;
    else
        ret->state = LOGIN_USABLE;
    return ret->state == LOGIN_USABLE ? set_text(&ret->token, token->access) : 0;
}

/* Whether to renew now: it is expired, or it is the one that was refused. A vendor's refresh
 * token that failed once for this request may be used up, and is not used again. */
static bool
is_to_renew(const struct token *token, const char *refused, const struct bearer *bearer)
{
    if (bearer->why && token->json && strcmp(token->provider, "workos") == 0)
        return false;
    return bearer->state == LOGIN_EXPIRED ||
           (bearer->state == LOGIN_USABLE && refused && strcmp(refused, token->access) == 0);
}

static int32_t
get_stored(struct login *login, struct kcap_call *call, int64_t until_ns, const char *refused,
           struct bearer *ret)
{
    struct token token;
    int32_t r = token_load(login->server, &token);

    if (r == 0)
        r = assess(login, &token, ret);
    if (r == 0 && is_to_renew(&token, refused, ret)) {
        free(ret->why);
        r = refresh_run(login->host, login->server, call, until_ns, &token, &ret->why);
        if (r == 0 && token.json)
            r = assess(login, &token, ret);
    }
    token_fini(&token);
    return r;
}

/* ---- machines ---- */

static int32_t
get_machine(struct login *login, struct kcap_call *call, int64_t until_ns, bool anew,
            struct bearer *ret)
{
    const struct kcap_host *host = login->host;
    int32_t r = 0;

    (void)pthread_mutex_lock(&login->lock);
    if (!anew && login->machine_token &&
        login->machine_expires_ms - TOKEN_EARLY_MS > host->wall_ms(host))
        r = set_text(&ret->token, login->machine_token);
    else
        r = set_text(&ret->token, NULL);
    (void)pthread_mutex_unlock(&login->lock);
    ret->state = LOGIN_MACHINE;
    if (r < 0 || ret->token)
        return r;
    free(ret->why);
    r = machine_get(host, call, until_ns, &ret->token, &ret->expires_ms, &ret->why);
    if (r != 0)
        return r;
    if (!ret->token) {
        ret->state = LOGIN_MACHINE_BAD;
        return 0;
    }
    (void)pthread_mutex_lock(&login->lock);
    r = set_text(&login->machine_token, ret->token);
    login->machine_expires_ms = ret->expires_ms;
    (void)pthread_mutex_unlock(&login->lock);
    return r;
}

/* ---- for requests ---- */

int32_t
login_get(struct login *login, struct kcap_call *call, int64_t until_ns, struct bearer *ret)
{
    bool none = true;
    int32_t r = 0;

    *ret = (struct bearer){.state = LOGIN_NONE};
    if (!login->server->has_login)
        return 0;
    r = wants_none(login, call, until_ns, &none);
    if (r != 0 || none)
        return r;
    return machine_is_meant(login->host) ? get_machine(login, call, until_ns, false, ret)
                                         : get_stored(login, call, until_ns, NULL, ret);
}

int32_t
login_renew(struct login *login, struct kcap_call *call, int64_t until_ns,
            struct bearer *bearer, bool *ret_again)
{
    char *refused = bearer->token;
    int32_t r;

    *ret_again = false;
    bearer->token = NULL;
    if (!login->server->has_login) {
        free(refused);
        return 0;
    }
    if (bearer->state == LOGIN_NONE) /* what was remembered is no longer so */
        forget_wants_none(login);
    if (machine_is_meant(login->host))
        r = get_machine(login, call, until_ns, true, bearer);
    else
        r = get_stored(login, call, until_ns, refused, bearer);
    /* Also a token that is still the refused one: a rejection may have been a passing one. */
    *ret_again = r == 0 && bearer->token != NULL;
    free(refused);
    return r;
}

/* ---- explaining ---- */

static void
add_outside(struct buf *line, const char *text)
{
    text_add_line(line, text, text_prefix(text, strlen(text), 256));
}

static void
add_user(struct buf *line, const struct bearer *bearer)
{
    if (text_is_blank(bearer->user))
        return;
    buf_adds(line, " of ");
    add_outside(line, bearer->user);
}

static void
explain_usable(const struct login *login, const struct bearer *bearer, struct buf *line)
{
    int64_t left_min = (bearer->expires_ms - login->host->wall_ms(login->host)) / 60000;

    buf_adds(line, "the login");
    add_user(line, bearer);
    buf_addf(line,
             " looks valid here (for another %lld h %lld min), but the server refuses it: "
             "log in again with \"kcap login\"; restarting a daemon does not help",
             (long long)(left_min / 60), (long long)(left_min % 60));
    if (bearer->why) {
        buf_adds(line, " (its renewal failed, too: ");
        add_outside(line, bearer->why);
        buf_addc(line, ')');
    }
}

static void
explain(const struct login *login, const struct bearer *bearer, struct buf *line)
{
    const struct http_server *server = login->server;
    const char *profile = server->profile ? server->profile : "default";

    switch (bearer->state) {
    case LOGIN_NONE:
        buf_adds(line, server->capability
                           ? "the daemon that started this reviewer was itself refused by the "
                             "server: its login has to be renewed where it runs"
                           : "the server refuses requests although it asks for no login: check "
                             "what is in front of it");
        break;
    case LOGIN_USABLE:
        explain_usable(login, bearer, line);
        break;
    case LOGIN_MISSING:
        buf_adds(line, "nobody is logged in with the profile ");
        add_outside(line, profile);
        buf_adds(line, ": log in with \"kcap login\"");
        break;
    case LOGIN_DAMAGED:
        buf_adds(line, "the login file of the profile ");
        add_outside(line, profile);
        buf_adds(line, " cannot be read: log in again with \"kcap login\"");
        break;
    case LOGIN_EXPIRED:
        buf_adds(line, "the login");
        add_user(line, bearer);
        buf_adds(line, " has expired");
        if (bearer->why) {
            buf_adds(line, " and could not be renewed: ");
            add_outside(line, bearer->why);
        }
        buf_adds(line, "; log in again with \"kcap login\"");
        break;
    case LOGIN_ELSEWHERE:
        buf_adds(line, "the login");
        add_user(line, bearer);
        buf_adds(line, " was issued by ");
        add_outside(line, bearer->other);
        buf_adds(line, ", and requests go to ");
        add_outside(line, server->shown);
        buf_adds(line, ", so it was not sent: log in there, or choose the profile that belongs "
                       "to it");
        break;
    case LOGIN_MACHINE:
        buf_adds(line, "the server refuses the token that KCAP_CLIENT_ID and "
                       "KCAP_CLIENT_SECRET were given: check what they are allowed to do");
        break;
    case LOGIN_MACHINE_BAD:
        add_outside(line, bearer->why);
        break;
    }
}

char *
login_explain(const struct login *login, const struct bearer *bearer)
{
    struct buf line = BUF_INIT(MAX_LINE);

    explain(login, bearer, &line);
    return buf_take(&line, NULL);
}
