/* SPDX-License-Identifier: Apache-2.0 */
/* The line of JSON about one scenario, and the numbers in it that /proc knows. */
#define _GNU_SOURCE
#include "bench/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int
cmp_d(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
double
pct(const double *v, size_t n, double p)
{
    if (!n)
        return 0;
    size_t i = (size_t)(p * (double)(n - 1) + 0.5);
    return v[i >= n ? n - 1 : i];
}
void
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

long
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
double
cpu_s(pid_t pid)
{ /* user+system time of all threads, ended ones too */
    clockid_t c;
    struct timespec t;
    if (clock_getcpuclockid(pid, &c) || clock_gettime(c, &t))
        return 0;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
void
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

void
out_head(const char *sc)
{
    printf("{\"server\":\"%s\",\"scenario\":\"%s\"", options.label, sc);
}
void
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
void
out_mem(struct server *s, long idle)
{
    printf(",\"rss_idle_kb\":%ld,\"rss_kb\":%ld,\"rss_peak_kb\":%ld,\"threads\":%ld", idle,
           status_kb(s->pid, "VmRSS"), status_kb(s->pid, "VmHWM"),
           status_kb(s->pid, "Threads"));
}
