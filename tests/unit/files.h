/* SPDX-License-Identifier: Apache-2.0 */
/* What Check suites do with files. Names are below a directory of the test's own; a failure
 * fails the test. */
#ifndef KCAP_TESTS_FILES_H
#define KCAP_TESTS_FILES_H

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

/* DIR/NAME with this text, whatever was there. */
static inline void
files_put(const char *dir, const char *name, const char *text)
{
    char path[512];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static inline void
files_make_dir(const char *dir, const char *name)
{
    char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

static inline int
files_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* The directory and all below it. */
static inline void
files_remove(const char *dir)
{
    (void)nftw(dir, files_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
