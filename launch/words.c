/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "launch/words.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void
words_add(struct words *words, const char *text)
{
    if (!words->failed && words->room < words->n + 2) {
        size_t room = words->room ? words->room * 2 : 16;
        char **list = reallocarray(words->list, room, sizeof *list);

        words->failed = !list;
        if (list) {
            words->list = list;
            words->room = room;
        }
    }
    if (words->failed)
        return;
    words->list[words->n] = strdup(text);
    if (words->list[words->n])
        words->list[++words->n] = NULL;
    else
        words->failed = true;
}

void
words_add_buf(struct words *words, const struct buf *text)
{
    if (buf_ok(text))
        words_add(words, buf_str(text));
    else
        words->failed = true;
}

void
words_add_all(struct words *words, const char *const *list)
{
    for (; list && *list; list++)
        words_add(words, *list);
}

void
words_fini(struct words *words)
{
    for (size_t i = 0; i < words->n; i++)
        free(words->list[i]);
    free(words->list);
    *words = (struct words){.list = NULL};
}

const char *const *
words_list(const struct words *words)
{
    static const char *const none[] = {NULL};

    return words->list ? (const char *const *)(uintptr_t)words->list : none;
}
