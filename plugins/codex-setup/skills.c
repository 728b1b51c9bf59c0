/* SPDX-License-Identifier: Apache-2.0 */
/* --skills: what an agent should know, where Codex reads it. A file that somebody has changed
 * since, or that is a link to elsewhere, is theirs. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/paths.h"
#include "lib/text.h"
#include "record.h"
#include "setup.h"

#define MAX_SKILL ((size_t)1 << 20)

static const char *const names[] = {"review-flows", "agent-flows"};

struct skill {
    const char *name;
    char *dir, *path, *copy_path; /* copy: what we installed last */
    struct buf ours, there, copy;
    bool exists, is_link;
};

static void
skill_fini(struct skill *skill)
{
    free(skill->dir);
    free(skill->path);
    free(skill->copy_path);
    buf_fini(&skill->ours);
    buf_fini(&skill->there);
    buf_fini(&skill->copy);
}

static bool
same(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && memcmp(buf_str(a), buf_str(b), a->len) == 0;
}

/* Appends the skill as it is shipped: beside the running program, else where it is installed.
 */
static int
read_ours(const char *name, struct buf *to)
{
    AUTO_FREE char *exe_dir = paths_exe_dir();
    AUTO_BUF struct buf path = BUF_INIT(8192);
    int r = -ENOENT;

    if (exe_dir) {
        buf_addf(&path, "%s/../share/" PACKAGE "/skills/%s/SKILL.md", exe_dir, name);
        r = buf_ok(&path) ? atomic_read(buf_str(&path), to) : -ENAMETOOLONG;
    }
    if (r < 0) {
        buf_clear(&path);
        buf_addf(&path, KCAP_PKGDATADIR "/skills/%s/SKILL.md", name);
        r = atomic_read(buf_str(&path), to);
    }
    return r;
}

/* DIR/.agents/skills/NAME: the user's, or with project the repository's. */
static char *
place(struct setup *setup, const char *name)
{
    const char *home = setup->host->env(setup->host, "HOME");
    AUTO_FREE char *here = NULL, *top = NULL;
    AUTO_BUF struct buf dir = BUF_INIT(8192);
    size_t len;

    if (setup->project) {
        here = getcwd(NULL, 0);
        top = here ? paths_repository_top(here) : NULL;
        home = top;
    }
    if (!home || home[0] != '/')
        return NULL;
    buf_addf(&dir, "%s/.agents/skills/%s", home, name);
    return buf_take(&dir, &len);
}

static int
skill_open(struct setup *setup, const char *name, struct skill *ret)
{
    char copy_name[64];
    struct stat st;
    int r = 0;

    *ret = (struct skill){.name = name,
                          .ours = BUF_INIT(MAX_SKILL),
                          .there = BUF_INIT(MAX_SKILL),
                          .copy = BUF_INIT(MAX_SKILL)};
    ret->dir = place(setup, name);
    ret->path = ret->dir ? paths_join(ret->dir, "SKILL.md") : NULL;
    if (!ret->path) {
        setup_say(setup, "The skills have no place: %s.",
                  setup->project ? "there is no repository here" : "HOME is not set");
        return SETUP_FAILED;
    }
    if (setup->project && setup_check_inside(setup, ret->path) != SETUP_OK)
        return SETUP_REFUSED;
    ret->is_link = (lstat(ret->dir, &st) == 0 && S_ISLNK(st.st_mode)) ||
                   (lstat(ret->path, &st) == 0 && S_ISLNK(st.st_mode));
    r = atomic_read(ret->path, &ret->there);
    ret->exists = r != -ENOENT && r != -ENOTDIR;
    (void)snprintf(copy_name, sizeof copy_name, "skill-%016llx.md",
                   (unsigned long long)text_hash(ret->path, 0));
    ret->copy_path = record_state_file(setup, copy_name, false);
    if (ret->copy_path)
        (void)atomic_read(ret->copy_path, &ret->copy);
    if (r == 0 || !ret->exists || ret->is_link)
        return SETUP_OK;
    setup_say(setup, "%s cannot be read: %s.", ret->path, strerror(-r));
    return SETUP_FAILED;
}

static int
put(struct setup *setup, const struct skill *skill)
{
    AUTO_FREE char *state = NULL;
    int r;

    if (setup->dry_run) {
        setup_say(setup, "%s would be written.", skill->path);
        return SETUP_OK;
    }
    r = paths_make_dir(skill->dir);
    if (r == 0)
        r = atomic_write_if(skill->path, &skill->there, buf_str(&skill->ours), skill->ours.len,
                            0644);
    if (r < 0) {
        setup_say(setup, "%s cannot be written: %s.", skill->path, strerror(-r));
        return SETUP_FAILED;
    }
    state = record_state_file(setup, "", true); /* makes the directory */
    if (!state || !skill->copy_path ||
        atomic_write(skill->copy_path, buf_str(&skill->ours), skill->ours.len, 0600) < 0)
        setup_say(setup,
                  "There is no state directory to note %s in, so remove will not know it.",
                  skill->path);
    setup_say(setup, "Wrote %s.", skill->path);
    return SETUP_OK;
}

static int
install_skill(struct setup *setup, struct skill *skill)
{
    int r = read_ours(skill->name, &skill->ours);

    if (r < 0) {
        setup_say(setup, "The skill %s is not installed beside this program: %s.", skill->name,
                  strerror(-r));
        return SETUP_FAILED;
    }
    if (skill->is_link)
        setup_say(setup, "%s is a link, and was left as it is.", skill->path);
    else if (skill->exists && same(&skill->there, &skill->ours))
        setup_say(setup, "%s is there already.", skill->path);
    else if (skill->exists && (skill->copy.len == 0 || !same(&skill->there, &skill->copy)))
        setup_say(setup, "%s is not as we wrote it, and was left as it is.", skill->path);
    else
        return put(setup, skill);
    return SETUP_OK;
}

static int
remove_skill(struct setup *setup, struct skill *skill)
{
    if (skill->copy.len == 0 || (!skill->exists && !skill->is_link))
        return SETUP_OK; /* not ours, or gone already */
    if (skill->is_link || !same(&skill->there, &skill->copy)) {
        setup_say(setup, "%s was changed since it was written, and was left as it is.",
                  skill->path);
        return SETUP_REFUSED;
    }
    if (setup->dry_run) {
        setup_say(setup, "%s would be removed.", skill->path);
        return SETUP_OK;
    }
    if (unlink(skill->path) < 0) {
        setup_say(setup, "%s cannot be removed: %s.", skill->path, strerror(errno));
        return SETUP_FAILED;
    }
    (void)rmdir(skill->dir); /* unless there is something else in it */
    (void)unlink(skill->copy_path);
    setup_say(setup, "Removed %s.", skill->path);
    return SETUP_OK;
}

int
setup_skills(struct setup *setup)
{
    int worst = SETUP_OK;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct skill skill;
        int r = skill_open(setup, names[i], &skill);

        if (r == SETUP_OK)
            r = setup->removing ? remove_skill(setup, &skill) : install_skill(setup, &skill);
        skill_fini(&skill);
        worst = r > worst ? r : worst;
    }
    return worst;
}
