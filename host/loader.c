/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/boundary.h"
#include "host/descriptor.h"
#include "host/elfnote.h"
#include "host/log.h"
#include "host/plugindirs.h"
#include "lib/auto.h"
#include "lib/service.h"

/* Nobody but root and us may be able to change what we are about to run. */
static const char *
check_owner(const struct stat *st)
{
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return "belongs to another user";
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return "can be written by other users (chmod go-w)";
    return NULL;
}

static int
refuse(const char *path, const char *why)
{
    log_linef(KCAP_LOG_ERROR, "%s is refused: %s", path, why);
    return -1;
}

/* Opens the file and its directory as they are now; the descriptor is what later gets mapped.
 */
static int
open_checked(const char *path, bool developer, int *ret_fd)
{
    char dir[PATH_MAX], why[128];
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    const char *fault;

    if (fd < 0)
        return refuse(path, errno == ELOOP ? "it is a symbolic link" : strerror(errno));
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return refuse(path, "it is not a regular file");
    fault = developer ? NULL : check_owner(&st);
    if (fault) {
        (void)snprintf(why, sizeof why, "the file %s", fault);
        return refuse(path, why);
    }
    (void)snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(path, '/') - path), path);
    fault = developer ? NULL : stat(dir, &st) < 0 ? "cannot be looked at" : check_owner(&st);
    if (fault) {
        (void)snprintf(why, sizeof why, "its directory %s", fault);
        return refuse(path, why);
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

/* The file's note must say trust_class; 0 takes the note's own word (developer's files). */
static int
check_note(const char *path, int fd, uint32_t trust_class, struct elfnote *ret)
{
    const char *fault;
    char why[160];

    if (elfnote_read(fd, ret, &fault) < 0)
        return refuse(path, fault);
    if (ret->abi_major != KCAP_ABI_MAJOR) {
        (void)snprintf(why, sizeof why, "its ABI is %u, this host speaks %d: rebuild it",
                       ret->abi_major, KCAP_ABI_MAJOR);
        return refuse(path, why);
    }
    if (trust_class != 0 && ret->trust_class != trust_class) {
        (void)snprintf(why, sizeof why, "its class is %s, here only %s may be loaded",
                       boundary_class_name(ret->trust_class), boundary_class_name(trust_class));
        return refuse(path, why);
    }
    return 0;
}

/*
 * Maps the very file that was checked, through its descriptor, which stays open for life: were
 * its number reused, the dynamic linker would hand back the old library by name. /proc/PID
 * rather than /proc/self, which a debugger reads as its own.
 */
static void *
map_symbol(const char *path, int fd, const char *symbol, size_t *ret_size)
{
    char checked[64];
    const ElfW(Sym) *entry = NULL;
    Dl_info info;
    void *library, *object;

    (void)snprintf(checked, sizeof checked, "/proc/%ld/fd/%d", (long)getpid(), fd);
    if (access(checked, R_OK) < 0) /* no /proc: the directory was checked instead */
        (void)snprintf(checked, sizeof checked, "%s", path);
    library = dlopen(checked, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        log_linef(KCAP_LOG_ERROR, "%s cannot be loaded: %s", path, dlerror());
        return NULL;
    }
    object = dlsym(library, symbol);
    if (!object) {
        log_linef(KCAP_LOG_ERROR, "%s is refused: it exports no %s", path, symbol);
        return NULL;
    }
    if (!dladdr1(object, &info, (void **)(uintptr_t)&entry, RTLD_DL_SYMENT) || !entry ||
        ELF32_ST_TYPE(entry->st_info) != STT_OBJECT) {
        log_linef(KCAP_LOG_ERROR, "%s is refused: its %s is not a data object", path, symbol);
        return NULL;
    }
    *ret_size = entry->st_size;
    return object;
}

static int
parse_schemas(struct plugin *plugin)
{
    size_t n = 0;

    while (plugin->desc.tools && plugin->desc.tools[n])
        n++;
    plugin->schemas = calloc(n + 1, sizeof(cJSON *));
    for (size_t i = 0; plugin->schemas && i < n; i++) {
        plugin->schemas[i] = cJSON_Parse(plugin->desc.tools[i]->input_schema);
        if (!plugin->schemas[i])
            return -1;
    }
    return plugin->schemas ? 0 : -1;
}

static int
load(const char *path, uint32_t trust_class, bool developer, struct plugin *ret)
{
    AUTO_CLOSE int fd = -1;
    struct elfnote note;
    const void *symbol;
    size_t size;
    char why[256];

    if (open_checked(path, developer, &fd) < 0 || check_note(path, fd, trust_class, &note) < 0)
        return -1;
    if (trust_class == 0 && note.trust_class == KCAP_CLASS_SERVICE)
        return refuse(path, "a service is no plugin");
    symbol = map_symbol(path, fd, "kcap_plugin_v1", &size);
    if (!symbol)
        return -1;
    if (descriptor_check(symbol, size, note.trust_class, &ret->desc, why, sizeof why) < 0)
        return refuse(path, why);
    ret->trust_class = note.trust_class;
    ret->path = strdup(path);
    if (!ret->path || parse_schemas(ret) < 0)
        return refuse(path, "out of memory");
    (void)take_fd(&fd); /* stays open: see map_symbol */
    return 0;
}

int
loader_open(const struct cli *cli, struct plugin *ret)
{
    static bool sealed; /* main thread only */
    uint32_t trust_class = cli->plugin_name ? boundary_class_of(cli->plugin_name) : 0;
    AUTO_FREE char *path = NULL;
    char why[160];

    if (sealed)
        abort(); /* a second plugin in one process is a bug of ours that must not pass */
    sealed = true;
    if (trust_class != KCAP_CLASS_REVIEWER && boundary_inside_reviewer(why, sizeof why)) {
        log_linef(
            KCAP_LOG_ERROR,
            "refused: this process runs inside a reviewer (%s), which may load nothing but "
            "--plugin flow-result",
            why);
        return -1;
    }
    if (cli->plugin_file) {
        path = realpath(cli->plugin_file, NULL);
        if (!path) {
            log_linef(KCAP_LOG_ERROR, "%s: %s", cli->plugin_file, strerror(errno));
            return -1;
        }
        return load(path, 0, true, ret);
    }
    path = plugindirs_find(cli, trust_class, cli->plugin_name);
    if (!path)
        return -1;
    return load(path, trust_class, false, ret);
}

const struct kcap_service *
loader_open_service(const struct cli *cli, const char *name)
{
    AUTO_FREE char *path = plugindirs_find(cli, KCAP_CLASS_SERVICE, name);
    AUTO_CLOSE int fd = -1;
    const struct kcap_service *service;
    struct elfnote note;
    size_t size;

    if (!path || open_checked(path, false, &fd) < 0 ||
        check_note(path, fd, KCAP_CLASS_SERVICE, &note) < 0)
        return NULL;
    service = map_symbol(path, fd, "kcap_service_v1", &size);
    if (!service)
        return NULL;
    if (size != sizeof *service || service->struct_size != sizeof *service ||
        service->magic != KCAP_MAGIC || !service->provides || !service->open) {
        (void)refuse(path, "it belongs to another version of kcap-host: reinstall");
        return NULL;
    }
    (void)take_fd(&fd);
    return service;
}
