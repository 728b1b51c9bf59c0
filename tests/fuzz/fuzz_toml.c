/* SPDX-License-Identifier: Apache-2.0 */
/* A config.toml: the reader, and the edits, which must change our entry and nothing else. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/codex-setup/edit.h"
#include "tests/fuzz/fuzz.h"

static const char *const variables[] = {"KCAP_URL", NULL};
static const struct registration registration = {"/usr/bin/kcap-host", variables};

/* Taking the edit back gives the very bytes. */
static void
check_undo(const struct buf *after, const struct toml_value *edited, const struct edit *edit,
           const char *text, size_t len)
{
    struct edit undo = {.text = BUF_INIT(4u << 20)};
    struct buf before = BUF_INIT(4u << 20);
    char *was = strndup(text + edit->at, edit->len);

    if (!was || memchr(buf_str(&edit->text), '\0', edit->text.len) ||
        !edit_undo(buf_str(after), after->len, edited, edit->kind, buf_str(&edit->text), was,
                   &undo))
        abort();
    edit_apply(buf_str(after), after->len, &undo, &before);
    if (before.len != len || memcmp(buf_str(&before), text, len) != 0)
        abort();
    buf_fini(&undo.text);
    if (edit_undo_rewritten(buf_str(after), after->len, edited, edit->kind,
                            buf_str(&edit->text), &undo)) {
        buf_clear(&before);
        edit_apply(buf_str(after), after->len, &undo, &before);
        if (!edit_is_undone(&before, edited, edit->kind))
            abort();
    }
    buf_fini(&undo.text);
    buf_fini(&before);
    free(was);
}

/* Makes the edit. What comes of it must parse, have our entry, and differ in nothing else. */
static void
check_edit(const char *text, size_t len, const struct toml_value *root, struct edit *edit)
{
    struct buf after = BUF_INIT(4u << 20);
    struct toml_value *edited = NULL;
    struct toml_error error;
    struct entry entry;

    if (!buf_ok(&edit->text) || edit->at > len || edit->len > len - edit->at)
        abort();
    edit_apply(text, len, edit, &after);
    if (toml_parse(buf_str(&after), after.len, &edited, &error) < 0)
        abort();
    entry_find(edited, &entry);
    if (!entry_only_difference(root, edited))
        abort();
    if (edit->kind == EDIT_ENTRY || edit->kind == EDIT_TIMEOUT) {
        if (!entry.timeout || entry.timeout->kind != TOML_INTEGER ||
            strcmp(entry.timeout->text, "600") != 0)
            abort();
    }
    if (edit->kind == EDIT_SWITCH && entry.owner != ENTRY_OURS)
        abort();
    if (edit->kind == EDIT_VARIABLES && !toml_get(entry.table, "env_vars"))
        abort();
    check_undo(&after, edited, edit, text, len);
    toml_free(edited);
    buf_fini(&after);
    buf_fini(&edit->text);
}

/* Each edit that this config can have, on its own. */
static void
check_edits(const char *text, size_t len, const struct toml_value *root)
{
    struct edit edit = {.text = BUF_INIT(1u << 20)};
    struct entry entry;

    entry_find(root, &entry);
    if (entry.owner == ENTRY_ABSENT) {
        edit_add_entry(text, len, &entry, &registration, &edit);
        check_edit(text, len, root, &edit);
    }
    if (entry.owner != ENTRY_OURS && entry.owner != ENTRY_KCAP)
        return;
    if (!entry.timeout) {
        edit = (struct edit){.text = BUF_INIT(1u << 20)};
        edit_add_timeout(text, len, &entry, &edit);
        check_edit(text, len, root, &edit);
    }
    if (!toml_get(entry.table, "env_vars")) {
        edit = (struct edit){.text = BUF_INIT(1u << 20)};
        edit_add_variables(text, len, &entry, &registration, &edit);
        check_edit(text, len, root, &edit);
    }
    if (entry.owner == ENTRY_KCAP) {
        edit = (struct edit){.text = BUF_INIT(1u << 20)};
        edit_switch(text, &entry, &registration, &edit);
        check_edit(text, len, root, &edit);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct toml_value *root = NULL;
    struct toml_error error;
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
        check_edits(text, size, root);
    }
    toml_free(root);
    free(text);
    return 0;
}
