/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "lib/session-id.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* 8-4-4-4-12 hexadecimal digits. */
static bool
is_guid(const char *p, size_t len)
{
    if (len != 36)
        return false;
    for (size_t i = 0; i < len; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? p[i] != '-' : !isxdigit((unsigned char)p[i]))
            return false;
    }
    return true;
}

char *
session_id_normalise(const char *id)
{
    size_t len;
    char *copy, *to;

    id += strspn(id, " \t\r\n");
    for (len = strlen(id); len > 0 && strchr(" \t\r\n", id[len - 1]); len--)
        ;
    if (len == 0 || len > SESSION_ID_MAX_LEN)
        return NULL;
    copy = to = malloc(len + 1);
    if (!copy)
        return NULL;
    if (is_guid(id, len)) {
        for (size_t i = 0; i < len; i++) {
            if (id[i] != '-')
                *to++ = (char)tolower((unsigned char)id[i]);
        }
    } else {
        memcpy(to, id, len);
        to += len;
    }
    *to = '\0';
    return copy;
}
