/* SPDX-License-Identifier: Apache-2.0 */
/* install: the edits that the config needs, written at once. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "lib/auto.h"
#include "lib/paths.h"
#include "record.h"
#include "setup.h"

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

/* ---- the plan ---- */

/* The text as it will be, and the edits that lead there from what was last parsed. */
struct plan {
    struct buf text;
    struct toml_value *root; /* of text; NULL: as the config's */
    struct record record;
    size_t n; /* of its changes, the last so many, are made here */
};

static void
plan_fini(struct plan *plan)
{
    buf_fini(&plan->text);
    toml_free(plan->root);
    record_fini(&plan->record);
}

/* Makes the edit in the text, notes it, and reads the text again. */
static int
plan_edit(struct plan *plan, struct edit *edit)
{
    AUTO_BUF struct buf next = BUF_INIT(SETUP_MAX_TEXT);
    AUTO_FREE char *was = strndup(buf_str(&plan->text) + edit->at, edit->len);
    struct toml_error error;
    int r;

    edit_apply(buf_str(&plan->text), plan->text.len, edit, &next);
    plan->n++;
    r = was && buf_ok(&next) && next.len > 0
            ? record_add(&plan->record, edit->kind, buf_str(&edit->text), was)
            : -1;
    toml_free(plan->root);
    plan->root = NULL;
    if (r == 0)
        r = toml_parse(buf_str(&next), next.len, &plan->root, &error);
    if (r == 0) {
        struct buf old = plan->text;
        plan->text = next;
        next = old;
    }
    buf_fini(&edit->text);
    return r;
}

/* What our entry, or kcap's, still needs. */
static int
plan_keys(struct setup *setup, struct plan *plan, const struct registration *registration)
{
    struct entry entry = setup->entry;
    bool switches = setup->switches && entry.owner == ENTRY_KCAP;
    int r = 0;

    if (switches) {
        struct edit edit = {.text = BUF_INIT(SETUP_MAX_TEXT)};
        edit_switch(buf_str(&plan->text), &entry, registration, &edit);
        r = plan_edit(plan, &edit);
    }
    if (r == 0 && plan->root)
        entry_find(plan->root, &entry);
    if (r == 0 && !entry.timeout) {
        struct edit edit = {.text = BUF_INIT(SETUP_MAX_TEXT)};
        edit_add_timeout(buf_str(&plan->text), plan->text.len, &entry, &edit);
        r = plan_edit(plan, &edit);
    }
    if (r == 0 && switches && registration->variables[0]) {
        struct edit edit = {.text = BUF_INIT(SETUP_MAX_TEXT)};
        entry_find(plan->root ? plan->root : setup->root, &entry);
        if (!toml_get(entry.table, "env_vars")) {
            edit_add_variables(buf_str(&plan->text), plan->text.len, &entry, registration,
                               &edit);
            r = plan_edit(plan, &edit);
        }
    }
    return r;
}

static int
plan_entry(struct setup *setup, struct plan *plan, const struct registration *registration)
{
    struct edit edit = {.text = BUF_INIT(SETUP_MAX_TEXT)};

    record_fini(&plan->record); /* whatever it says is about an entry that is gone */
    plan->record.made = !setup->exists;
    edit_add_entry(buf_str(&plan->text), plan->text.len, &setup->entry, registration, &edit);
    return plan_edit(plan, &edit);
}

/* ---- doing it ---- */

static void
say_done(struct setup *setup, const struct plan *plan)
{
    const struct record *record = &plan->record;

    for (size_t i = record->n - plan->n; i < record->n; i++) {
        if (record->changes[i].kind == EDIT_ENTRY)
            setup_say(setup,
                      "Registered " ENTRY_NAME " with Codex. Start Codex anew to use it.");
        else if (record->changes[i].kind == EDIT_SWITCH)
            setup_say(setup, "Pointed the registration that kcap had made at kcap-host.");
        else if (record->changes[i].kind == EDIT_TIMEOUT)
            setup_say(setup, "Added tool_timeout_sec = %d to the registration that was there.",
                      ENTRY_TIMEOUT);
        else
            setup_say(setup, "Added env_vars, so that Codex passes on what is set here.");
    }
    if (setup->project)
        setup_say(setup, "Codex reads it in a repository that it was told to trust.");
}

/* Noted, made, and noted as made: whenever we are killed, remove knows what there is to take
 * back. */
static int
carry_out(struct setup *setup, struct plan *plan)
{
    bool noted;
    int r;

    toml_free(plan->root); /* a large one need not be there while the text is checked */
    plan->root = NULL;
    if (setup->dry_run)
        return setup_write(setup, &plan->text);
    plan->record.pending = plan->n;
    noted = record_write(setup, &plan->record) == 0;
    r = setup_write(setup, &plan->text);
    if (r != SETUP_OK) {
        if (plan->n == plan->record.n)
            record_remove(setup); /* nothing else is known */
        return r;
    }
    plan->record.pending = 0;
    if (!noted || record_write(setup, &plan->record) < 0)
        setup_say(setup,
                  "There is no state directory to note the change in, so remove will not "
                  "know it; 'codex mcp remove " ENTRY_NAME "' takes the entry out.");
    say_done(setup, plan);
    return SETUP_OK;
}

static void
say_kept(struct setup *setup)
{
    const struct toml_value *enabled = toml_get(setup->entry.table, "enabled");

    setup_say(
        setup, "%s is already registered; its tool_timeout_sec is %s, which was left as it is.",
        ENTRY_NAME, setup->entry.timeout->text ? setup->entry.timeout->text : "no number");
    if (enabled && enabled->kind == TOML_BOOL && strcmp(enabled->text, "false") == 0)
        setup_say(setup, "It is switched off (enabled = false), and stays so.");
}

static void
refuse(struct setup *setup, const struct registration *registration, const char *why)
{
    setup_say(setup, "%s: %s. Nothing was changed. By hand, add:", setup->path, why);
    edit_show_entry(registration, &setup->report);
}

static int
install_entry(struct setup *setup, const struct registration *registration)
{
    struct plan plan = {.text = BUF_INIT(SETUP_MAX_TEXT)};
    int r;

    record_read(setup, &plan.record);
    buf_add(&plan.text, buf_str(&setup->old), setup->old.len);
    r = setup->entry.owner == ENTRY_ABSENT ? plan_entry(setup, &plan, registration)
                                           : plan_keys(setup, &plan, registration);
    if (r < 0) {
        setup_say(setup, "%s: there is not enough memory for the edit. Nothing was changed.",
                  setup->path);
        r = SETUP_FAILED;
    } else if (plan.n == 0) {
        say_kept(setup);
    } else {
        r = carry_out(setup, &plan);
    }
    plan_fini(&plan);
    return r;
}

static int
install_once(struct setup *setup)
{
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
    case ENTRY_OURS:
    case ENTRY_KCAP:
        return install_entry(setup, &registration);
    case ENTRY_FOREIGN:
        setup_say(
            setup,
            "There is another server named %s in %s; nothing was changed. Rename or remove "
            "it to register ours.",
            ENTRY_NAME, setup->path);
        break;
    case ENTRY_BLOCKED:
        refuse(setup, &registration, "mcp_servers, or " ENTRY_NAME " in it, is not a table");
        break;
    }
    return SETUP_REFUSED;
}

int
setup_install(struct setup *setup)
{
    record_lock(setup);
    return setup_repeat(setup, install_once);
}
