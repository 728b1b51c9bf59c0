/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/plugindirs.h"

#include <dirent.h>
#include <fcntl.h>
#include <kcap/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/boundary.h"
#include "host/elfnote.h"
#include "host/log.h"
#include "lib/auto.h"
#include "lib/paths.h"

/* The compiled-in directory for a program in its installed place; a program that was moved, or
 * never installed, keeps its plugins beside it. */
static char *
plugin_root(const struct cli *cli)
{
    AUTO_FREE char *exe_dir = NULL;

    if (cli->plugin_root)
        return strdup(cli->plugin_root);
    exe_dir = paths_exe_dir();
    if (!exe_dir || strcmp(exe_dir, KCAP_BINDIR) == 0)
        return strdup(KCAP_PKGLIBDIR);
    *strrchr(exe_dir, '/') = '\0';
    return paths_join(exe_dir, "lib/kcap-host");
}

void
plugindirs_of(const struct cli *cli, uint32_t trust_class, char *ret_dirs[PLUGINDIRS_MAX])
{
    AUTO_FREE char *root = plugin_root(cli);
    const char *home = getenv("HOME");

    ret_dirs[0] = root ? paths_join(root, boundary_class_name(trust_class)) : NULL;
    ret_dirs[1] = NULL;
    if (trust_class == KCAP_CLASS_DRIVER && home && home[0] == '/')
        ret_dirs[1] = paths_join(home, ".local/lib/kcap/driver");
}

char *
plugindirs_find(const struct cli *cli, uint32_t trust_class, const char *name)
{
    char *dirs[PLUGINDIRS_MAX], file[128];
    char *found = NULL;

    (void)snprintf(file, sizeof file, "%s.so", name);
    plugindirs_of(cli, trust_class, dirs);
    for (int i = 0; i < PLUGINDIRS_MAX && !found; i++) {
        found = dirs[i] ? paths_join(dirs[i], file) : NULL;
        if (found && faccessat(AT_FDCWD, found, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
            free(found);
            found = NULL;
        }
    }
    if (!found)
        log_linef(KCAP_LOG_ERROR, "no %s '%s': there is no %s in %s%s%s (see --list-plugins)",
                  trust_class == KCAP_CLASS_SERVICE ? "service" : "plugin", name, file,
                  dirs[0] ? dirs[0] : "?", dirs[1] ? " or " : "", dirs[1] ? dirs[1] : "");
    for (int i = 0; i < PLUGINDIRS_MAX; i++)
        free(dirs[i]);
    return found;
}

static void
list_dir(const char *dir, uint32_t trust_class)
{
    DIR *stream = opendir(dir);
    struct dirent *entry;

    while (stream && (entry = readdir(stream))) {
        const char *dot = strrchr(entry->d_name, '.');
        AUTO_CLOSE int fd = -1;
        struct elfnote note;
        const char *fault = NULL;

        if (!dot || strcmp(dot, ".so") != 0)
            continue;
        fd = openat(dirfd(stream), entry->d_name,
                    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
            fault = "it cannot be opened";
        else if (elfnote_read(fd, &note, &fault) == 0 && note.trust_class != trust_class)
            fault = "its class is another than its directory's";
        (void)printf("%-16.*s %-9s %s/%s%s%s\n", (int)(dot - entry->d_name), entry->d_name,
                     boundary_class_name(trust_class), dir, entry->d_name,
                     fault ? "  refused: " : "", fault ? fault : "");
    }
    if (stream)
        (void)closedir(stream);
}

int
plugindirs_list(const struct cli *cli)
{
    static const uint32_t classes[] = {KCAP_CLASS_DRIVER, KCAP_CLASS_REVIEWER,
                                       KCAP_CLASS_SETUP};

    for (size_t c = 0; c < sizeof classes / sizeof classes[0]; c++) {
        char *dirs[PLUGINDIRS_MAX];

        plugindirs_of(cli, classes[c], dirs);
        for (int i = 0; i < PLUGINDIRS_MAX; i++) {
            if (dirs[i])
                list_dir(dirs[i], classes[c]);
            free(dirs[i]);
        }
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
