/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fts.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/workspace.h"

static int
remove_entry(const FTSENT *entry)
{
    switch (entry->fts_info) {
    case FTS_D:
        (void)chmod(entry->fts_accpath, 0700); /* or what is in it cannot be removed */
        return 0;
    case FTS_DP:
        return entry->fts_level > 0 ? rmdir(entry->fts_accpath) : 0;
    default:
        return unlink(entry->fts_accpath);
    }
}

int
workspace_empty(const char *dir)
{
    char *const roots[] = {(char *)(uintptr_t)dir, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_XDEV, NULL);
    FTSENT *entry;
    int r = walk ? 0 : -errno;

    while (walk && (entry = fts_read(walk)) != NULL) {
        if (remove_entry(entry) < 0 && r == 0) {
            r = -errno;
            (void)fprintf(stderr, "cannot remove %s: %s\n", entry->fts_path, strerror(-r));
        }
    }
    if (walk)
        (void)fts_close(walk);
    return r;
}

int
workspace_remove(char *const *dirs)
{
    int status = 0;

    for (; *dirs; dirs++) {
        if (workspace_empty(*dirs) < 0 || rmdir(*dirs) < 0)
            status = 1;
    }
    return status;
}
