/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of codex-setup.so share: one run over one config.toml, and what it reports. */
#ifndef KCAP_CODEX_SETUP_SETUP_H
#define KCAP_CODEX_SETUP_SETUP_H

#include <kcap/plugin.h>
#include <stdbool.h>

#include "entry.h"
#include "lib/buf.h"

#define SETUP_MAX_TEXT ((size_t)5 << 20) /* of a config and what we add */

/* Exit statuses of the commands. */
#define SETUP_OK        0
#define SETUP_FAILED    1 /* the system refused; nothing was changed */
#define SETUP_USAGE     2
#define SETUP_NO_LAUNCH 5 /* a reviewer could not be isolated, or not report */
#define SETUP_REFUSED   4 /* the file may not or cannot be edited; nothing was changed */

struct setup {
    const struct kcap_host *host;
    struct kcap_call *call;
    bool dry_run, project;
    bool switches;     /* kcap's entry is to be ours */
    bool skills;       /* the skills as well */
    bool removing;     /* what is there is no first version to keep */
    struct buf report; /* for people and agents: what was found, done, refused */

    char *path;     /* of config.toml */
    struct buf old; /* its bytes; empty when it does not exist */
    bool exists;
    int lock_fd;             /* -1: none */
    struct toml_value *root; /* of old */
    struct entry entry;
};

/* Finds the file ($CODEX_HOME, else ~/.codex; with project, the repository's .codex), reads and
 * parses it. Returns SETUP_*; on a failure the report says why. */
int setup_open(struct setup *setup);
void setup_fini(struct setup *setup);

/* Replaces the file by text after checking that it parses, that nothing but our entry differs,
 * and that Codex, where it is installed, takes it. With dry_run prints a diff instead. Returns
 * SETUP_*, or -1 when somebody else changed the file meanwhile and all has to be read anew. */
int setup_write(struct setup *setup, const struct buf *text);

/* Runs one attempt again and again while it returns -1, a few times. */
int setup_repeat(struct setup *setup, int (*attempt)(struct setup *setup));

/* A repository may not lead us out of it by a link: what lies there is not its own. SETUP_OK,
 * or SETUP_REFUSED after saying so. */
int setup_check_inside(struct setup *setup, const char *path);

/* Installs the skills, or with removing takes them away. */
int setup_skills(struct setup *setup);

/* The three commands. Each opens, acts and reports. */
int setup_install(struct setup *setup);
int setup_remove(struct setup *setup);
int setup_status(struct setup *setup);

/* The fourth: not about a config. */
int setup_reviewer_launch(const struct kcap_host *host, struct kcap_call *call, int32_t argc,
                          const char *const *argv);

/* Adds one line to the report. */
void setup_say(struct setup *setup, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends a unified diff of two texts that differ in one place. */
void diff_add(struct buf *to, const char *path, const struct buf *old, const struct buf *text);

/* Whether the codex program takes this text as its config. */
enum codex_answer {
    CODEX_ACCEPTS,
    CODEX_REFUSES,
    CODEX_ABSENT, /* there is none to ask */
    CODEX_SILENT, /* it did not answer as it should: the report says so */
    CODEX_LEFT,   /* our own caller cancelled, or its time is up: nothing may be written now */
};
/* Its reason, if it gives one, is appended to why as ": REASON". */
enum codex_answer codex_check(struct setup *setup, const struct buf *text, struct buf *why);

#endif
