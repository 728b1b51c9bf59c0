/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of mcp_load share: one client that sends requests to one server at a time.
 * Times are seconds of the monotonic clock. */
#ifndef KCAP_BENCH_LOAD_H
#define KCAP_BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/buf.h"

#define LOAD_MAX (SIZE_MAX / 2) /* buffers here have no cap */

/* The command line; the head of mcp_load.c explains it. */
extern struct options {
    const char *label, *tool, *args, *echo_tool, *echo_key, *echo_extra;
    const char *block_tool, *block_args, *proto, *errfile;
    long n, warmup, window, bytes;
    double timeout, max_seconds;
    bool raw, stateless, string_ids, spin, dump, soak_ping, window_set;
    char **argv;
} options;

void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
double now(void);
void *load_alloc(size_t n, size_t size); /* zeroed; never NULL */

/* ---- the process ---- */

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

void server_spawn(struct server *s);

/* Closes stdin, waits, kills if need be. Returns milliseconds to exit, or a negative number
 * when a signal had to be sent. */
double server_stop(struct server *s, int *status);

/* Moves bytes both ways until a whole line is there, the deadline passes or the server closes.
 * tx may be NULL. Returns 1 line, 0 timeout, -1 eof, 2 when stop_when_sent is set and all of tx
 * is written. */
int server_io(struct server *s, struct buf *tx, size_t *off, double deadline, char **line,
              size_t *len, bool stop_when_sent);
void server_take(struct server *s, size_t len); /* drops the line it gave, and its newline */

/* ---- messages ---- */

struct top {
    long id;
    bool has_id, is_error, has_result, has_method, tool_error;
};

/* The members at a response's top. */
void look(const char *p, size_t n, struct top *t);

/* Next response (server notifications and requests are counted and dropped). t_line receives
 * the time at which the whole line was in hand. Returns as server_io does. */
int next_response(struct server *s, struct buf *tx, size_t *off, double deadline, struct top *t,
                  size_t *bytes, double *t_line);

void req_head(struct buf *b, long id, const char *method);
void add_meta(struct buf *b, bool comma);
void req_plain(struct buf *b, long id, const char *method);
void req_ping(struct buf *b, long id);
void req_call(struct buf *b, long id, const char *tool, const char *args);

/* Returns 1 on success; first and last receive latencies since the spawn. */
int handshake(struct server *s, double *first, double *last);

/* ---- the report ---- */

double pct(const double *v, size_t n, double p);         /* of sorted values */
void out_stats(const char *prefix, double *v, size_t n); /* sorts v */
long status_kb(pid_t pid, const char *key);
double cpu_s(pid_t pid);
void out_image(pid_t pid);
void out_head(const char *sc);
void out_mem(struct server *s, long idle);
void out_tail(struct server *s, bool timeout); /* also ends the server */

/* ---- scenarios ---- */

enum kind { K_PING, K_CALL, K_LIST };

void sc_start(void);
void sc_seq(const char *name, enum kind k, long dflt);
void sc_pipe(const char *name, enum kind k, long dflt, bool soak);
void sc_echo(void);
void sc_concurrent(void);
void sc_cancel(void);
void sc_garbage(void);

#endif
