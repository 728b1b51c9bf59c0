/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/place.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/paths.h"
#include "server/util.h"

#define TAKE_SEC 10
/* A lock may be let go just after the event that tells of it: look again soon, once. */
#define RECHECK_MS    100
#define MAX_ANCESTORS 64
#define BACKLOG       1024 /* a client that does not block fails when it is full */

/* File systems whose locks and shared memory a store must not trust. */
static const struct {
    unsigned long magic;
    const char *name;
} network_file_systems[] = {
    {0x6969, "NFS"},        {0x517b, "SMB"},      {0xff534d42, "CIFS"}, {0xfe534d42, "SMB"},
    {0x5346414f, "AFS"},    {0x01021997, "9p"},   {0x00c36400, "Ceph"}, {0x73757245, "Coda"},
    {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},
};

static int
refuse_network(const char *dir, struct buf *error)
{
    struct statfs fs;

    if (statfs(dir, &fs) < 0)
        return 0;
    for (size_t i = 0; i < sizeof network_file_systems / sizeof *network_file_systems; i++) {
        if (((unsigned long)fs.f_type & 0xffffffff) == network_file_systems[i].magic) {
            buf_addf(error,
                     "%s is on a network file system (%s), where the store would not be safe: "
                     "set KCAP_STATE_DIR to a local directory",
                     dir, network_file_systems[i].name);
            return -EXDEV;
        }
    }
    return 0;
}

static char *
make_url(const char *socket_path)
{
    size_t size = strlen("unix://") + strlen(socket_path) + 1;
    char *url = malloc(size);

    if (url)
        (void)snprintf(url, size, "unix://%s", socket_path);
    return url;
}

int
place_init(struct place *place, struct buf *error)
{
    int r;

    *place = (struct place){.lock_fd = -1, .listen_fd = -1};
    r = paths_state_dir(getenv("KCAP_STATE_DIR"), getenv("HOME"), &place->dir);
    if (r < 0) {
        buf_addf(
            error, "the state directory %s cannot be used: %s%s",
            place->dir ? place->dir : "($HOME/.local/state/kcap)", strerror(-r),
            r == -EPERM ? " (it must be yours and not writable for others)"
            : !place->dir && r == -ENOENT
                ? " (there is no HOME, and no home in the user database: set KCAP_STATE_DIR)"
            : r == -EINVAL ? " (KCAP_STATE_DIR must be an absolute path)"
                           : "");
        return r;
    }
    r = refuse_network(place->dir, error);
    if (r < 0)
        return r;
    place->socket_path = paths_join(place->dir, "flowd.sock");
    place->hidden_path = paths_join(place->dir, "flowd.sock-");
    place->store_path = paths_join(place->dir, "flowd.db");
    place->log_path = paths_join(place->dir, "flowd.log");
    place->url = place->socket_path ? make_url(place->socket_path) : NULL;
    if (!place->hidden_path || !place->store_path || !place->log_path || !place->url)
        return -ENOMEM;
    if (strlen(place->hidden_path) >= sizeof((struct sockaddr_un *)0)->sun_path) {
        buf_addf(
            error,
            "%s is too long for a socket: set KCAP_STATE_DIR to a directory with a shorter "
            "name",
            place->socket_path);
        return -ENAMETOOLONG;
    }
    return 0;
}

void
place_fini(struct place *place)
{
    if (place->listen_fd >= 0) {
        (void)unlink(place->hidden_path);
        (void)close(place->listen_fd);
    }
    if (place->lock_fd >= 0)
        (void)close(place->lock_fd);
    free(place->dir);
    free(place->socket_path);
    free(place->hidden_path);
    free(place->url);
    free(place->store_path);
    free(place->log_path);
    *place = (struct place){.lock_fd = -1, .listen_fd = -1};
}

static void
set_address(struct sockaddr_un *address, const char *path)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(address->sun_path, sizeof address->sun_path, "%s", path);
}

/* A connection alone proves nothing: a child that a killed daemon was just starting holds its
 * socket, and its lock, until it has become another program. */
static bool
is_served(const struct place *place)
{
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address;
    struct ucred listener;
    socklen_t len = sizeof listener;

    set_address(&address, place->socket_path);
    return fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &listener, &len) == 0 &&
           (listener.pid == 0 || util_is_running(listener.pid)); /* 0: of another namespace */
}

/* Until something happens in the directory, but not for long. */
static void
wait_for_change(int watch_fd)
{
    struct pollfd poll_fd = {.fd = watch_fd, .events = POLLIN};
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));

    if (poll(&poll_fd, 1, RECHECK_MS) > 0 && read(watch_fd, events, sizeof events) < 0)
        return;
}

int
place_take(struct place *place, bool *ret_served, struct buf *error)
{
    AUTO_FREE char *path = paths_join(place->dir, "flowd.lock");
    AUTO_CLOSE int watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    AUTO_CLOSE int fd = -1;
    int64_t until_ns = util_now_ns() + TAKE_SEC * UTIL_SEC_NS;

    if (!path)
        return -ENOMEM;
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || watch_fd < 0 ||
        inotify_add_watch(watch_fd, place->dir, IN_CLOSE_WRITE | IN_MOVED_TO) < 0) {
        int r = -errno;
        buf_addf(error, "%s cannot be opened or watched: %s", path, strerror(-r));
        return r;
    }
    do {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            place->lock_fd = take_fd(&fd);
            *ret_served = false;
            return 0;
        }
        if (is_served(place)) {
            *ret_served = true;
            return 0;
        }
        wait_for_change(watch_fd);
    } while (util_now_ns() < until_ns);
    buf_addf(error,
             "another kcap-flowd holds %s but does not answer on %s: end it (its log is %s)",
             path, place->socket_path, place->log_path);
    return -ETIMEDOUT;
}

int
place_listen(struct place *place, struct buf *error)
{
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un address;
    mode_t mask;
    int r;

    set_address(&address, place->hidden_path);
    (void)unlink(place->hidden_path); /* of a daemon that was killed: we hold the lock */
    mask = umask(0177);
    r = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&address, sizeof address);
    if (r == 0)
        r = listen(fd, BACKLOG);
    r = r < 0 ? -errno : 0;
    (void)umask(mask);
    if (r == 0) {
        if (place->listen_fd >= 0)
            (void)close(place->listen_fd);
        place->listen_fd = take_fd(&fd);
        r = place_publish(place);
    }
    if (r < 0)
        buf_addf(error, "cannot listen on %s: %s", place->socket_path, strerror(-r));
    return r;
}

int
place_hide(struct place *place)
{
    return rename(place->socket_path, place->hidden_path) < 0 ? -errno : 0;
}

int
place_publish(struct place *place)
{
    return rename(place->hidden_path, place->socket_path) < 0 ? -errno : 0;
}

int
place_watch(const struct place *place)
{
    AUTO_CLOSE int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (fd < 0 ||
        inotify_add_watch(fd, place->dir, IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF) < 0)
        return -errno;
    return take_fd(&fd);
}

bool
place_is_published(const struct place *place)
{
    return access(place->socket_path, F_OK) == 0;
}

bool
place_is_going(const struct place *place)
{
    struct stat st;

    return fstat(place->lock_fd, &st) < 0 || st.st_nlink == 0 ||
           access(place->store_path, F_OK) < 0;
}

/* All that descends from us is a reviewer or its child; we are the subreaper, so a child cannot
 * get away by becoming a daemon. One that is gone already gets the benefit of no doubt. */
static bool
is_below_us(pid_t pid)
{
    for (int level = 0; level < MAX_ANCESTORS; level++) {
        if (pid == getpid()) /* which may be the first process */
            return true;
        if (pid <= 1)
            return false;
        pid = util_parent(pid);
        if (pid < 0)
            return true;
    }
    return false;
}

int
place_accept(const struct place *place, bool *ret_by_reviewer)
{
    for (;;) {
        struct ucred peer;
        socklen_t len = sizeof peer;
        int fd = accept4(place->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0)
            return -errno;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
            peer.uid == geteuid()) {
            *ret_by_reviewer = is_below_us(peer.pid);
            return fd;
        }
        (void)close(fd);
    }
}
