/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "lib/paths.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/auto.h"

char *
paths_join(const char *dir, const char *name)
{
    size_t len = strlen(dir) + 1 + strlen(name) + 1;
    char *path = malloc(len);

    if (path)
        (void)snprintf(path, len, "%s/%s", dir, name);
    return path;
}

int
paths_make_dir(const char *dir)
{
    AUTO_FREE char *path = strdup(dir);

    if (!path)
        return -ENOMEM;
    for (char *slash = path + 1; *slash; slash++) {
        if (*slash != '/')
            continue;
        *slash = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return -errno;
        *slash = '/';
    }
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return -errno;
    return 0;
}

static char *
home_dir(const char *home)
{
    struct passwd entry, *found = NULL;
    char space[4096];

    if (home && home[0] == '/')
        return strdup(home);
    if (getpwuid_r(getuid(), &entry, space, sizeof space, &found) != 0 || !found ||
        !found->pw_dir || found->pw_dir[0] != '/')
        return NULL;
    return strdup(found->pw_dir);
}

static int
find_state_dir(const char *override, const char *home, char **ret)
{
    AUTO_FREE char *base = NULL;

    *ret = NULL;
    if (override && override[0]) {
        if (override[0] != '/')
            return -EINVAL;
        *ret = strdup(override);
    } else {
        base = home_dir(home);
        if (!base)
            return -ENOENT;
        *ret = paths_join(base, ".local/state/kcap");
    }
    if (!*ret)
        return -ENOMEM;
    for (size_t len = strlen(*ret); len > 1 && (*ret)[len - 1] == '/'; len--)
        (*ret)[len - 1] = '\0';
    return 0;
}

char *
paths_state_place(const char *override, const char *home)
{
    char *place;

    return find_state_dir(override, home, &place) == 0 ? place : NULL;
}

int
paths_state_dir(const char *override, const char *home, char **ret)
{
    struct stat st;
    int r = find_state_dir(override, home, ret);

    if (r == 0)
        r = paths_make_dir(*ret);
    if (r < 0)
        return r;
    if (stat(*ret, &st) < 0)
        return -errno;
    if (!S_ISDIR(st.st_mode))
        return -ENOTDIR;
    return st.st_uid != geteuid() || (st.st_mode & 0022) != 0 ? -EPERM : 0;
}

char *
paths_config_dir(const char *override, const char *home)
{
    AUTO_FREE char *base = NULL;
    char *dir;

    if (override && override[0] == '/') {
        dir = strdup(override);
    } else {
        base = home_dir(home);
        dir = base ? paths_join(base, ".config/kcap") : NULL;
    }
    for (size_t len = dir ? strlen(dir) : 0; len > 1 && dir[len - 1] == '/'; len--)
        dir[len - 1] = '\0';
    return dir;
}

char *
paths_exe_dir(void)
{
    char exe[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
    char *slash;

    if (len <= 0)
        return NULL;
    exe[len] = '\0';
    slash = strrchr(exe, '/');
    if (!slash || slash == exe)
        return NULL;
    *slash = '\0';
    return strdup(exe);
}

char *
paths_program(const char *name)
{
    AUTO_FREE char *dir = paths_exe_dir();
    AUTO_FREE char *path = dir ? paths_join(dir, name) : NULL;

    if (path && access(path, X_OK) == 0)
        return take_ptr(path);
    free(path);
    path = paths_join(KCAP_BINDIR, name);
    if (path && access(path, X_OK) == 0)
        return take_ptr(path);
    return NULL;
}

char *
paths_repository_top(const char *dir)
{
    AUTO_FREE char *at = strdup(dir);

    while (at && at[0] != '\0') {
        AUTO_FREE char *git = paths_join(at, ".git");
        char *slash;

        if (git && access(git, F_OK) == 0)
            return take_ptr(at);
        slash = strrchr(at, '/');
        if (!slash)
            break;
        *slash = '\0';
    }
    return NULL;
}
