/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_load - load driver for MCP servers that speak line-delimited JSON-RPC on
 * stdin/stdout.  One C file, Linux only, no dependency beyond libc.
 *
 * BUILD
 *   cc -std=gnu11 -O2 -Wall -Wextra -o mcp_load mcp_load.c
 *
 * USE
 *   mcp_load [options] SCENARIO[,SCENARIO...] -- SERVER [ARG...]
 *
 * Each scenario starts its own server process over three pipes (stderr goes to
 * /dev/null unless --stderr is given), performs the handshake, measures, closes
 * the server's stdin, waits for its exit, and prints ONE line of JSON.
 *
 * SCENARIOS
 *   start       --n spawns (default 20): time from just before the spawn to the
 *               first byte, and to the last byte, of the initialize response;
 *               time from closing stdin to the end of the process
 *   list        one tools/list: size of the answer and latency, --n times
 *   ping        --n sequential ping round trips (default 5000)
 *   call        --n sequential tools/call round trips of --tool/--args
 *   pipeline    --n pings (default 10000) written back to back, no waiting
 *   pipecall    the same with tools/call
 *   echo        --n calls (default 5) of --echo-tool whose argument --echo-key
 *               is a string of --bytes ASCII characters (default 1000000)
 *   concurrent  --n calls (default 100) of --block-tool/--block-args written at
 *               once, plus one ping 100 ms later; wall time says whether the
 *               server serialises calls, ping_ms whether it still answers
 *   cancel      one --block-tool call, cancelled after 200 ms by
 *               notifications/cancelled, then a ping: does the call end early,
 *               is a response sent for it, is the server alive afterwards
 *   soak        --n calls (default 1000000) with --window in flight (default
 *               64); resident set sampled at ten points
 *   garbage     a fixed list of malformed or odd lines, a ping after each: what
 *               is answered, does the server live
 *
 * OPTIONS
 *   --label S        name copied into every output line
 *   --n N            count (see above)
 *   --warmup N       untimed requests before ping/call/pipeline (default 200)
 *   --window N       most requests in flight, 0 = no limit (pipeline: 0)
 *   --tool S         tool for call/pipecall/soak          (default "echo")
 *   --args JSON      its arguments                        (default {"text":"hi"})
 *   --soak-ping      soak sends ping instead of tools/call
 *   --echo-tool S    default "echo";  --echo-key S   default "text"
 *   --echo-extra S   text put verbatim after the echo argument, e.g. ,"b":1
 *   --bytes N        size of the echoed string
 *   --block-tool S   default "slow"; --block-args JSON  default {"ms":1000}
 *   --proto S        protocolVersion to ask for (default 2025-06-18)
 *   --stateless      no initialize; each request carries the _meta fields of
 *                    revision 2026-07-28 (set --proto to match)
 *   --raw            the peer just returns bytes (cat): no handshake at all
 *   --string-ids     request ids are JSON strings
 *   --timeout S      give up after S seconds without progress (default 30)
 *   --max-seconds S  upper bound for one scenario (default 120)
 *   --spin           busy-wait for answers instead of poll() (own core needed)
 *   --env K=V        set in the server's environment (repeatable)
 *   --stderr FILE    append the server's standard error to FILE
 *   --dump           copy the first 400 bytes of each response to our stderr
 *
 * OUTPUT FIELDS (microseconds unless the name says otherwise)
 *   min/p50/p90/p99/max, mean, per_s (requests per second), wall_ms,
 *   cpu_us_per_req (the server's own user+system time divided by requests),
 *   rss_idle_kb, rss_kb, rss_peak_kb (VmRSS, VmHWM), threads, libs and
 *   libs_bytes (distinct mapped shared objects), exe_bytes, errors (responses
 *   with a top-level error), tool_errors (isError true), notes (server lines
 *   that are no response), died, timeout.
 *
 * EXAMPLE
 *   mcp_load --label host --tool noop --args '{}' start,ping,pipeline -- ./kcap-host --plugin x
 *   mcp_load --raw --label floor ping,pipeline -- cat
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* ---------------------------------------------------------------- options */
static struct {
    const char *label, *tool, *args, *echo_tool, *echo_key, *echo_extra;
    const char *block_tool, *block_args, *proto, *errfile;
    long n, warmup, window, bytes;
    double timeout, max_seconds;
    bool raw, stateless, string_ids, spin, dump, soak_ping, window_set;
    char **argv;
} O = {.label = "server",
       .tool = "echo",
       .args = "{\"text\":\"hi\"}",
       .echo_tool = "echo",
       .echo_key = "text",
       .echo_extra = "",
       .block_tool = "slow",
       .block_args = "{\"ms\":1000}",
       .proto = "2025-06-18",
       .n = -1,
       .warmup = 200,
       .bytes = 1000000,
       .timeout = 30,
       .max_seconds = 120};

static void
die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "mcp_load: ");
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(2);
}

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *
xrealloc(void *p, size_t n)
{
    p = realloc(p, n ? n : 1);
    if (!p)
        die("out of memory");
    return p;
}

/* ----------------------------------------------------------- byte buffers */
struct buf {
    char *p;
    size_t len, cap;
};
static void
buf_need(struct buf *b, size_t more)
{
    if (b->len + more <= b->cap)
        return;
    size_t c = b->cap ? b->cap : 4096;
    while (c < b->len + more)
        c *= 2;
    b->p = xrealloc(b->p, c);
    b->cap = c;
}
static void
buf_add(struct buf *b, const char *s, size_t n)
{
    buf_need(b, n);
    memcpy(b->p + b->len, s, n);
    b->len += n;
}
static void
buf_str(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}
static void
buf_num(struct buf *b, long v)
{
    char t[32];
    buf_add(b, t, (size_t)snprintf(t, sizeof t, "%ld", v));
}

/* ------------------------------------------------------------ the process */
struct server {
    pid_t pid;
    int in, out;
    struct buf rx; /* bytes read; those before head were taken already */
    size_t head;
    size_t scan; /* no newline between head and scan */
    double t_spawn;
    bool eof;
    long notes, errors, tool_errors;
};

static void
server_spawn(struct server *s)
{
    int a[2], b[2];
    memset(s, 0, sizeof *s);
    if (pipe2(a, O_CLOEXEC) || pipe2(b, O_CLOEXEC))
        die("pipe: %s", strerror(errno));
    posix_spawn_file_actions_t fa;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, a[0], 0);
    posix_spawn_file_actions_adddup2(&fa, b[1], 1);
    posix_spawn_file_actions_addopen(&fa, 2, O.errfile ? O.errfile : "/dev/null",
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
    posix_spawnattr_t at;
    posix_spawnattr_init(&at);
    sigset_t def;
    sigemptyset(&def);
    sigaddset(&def, SIGPIPE);
    posix_spawnattr_setsigdefault(&at, &def);
    posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGDEF);
    s->t_spawn = now();
    int rc = posix_spawnp(&s->pid, O.argv[0], &fa, &at, O.argv, environ);
    if (rc)
        die("cannot start %s: %s", O.argv[0], strerror(rc));
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&at);
    close(a[0]);
    close(b[1]);
    s->in = a[1];
    s->out = b[0];
    fcntl(s->in, F_SETFL, O_NONBLOCK);
    fcntl(s->out, F_SETFL, O_NONBLOCK);
}

/* Closes stdin, waits, kills if need be.  Returns milliseconds to exit, or a
 * negative number when a signal had to be sent. */
static double
server_stop(struct server *s, int *status)
{
    double t0 = now(), ms = -1;
    int st = 0;
    if (s->in >= 0)
        close(s->in);
    s->in = -1;
    char junk[65536];
    for (int stage = 0; stage < 3; stage++) {
        if (stage == 1)
            kill(s->pid, SIGTERM);
        if (stage == 2)
            kill(s->pid, SIGKILL);
        double lim = now() + (stage == 2 ? 10 : 3);
        while (now() < lim) {
            while (s->out >= 0 && read(s->out, junk, sizeof junk) > 0) {
            }
            pid_t r = waitpid(s->pid, &st, WNOHANG);
            if (r == s->pid) {
                ms = (now() - t0) * 1e3;
                if (stage)
                    ms = -ms;
                goto gone;
            }
            usleep(200);
        }
    }
gone:
    if (s->out >= 0)
        close(s->out);
    free(s->rx.p);
    s->out = -1;
    s->rx.p = NULL;
    if (status)
        *status = st;
    return ms;
}

/* Moves bytes both ways until a whole line is there, the deadline passes or
 * the server closes.  tx may be NULL.  Returns 1 line, 0 timeout, -1 eof,
 * 2 when stop_when_sent is set and all of tx is written. */
static int
server_io(struct server *s, struct buf *tx, size_t *off, double deadline, char **line,
          size_t *len, bool stop_when_sent)
{
    for (;;) {
        char *nl =
            s->rx.len > s->scan ? memchr(s->rx.p + s->scan, '\n', s->rx.len - s->scan) : NULL;
        if (nl && line) {
            *line = s->rx.p + s->head;
            *len = (size_t)(nl - s->rx.p) - s->head;
            return 1;
        }
        s->scan = nl ? s->scan : s->rx.len;
        bool want_tx = tx && *off < tx->len && s->in >= 0;
        if (want_tx) {
            ssize_t w = write(s->in, tx->p + *off, tx->len - *off);
            if (w > 0) {
                *off += (size_t)w;
                want_tx = *off < tx->len;
            } else if (w < 0 && errno != EAGAIN && errno != EINTR) {
                close(s->in);
                s->in = -1;
                want_tx = false;
            }
        }
        if (stop_when_sent && !want_tx)
            return 2;
        if (s->eof)
            return -1;
        if (s->head) {
            memmove(s->rx.p, s->rx.p + s->head, s->rx.len - s->head);
            s->rx.len -= s->head;
            s->scan -= s->head;
            s->head = 0;
        }
        buf_need(&s->rx, 1 << 16);
        ssize_t r = read(s->out, s->rx.p + s->rx.len, s->rx.cap - s->rx.len);
        if (r > 0) {
            s->rx.len += (size_t)r;
            continue;
        }
        if (r == 0) {
            s->eof = true;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR) {
            s->eof = true;
            continue;
        }
        double left = deadline - now();
        if (left <= 0)
            return 0;
        if (O.spin)
            continue;
        struct pollfd pf[2] = {{s->out, POLLIN, 0}, {want_tx ? s->in : -1, POLLOUT, 0}};
        poll(pf, 2, (int)(left * 1e3) + 1);
    }
}

static void
server_take(struct server *s, size_t len)
{ /* line and newline */
    s->head += len + 1;
    s->scan = s->head;
}

/* --------------------------------------------- a look at a response's top */
struct top {
    long id;
    bool has_id, is_error, has_result, has_method, tool_error;
};

static const char *
skip_string(const char *p, const char *e)
{ /* p after quote */
    while (p < e) {
        const char *q = memchr(p, '"', (size_t)(e - p));
        if (!q)
            return e;
        const char *b = q;
        while (b > p && b[-1] == '\\')
            b--;
        p = q + 1;
        if (((q - b) & 1) == 0)
            return p;
    }
    return e;
}

static void
look(const char *p, size_t n, struct top *t)
{
    const char *e = p + n;
    int depth = 0;
    memset(t, 0, sizeof *t);
    t->id = -1;
    while (p < e) {
        char c = *p++;
        if (c == '{' || c == '[')
            depth++;
        else if (c == '}' || c == ']')
            depth--;
        else if (c == '"') {
            const char *k = p;
            p = skip_string(p, e);
            if (depth > 2)
                continue;
            size_t kl = (size_t)(p - k) - 1;
            const char *v = p;
            while (v < e && isspace((unsigned char)*v))
                v++;
            if (v >= e || *v != ':')
                continue;
            v++;
            while (v < e && isspace((unsigned char)*v))
                v++;
            if (depth == 1) {
                if (kl == 2 && !memcmp(k, "id", 2)) {
                    if (v < e && *v == '"')
                        v++;
                    if (v < e && isdigit((unsigned char)*v)) {
                        t->id = strtol(v, NULL, 10);
                        t->has_id = true;
                    }
                } else if (kl == 5 && !memcmp(k, "error", 5))
                    t->is_error = true;
                else if (kl == 6 && !memcmp(k, "result", 6))
                    t->has_result = true;
                else if (kl == 6 && !memcmp(k, "method", 6))
                    t->has_method = true;
            } else if (kl == 7 && !memcmp(k, "isError", 7) && v < e && *v == 't')
                t->tool_error = true;
        }
    }
}

/* Next response (server notifications and requests are counted and dropped).
 * t_line receives the time at which the whole line was in hand. */
static int
next_response(struct server *s, struct buf *tx, size_t *off, double deadline, struct top *t,
              size_t *bytes, double *t_line)
{
    for (;;) {
        char *line;
        size_t len;
        int rc = server_io(s, tx, off, deadline, &line, &len, false);
        if (rc <= 0)
            return rc;
        if (t_line)
            *t_line = now();
        if (bytes)
            *bytes = len;
        if (O.dump)
            fprintf(stderr, "< %.*s\n", (int)(len > 400 ? 400 : len), line);
        if (O.raw) {
            memset(t, 0, sizeof *t);
            look(line, len > 512 ? 512 : len, t);
            server_take(s, len);
            return 1;
        }
        look(line, len, t);
        server_take(s, len);
        if (t->has_method || (!t->has_result && !t->is_error)) {
            s->notes++;
            continue;
        }
        if (t->is_error)
            s->errors++;
        if (t->tool_error)
            s->tool_errors++;
        return 1;
    }
}

/* --------------------------------------------------------------- requests */
static void
req_head(struct buf *b, long id, const char *method)
{
    buf_str(b, "{\"jsonrpc\":\"2.0\",\"id\":");
    if (O.string_ids)
        buf_str(b, "\"");
    buf_num(b, id);
    if (O.string_ids)
        buf_str(b, "\"");
    buf_str(b, ",\"method\":\"");
    buf_str(b, method);
    buf_str(b, "\"");
}
static void
add_meta(struct buf *b, bool comma)
{
    if (!O.stateless)
        return;
    if (comma)
        buf_str(b, ",");
    buf_str(b, "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"");
    buf_str(b, O.proto);
    buf_str(b, "\",\"io.modelcontextprotocol/clientInfo\":{\"name\":\"mcp_load\","
               "\"version\":\"1\"},\"io.modelcontextprotocol/clientCapabilities\":{}}");
}
static void
req_plain(struct buf *b, long id, const char *method)
{
    req_head(b, id, method);
    if (O.stateless) {
        buf_str(b, ",\"params\":{");
        add_meta(b, false);
        buf_str(b, "}");
    }
    buf_str(b, "}\n");
}
/* a server that has no initialize has no ping either: discover stands in */
static void
req_ping(struct buf *b, long id)
{
    req_plain(b, id, O.stateless ? "server/discover" : "ping");
}
static void
req_call(struct buf *b, long id, const char *tool, const char *args)
{
    req_head(b, id, "tools/call");
    buf_str(b, ",\"params\":{\"name\":\"");
    buf_str(b, tool);
    buf_str(b, "\",\"arguments\":");
    buf_str(b, args);
    add_meta(b, true);
    buf_str(b, "}}\n");
}
static void
req_init(struct buf *b, long id)
{
    if (O.stateless) {
        req_plain(b, id, "server/discover");
        return;
    }
    req_head(b, id, "initialize");
    buf_str(b, ",\"params\":{\"protocolVersion\":\"");
    buf_str(b, O.proto);
    buf_str(
        b,
        "\",\"capabilities\":{},\"clientInfo\":{\"name\":\"mcp_load\",\"version\":\"1\"}}}\n");
}

/* ------------------------------------------------------------- statistics */
static int
cmp_d(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static double
pct(const double *v, size_t n, double p)
{
    if (!n)
        return 0;
    size_t i = (size_t)(p * (double)(n - 1) + 0.5);
    return v[i >= n ? n - 1 : i];
}
static void
out_stats(const char *prefix, double *v, size_t n)
{ /* seconds in */
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    qsort(v, n, sizeof *v, cmp_d);
    printf(",\"%smin\":%.1f,\"%sp50\":%.1f,\"%sp90\":%.1f,\"%sp99\":%.1f,\"%smax\":%.1f,\"%"
           "smean\":%.1f",
           prefix, pct(v, n, 0) * 1e6, prefix, pct(v, n, .5) * 1e6, prefix, pct(v, n, .9) * 1e6,
           prefix, pct(v, n, .99) * 1e6, prefix, pct(v, n, 1) * 1e6, prefix,
           n ? sum / (double)n * 1e6 : 0);
}

static long
status_kb(pid_t pid, const char *key)
{
    char path[64], ln[256];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    long v = -1;
    if (!f)
        return v;
    while (fgets(ln, sizeof ln, f))
        if (!strncmp(ln, key, strlen(key)) && ln[strlen(key)] == ':') {
            v = strtol(ln + strlen(key) + 1, NULL, 10);
            break;
        }
    fclose(f);
    return v;
}
static double
cpu_s(pid_t pid)
{ /* user+system time of all threads, ended ones too */
    clockid_t c;
    struct timespec t;
    if (clock_getcpuclockid(pid, &c) || clock_gettime(c, &t))
        return 0;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static void
out_image(pid_t pid)
{ /* executable size, mapped shared objects */
    char path[64], exe[4096], ln[4608];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    ssize_t k = readlink(path, exe, sizeof exe - 1);
    long long exe_bytes = 0;
    if (k > 0) {
        exe[k] = 0;
        if (!stat(exe, &st))
            exe_bytes = (long long)st.st_size;
    }
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "r");
    char *seen[512];
    int libs = 0;
    long long bytes = 0;
    if (f) {
        while (fgets(ln, sizeof ln, f)) {
            char *p = strchr(ln, '/');
            if (!p)
                continue;
            p[strcspn(p, "\n")] = 0;
            if (!strstr(p, ".so") && !strstr(p, ".node"))
                continue;
            bool dup = false;
            for (int i = 0; i < libs; i++)
                dup |= !strcmp(seen[i], p);
            if (dup || libs == 512)
                continue;
            seen[libs++] = strdup(p);
            if (!stat(p, &st))
                bytes += (long long)st.st_size;
        }
        fclose(f);
    }
    for (int i = 0; i < libs; i++)
        free(seen[i]);
    printf(",\"exe_bytes\":%lld,\"libs\":%d,\"libs_bytes\":%lld", exe_bytes, libs, bytes);
}

static void
out_head(const char *sc)
{
    printf("{\"server\":\"%s\",\"scenario\":\"%s\"", O.label, sc);
}
static void
out_tail(struct server *s, bool timeout)
{
    int st = 0;
    bool died = s->eof;
    double ex = server_stop(s, &st);
    printf(",\"errors\":%ld,\"tool_errors\":%ld,\"notes\":%ld,\"exit_ms\":%.2f", s->errors,
           s->tool_errors, s->notes, ex);
    if (WIFSIGNALED(st))
        printf(",\"exit_signal\":%d", WTERMSIG(st));
    else
        printf(",\"exit_code\":%d", WEXITSTATUS(st));
    printf(",\"died\":%s,\"timeout\":%s}\n", died ? "true" : "false",
           timeout ? "true" : "false");
    fflush(stdout);
}
static void
out_mem(struct server *s, long idle)
{
    printf(",\"rss_idle_kb\":%ld,\"rss_kb\":%ld,\"rss_peak_kb\":%ld,\"threads\":%ld", idle,
           status_kb(s->pid, "VmRSS"), status_kb(s->pid, "VmHWM"),
           status_kb(s->pid, "Threads"));
}

/* Handshake.  Returns 1 on success; first/last receive latencies in seconds. */
static int
handshake(struct server *s, double *first, double *last)
{
    struct buf b = {0};
    size_t off = 0;
    struct top t;
    if (O.raw)
        return 1;
    req_init(&b, 0);
    double lim = now() + O.timeout;
    /* first byte: push the request, then wait for readability */
    server_io(s, &b, &off, lim, NULL, NULL, true);
    struct pollfd pf = {s->out, POLLIN, 0};
    poll(&pf, 1, (int)(O.timeout * 1e3));
    if (first)
        *first = now() - s->t_spawn;
    double tl = 0;
    int rc = next_response(s, &b, &off, lim, &t, NULL, &tl);
    if (last)
        *last = tl - s->t_spawn;
    free(b.p);
    if (rc == 1 && !O.stateless) {
        struct buf c = {0};
        size_t o2 = 0;
        buf_str(&c, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
        while (o2 < c.len && s->in >= 0 && now() < lim)
            if (server_io(s, &c, &o2, lim, NULL, NULL, true) != 2)
                break;
        free(c.p);
    }
    return rc;
}

/* -------------------------------------------------------------- scenarios */
static void
sc_start(void)
{
    long n = O.n > 0 ? O.n : 20;
    double *f = calloc((size_t)n, sizeof *f), *l = calloc((size_t)n, sizeof *l),
           *x = calloc((size_t)n, sizeof *x);
    long ok = 0, forced = 0, code = 0, rss = 0;
    struct server s;
    out_head("start");
    for (long i = 0; i < n; i++) {
        server_spawn(&s);
        double a = 0, b = 0;
        if (handshake(&s, &a, &b) == 1) {
            f[ok] = a;
            l[ok] = b;
            if (i == n - 1) {
                usleep(100000);
                rss = status_kb(s.pid, "VmRSS");
                out_image(s.pid);
            }
            int st = 0;
            double e = server_stop(&s, &st);
            if (e < 0)
                forced++;
            x[ok++] = (e < 0 ? -e : e) / 1e3;
            code = WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
        } else
            server_stop(&s, NULL);
    }
    printf(",\"n\":%ld,\"ok\":%ld", n, ok);
    out_stats("first_", f, (size_t)ok);
    out_stats("full_", l, (size_t)ok);
    out_stats("exit_", x, (size_t)ok);
    printf(",\"rss_idle_kb\":%ld,\"forced_exits\":%ld,\"exit_code\":%ld}\n", rss, forced, code);
    fflush(stdout);
    free(f);
    free(l);
    free(x);
}

enum kind { K_PING, K_CALL, K_LIST };
static void
put(struct buf *b, enum kind k, long id)
{
    if (k == K_PING)
        req_ping(b, id);
    else if (k == K_LIST)
        req_plain(b, id, "tools/list");
    else
        req_call(b, id, O.tool, O.args);
}

static void
sc_seq(const char *name, enum kind k, long dflt)
{
    long n = O.n > 0 ? O.n : dflt, id = 1, done = 0;
    double *v = calloc((size_t)n, sizeof *v);
    struct server s;
    struct buf b = {0};
    struct top t;
    size_t bytes = 0, req_bytes = 0;
    bool to = false;
    server_spawn(&s);
    out_head(name);
    int rc = handshake(&s, NULL, NULL);
    usleep(50000);
    long idle = status_kb(s.pid, "VmRSS");
    double c0 = 0, t_begin = now(), lim = t_begin + O.max_seconds;
    for (long i = -(k == K_LIST ? 0 : O.warmup); i < n && rc == 1; i++) {
        size_t off = 0;
        b.len = 0;
        put(&b, k, id++);
        req_bytes = b.len;
        if (i == 0) {
            c0 = cpu_s(s.pid);
            t_begin = now();
        }
        double t0 = now(), t1 = 0;
        rc = next_response(&s, &b, &off, t0 + O.timeout, &t, &bytes, &t1);
        if (rc != 1) {
            to = rc == 0;
            break;
        }
        if (i >= 0)
            v[done++] = t1 - t0;
        if (t1 > lim)
            break;
    }
    double wall = now() - t_begin, cpu = cpu_s(s.pid) - c0;
    printf(",\"n\":%ld,\"req_bytes\":%zu,\"resp_bytes\":%zu", done, req_bytes, bytes);
    out_stats("", v, (size_t)done);
    printf(",\"per_s\":%.0f,\"cpu_us_per_req\":%.2f", (double)done / wall,
           done ? cpu * 1e6 / (double)done : 0);
    out_mem(&s, idle);
    out_tail(&s, to);
    free(v);
    free(b.p);
}

/* Pipelined: all written back to back (window 0) or window-limited. */
static void
sc_pipe(const char *name, enum kind k, long dflt, bool soak)
{
    long n = O.n > 0 ? O.n : dflt;
    long window = O.window_set ? O.window : soak ? 64 : 0;
    struct server s;
    struct buf b = {0};
    struct top t;
    size_t off = 0, bytes = 0;
    bool to = false;
    long sent = 0, got = 0, id = 1, samples[12], ns = 0, order_breaks = 0, last_id = 0;
    server_spawn(&s);
    out_head(name);
    int rc = handshake(&s, NULL, NULL);
    usleep(50000);
    long idle = status_kb(s.pid, "VmRSS");
    for (long i = 0; i < (soak ? 0 : O.warmup) && rc == 1; i++) {
        b.len = off = 0;
        put(&b, k, id++);
        rc = next_response(&s, &b, &off, now() + O.timeout, &t, &bytes, NULL);
    }
    b.len = off = 0;
    if (!window)
        for (; sent < n; sent++)
            put(&b, k, id++);
    double c0 = cpu_s(s.pid), t0 = now(), tl = t0, lim = t0 + O.max_seconds;
    while (rc == 1 && got < n) {
        if (window && sent < n && sent - got <= window / 2) {
            if (off) {
                memmove(b.p, b.p + off, b.len - off);
                b.len -= off;
                off = 0;
            }
            for (; sent < n && sent - got < window; sent++)
                put(&b, k, id++);
        }
        rc = next_response(&s, &b, &off, now() + O.timeout, &t, &bytes, &tl);
        if (rc != 1) {
            to = rc == 0;
            break;
        }
        got++;
        if (t.id < last_id)
            order_breaks++;
        last_id = t.id;
        if (soak && got * 10 / n > ns && ns < 11)
            samples[ns++] = status_kb(s.pid, "VmRSS");
        if ((got & 255) == 0 && now() > lim)
            break;
    }
    double wall = now() - t0, cpu = cpu_s(s.pid) - c0;
    printf(",\"n\":%ld,\"window\":%ld,\"got\":%ld,\"wall_ms\":%.2f,\"per_s\":%.0f,\"cpu_us_per_"
           "req\":%.2f,"
           "\"order_breaks\":%ld,\"resp_bytes\":%zu",
           n, window, got, wall * 1e3, (double)got / wall, got ? cpu * 1e6 / (double)got : 0,
           order_breaks, bytes);
    if (soak) {
        printf(",\"rss_samples_kb\":[");
        for (long i = 0; i < ns; i++)
            printf("%s%ld", i ? "," : "", samples[i]);
        printf("]");
        if (ns > 1)
            printf(",\"growth_kb_first_to_last\":%ld", samples[ns - 1] - samples[0]);
    }
    out_mem(&s, idle);
    out_tail(&s, to);
    free(b.p);
}

static void
sc_echo(void)
{
    long n = O.n > 0 ? O.n : 5, done = 0;
    double *v = calloc((size_t)n, sizeof *v);
    struct server s;
    struct buf b = {0};
    struct top t;
    size_t bytes = 0;
    bool to = false;
    char *pay = xrealloc(NULL, (size_t)O.bytes + 1);
    for (long i = 0; i < O.bytes; i++)
        pay[i] = (char)('a' + i % 26);
    pay[O.bytes] = 0;
    server_spawn(&s);
    out_head("echo");
    int rc = handshake(&s, NULL, NULL);
    usleep(50000);
    long idle = status_kb(s.pid, "VmRSS");
    double c0 = cpu_s(s.pid);
    for (long i = 0; i < n && rc == 1; i++) {
        size_t off = 0;
        b.len = 0;
        req_head(&b, i + 1, "tools/call");
        buf_str(&b, ",\"params\":{\"name\":\"");
        buf_str(&b, O.echo_tool);
        buf_str(&b, "\",\"arguments\":{\"");
        buf_str(&b, O.echo_key);
        buf_str(&b, "\":\"");
        buf_add(&b, pay, (size_t)O.bytes);
        buf_str(&b, "\"");
        buf_str(&b, O.echo_extra);
        buf_str(&b, "}");
        add_meta(&b, true);
        buf_str(&b, "}}\n");
        double t0 = now(), t1 = 0;
        rc = next_response(&s, &b, &off, t0 + O.timeout, &t, &bytes, &t1);
        if (rc != 1) {
            to = rc == 0;
            break;
        }
        v[done++] = t1 - t0;
    }
    double cpu = cpu_s(s.pid) - c0;
    printf(",\"bytes\":%ld,\"n\":%ld,\"resp_bytes\":%zu,\"whole\":%s", O.bytes, done, bytes,
           bytes >= (size_t)O.bytes ? "true" : "false");
    out_stats("", v, (size_t)done);
    printf(",\"mb_per_s\":%.1f,\"cpu_us_per_req\":%.2f",
           done ? (double)O.bytes / 1e6 / pct(v, (size_t)done, .5) : 0,
           done ? cpu * 1e6 / (double)done : 0);
    out_mem(&s, idle);
    out_tail(&s, to);
    free(v);
    free(pay);
    free(b.p);
}

static void
sc_concurrent(void)
{
    long n = O.n > 0 ? O.n : 100, got = 0, early = 0;
    double *v = calloc((size_t)n, sizeof *v);
    struct server s;
    struct buf b = {0};
    struct top t;
    size_t off = 0;
    bool to = false, ping_sent = false;
    double ping_ms = -1, tp = 0;
    const long ping_id = 900001;
    server_spawn(&s);
    out_head("concurrent");
    int rc = handshake(&s, NULL, NULL);
    usleep(50000);
    long idle = status_kb(s.pid, "VmRSS");
    long thr_peak = 0;
    for (long i = 0; i < n; i++)
        req_call(&b, i + 1, O.block_tool, O.block_args);
    double t0 = now(), lim = t0 + O.max_seconds, tl = t0;
    while (rc == 1 && (got < n || ping_ms < 0)) {
        double dl = ping_sent ? (now() + O.timeout < lim ? now() + O.timeout : lim) : t0 + 0.1;
        int r = next_response(&s, &b, &off, dl, &t, NULL, &tl);
        if (r == 0 && !ping_sent) {
            ping_sent = true;
            if (off == b.len)
                b.len = off = 0;
            req_ping(&b, ping_id);
            tp = now();
            long th = status_kb(s.pid, "Threads");
            if (th > thr_peak)
                thr_peak = th;
            continue;
        }
        if (r != 1) {
            to = r == 0;
            break;
        }
        if (t.id == ping_id)
            ping_ms = (tl - tp) * 1e3;
        else if (got < n) {
            v[got++] = tl - t0;
            if (tl - t0 < 0.05)
                early++;
            if (got == n / 2) {
                long th = status_kb(s.pid, "Threads");
                if (th > thr_peak)
                    thr_peak = th;
            }
        }
        if (!ping_sent && now() > t0 + 0.1) {
            ping_sent = true;
            if (off == b.len)
                b.len = off = 0;
            req_ping(&b, ping_id);
            tp = now();
        }
    }
    double wall = now() - t0;
    printf(",\"n\":%ld,\"got\":%ld,\"answered_at_once\":%ld,\"wall_ms\":%.1f,\"ping_ms\":%.2f,"
           "\"threads_peak\":%ld",
           n, got, early, wall * 1e3, ping_ms, thr_peak);
    out_stats("", v, (size_t)got);
    out_mem(&s, idle);
    out_tail(&s, to);
    free(v);
    free(b.p);
}

static void
sc_cancel(void)
{
    struct server s;
    struct buf b = {0};
    struct top t;
    size_t off = 0;
    double call_ms = -1, ping_ms = -1, tp = 0, tl = 0;
    bool err = false, terr = false, to = false;
    server_spawn(&s);
    out_head("cancel");
    int rc = handshake(&s, NULL, NULL);
    req_call(&b, 1, O.block_tool, O.block_args);
    double t0 = now();
    int stage = 0;
    while (rc == 1) {
        double dl = stage == 0 ? t0 + 0.2 : t0 + (O.timeout < 8 ? O.timeout : 8);
        int r = next_response(&s, &b, &off, dl, &t, NULL, &tl);
        if (r == 0 && stage == 0) {
            stage = 1;
            if (off == b.len)
                b.len = off = 0;
            buf_str(&b,
                    O.string_ids
                        ? "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                          "cancelled\",\"params\":{\"requestId\":\"1\",\"reason\":\"test\"}}\n"
                        : "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                          "cancelled\",\"params\":{\"requestId\":1,\"reason\":\"test\"}}\n");
            req_ping(&b, 2);
            tp = now();
            continue;
        }
        if (r != 1) {
            to = r == 0;
            break;
        }
        if (t.id == 2)
            ping_ms = (tl - tp) * 1e3;
        else {
            call_ms = (tl - t0) * 1e3;
            err = t.is_error;
            terr = t.tool_error;
        }
        if (ping_ms >= 0 && call_ms >= 0)
            break;
    }
    printf(
        ",\"call_answered_ms\":%.1f,\"call_error\":%s,\"call_tool_error\":%s,\"ping_ms\":%.2f",
        call_ms, err ? "true" : "false", terr ? "true" : "false", ping_ms);
    out_mem(&s, status_kb(s.pid, "VmRSS"));
    out_tail(&s, to);
    free(b.p);
}

static void
sc_garbage(void)
{
    static const struct {
        const char *name, *line;
    } G[] = {
        {"not_json", "hello"},
        {"truncated", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":"},
        {"empty_line", ""},
        {"array_empty", "[]"},
        {"number", "42"},
        {"null", "null"},
        {"no_method", "{\"jsonrpc\":\"2.0\",\"id\":5}"},
        {"method_number", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":7}"},
        {"id_null", "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}"},
        {"id_object", "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}"},
        {"id_big", "{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"ping\"}"},
        {"id_string", "{\"jsonrpc\":\"2.0\",\"id\":\"a-b\",\"method\":\"ping\"}"},
        {"unknown_method", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"no/such\"}"},
        {"unknown_notification", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/no_such\"}"},
        {"call_no_params", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\"}"},
        {"call_params_array",
         "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":[]}"},
        {"call_name_number",
         "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":3}}"},
        {"call_args_string", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/"
                             "call\",\"params\":{\"name\":\"echo\",\"arguments\":\"x\"}}"},
        {"call_unknown_tool", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/"
                              "call\",\"params\":{\"name\":\"nope\",\"arguments\":{}}}"},
        {"no_jsonrpc", "{\"id\":5,\"method\":\"ping\"}"},
        {"batch", "[{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"},{\"jsonrpc\":\"2.0\","
                  "\"id\":6,\"method\":\"ping\"}]"},
        {"bad_utf8", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\",\"x\":\"\xff\xfe\"}"},
        {"crlf", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\r"},
        {"dup_key", "{\"jsonrpc\":\"2.0\",\"id\":5,\"id\":6,\"method\":\"ping\"}"},
    };
    out_head("garbage");
    long lived = 0, total = (long)(sizeof G / sizeof *G);
    printf(",\"cases\":{");
    for (long i = 0; i < total; i++) {
        struct server s;
        struct buf b = {0};
        size_t off = 0;
        bool alive = false, timeout = false;
        char first[200] = "";
        server_spawn(&s);
        if (handshake(&s, NULL, NULL) == 1) {
            char *line0;
            size_t len0; /* drop what a server says unasked after the handshake */
            double quiet = now() + 0.03;
            while (server_io(&s, NULL, NULL, quiet, &line0, &len0, false) == 1)
                server_take(&s, len0);
            buf_str(&b, G[i].line);
            buf_str(&b, "\n");
            req_ping(&b, 777777);
            double dl = now() + 1.0;
            for (;;) {
                char *line;
                size_t len;
                struct top t;
                int r = server_io(&s, &b, &off, dl, &line, &len, false);
                if (r != 1) {
                    timeout = r == 0;
                    break;
                }
                look(line, len, &t);
                if (t.id == 777777 && (t.has_result || t.is_error)) {
                    alive = true;
                    server_take(&s, len);
                    break;
                }
                if (!first[0]) {
                    size_t k = len < 90 ? len : 90, w = 0;
                    for (size_t j = 0; j < k && w < sizeof first - 2; j++) {
                        unsigned char c = (unsigned char)line[j];
                        if (c == '"')
                            first[w++] = '\'';
                        else
                            first[w++] = (c < 32 || c > 126 || c == '\\') ? '.' : (char)c;
                    }
                    first[w] = 0;
                }
                server_take(&s, len);
            }
        }
        int st = 0;
        server_stop(&s, &st);
        free(b.p);
        if (alive)
            lived++;
        printf("%s\"%s\":{\"alive\":%s%s,\"reply\":\"%s\"}", i ? "," : "", G[i].name,
               alive ? "true" : "false", timeout ? ",\"hung\":true" : "", first);
    }
    printf("},\"alive\":%ld,\"of\":%ld}\n", lived, total);
    fflush(stdout);
}

static void
run(const char *sc)
{
    if (!strcmp(sc, "start"))
        sc_start();
    else if (!strcmp(sc, "ping"))
        sc_seq("ping", K_PING, 5000);
    else if (!strcmp(sc, "call"))
        sc_seq("call", K_CALL, 5000);
    else if (!strcmp(sc, "list"))
        sc_seq("list", K_LIST, 200);
    else if (!strcmp(sc, "pipeline"))
        sc_pipe("pipeline", K_PING, 10000, false);
    else if (!strcmp(sc, "pipecall"))
        sc_pipe("pipecall", K_CALL, 10000, false);
    else if (!strcmp(sc, "soak"))
        sc_pipe("soak", O.soak_ping ? K_PING : K_CALL, 1000000, true);
    else if (!strcmp(sc, "echo"))
        sc_echo();
    else if (!strcmp(sc, "concurrent"))
        sc_concurrent();
    else if (!strcmp(sc, "cancel"))
        sc_cancel();
    else if (!strcmp(sc, "garbage"))
        sc_garbage();
    else
        die("unknown scenario '%s'", sc);
}

int
main(int argc, char **argv)
{
    int i = 1;
    signal(SIGPIPE, SIG_IGN);
#define VAL (i + 1 < argc ? argv[++i] : (die("%s needs a value", argv[i]), (char *)0))
    for (; i < argc && !strncmp(argv[i], "--", 2); i++) {
        const char *a = argv[i] + 2;
        if (!strcmp(a, "label"))
            O.label = VAL;
        else if (!strcmp(a, "n"))
            O.n = atol(VAL);
        else if (!strcmp(a, "warmup"))
            O.warmup = atol(VAL);
        else if (!strcmp(a, "window"))
            O.window = atol(VAL), O.window_set = true;
        else if (!strcmp(a, "bytes"))
            O.bytes = atol(VAL);
        else if (!strcmp(a, "tool"))
            O.tool = VAL;
        else if (!strcmp(a, "args"))
            O.args = VAL;
        else if (!strcmp(a, "echo-tool"))
            O.echo_tool = VAL;
        else if (!strcmp(a, "echo-key"))
            O.echo_key = VAL;
        else if (!strcmp(a, "echo-extra"))
            O.echo_extra = VAL;
        else if (!strcmp(a, "block-tool"))
            O.block_tool = VAL;
        else if (!strcmp(a, "block-args"))
            O.block_args = VAL;
        else if (!strcmp(a, "proto"))
            O.proto = VAL;
        else if (!strcmp(a, "timeout"))
            O.timeout = atof(VAL);
        else if (!strcmp(a, "max-seconds"))
            O.max_seconds = atof(VAL);
        else if (!strcmp(a, "stderr"))
            O.errfile = VAL;
        else if (!strcmp(a, "env"))
            putenv(VAL);
        else if (!strcmp(a, "raw"))
            O.raw = true;
        else if (!strcmp(a, "stateless"))
            O.stateless = true;
        else if (!strcmp(a, "string-ids"))
            O.string_ids = true;
        else if (!strcmp(a, "spin"))
            O.spin = true;
        else if (!strcmp(a, "dump"))
            O.dump = true;
        else if (!strcmp(a, "soak-ping"))
            O.soak_ping = true;
        else
            die("unknown option --%s (see the head of mcp_load.c)", a);
    }
    if (i >= argc)
        die("usage: mcp_load [options] SCENARIO[,...] -- SERVER [ARG...]");
    char *list = strdup(argv[i++]);
    if (i >= argc || strcmp(argv[i], "--") || i + 1 >= argc)
        die("expected: -- SERVER [ARG...]");
    O.argv = argv + i + 1;
    for (char *p = strtok(list, ","); p; p = strtok(NULL, ","))
        run(p);
    free(list);
    return 0;
}
