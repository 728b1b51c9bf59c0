/* SPDX-License-Identifier: Apache-2.0 */
/* What the suites of http.so share: the module on a fake host whose time is real. */
#ifndef KCAP_TESTS_HTTP_RIG_H
#define KCAP_TESTS_HTTP_RIG_H

#include "tests/support/fake-host.h"
#include "tests/unit/suite.h"

extern struct fake_host *rig_fake;
extern const struct kcap_http *rig_opened[]; /* they live as long as the process */

void rig_setup(void);
void rig_teardown(void);

/* The extension for a plugin of that class; server goes into KCAP_URL when it is not NULL. */
const struct kcap_http *rig_open(uint32_t trust_class, const char *server);

/* One request and what came of it. */
struct exchange {
    const struct kcap_http *http;
    const char *method, *path, *body;
    int64_t limit_ms; /* 0: none */
    uint64_t max_body_len;
    int32_t returned;
    struct kcap_http_response *response;
    struct fake_call call;
};

void rig_ask(struct exchange *x);
void rig_done(struct exchange *x);

#endif
