/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "routes.h"

#include <kcap/plugin.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define MAX_PATH_LEN 2048
#define MAX_DECODES  4

/* The reviewer's routes: all that a reviewer may use, and what nobody else may. */
static const struct {
    const char *path, *capability_path;
} reviewer_routes[] = {
    {"/api/flows/reviewer/result", "/flow-result"},
    {"/api/flows/participant/message", "/flow-message"},
};
#define N_REVIEWER_ROUTES (sizeof reviewer_routes / sizeof reviewer_routes[0])

/* Printable ASCII that needs no escaping on a request line. */
static bool
is_plain(const char *path)
{
    for (const char *p = path; *p; p++) {
        if (*p <= ' ' || *p >= 0x7f || *p == '#' || *p == '\\' || *p == '"')
            return false;
    }
    return true;
}

static int
hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One round of percent-decoding in place; false when an escape stands for NUL. What is no
 * escape stays as it is. */
static bool
decode(char *path, bool *ret_changed, bool *ret_broken)
{
    char *to = path;

    *ret_changed = *ret_broken = false;
    for (const char *p = path; *p; p++) {
        int high, low;
        if (*p != '%') {
            *to++ = *p;
            continue;
        }
        high = hex_value(p[1]);
        low = high < 0 ? -1 : hex_value(p[2]);
        if (high == 0 && low == 0)
            return false;
        if (low < 0) {
            *ret_broken = true;
            *to++ = *p;
            continue;
        }
        *to++ = (char)(high * 16 + low);
        *ret_changed = true;
        p += 2;
    }
    *to = '\0';
    return true;
}

/* Empty segments and dot segments: servers differ in what they make of them. */
static bool
has_odd_segment(const char *path)
{
    while (*path == '/') {
        size_t len = strcspn(++path, "/\\");
        bool last = path[len] == '\0';
        if ((len == 0 && !last) || (len == 1 && path[0] == '.') ||
            (len == 2 && path[0] == '.' && path[1] == '.'))
            return true;
        path += len;
        if (*path == '\\')
            return true;
    }
    return false;
}

static bool
is_reviewer_route(const char *path)
{
    size_t len = strlen(path);

    while (len > 1 && path[len - 1] == '/')
        len--;
    for (size_t i = 0; i < N_REVIEWER_ROUTES; i++) {
        if (len == strlen(reviewer_routes[i].path) &&
            strncasecmp(path, reviewer_routes[i].path, len) == 0)
            return true;
    }
    return false;
}

/* Looks at the path as every reader on the way might: as it stands and decoded, also twice.
 * Only as it stands must it be well-formed: an id may hold a '%'. */
static bool
allow_driver(const char *path)
{
    char copy[MAX_PATH_LEN + 1];
    bool changed = true, broken;

    (void)memccpy(copy, path, '\0', sizeof copy);
    copy[strcspn(copy, "?")] = '\0';
    for (int i = 0; changed; i++) {
        if (i > MAX_DECODES || has_odd_segment(copy) || is_reviewer_route(copy) ||
            !decode(copy, &changed, &broken) || (i == 0 && broken))
            return false;
    }
    return true;
}

bool
routes_allow(uint32_t trust_class, const char *method, const char *path)
{
    bool get = strcmp(method, "GET") == 0, post = strcmp(method, "POST") == 0;

    if ((!get && !post) || path[0] != '/' || strlen(path) > MAX_PATH_LEN || !is_plain(path))
        return false;
    if (trust_class == KCAP_CLASS_DRIVER)
        return allow_driver(path);
    return trust_class == KCAP_CLASS_REVIEWER && post && routes_capability_path(path);
}

const char *
routes_capability_path(const char *path)
{
    for (size_t i = 0; i < N_REVIEWER_ROUTES; i++) {
        if (strcmp(path, reviewer_routes[i].path) == 0)
            return reviewer_routes[i].capability_path;
    }
    return NULL;
}
