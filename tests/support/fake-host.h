/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host for tests. Time is fake: it stands still while code runs and jumps to the next moment
 * anybody waits for, so ten minutes take no time and every run is the same. Calls and
 * background jobs are threads of which one runs at a time; the test's own thread is one of
 * them. The extension kcap.http/1 answers from a script. With fake_host_use_real_time waits are
 * real (http.so needs that), and threads run freely.
 */
#ifndef KCAP_TESTS_FAKE_HOST_H
#define KCAP_TESTS_FAKE_HOST_H

#include <kcap/http.h>
#include <kcap/plugin.h>
#include <stdbool.h>

#define FAKE_NS_PER_MS INT64_C(1000000)
#define FAKE_NEVER     INT64_MAX

/* One line of the HTTP script. The first whose method and path fit, and which is not used up,
 * answers. */
struct fake_reply {
    const char *method; /* NULL: any */
    const char *path;   /* shell pattern; NULL: any */
    int64_t delay_ms;   /* FAKE_NEVER: no answer */
    int outcome;        /* KCAP_HTTP_* */
    int status;         /* 0 is 200 */
    const char *body;   /* NULL is "" */
    size_t body_len;    /* 0: strlen(body) */
    const char *error;
    int64_t retry_after_sec; /* 0: none */
    int32_t returns;         /* not 0: what request returns instead */
    unsigned times;          /* 0: for ever */
};

struct fake_request {
    char *method, *path, *body;
    int64_t at_ms;
    bool aborted; /* its call ended first */
};

/* What a call is given and what came of it. */
struct fake_call {
    int64_t window_ms;       /* 0: none */
    unsigned cancel_at_wait; /* 0: never; 1: the first one */
    unsigned shutdown_at_wait;
    int64_t cancel_after_ms; /* 0: never; real time only */
    const char *client_name, *session_id, *session_source, *harness;

    int32_t returned;
    bool has_result, is_error;
    char *text, *json;
    int64_t took_ms;
    uint64_t serial;
    unsigned waits, n_progress;
    char *last_progress;
    double progress; /* of the last one */
};

struct fake_host;

struct fake_host *fake_host_new(void);
/* Lets background jobs see SHUTDOWN and end. */
void fake_host_stop(struct fake_host *fake);
/* Stops it and frees all. */
void fake_host_free(struct fake_host *fake);
const struct kcap_host *fake_host_table(struct fake_host *fake);
void fake_host_use_real_time(struct fake_host *fake);

/* Borrowed text. */
void fake_host_setenv(struct fake_host *fake, const char *name, const char *value);
void fake_host_set_option(struct fake_host *fake, const char *name, const char *value);
void fake_host_set_server(struct fake_host *fake, uint32_t kind, const char *url,
                          const char *error);
void fake_host_set_http(struct fake_host *fake, const struct kcap_http *http); /* a real one */

/* Replaces the script; replies live as long as the host. */
void fake_host_script(struct fake_host *fake, const struct fake_reply *replies, size_t n);
const struct fake_request *fake_host_requests(struct fake_host *fake, size_t *ret_n);
size_t fake_host_count(struct fake_host *fake, const char *method, const char *path);

/* The nth fallible host call from now on fails (wait, request, background, extension, result);
 * 0: none. fake_host_has_failed tells whether it came to that. */
void fake_host_fail_at(struct fake_host *fake, unsigned n);
bool fake_host_has_failed(struct fake_host *fake);

/* Lets time pass for background jobs. */
void fake_host_advance_ms(struct fake_host *fake, int64_t ms);
int64_t fake_host_now_ms(struct fake_host *fake);
/* Every line logged so far. */
const char *fake_host_log(struct fake_host *fake);

/* The exported object of a built module, such as "plugins/flows/flows.so" below the build
 * directory. Aborts the test when there is none. */
const void *fake_host_load(const char *module, const char *symbol);

/* plugin->call, as a worker would. Free what it filled with fake_call_fini. */
void fake_host_call(struct fake_host *fake, const struct kcap_plugin *plugin, void *ctx,
                    const char *tool, const char *args, struct fake_call *call);
void fake_call_fini(struct fake_call *call);

/* Runs fn with a call handle, for driving an extension alone. */
void fake_host_run(struct fake_host *fake, struct fake_call *call,
                   void (*fn)(struct kcap_call *call, void *arg), void *arg);

#endif
