/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "args.h"

#include <string.h>

#include "lib/text.h"

const char *
args_first_blank(const cJSON *args, const char *const *names)
{
    for (; *names; names++) {
        if (text_is_blank(json_str(args, *names)))
            return *names;
    }
    return NULL;
}

char *
args_trim(const char *text, bool lower)
{
    size_t len;
    char *copy;

    if (!text)
        return NULL;
    text += strspn(text, " \t\r\n\v\f");
    for (len = strlen(text); len > 0 && strchr(" \t\r\n\v\f", text[len - 1]);)
        len--;
    copy = strndup(text, len);
    for (char *p = copy; lower && p && *p; p++) {
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    }
    return copy;
}

void
args_add_member(struct buf *to, const char *name, const char *value)
{
    if (!value)
        return;
    buf_addf(to, "%s\"%s\":", to->len == 0 ? "{" : ",", name);
    text_add_json(to, value, strlen(value));
}
