/* SPDX-License-Identifier: Apache-2.0 */
/* A config.toml: the reader, and the edits, which must change our entry and nothing else. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/codex-setup/edit.h"
#include "tests/fuzz/fuzz.h"

static const char *const variables[] = {"KCAP_URL", NULL};
static const struct registration registration = {"/usr/bin/kcap-host", variables};

/* What the edit makes of the text must parse, have our entry with its time-out, and differ in
 * nothing else. */
static void
check_edit(const char *text, size_t len, const struct toml_value *root, const struct edit *edit)
{
    struct buf after = BUF_INIT(4u << 20);
    struct toml_value *edited = NULL;
    struct toml_error error;
    struct entry entry;

    if (!buf_ok(&edit->text) || edit->at > len)
        abort();
    buf_add(&after, text, edit->at);
    buf_add(&after, buf_str(&edit->text), edit->text.len);
    buf_add(&after, text + edit->at, len - edit->at);
    if (toml_parse(buf_str(&after), after.len, &edited, &error) < 0)
        abort();
    entry_find(edited, &entry);
    if (!entry_only_difference(root, edited) || !entry.timeout ||
        entry.timeout->kind != TOML_INTEGER || strcmp(entry.timeout->text, "600") != 0)
        abort();
    toml_free(edited);
    buf_fini(&after);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct edit edit = {.text = BUF_INIT(1u << 20)};
    struct toml_value *root = NULL;
    struct toml_error error;
    struct entry entry;
    char *text = malloc(size ? size : 1);

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    if (toml_parse(text, size, &root, &error) < 0) {
        if (!error.text || error.line == 0 || error.column == 0)
            abort();
    } else {
        if (!toml_equal(root, root))
            abort();
        entry_find(root, &entry);
        if (entry.owner == ENTRY_ABSENT)
            edit_add_entry(text, size, &entry, &registration, &edit);
        else if ((entry.owner == ENTRY_OURS || entry.owner == ENTRY_KCAP) && !entry.timeout)
            edit_add_timeout(text, size, &entry, &edit);
        if (edit.text.len > 0)
            check_edit(text, size, root, &edit);
    }
    buf_fini(&edit.text);
    toml_free(root);
    free(text);
    return 0;
}
