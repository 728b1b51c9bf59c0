/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "http-rig.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/service.h"

#define MAX_OPENED 256

struct fake_host *rig_fake;
const struct kcap_http *rig_opened[MAX_OPENED];
static int n_opened;
static char config_dir[32], cache_dir[48], cache_file[80];

void
rig_setup(void)
{
    rig_fake = fake_host_new();
    fake_host_use_real_time(rig_fake);
    (void)strcpy(config_dir, "/tmp/kcap-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(config_dir));
    (void)snprintf(cache_dir, sizeof cache_dir, "%s/cache", config_dir);
    (void)snprintf(cache_file, sizeof cache_file, "%s/auth-providers.json", cache_dir);
    fake_host_setenv(rig_fake, "KCAP_CONFIG_DIR", config_dir);
}

void
rig_teardown(void)
{
    fake_host_free(rig_fake);
    (void)unlink(cache_file);
    (void)rmdir(cache_dir);
    (void)rmdir(config_dir);
}

/* As if the server had been asked before: it wants no login, and nobody asks it again. */
static void
remember_no_login(const char *server)
{
    int64_t now_sec = fake_host_table(rig_fake)->wall_ms(fake_host_table(rig_fake)) / 1000;
    FILE *file;

    (void)mkdir(cache_dir, 0700);
    file = fopen(cache_file, "w");
    ck_assert_ptr_nonnull(file);
    (void)fprintf(file, "{\"%s\":{\"provider\":\"None\",\"fetched_at\":%lld}}", server,
                  (long long)now_sec);
    ck_assert_int_eq(fclose(file), 0);
}

const struct kcap_http *
rig_open(uint32_t trust_class, const char *server)
{
    const struct kcap_service *service =
        fake_host_load("services/http/http.so", "kcap_service_v1");
    const struct kcap_http *http;

    if (server) {
        fake_host_setenv(rig_fake, "KCAP_URL", server);
        remember_no_login(server);
    }
    http = service->open(fake_host_table(rig_fake), trust_class);
    ck_assert_ptr_nonnull(http);
    ck_assert_int_lt(n_opened, MAX_OPENED);
    rig_opened[n_opened++] = http;
    return http;
}

static void
run(struct kcap_call *call, void *arg)
{
    struct exchange *x = arg;
    struct kcap_http_request request = {
        .struct_size = sizeof request,
        .method = x->method,
        .path = x->path,
        .body = x->body,
        .body_len = x->body ? strlen(x->body) : 0,
        .until_ns = x->limit_ms ? fake_host_table(rig_fake)->now_ns(fake_host_table(rig_fake)) +
                                      x->limit_ms * FAKE_NS_PER_MS
                                : KCAP_TIME_NEVER,
        .max_body_len = x->max_body_len,
    };

    x->returned = x->http->request(x->http, call, &request, &x->response);
}

void
rig_ask(struct exchange *x)
{
    fake_host_run(rig_fake, &x->call, run, x);
}

void
rig_done(struct exchange *x)
{
    x->http->response_free(x->http, x->response);
    x->response = NULL;
    fake_call_fini(&x->call);
}
