/* SPDX-License-Identifier: Apache-2.0 */
/* kcap-flowd: the local flow server. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/paths.h"
#include "lib/text.h"
#include "server/become.h"
#include "server/commands.h"
#include "server/env.h"
#include "server/log.h"
#include "server/server.h"
#include "server/workspace.h"

static const char usage[] =
    "usage: kcap-flowd [--foreground] [--idle-exit-sec N] [--hard-ceiling-sec N] [--idle-sec "
    "N]\n"
    "                  [--keep-days N] [--listen ADDRESS]\n"
    "       kcap-flowd status | list [--all] [--watch] | show RUN | tail RUN | stop | backup "
    "FILE\n"
    "       kcap-flowd --version | --help\n"
    "\n"
    "Serves review flows on a socket in the state directory (KCAP_STATE_DIR, else\n"
    "$HOME/.local/state/kcap). Goes into the background and returns once the socket answers.\n"
    "\n"
    "  --foreground          stay, and log to standard error\n"
    "  --idle-exit-sec N     leave when nobody came for N seconds (600)\n"
    "  --hard-ceiling-sec N  end a reviewer N seconds after its start (2700)\n"
    "  --idle-sec N          end a reviewer that was silent for N seconds (300)\n"
    "  --keep-days N         forget a run N days after it was closed (30)\n"
    "  --listen ADDRESS      also serve HTTP on a loopback address, such as 127.0.0.1:0, to "
    "who\n"
    "                        has the token of flowd.token; then it does not leave by itself\n";

struct command_line {
    struct server_options server;
    bool foreground;
};

#define MAX_SEC  (INT64_C(366) * 24 * 3600)
#define MAX_DAYS INT64_C(36500)

#define DEFAULT_IDLE_EXIT 600

static int
read_number(const char *option, const char *text, int64_t max, int64_t *ret)
{
    if (text_to_int(text, 1, max, ret))
        return 0;
    (void)fprintf(stderr, "kcap-flowd: --%s needs a whole number from 1 to %lld\n", option,
                  (long long)max);
    return -EINVAL;
}

/* Returns 0 to go on, else 1 plus the exit status. */
static int
parse(int argc, char **argv, struct command_line *line)
{
    enum {
        OPT_FOREGROUND,
        OPT_IDLE_EXIT,
        OPT_CEILING,
        OPT_IDLE,
        OPT_KEEP,
        OPT_LISTEN,
        OPT_VERSION,
        OPT_HELP
    };
    static const struct option options[] = {
        {"foreground", no_argument, NULL, OPT_FOREGROUND},
        {"idle-exit-sec", required_argument, NULL, OPT_IDLE_EXIT},
        {"hard-ceiling-sec", required_argument, NULL, OPT_CEILING},
        {"idle-sec", required_argument, NULL, OPT_IDLE},
        {"keep-days", required_argument, NULL, OPT_KEEP},
        {"listen", required_argument, NULL, OPT_LISTEN},
        {"version", no_argument, NULL, OPT_VERSION},
        {"help", no_argument, NULL, OPT_HELP},
        {NULL, 0, NULL, 0},
    };
    int at = 0, option, r = 0;

    while (r == 0 && (option = getopt_long(argc, argv, "", options, &at)) != -1) {
        struct settings_override *override = &line->server.override;
        int64_t *seconds = option == OPT_IDLE_EXIT ? &line->server.idle_exit_sec
                           : option == OPT_CEILING ? &override->clocks.hard_ceiling_sec
                                                   : &override->clocks.idle_sec;
        if (option == OPT_FOREGROUND) {
            line->foreground = true;
        } else if (option == OPT_VERSION) {
            (void)puts(PACKAGE_STRING);
            return 1;
        } else if (option == OPT_HELP) {
            (void)fputs(usage, stdout);
            return 1;
        } else if (option == OPT_LISTEN) {
            line->server.listen = optarg;
        } else if (option == '?') {
            r = -EINVAL;
        } else if (option == OPT_KEEP) {
            r = read_number(options[at].name, optarg, MAX_DAYS, &override->keep_days);
        } else {
            r = read_number(options[at].name, optarg, MAX_SEC, seconds);
        }
    }
    if (line->server.idle_exit_sec == 0 && !line->server.listen)
        line->server.idle_exit_sec = DEFAULT_IDLE_EXIT;
    if (r == 0 && optind < argc) {
        (void)fprintf(stderr, "kcap-flowd: unexpected argument \"%s\"\n", argv[optind]);
        r = -EINVAL;
    }
    if (r < 0)
        (void)fputs("kcap-flowd: see kcap-flowd --help\n", stderr);
    return r < 0 ? 3 : 0;
}

/* ---- the way into the background ---- */

/* One letter and a text: 'l' listening, 's' served by another daemon, 'e' an error. */
static void
report(int fd, char letter, const char *text)
{
    char message[4096];
    int len = snprintf(message, sizeof message, "%c%s", letter, text);

    if (write(fd, message, (size_t)len < sizeof message ? (size_t)len : sizeof message) < 0)
        return; /* the starter is gone: nobody to tell */
}

struct waiter {
    int fd; /* -1: told already, or nobody waits */
    const struct place *place;
    bool background;
};

static void
listening(void *arg)
{
    struct waiter *waiter = arg;

    if (waiter->background)
        report(waiter->fd, 'l', waiter->place->url);
    (void)close(take_fd(&waiter->fd));
}

/* Nothing of whoever started us is to be kept open or in use. */
static int
detach(const struct place *place)
{
    AUTO_CLOSE int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || chdir("/") < 0)
        return -errno;
    return log_to_file(place->log_path);
}

static int
serve(const struct command_line *line, int report_fd)
{
    AUTO_BUF struct buf error = BUF_INIT(8192);
    struct place place;
    struct waiter waiter = {.fd = report_fd, .place = &place, .background = !line->foreground};
    bool served = false;
    int r = place_init(&place, &error);

    if (r == 0)
        r = place_take(&place, &served, &error);
    if (r == 0 && served && line->foreground)
        (void)printf("kcap-flowd: already serving %s\n", place.url);
    else if (r == 0 && served)
        report(report_fd, 's', place.url);
    if (r == 0 && !served && !line->foreground)
        r = detach(&place);
    if (r == 0 && !served)
        r = server_run(&place, &line->server, listening, &waiter, &error);
    if (r < 0) {
        if (error.len == 0)
            buf_addf(&error, "cannot start: %s", strerror(-r));
        log_line("%s", buf_str(&error));
        if (waiter.fd >= 0 && waiter.background)
            report(waiter.fd, 'e', buf_str(&error));
    }
    place_fini(&place);
    return r < 0 ? 1 : 0;
}

/* Waits for what the daemon says and turns it into our exit status. */
static int
await_report(int fd)
{
    char message[4096];
    size_t len = 0;
    ssize_t n;

    while (len < sizeof message - 1 &&
           ((n = read(fd, message + len, sizeof message - 1 - len)) > 0 ||
            (n < 0 && errno == EINTR)))
        len += n > 0 ? (size_t)n : 0;
    message[len] = '\0';
    if (message[0] == 'l')
        return 0;
    if (message[0] == 's') {
        (void)printf("kcap-flowd: already serving %s\n", message + 1);
        return 0;
    }
    (void)fprintf(stderr, "kcap-flowd: %s\n",
                  len > 1 ? message + 1 : "the daemon ended before it could serve");
    return 1;
}

static int
serve_in_background(const struct command_line *line)
{
    int ends[2];
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return 1;
    child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        (void)setsid();
        if (fork() != 0) /* a daemon that leads no session gets no terminal */
            _exit(0);
        exit(serve(line, ends[1]));
    }
    (void)close(ends[1]);
    if (child < 0) {
        (void)fprintf(stderr, "kcap-flowd: cannot fork: %s\n", strerror(errno));
        return 1;
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return await_report(ends[0]);
}

/* A starter may have closed some of them; the store must not end up as our standard error. */
static void
keep_standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
}

int
main(int argc, char **argv)
{
    struct command_line line = {.foreground = false};
    AUTO_FREE char *config_dir = NULL;
    int r;

    if (argc > 1 && strcmp(argv[1], BECOME_WORD) == 0)
        return become(argc, argv);
    if (argc == 4 && strcmp(argv[1], WORKSPACE_COPY_WORD) == 0)
        return workspace_copy(argv[2], argv[3]);
    if (argc > 2 && strcmp(argv[1], WORKSPACE_REMOVE_WORD) == 0)
        return workspace_remove(argv + 2);
    clocks_clear(&line.server.override.clocks);
    if (argc > 1 && commands_has(argv[1]))
        return commands_run(argc, argv);
    r = parse(argc, argv, &line);

    if (r > 0)
        return r - 1;
    keep_standard_descriptors();
    env_scrub();
    config_dir = paths_config_dir(getenv("KCAP_CONFIG_DIR"), getenv("HOME"));
    if (!config_dir) {
        (void)fputs("kcap-flowd: there is no home directory; set KCAP_CONFIG_DIR\n", stderr);
        return 1;
    }
    line.server.config_dir = config_dir;
    return line.foreground ? serve(&line, -1) : serve_in_background(&line);
}
