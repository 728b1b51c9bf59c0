/* SPDX-License-Identifier: Apache-2.0 */
/* install and remove: one insertion, and taking exactly that out again. */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "edit.h"
#include "lib/auto.h"
#include "lib/paths.h"
#include "setup.h"

#define MAX_TEXT ((size_t)5 << 20)
#define TRIES    5 /* when somebody else keeps writing the file */

/* What our server needs of the environment and Codex does not pass by itself; only names that
 * are set now, and never a value. */
static const char *const wanted[] = {"KCAP_URL",       "KCAP_PROFILE",   "KCAP_CONFIG_DIR",
                                     "KCAP_STATE_DIR", "KCAP_CLIENT_ID", "KCAP_CLIENT_SECRET",
                                     "http_proxy",     "https_proxy",    "no_proxy",
                                     "HTTPS_PROXY",    "NO_PROXY",       NULL};
#define MAX_VARIABLES (sizeof wanted / sizeof wanted[0])

static void
find_variables(const struct setup *setup, const char *ret[MAX_VARIABLES])
{
    size_t n = 0;

    for (size_t i = 0; wanted[i]; i++) {
        const char *value = setup->host->env(setup->host, wanted[i]);
        if (value && value[0])
            ret[n++] = wanted[i];
    }
    ret[n] = NULL;
}

static void
apply(const struct buf *old, const struct edit *edit, struct buf *to)
{
    buf_add(to, buf_str(old), edit->at);
    buf_add(to, buf_str(&edit->text), edit->text.len);
    buf_add(to, buf_str(old) + edit->at, old->len - edit->at);
}

static int
insert(struct setup *setup, const struct edit *edit, bool whole, const char *done)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_TEXT);
    int r;

    apply(&setup->old, edit, &text);
    if (!buf_ok(&edit->text))
        text.failed = true;
    r = setup_write(setup, &text);
    if (r != SETUP_OK || setup->dry_run)
        return r;
    if (record_write(setup, &edit->text, whole, !setup->exists) < 0)
        setup_say(setup,
                  "There is no state directory to note the change in, so remove will not "
                  "know it; 'codex mcp remove " ENTRY_NAME "' takes the entry out.");
    setup_say(setup, "%s", done);
    return SETUP_OK;
}

static int
refuse(struct setup *setup, const struct registration *registration, const char *why)
{
    setup_say(setup, "%s: %s. Nothing was changed. By hand, add:", setup->path, why);
    edit_show_entry(registration, &setup->report);
    return SETUP_REFUSED;
}

static int
install_once(struct setup *setup)
{
    struct edit edit = {.text = BUF_INIT(MAX_TEXT)};
    const char *variables[MAX_VARIABLES];
    AUTO_FREE char *command = paths_program("kcap-host");
    struct registration registration = {.command = command, .variables = variables};
    int r = setup_open(setup);

    if (r != SETUP_OK)
        return r;
    find_variables(setup, variables);
    if (!command) {
        setup_say(
            setup,
            "kcap-host is neither beside this program nor installed; nothing was changed.");
        return SETUP_FAILED;
    }
    switch (setup->entry.owner) {
    case ENTRY_ABSENT:
        edit_add_entry(buf_str(&setup->old), setup->old.len, &setup->entry, &registration,
                       &edit);
        r = insert(setup, &edit, true,
                   "Registered " ENTRY_NAME " with Codex. Start Codex anew to use it.");
        break;
    case ENTRY_OURS:
    case ENTRY_KCAP:
        if (setup->entry.timeout) {
            setup_say(setup,
                      "%s is already registered; its tool_timeout_sec is %s, which was left as "
                      "it is.",
                      ENTRY_NAME,
                      setup->entry.timeout->text ? setup->entry.timeout->text : "no number");
            break;
        }
        edit_add_timeout(buf_str(&setup->old), setup->old.len, &setup->entry, &edit);
        r = insert(setup, &edit, false,
                   "Added tool_timeout_sec = 600 to the registration that was there.");
        break;
    case ENTRY_FOREIGN:
        setup_say(
            setup,
            "There is another server named %s in %s; nothing was changed. Rename or remove "
            "it to register ours.",
            ENTRY_NAME, setup->path);
        r = SETUP_REFUSED;
        break;
    case ENTRY_BLOCKED:
        r = refuse(setup, &registration,
                   "mcp_servers, or " ENTRY_NAME " in it, is not a table");
        break;
    }
    buf_fini(&edit.text);
    return r;
}

int
setup_install(struct setup *setup)
{
    int r = -1;

    record_lock(setup);
    for (int i = 0; i < TRIES && r == -1; i++)
        r = install_once(setup);
    if (r == -1) {
        setup_say(setup, "Somebody else keeps changing %s; nothing was changed. Try again.",
                  setup->path);
        return SETUP_FAILED;
    }
    return r;
}

/* ---- remove ---- */

/* Whether what is left without these bytes differs from the old in our entry alone, and no
 * longer has what was inserted. Part of an entry must not stay: Codex refuses a whole file for
 * one without a command. */
static bool
is_right_place(struct setup *setup, const struct buf *text, bool whole)
{
    struct toml_value *root = NULL;
    struct toml_error error;
    struct entry entry;
    bool right = false;

    if (toml_parse(buf_str(text), text->len, &root, &error) == 0) {
        entry_find(root, &entry);
        right = entry_only_difference(setup->root, root) &&
                (whole ? entry.owner == ENTRY_ABSENT : !entry.timeout);
    }
    toml_free(root);
    return right;
}

static bool
take_out(struct setup *setup, const struct record *record, struct buf *ret)
{
    const char *inserted = record->inserted;
    size_t len = strlen(inserted);

    for (size_t at = setup->old.len >= len ? setup->old.len - len + 1 : 0; len > 0 && at > 0;
         at--) {
        if (memcmp(buf_str(&setup->old) + at - 1, inserted, len) != 0)
            continue;
        buf_clear(ret);
        buf_add(ret, buf_str(&setup->old), at - 1);
        buf_add(ret, buf_str(&setup->old) + at - 1 + len, setup->old.len - (at - 1) - len);
        if (is_right_place(setup, ret, record->whole))
            return true;
    }
    return false;
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
remove_once(struct setup *setup, struct record *record)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_TEXT);
    int r = setup_open(setup);

    if (r != SETUP_OK)
        return r;
    free(record->inserted);
    record_read(setup, record);
    if (setup->entry.owner == ENTRY_ABSENT || !setup->exists) {
        setup_say(setup, "%s is not registered in %s.", ENTRY_NAME, setup->path);
        if (!setup->dry_run)
            record_remove(setup);
        return SETUP_OK;
    }
    if (!record->inserted || !take_out(setup, record, &text)) {
        setup_say(setup,
                  "%s in %s, so it was left as it is. 'codex mcp remove " ENTRY_NAME
                  "' takes the entry out.",
                  record->inserted ? "The registration was changed since it was made"
                                   : "Nothing is known to be ours",
                  setup->path);
        return SETUP_REFUSED;
    }
    r = setup_write(setup, &text);
    if (r == SETUP_OK && !setup->dry_run) {
        if (record->made && text.len == 0)
            drop_empty_file(setup);
        record_remove(setup);
        setup_say(setup, "Took out of %s what was put in.", setup->path);
    }
    return r;
}

int
setup_remove(struct setup *setup)
{
    struct record record = {.inserted = NULL};
    int r = -1;

    setup->removing = true;
    record_lock(setup);
    for (int i = 0; i < TRIES && r == -1; i++)
        r = remove_once(setup, &record);
    free(record.inserted);
    if (r == -1) {
        setup_say(setup, "Somebody else keeps changing %s; nothing was changed. Try again.",
                  setup->path);
        return SETUP_FAILED;
    }
    return r;
}
