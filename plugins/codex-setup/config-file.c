/* SPDX-License-Identifier: Apache-2.0 */
/* The file itself: where it is, reading it, and putting another in its place. */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/paths.h"
#include "setup.h"

#define MAX_CONFIG ((size_t)4 << 20)
#define TRIES      30 /* when somebody else keeps writing the file */

void
setup_say(struct setup *setup, const char *format, ...)
{
    char line[4096];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    buf_addf(&setup->report, "%s\n", line);
}

/* The directory that holds config.toml; NULL after saying why. */
static char *
config_dir(struct setup *setup)
{
    const char *codex_home = setup->host->env(setup->host, "CODEX_HOME");
    const char *home = setup->host->env(setup->host, "HOME");
    AUTO_FREE char *top = NULL, *here = NULL;

    if (setup->project) {
        here = getcwd(NULL, 0);
        top = here ? paths_repository_top(here) : NULL;
        if (!top)
            setup_say(setup, "There is no repository around the working directory, so "
                             "--project has no place.");
        return top ? paths_join(top, ".codex") : NULL;
    }
    if (codex_home && codex_home[strspn(codex_home, " \t")] != '\0') {
        if (codex_home[0] == '/')
            return strdup(codex_home);
        here = getcwd(NULL, 0); /* Codex reads it from where it stands, too */
        return here ? paths_join(here, codex_home) : NULL;
    }
    if (!home || home[0] != '/') {
        setup_say(
            setup,
            "Neither CODEX_HOME nor an absolute HOME is set, so Codex's config has no place.");
        return NULL;
    }
    return paths_join(home, ".codex");
}

/* What of the path is there, with its links followed; NULL when a link leads nowhere. */
static char *
real_beginning(const char *path)
{
    AUTO_FREE char *at = strdup(path);
    struct stat st;

    while (at && at[0] != '\0') {
        char *real = realpath(at, NULL);

        if (real || lstat(at, &st) == 0)
            return real;
        *strrchr(at, '/') = '\0';
    }
    return NULL;
}

int
setup_check_inside(struct setup *setup, const char *path)
{
    AUTO_FREE char *here = getcwd(NULL, 0), *top = NULL, *real_top = NULL,
                   *real = real_beginning(path);
    size_t len;

    top = here ? paths_repository_top(here) : NULL;
    real_top = top ? realpath(top, NULL) : NULL;
    len = real_top ? strlen(real_top) : 0;
    if (real && len > 0 && strncmp(real, real_top, len) == 0 &&
        (real[len] == '/' || real[len] == '\0'))
        return SETUP_OK;
    setup_say(setup, "%s leads out of the repository, to %s; nothing was changed.", path,
              real ? real : "nowhere");
    return SETUP_REFUSED;
}

static int
check_file(struct setup *setup)
{
    struct stat st;

    setup->exists = false;
    if (stat(setup->path, &st) < 0) {
        if (errno == ENOENT && lstat(setup->path, &st) < 0)
            return SETUP_OK;
        setup_say(setup, "%s: %s; nothing was changed.", setup->path,
                  errno == ENOENT ? "a link that leads nowhere" : strerror(errno));
        return SETUP_REFUSED;
    }
    setup->exists = true;
    if (!S_ISREG(st.st_mode)) {
        setup_say(setup, "%s is not a regular file; nothing was changed.", setup->path);
        return SETUP_REFUSED;
    }
    if (st.st_nlink > 1) {
        setup_say(setup,
                  "%s has %lu names (hard links); replacing it would part them, so nothing was "
                  "changed.",
                  setup->path, (unsigned long)st.st_nlink);
        return SETUP_REFUSED;
    }
    return SETUP_OK;
}

int
setup_open(struct setup *setup)
{
    AUTO_FREE char *dir = NULL;
    struct toml_error error;
    int r;

    if (!setup->path) {
        dir = config_dir(setup);
        setup->path = dir ? paths_join(dir, "config.toml") : NULL;
    }
    if (!setup->path)
        return SETUP_FAILED;
    r = setup->project ? setup_check_inside(setup, setup->path) : SETUP_OK;
    if (r == SETUP_OK)
        r = check_file(setup);
    if (r != SETUP_OK)
        return r;
    buf_fini(&setup->old);
    setup->old = BUF_INIT(MAX_CONFIG);
    r = setup->exists ? atomic_read(setup->path, &setup->old) : 0;
    if (r < 0) {
        setup_say(setup, "%s cannot be read: %s.", setup->path, strerror(-r));
        return SETUP_FAILED;
    }
    toml_free(setup->root);
    setup->root = NULL;
    if (toml_parse(buf_str(&setup->old), setup->old.len, &setup->root, &error) < 0) {
        setup_say(
            setup,
            "%s:%zu:%zu: %s. Codex cannot read it either; mend it first. Nothing was changed.",
            setup->path, error.line, error.column, error.text);
        return SETUP_REFUSED;
    }
    entry_find(setup->root, &setup->entry);
    return SETUP_OK;
}

void
setup_fini(struct setup *setup)
{
    toml_free(setup->root);
    buf_fini(&setup->old);
    buf_fini(&setup->report);
    free(setup->path);
    if (setup->lock_fd >= 0)
        (void)close(setup->lock_fd);
    *setup = (struct setup){.host = setup->host, .lock_fd = -1};
}

/* The first version we ever change is kept beside the file. */
static int
keep_backup(struct setup *setup)
{
    AUTO_BUF struct buf path = BUF_INIT(8192);
    struct stat st;

    buf_addf(&path, "%s.before-kcap", setup->path);
    if (!setup->exists || setup->removing || lstat(buf_str(&path), &st) == 0)
        return 0;
    return stat(setup->path, &st) < 0 ? -errno
                                      : atomic_write(buf_str(&path), buf_str(&setup->old),
                                                     setup->old.len, st.st_mode & 0777);
}

static bool
is_only_ours(struct setup *setup, const struct buf *text)
{
    struct toml_value *root = NULL;
    struct toml_error error;
    bool only = toml_parse(buf_str(text), text->len, &root, &error) == 0 &&
                entry_only_difference(setup->root, root);

    toml_free(root);
    return only;
}

/* Codex refuses the file as it would be. What it refuses already is not made worse by taking
 * our entry out. */
static bool
is_refused(struct setup *setup, struct buf *why)
{
    AUTO_BUF struct buf now = BUF_INIT(8192);
    bool already = codex_check(setup, &setup->old, &now) == CODEX_REFUSES;

    if (already && setup->removing)
        return false;
    setup_say(setup,
              already ? "Codex does not accept the file as it is now%s. Mend it first; nothing "
                        "was changed."
                      : "Codex (codex mcp list) does not accept the file as it would be, so "
                        "nothing was changed%s.",
              buf_str(already ? &now : why));
    return true;
}

int
setup_write(struct setup *setup, const struct buf *text)
{
    AUTO_BUF struct buf why = BUF_INIT(8192);
    AUTO_FREE char *dir = NULL;
    enum codex_answer answer;
    int r;

    if (!buf_ok(text) || !is_only_ours(setup, text)) {
        setup_say(setup, "The edit would change more than our entry; that is a defect of ours. "
                         "Nothing was changed.");
        return SETUP_REFUSED;
    }
    if (setup->dry_run) {
        diff_add(&setup->report, setup->path, &setup->old, text);
        return SETUP_OK;
    }
    answer = codex_check(setup, text, &why);
    if (answer == CODEX_REFUSES && is_refused(setup, &why))
        return SETUP_REFUSED;
    if (answer == CODEX_LEFT) {
        setup_say(setup, "This was cancelled while Codex was asked; nothing was changed.");
        return SETUP_FAILED;
    }
    dir = strndup(setup->path, (size_t)(strrchr(setup->path, '/') - setup->path));
    r = dir ? paths_make_dir(dir) : -ENOMEM;
    if (r == 0)
        r = keep_backup(setup);
    if (r == 0)
        r = atomic_write_if(setup->path, &setup->old, buf_str(text), text->len, 0600);
    if (r == -ESTALE)
        return -1;
    if (r < 0) {
        setup_say(setup, "%s cannot be written: %s. Nothing was changed.", setup->path,
                  strerror(-r));
        return SETUP_FAILED;
    }
    return SETUP_OK;
}

int
setup_repeat(struct setup *setup, int (*attempt)(struct setup *setup))
{
    for (int i = 0; i < TRIES; i++) {
        int r = attempt(setup);

        if (r != -1)
            return r;
    }
    setup_say(setup, "Somebody else keeps changing %s; nothing was changed. Try again.",
              setup->path);
    return SETUP_FAILED;
}
