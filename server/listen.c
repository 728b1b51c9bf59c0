/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/text.h"
#include "server/util.h"

#define BACKLOG 256

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* Returns the length of the address, 0 when spec is none that is ours to listen on. */
static socklen_t
read_spec(const char *spec, union address *ret)
{
    AUTO_FREE char *host = NULL;
    const char *colon = strrchr(spec, ':'), *port_text = colon ? colon + 1 : spec;
    size_t host_len = colon ? (size_t)(colon - spec) : 0;
    bool is_v6 = host_len > 2 && spec[0] == '[' && spec[host_len - 1] == ']';
    int64_t port;

    host = is_v6 ? strndup(spec + 1, host_len - 2) : strndup(spec, host_len);
    if (!host || !text_to_int(port_text, 0, 65535, &port))
        return 0;
    memset(ret, 0, sizeof *ret);
    if (is_v6) {
        ret->v6.sin6_family = AF_INET6;
        ret->v6.sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1 &&
                       IN6_IS_ADDR_LOOPBACK(&ret->v6.sin6_addr)
                   ? sizeof ret->v6
                   : 0;
    }
    ret->v4.sin_family = AF_INET;
    ret->v4.sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, colon ? host : "127.0.0.1", &ret->v4.sin_addr) == 1 &&
                   (ntohl(ret->v4.sin_addr.s_addr) >> 24) == 127
               ? sizeof ret->v4
               : 0;
}

static char *
name_of(int fd)
{
    union address address;
    socklen_t len = sizeof address;
    char text[INET6_ADDRSTRLEN], *name = NULL;
    int r = -1;

    if (getsockname(fd, &address.any, &len) < 0)
        return NULL;
    if (address.any.sa_family == AF_INET &&
        inet_ntop(AF_INET, &address.v4.sin_addr, text, sizeof text))
        r = asprintf(&name, "%s:%u", text, ntohs(address.v4.sin_port));
    else if (inet_ntop(AF_INET6, &address.v6.sin6_addr, text, sizeof text))
        r = asprintf(&name, "[%s]:%u", text, ntohs(address.v6.sin6_port));
    return r < 0 ? NULL : name;
}

int
listen_open(const char *spec, char **ret_name, struct buf *error)
{
    AUTO_CLOSE int fd = -1;
    union address address;
    socklen_t len = read_spec(spec, &address);
    int on = 1;

    if (len == 0) {
        buf_adds(error, "--listen takes PORT, 127.0.0.1:PORT or [::1]:PORT: only loopback "
                        "addresses are listened on");
        return -EINVAL;
    }
    fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, &address.any, len) < 0 || listen(fd, BACKLOG) < 0) {
        buf_addf(error, "cannot listen on %s: %s", spec, strerror(errno));
        return -errno;
    }
    *ret_name = name_of(fd);
    return *ret_name ? take_fd(&fd) : -ENOMEM;
}

static int
make_token(const char *path, char ret[LISTEN_TOKEN_LEN + 1])
{
    char line[LISTEN_TOKEN_LEN + 2];
    int r = util_new_id(ret);

    if (r == 0)
        r = util_new_id(ret + UTIL_ID_LEN);
    (void)snprintf(line, sizeof line, "%s\n", ret);
    return r < 0 ? r : atomic_write(path, line, strlen(line), 0600);
}

int
listen_token(const char *path, char ret[LISTEN_TOKEN_LEN + 1], struct buf *error)
{
    AUTO_BUF struct buf text = BUF_INIT(4096);
    struct stat st;
    int r = atomic_read(path, &text);

    if (r == -ENOENT)
        r = make_token(path, ret);
    else if (r == 0) {
        if (stat(path, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
            buf_addf(error,
                     "%s is the key to this server and must be yours alone: chmod 600 %s", path,
                     path);
            return -EPERM;
        }
        while (text.len > 0 && text.data[text.len - 1] == '\n')
            text.data[--text.len] = '\0';
        if (text.len != LISTEN_TOKEN_LEN ||
            strspn(text.data, "0123456789abcdef") != LISTEN_TOKEN_LEN) {
            buf_addf(error, "%s holds no token: remove it, and a new one is made", path);
            return -EINVAL;
        }
        memcpy(ret, text.data, LISTEN_TOKEN_LEN + 1);
    }
    if (r < 0)
        buf_addf(error, "%s: %s", path, strerror(-r));
    return r;
}
