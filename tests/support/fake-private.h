/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the fake host share. */
#ifndef KCAP_TESTS_FAKE_PRIVATE_H
#define KCAP_TESTS_FAKE_PRIVATE_H

#include <pthread.h>

#include "fake-host.h"
#include "lib/buf.h"

struct fake_http;

struct setting {
    struct setting *next;
    const char *name, *value;
};

/* A thread that is in a wait. */
struct sleeper {
    struct sleeper *next;
    uint64_t seen;
    int64_t until_ns;
    struct kcap_fd *fds;
    uint32_t n_fds;
    bool woken;
};

struct kcap_call {
    struct fake_host *fake;
    struct fake_call *outer; /* NULL: background */
    int64_t deadline_ns;
    int64_t cancel_ns;
    uint64_t serial;
    int32_t ended; /* sticky KCAP_WAIT_* */
};

struct background {
    struct background *next;
    struct fake_host *fake;
    pthread_t thread;
    struct kcap_call call;
    struct sleeper sleeper; /* until its first turn */
    void (*fn)(struct kcap_call *call, void *arg);
    void *arg;
};

struct fake_host {
    struct kcap_host table; /* first */
    bool real;
    pthread_mutex_t lock; /* fake time: held by the one thread that runs */
    pthread_cond_t cond;
    struct sleeper *sleepers;
    struct background *backgrounds;
    int64_t now_ns;
    uint64_t seq, serial;
    bool shutdown;
    struct setting *env, *options;
    unsigned fail_at;
    bool failed;
    struct buf log;
    struct fake_http *http;
    const struct kcap_http *real_http;
};

/* ---- fake-time.c ---- */

int64_t fake_now_ns(const struct fake_host *fake);

/* A thread that starts waiting, wakes whoever runs next, and waits for its own turn. */
void fake_enlist(struct fake_host *fake, struct sleeper *self);
void fake_pass_turn(struct fake_host *fake);
void fake_await_turn(struct fake_host *fake, struct sleeper *self);

/* What has ended the call, or 0. */
int32_t fake_call_end(struct kcap_call *call);
int32_t fake_wait(struct kcap_call *call, uint64_t seen, struct kcap_fd *fds, uint32_t n,
                  int64_t until_ns);

/* ---- fake-host.c ---- */

/* Whether this fallible call is the one that has to fail. */
bool fake_host_fails(struct fake_host *fake);

/* ---- fake-http.c ---- */

struct fake_http *fake_http_new(struct fake_host *fake);
void fake_http_free(struct fake_http *http);
const struct kcap_http *fake_http_table(struct fake_http *http);
void fake_http_set_server(struct fake_http *http, uint32_t kind, const char *url,
                          const char *error);
void fake_http_script(struct fake_http *http, const struct fake_reply *replies, size_t n);
const struct fake_request *fake_http_requests(struct fake_http *http, size_t *ret_n);

#endif
