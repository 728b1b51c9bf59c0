/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may ask for what. A process of a reviewer may report and nothing else, whatever it speaks
 * HTTP with: it reads untrusted code, and a sentence in there must not start another review.
 *
 * Who may come over TCP. On the Unix socket the kernel says whose process it is; here anything
 * on this machine can connect, a browser with any page in it among them. So every route but the
 * question how to log in wants the token, and a request that a browser made for a page, or that
 * was sent to another name, is refused before that.
 */
#include "config.h"

#include <string.h>

#include "server/api_internal.h"

enum gate { GATE_OPEN, GATE_REVIEWER, GATE_ORIGIN, GATE_HOST, GATE_TOKEN };

static bool
is_same(const char *a, const char *b)
{
    size_t a_len = strlen(a), b_len = strlen(b);
    unsigned char different = a_len != b_len;

    for (size_t i = 0; i < a_len; i++) /* in the same time wherever they differ */
        different |= (unsigned char)(a[i] ^ b[b_len > 0 ? i % b_len : 0]);
    return different == 0;
}

static bool
has_token(const struct api_request *request)
{
    static const char scheme[] = "Bearer ";
    const char *given = request->remote.authorization;

    return given && strncmp(given, scheme, sizeof scheme - 1) == 0 &&
           is_same(given + sizeof scheme - 1, request->site->token);
}

/* Loopback by number or name, with any port. */
static bool
is_our_host(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};

    for (size_t i = 0; host && i < sizeof names / sizeof *names; i++) {
        size_t len = strlen(names[i]);
        if (strncmp(host, names[i], len) == 0 && (host[len] == '\0' || host[len] == ':'))
            return true;
    }
    return false;
}

static bool
is_of_reviewers(const char *path)
{
    for (const struct api_route *route = api_reviewer_routes; route->method; route++) {
        if (strcmp(route->path, path) == 0)
            return true;
    }
    return strcmp(path, "/auth/config") == 0;
}

static const struct refusal {
    int status;
    const char *code, *message;
} refusals[] = {
    [GATE_REVIEWER] = {403, "reviewer_refused",
                       "A reviewer's process may report its result and send messages, and "
                       "nothing else."},
    [GATE_ORIGIN] = {403, "origin_refused", "Requests of web pages are not answered."},
    [GATE_HOST] = {403, "host_refused",
                   "The Host header must name 127.0.0.1, [::1] or localhost."},
    [GATE_TOKEN] = {401, "unauthorized",
                    "This server wants \"Authorization: Bearer TOKEN\", with the token in "
                    "flowd.token in its state directory."},
};

static enum gate
look(const struct api_request *request)
{
    const struct api_remote *remote = &request->remote;

    if (remote->is_reviewer && !is_of_reviewers(request->path))
        return GATE_REVIEWER;
    if (!remote->is_tcp)
        return GATE_OPEN;
    if (remote->origin)
        return GATE_ORIGIN;
    if (!is_our_host(remote->host))
        return GATE_HOST;
    return strcmp(request->path, "/auth/config") != 0 && !has_token(request) ? GATE_TOKEN
                                                                             : GATE_OPEN;
}

bool
api_is_admitted(const struct api_request *request)
{
    return look(request) == GATE_OPEN;
}

int
api_check_gate(struct api_call *call)
{
    enum gate gate = look(call->request);

    return gate == GATE_OPEN ? 0
                             : api_fail(call, refusals[gate].status, refusals[gate].code, "%s",
                                        refusals[gate].message);
}
