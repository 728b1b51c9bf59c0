/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "http-rig.h"

#include <string.h>

#include "lib/service.h"

#define MAX_OPENED 256

struct fake_host *rig_fake;
const struct kcap_http *rig_opened[MAX_OPENED];
static int n_opened;

void
rig_setup(void)
{
    rig_fake = fake_host_new();
    fake_host_use_real_time(rig_fake);
}

void
rig_teardown(void)
{
    fake_host_free(rig_fake);
}

const struct kcap_http *
rig_open(uint32_t trust_class, const char *server)
{
    const struct kcap_service *service =
        fake_host_load("services/http/http.so", "kcap_service_v1");
    const struct kcap_http *http;

    if (server)
        fake_host_setenv(rig_fake, "KCAP_URL", server);
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
