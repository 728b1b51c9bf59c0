/* SPDX-License-Identifier: Apache-2.0 */
/* remove: takes back what install did, the last change first, and nothing else. */
#include "config.h"

#include <sys/stat.h>
#include <unistd.h>

#include "record.h"
#include "setup.h"

/* One change taken back from text. */
static bool
take_back_one(struct buf *text, const struct change *change, bool *ret_rewritten)
{
    struct edit edit = {.text = BUF_INIT(SETUP_MAX_TEXT)};
    AUTO_BUF struct buf next = BUF_INIT(SETUP_MAX_TEXT);
    struct toml_value *root = NULL;
    struct toml_error error;
    bool found = buf_ok(text) && toml_parse(buf_str(text), text->len, &root, &error) == 0;

    if (found && !edit_undo(buf_str(text), text->len, root, change->kind, change->put,
                            change->was, &edit)) {
        buf_fini(&edit.text);
        found = edit_undo_rewritten(buf_str(text), text->len, root, change->kind, change->put,
                                    &edit);
        *ret_rewritten = true;
    }
    if (found)
        edit_apply(buf_str(text), text->len, &edit, &next);
    toml_free(root);
    buf_fini(&edit.text);
    if (!found || !buf_ok(&next))
        return false;
    buf_clear(text);
    buf_add(text, buf_str(&next), next.len);
    return buf_ok(text);
}

/* The text without our changes. False when one of them is not there as it was made, or as Codex
 * would have rewritten it. */
static bool
take_back(const struct setup *setup, const struct record *record, struct buf *ret,
          bool *ret_rewritten)
{
    bool good = record->n > 0;

    buf_add(ret, buf_str(&setup->old), setup->old.len);
    for (size_t i = record->n; good && i > 0; i--)
        good = take_back_one(ret, &record->changes[i - 1], ret_rewritten);
    return good;
}

/* Whether somebody, or a remove that was killed before it could forget, has taken all of it
 * back already. */
static bool
is_gone(const struct entry *entry, const struct record *record)
{
    for (size_t i = 0; i < record->n; i++) {
        enum edit_kind kind = record->changes[i].kind;

        if (kind == EDIT_ENTRY || (kind == EDIT_TIMEOUT && entry->timeout) ||
            (kind == EDIT_VARIABLES && toml_get(entry->table, "env_vars")) ||
            (kind == EDIT_SWITCH && entry->owner != ENTRY_KCAP))
            return false;
    }
    return record->n > 0;
}

/* What install made and remove emptied is not left behind. */
static void
drop_empty_file(struct setup *setup)
{
    struct stat st;

    if (lstat(setup->path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
        (void)unlink(setup->path);
}

static int
remove_recorded(struct setup *setup, const struct record *record)
{
    AUTO_BUF struct buf text = BUF_INIT(SETUP_MAX_TEXT);
    bool rewritten = false;
    int r;

    if (setup->entry.owner == ENTRY_ABSENT || !setup->exists) {
        setup_say(setup, "%s is not registered in %s.", ENTRY_NAME, setup->path);
        if (!setup->dry_run)
            record_remove(setup);
        return SETUP_OK;
    }
    if (is_gone(&setup->entry, record)) {
        setup_say(setup, "Nothing that was put into %s is there any more.", setup->path);
        if (!setup->dry_run)
            record_remove(setup);
        return SETUP_OK;
    }
    if (!take_back(setup, record, &text, &rewritten)) {
        setup_say(setup,
                  "%s in %s, so it was left as it is. 'codex mcp remove " ENTRY_NAME
                  "' takes the entry out.",
                  record->n > 0 ? "The registration was changed since it was made"
                                : "Nothing is known to be ours",
                  setup->path);
        return SETUP_REFUSED;
    }
    r = setup_write(setup, &text);
    if (r == SETUP_OK && !setup->dry_run) {
        record_remove(setup);
        if (record->made && text.len == 0)
            drop_empty_file(setup);
        setup_say(setup,
                  rewritten ? "Took out of %s what was put in. Codex has written the file anew "
                              "since, so the rest is as Codex left it."
                            : "Took out of %s what was put in.",
                  setup->path);
    }
    return r;
}

static int
remove_once(struct setup *setup)
{
    struct record record;
    int r = setup_open(setup);

    if (r != SETUP_OK)
        return r;
    record_read(setup, &record);
    r = remove_recorded(setup, &record);
    record_fini(&record);
    return r;
}

int
setup_remove(struct setup *setup)
{
    setup->removing = true;
    record_lock(setup);
    return setup_repeat(setup, remove_once);
}
