/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/auto.h"

#define ANSWER_SEC 40 /* a status may be waited for 25 s */
#define MAX_ANSWER ((size_t)64 << 20)

/* Returns a connected descriptor, -ENOENT when nobody listens, or -errno. */
static int
connect_to(const struct place *place)
{
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = ANSWER_SEC};

    if (fd < 0)
        return -errno;
    if (strlen(place->socket_path) >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", place->socket_path);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        return errno == ENOENT || errno == ECONNREFUSED ? -ENOENT : -errno;
    return take_fd(&fd);
}

static int
exchange(int fd, const char *path, struct buf *answer)
{
    AUTO_BUF struct buf request = BUF_INIT(8192);
    ssize_t n = 1;

    buf_addf(&request, "GET %s HTTP/1.0\r\nHost: flowd\r\n\r\n", path);
    if (!buf_ok(&request))
        return -EINVAL;
    if (send(fd, request.data, request.len, MSG_NOSIGNAL) != (ssize_t)request.len)
        return -EIO;
    while (n > 0 && buf_reserve(answer, 65536)) {
        n = read(fd, answer->data + answer->len, 65536);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n < 0)
            return -errno;
        else
            answer->len += (size_t)n;
    }
    return buf_ok(answer) ? 0 : -EFBIG;
}

/* Takes the answer apart: an object or list with status 200, else what it says. */
static int
read_answer(struct buf *answer, cJSON **ret_json, struct buf *error)
{
    const char *body, *message, *fault = NULL;
    int status = 0;

    buf_addc(answer, '\0');
    if (!buf_ok(answer) || sscanf(answer->data, "HTTP/1.%*1d %3d ", &status) != 1 ||
        !(body = strstr(answer->data, "\r\n\r\n"))) {
        buf_adds(error, "the daemon's answer cannot be read");
        return -EPROTO;
    }
    body += 4;
    *ret_json = json_parse(body, strlen(body), &fault);
    if (status == 200 && *ret_json)
        return 0;
    message = json_str(*ret_json, "message");
    buf_addf(error, "the daemon answers %d: %s", status,
             message ? message
             : fault ? fault
                     : "");
    cJSON_Delete(*ret_json);
    *ret_json = NULL;
    return -EPROTO;
}

int
ask(const struct place *place, const char *path, cJSON **ret_json, struct buf *error)
{
    AUTO_BUF struct buf answer = BUF_INIT(MAX_ANSWER);
    AUTO_CLOSE int fd = connect_to(place);
    int r;

    if (fd == -ENOENT)
        return fd;
    r = fd < 0 ? fd : exchange(fd, path, &answer);
    if (r < 0) {
        buf_addf(error, "%s: %s", place->socket_path, strerror(-r));
        return r;
    }
    return read_answer(&answer, ret_json, error);
}

int
ask_pid(const struct place *place, pid_t *ret)
{
    AUTO_CLOSE int fd = connect_to(place);
    struct ucred peer;
    socklen_t len = sizeof peer;

    if (fd < 0)
        return fd;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return -errno;
    *ret = peer.pid;
    return 0;
}
