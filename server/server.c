/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/server.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/paths.h"
#include "server/chores.h"
#include "server/http.h"
#include "server/listen.h"
#include "server/log.h"
#include "server/orphan.h"
#include "server/stray.h"
#include "server/turn.h"
#include "server/util.h"

#define IDLE_CONNECTION_SEC 30
#define ACCEPT_REST_MS      200
#define ACCEPT_MOST         64 /* in one go: who keeps connecting must not keep us */
#define RELISTEN_MS         250
#define STOP_SEC            10 /* for reviewers to end when we are told to stop */

struct server {
    struct turn turn; /* everything a turn works on */
    struct place *place;
    const struct server_options *options;
    char *settings_path, *env_path, *definitions_dir, *work_dir;
    struct source listener, tcp, signals, removals;
    char token[LISTEN_TOKEN_LEN + 1];
    char *tcp_name;
    int tcp_fd;
    bool stopping, told_outdated;
    int64_t last_use_ns;
    struct chores chores;
    bool owns_children;     /* see strays_are_ours */
    size_t strays;          /* told to end, and not gone yet */
    int64_t relisten_at_ns; /* the socket was removed; UTIL_NEVER: it is there */
    int64_t accept_at_ns;   /* out of descriptors: not before then; else 0 */
};

/* A connection that cannot be taken keeps the listening socket readable: to look at it again at
 * once, and again, would be all we do. */
static void
rest(struct server *server, int error)
{
    if (server->accept_at_ns == 0)
        log_line("no connection can be taken (%s): trying again every %d ms", strerror(-error),
                 ACCEPT_REST_MS);
    server->accept_at_ns = util_now_ns() + ACCEPT_REST_MS * (UTIL_SEC_NS / 1000);
}

static void
accept_all(struct server *server)
{
    for (int n = 0; n < ACCEPT_MOST && !http_is_full(server->turn.http, HTTP_PEER_LOCAL); n++) {
        bool by_reviewer = false;
        int fd = place_accept(server->place, &by_reviewer);
        if (fd < 0) {
            if (fd != -EAGAIN)
                rest(server, fd);
            return;
        }
        server->accept_at_ns = 0;
        http_add_connection(server->turn.http, fd,
                            by_reviewer ? HTTP_PEER_REVIEWER : HTTP_PEER_LOCAL);
        server->last_use_ns = util_now_ns();
    }
}

static void
tcp_ready(struct source *source, uint32_t events)
{
    struct server *server = SOURCE_OWNER(source, struct server, tcp);

    (void)events;
    for (int n = 0; n < ACCEPT_MOST && !http_is_full(server->turn.http, HTTP_PEER_TCP); n++) {
        int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0 && errno != EAGAIN)
            rest(server, -errno);
        if (fd < 0)
            return;
        server->accept_at_ns = 0;
        http_add_connection(server->turn.http, fd, HTTP_PEER_TCP);
        server->last_use_ns = util_now_ns();
    }
}

static int
open_tcp(struct server *server, struct buf *error)
{
    AUTO_FREE char *path = paths_join(server->place->dir, "flowd.token");
    int r = path ? listen_token(path, server->token, error) : -ENOMEM;

    if (r == 0)
        r = listen_open(server->options->listen, &server->tcp_name, error);
    if (r < 0)
        return r;
    server->tcp_fd = r;
    return loop_add(server->turn.epoll_fd, &server->tcp, server->tcp_fd, EPOLLIN);
}

static void
listener_ready(struct source *source, uint32_t events)
{
    (void)events;
    accept_all(SOURCE_OWNER(source, struct server, listener));
}

static void
other_child_ended(void *arg, pid_t pid, int status)
{
    struct server *server = arg;

    if (!launch_child_ended(&server->turn.launcher, pid, status) &&
        !chores_child_ended(&server->chores, pid, status))
        server->turn.sweep_due = true; /* it may have worked in a directory that is to go */
}

static bool
is_helper(const void *arg, pid_t pid)
{
    const struct server *server = arg;

    return pid == server->chores.remover ||
           queue_find_copy(&server->turn.launcher.queue, pid) != NULL;
}

static void
children_ended(struct server *server)
{
    reviewers_reap(server->turn.reviewers, other_child_ended, server);
    if (server->owns_children)
        server->strays = strays_end(server->turn.reviewers, is_helper, server);
}

static void
signals_ready(struct source *source, uint32_t events)
{
    struct server *server = SOURCE_OWNER(source, struct server, signals);
    struct signalfd_siginfo info;

    (void)events;
    while (read(source->fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            children_ended(server);
        else
            server->stopping = true;
    }
}

/* What is made anew in a directory that is just being removed would be in the remover's way: so
 * not at once. */
static void
removals_ready(struct source *source, uint32_t events)
{
    struct server *server = SOURCE_OWNER(source, struct server, removals);
    char space[4096] __attribute__((aligned(__alignof__(struct inotify_event))));

    (void)events;
    while (read(source->fd, space, sizeof space) > 0)
        ;
    if (!place_is_published(server->place) && server->relisten_at_ns == UTIL_NEVER)
        server->relisten_at_ns = util_now_ns() + RELISTEN_MS * (UTIL_SEC_NS / 1000);
}

/* A socket that somebody removed would leave us running and nobody able to come, with the lock
 * that keeps the next daemon out. */
static void
look_after_socket(struct server *server)
{
    AUTO_BUF struct buf error = BUF_INIT(8192);

    if (server->relisten_at_ns > util_now_ns())
        return;
    server->relisten_at_ns = UTIL_NEVER;
    accept_all(server);
    (void)loop_remove(server->turn.epoll_fd, &server->listener);
    if (place_is_going(server->place)) {
        log_line("the state directory %s is being removed: leaving", server->place->dir);
        server->stopping = true;
    } else if (place_listen(server->place, &error) < 0) {
        log_line("%s; the state directory is gone: leaving", buf_str(&error));
        server->stopping = true;
    } else {
        log_line("%s had been removed and is there again", server->place->socket_path);
    }
}

static int
watch_removals(struct server *server)
{
    int fd = place_watch(server->place);

    return fd < 0 ? fd : loop_add(server->turn.epoll_fd, &server->removals, fd, EPOLLIN);
}

static int
watch_signals(struct server *server)
{
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
    sigset_t set;
    int fd;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&set, numbers[i]);
    (void)signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    return loop_add(server->turn.epoll_fd, &server->signals, fd, EPOLLIN);
}

/* A connection and some pipes for each client and reviewer: more than the usual 1024. */
static void
raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 8192) {
        limit.rlim_cur = limit.rlim_max < 8192 ? limit.rlim_max : 8192;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static const char *
note_of_round(void *arg, const char *round_id)
{
    return reviewers_note(arg, round_id);
}

static int
find_files(struct server *server)
{
    const char *dir = server->options->config_dir;

    server->settings_path = paths_join(dir, "flowd.json");
    server->env_path = paths_join(dir, "flowd.env");
    server->definitions_dir = paths_join(dir, "flows");
    server->work_dir = paths_join(server->place->dir, "work");
    return server->settings_path && server->env_path && server->definitions_dir &&
                   server->work_dir
               ? 0
               : -ENOMEM;
}

/* What is wrong with it now is said now, to whoever starts us. */
static int
check_settings(const struct server *server, struct buf *error)
{
    struct settings settings;
    int r = settings_read(server->settings_path, &server->options->override, &settings, error);

    settings_fini(&settings);
    return r;
}

static int
open_parts(struct server *server, struct buf *error)
{
    struct turn *turn = &server->turn;
    int64_t idle_sec = server->options->idle_exit_sec;
    int r = find_files(server);

    raise_descriptor_limit();
    if (r == 0)
        r = check_settings(server, error);
    if (r < 0)
        return r;
    r = store_open(server->place->store_path, &turn->engine.store, error);
    if (r < 0)
        return r;
    r = orphans_end(&turn->engine);
    if (r < 0) {
        buf_addf(error, "%s: %s", server->place->store_path, store_error(turn->engine.store));
        return r;
    }
    server->owns_children = strays_are_ours();
    if (!server->owns_children)
        log_line("there are children of other origin, or will be: a process that leaves its "
                 "reviewer's group is not ended with it");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return -errno;
    r = loop_new(&turn->epoll_fd);
    if (r == 0)
        r = watch_signals(server);
    if (r == 0)
        r = http_new(turn->epoll_fd,
                     (unsigned)(idle_sec > 0 && idle_sec < IDLE_CONNECTION_SEC
                                    ? idle_sec
                                    : IDLE_CONNECTION_SEC),
                     turn_admits, turn, &turn->http);
    if (r == 0)
        r = reviewers_new(turn->epoll_fd, server->place->url, server->env_path,
                          &turn->reviewers);
    launcher_init(&turn->launcher, server->settings_path, server->work_dir,
                  &server->options->override);
    turn->sweep_due = true;
    turn->site = (struct api_site){.config_dir = server->options->config_dir,
                                   .settings_path = server->settings_path,
                                   .definitions_dir = server->definitions_dir,
                                   .override = &server->options->override,
                                   .reviewers = turn->reviewers,
                                   .launcher = &turn->launcher,
                                   .token = server->token,
                                   .began_ns = util_now_ns()};
    turn->engine.note = note_of_round;
    turn->engine.note_arg = turn->reviewers;
    return r;
}

static void
close_parts(struct server *server)
{
    int fd;

    http_free(server->turn.http);
    reviewers_free(server->turn.reviewers);
    (void)loop_remove(server->turn.epoll_fd, &server->listener);
    fd = loop_remove(server->turn.epoll_fd, &server->signals);
    if (fd >= 0)
        (void)close(fd);
    fd = loop_remove(server->turn.epoll_fd, &server->removals);
    if (fd >= 0)
        (void)close(fd);
    if (server->turn.epoll_fd >= 0)
        (void)close(server->turn.epoll_fd);
    (void)loop_remove(server->turn.epoll_fd, &server->tcp);
    if (server->tcp_fd >= 0)
        (void)close(server->tcp_fd);
    free(server->tcp_name);
    launcher_fini(&server->turn.launcher);
    free(server->settings_path);
    free(server->env_path);
    free(server->definitions_dir);
    free(server->work_dir);
    store_close(server->turn.engine.store);
    engine_fini(&server->turn.engine);
}

static bool
is_idle(struct server *server)
{
    return http_connection_count(server->turn.http) == 0 &&
           reviewers_count(server->turn.reviewers) == 0 && server->strays == 0 &&
           launch_is_idle(&server->turn.launcher) && !turn_has_work(&server->turn);
}

/* Whether nobody came while the socket went out of sight. */
static bool
leave(struct server *server)
{
    if (place_hide(server->place) < 0)
        return true; /* somebody removed the socket: nobody can come any more */
    accept_all(server);
    if (is_idle(server))
        return true;
    if (place_publish(server->place) < 0)
        log_line("%s cannot be published again", server->place->socket_path);
    return false;
}

/* With all connections of a kind in use, or no descriptor left, newcomers wait in the listening
 * socket's queue. */
static void
watch_listener(struct server *server)
{
    bool resting = server->accept_at_ns > util_now_ns();
    bool local = !resting && !http_is_full(server->turn.http, HTTP_PEER_LOCAL);
    bool tcp = !resting && !http_is_full(server->turn.http, HTTP_PEER_TCP);

    if (!local)
        (void)loop_remove(server->turn.epoll_fd, &server->listener);
    else if (server->listener.fd < 0)
        (void)loop_add(server->turn.epoll_fd, &server->listener, server->place->listen_fd,
                       EPOLLIN);
    if (!tcp)
        (void)loop_remove(server->turn.epoll_fd, &server->tcp);
    else if (server->tcp_fd >= 0 && server->tcp.fd < 0)
        (void)loop_add(server->turn.epoll_fd, &server->tcp, server->tcp_fd, EPOLLIN);
}

/* Looks after everything once, then waits. Returns false when it is time to go. */
static bool
step(struct server *server)
{
    struct turn *turn = &server->turn;
    int64_t now_ns = util_now_ns(), until_ns, idle_ns;

    reviewers_tick(turn->reviewers, now_ns);
    launch_tick(&turn->launcher, now_ns);
    http_expire(turn->http, now_ns);
    http_run(turn->http);
    turn_run(turn);
    chores_run(&server->chores);
    look_after_socket(server);
    if (server->stopping)
        return false;
    until_ns = util_earlier(
        turn_deadline_ns(turn),
        util_earlier(http_deadline_ns(turn->http), reviewers_deadline_ns(turn->reviewers)));
    until_ns = util_earlier(until_ns, chores_deadline_ns(&server->chores));
    until_ns = util_earlier(until_ns, server->relisten_at_ns);
    until_ns = util_earlier(until_ns, launch_deadline_ns(&turn->launcher));
    if (http_is_outdated(turn->http) && !server->told_outdated) {
        server->told_outdated = true;
        log_line("a later version has asked: leaving as soon as nothing is in hand");
    }
    if (!is_idle(server) ||
        (server->options->idle_exit_sec == 0 && !http_is_outdated(turn->http))) {
        server->last_use_ns = util_now_ns();
    } else {
        idle_ns =
            server->last_use_ns +
            (http_is_outdated(turn->http) ? 0 : server->options->idle_exit_sec * UTIL_SEC_NS);
        if (idle_ns <= util_now_ns())
            return !leave(server);
        until_ns = util_earlier(until_ns, idle_ns);
    }
    watch_listener(server);
    if (server->listener.fd < 0 && server->accept_at_ns > 0)
        until_ns = util_earlier(until_ns, server->accept_at_ns);
    loop_wait(turn->epoll_fd, until_ns);
    return true;
}

/* Told to stop: the reviewers are ours, so they go first and their rounds say why. A result
 * that comes meanwhile counts. */
static void
stop(struct server *server)
{
    struct turn *turn = &server->turn;
    int64_t until_ns = util_now_ns() + STOP_SEC * UTIL_SEC_NS;

    (void)place_hide(server->place);
    turn->stopping = true;
    reviewers_end_all(turn->reviewers);
    for (;;) {
        reviewers_tick(turn->reviewers, util_now_ns());
        http_run(turn->http);
        turn_run(turn);
        if ((reviewers_count(turn->reviewers) == 0 && server->strays == 0) ||
            util_now_ns() >= until_ns)
            break;
        watch_listener(server);
        loop_wait(
            turn->epoll_fd,
            util_earlier(until_ns,
                         util_earlier(turn_deadline_ns(turn),
                                      util_earlier(http_deadline_ns(turn->http),
                                                   reviewers_deadline_ns(turn->reviewers)))));
    }
}

int
server_run(struct place *place, const struct server_options *options,
           void (*listening)(void *arg), void *arg, struct buf *error)
{
    struct server server = {.place = place,
                            .options = options,
                            .turn = {.epoll_fd = -1},
                            .chores = {.turn = &server.turn},
                            .relisten_at_ns = UTIL_NEVER,
                            .listener = {.fd = -1, .ready = listener_ready},
                            .tcp = {.fd = -1, .ready = tcp_ready},
                            .tcp_fd = -1,
                            .signals = {.fd = -1, .ready = signals_ready},
                            .removals = {.fd = -1, .ready = removals_ready}};
    int r = open_parts(&server, error);

    if (r == 0)
        r = place_listen(place, error);
    if (r == 0)
        r = loop_add(server.turn.epoll_fd, &server.listener, place->listen_fd, EPOLLIN);
    if (r == 0)
        r = watch_removals(&server);
    if (r == 0 && options->listen)
        r = open_tcp(&server, error);
    if (r == 0) {
        log_line("%s serves %s", PACKAGE_STRING, place->url);
        if (server.tcp_name)
            log_line("and http://%s, with the token in flowd.token", server.tcp_name);
        server.last_use_ns = util_now_ns();
        listening(arg);
        while (!server.stopping && step(&server))
            ;
        if (server.stopping)
            stop(&server);
        log_line("%s", server.stopping ? "told to stop" : "nobody came for a while: leaving");
    } else if (error->len == 0) {
        buf_addf(error, "cannot start: %s", strerror(-r));
    }
    close_parts(&server);
    return r;
}
