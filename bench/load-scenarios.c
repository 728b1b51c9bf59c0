/* SPDX-License-Identifier: Apache-2.0 */
/* The scenarios that measure. */
#define _GNU_SOURCE
#include "bench/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void
sc_start(void)
{
    long n = options.n > 0 ? options.n : 20;
    double *f = load_alloc((size_t)n, sizeof *f), *l = load_alloc((size_t)n, sizeof *l),
           *x = load_alloc((size_t)n, sizeof *x);
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

static void
put(struct buf *b, enum kind k, long id)
{
    if (k == K_PING)
        req_ping(b, id);
    else if (k == K_LIST)
        req_plain(b, id, "tools/list");
    else
        req_call(b, id, options.tool, options.args);
}

void
sc_seq(const char *name, enum kind k, long dflt)
{
    long n = options.n > 0 ? options.n : dflt, id = 1, done = 0;
    double *v = load_alloc((size_t)n, sizeof *v);
    struct server s;
    struct buf b = BUF_INIT(LOAD_MAX);
    struct top t;
    size_t bytes = 0, req_bytes = 0;
    bool to = false;
    server_spawn(&s);
    out_head(name);
    int rc = handshake(&s, NULL, NULL);
    usleep(50000);
    long idle = status_kb(s.pid, "VmRSS");
    double c0 = 0, t_begin = now(), lim = t_begin + options.max_seconds;
    for (long i = -(k == K_LIST ? 0 : options.warmup); i < n && rc == 1; i++) {
        size_t off = 0;
        buf_clear(&b);
        put(&b, k, id++);
        req_bytes = b.len;
        if (i == 0) {
            c0 = cpu_s(s.pid);
            t_begin = now();
        }
        double t0 = now(), t1 = 0;
        rc = next_response(&s, &b, &off, t0 + options.timeout, &t, &bytes, &t1);
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
    buf_fini(&b);
}

/* Pipelined: all written back to back (window 0) or window-limited. */
void
sc_pipe(const char *name, enum kind k, long dflt, bool soak)
{
    long n = options.n > 0 ? options.n : dflt;
    long window = options.window_set ? options.window : soak ? 64 : 0;
    struct server s;
    struct buf b = BUF_INIT(LOAD_MAX);
    struct top t;
    size_t off = 0, bytes = 0;
    bool to = false;
    long sent = 0, got = 0, id = 1, samples[12], ns = 0, order_breaks = 0, last_id = 0;
    server_spawn(&s);
    out_head(name);
    int rc = handshake(&s, NULL, NULL);
    usleep(50000);
    long idle = status_kb(s.pid, "VmRSS");
    for (long i = 0; i < (soak ? 0 : options.warmup) && rc == 1; i++) {
        buf_clear(&b);
        off = 0;
        put(&b, k, id++);
        rc = next_response(&s, &b, &off, now() + options.timeout, &t, &bytes, NULL);
    }
    buf_clear(&b);
    off = 0;
    if (!window)
        for (; sent < n; sent++)
            put(&b, k, id++);
    double c0 = cpu_s(s.pid), t0 = now(), tl = t0, lim = t0 + options.max_seconds;
    while (rc == 1 && got < n) {
        if (window && sent < n && sent - got <= window / 2) {
            if (off) {
                buf_shift(&b, off);
                off = 0;
            }
            for (; sent < n && sent - got < window; sent++)
                put(&b, k, id++);
        }
        rc = next_response(&s, &b, &off, now() + options.timeout, &t, &bytes, &tl);
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
    buf_fini(&b);
}

void
sc_echo(void)
{
    long n = options.n > 0 ? options.n : 5, done = 0;
    double *v = load_alloc((size_t)n, sizeof *v);
    struct server s;
    struct buf b = BUF_INIT(LOAD_MAX);
    struct top t;
    size_t bytes = 0;
    bool to = false;
    char *pay = load_alloc((size_t)options.bytes + 1, 1);
    for (long i = 0; i < options.bytes; i++)
        pay[i] = (char)('a' + i % 26);
    pay[options.bytes] = 0;
    server_spawn(&s);
    out_head("echo");
    int rc = handshake(&s, NULL, NULL);
    usleep(50000);
    long idle = status_kb(s.pid, "VmRSS");
    double c0 = cpu_s(s.pid);
    for (long i = 0; i < n && rc == 1; i++) {
        size_t off = 0;
        buf_clear(&b);
        req_head(&b, i + 1, "tools/call");
        buf_adds(&b, ",\"params\":{\"name\":\"");
        buf_adds(&b, options.echo_tool);
        buf_adds(&b, "\",\"arguments\":{\"");
        buf_adds(&b, options.echo_key);
        buf_adds(&b, "\":\"");
        buf_add(&b, pay, (size_t)options.bytes);
        buf_adds(&b, "\"");
        buf_adds(&b, options.echo_extra);
        buf_adds(&b, "}");
        add_meta(&b, true);
        buf_adds(&b, "}}\n");
        double t0 = now(), t1 = 0;
        rc = next_response(&s, &b, &off, t0 + options.timeout, &t, &bytes, &t1);
        if (rc != 1) {
            to = rc == 0;
            break;
        }
        v[done++] = t1 - t0;
    }
    double cpu = cpu_s(s.pid) - c0;
    printf(",\"bytes\":%ld,\"n\":%ld,\"resp_bytes\":%zu,\"whole\":%s", options.bytes, done,
           bytes, bytes >= (size_t)options.bytes ? "true" : "false");
    out_stats("", v, (size_t)done);
    printf(",\"mb_per_s\":%.1f,\"cpu_us_per_req\":%.2f",
           done ? (double)options.bytes / 1e6 / pct(v, (size_t)done, .5) : 0,
           done ? cpu * 1e6 / (double)done : 0);
    out_mem(&s, idle);
    out_tail(&s, to);
    free(v);
    free(pay);
    buf_fini(&b);
}

/* Empties the buffer when all of it was written. */
static void
drop_sent(struct buf *b, size_t *off)
{
    if (*off == b->len) {
        buf_clear(b);
        *off = 0;
    }
}

void
sc_concurrent(void)
{
    long n = options.n > 0 ? options.n : 100, got = 0, early = 0;
    double *v = load_alloc((size_t)n, sizeof *v);
    struct server s;
    struct buf b = BUF_INIT(LOAD_MAX);
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
        req_call(&b, i + 1, options.block_tool, options.block_args);
    double t0 = now(), lim = t0 + options.max_seconds, tl = t0;
    while (rc == 1 && (got < n || ping_ms < 0)) {
        double dl = ping_sent ? (now() + options.timeout < lim ? now() + options.timeout : lim)
                              : t0 + 0.1;
        int r = next_response(&s, &b, &off, dl, &t, NULL, &tl);
        if (r == 0 && !ping_sent) {
            ping_sent = true;
            drop_sent(&b, &off);
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
            drop_sent(&b, &off);
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
    buf_fini(&b);
}

void
sc_cancel(void)
{
    struct server s;
    struct buf b = BUF_INIT(LOAD_MAX);
    struct top t;
    size_t off = 0;
    double call_ms = -1, ping_ms = -1, tp = 0, tl = 0;
    bool err = false, terr = false, to = false;
    server_spawn(&s);
    out_head("cancel");
    int rc = handshake(&s, NULL, NULL);
    req_call(&b, 1, options.block_tool, options.block_args);
    double t0 = now();
    int stage = 0;
    while (rc == 1) {
        double dl = stage == 0 ? t0 + 0.2 : t0 + (options.timeout < 8 ? options.timeout : 8);
        int r = next_response(&s, &b, &off, dl, &t, NULL, &tl);
        if (r == 0 && stage == 0) {
            stage = 1;
            drop_sent(&b, &off);
            buf_adds(&b,
                     options.string_ids
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
    buf_fini(&b);
}
