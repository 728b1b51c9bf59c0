/* SPDX-License-Identifier: Apache-2.0 */
/* The fake host's extension kcap.http/1: answers from a script. */
#ifndef KCAP_TESTS_FAKE_HTTP_H
#define KCAP_TESTS_FAKE_HTTP_H

#include "fake-host.h"

struct fake_http;

struct fake_http *fake_http_new(struct fake_host *fake);
void fake_http_free(struct fake_http *http);
const struct kcap_http *fake_http_table(struct fake_http *http);
void fake_http_set_server(struct fake_http *http, uint32_t kind, const char *url,
                          const char *error);
void fake_http_script(struct fake_http *http, const struct fake_reply *replies, size_t n);
const struct fake_request *fake_http_requests(struct fake_http *http, size_t *ret_n);

/* From fake-host.c. */
bool fake_host_fails(struct fake_host *fake);
int32_t fake_host_wait(struct kcap_call *call, uint64_t seen, struct kcap_fd *fds, uint32_t n,
                       int64_t until_ns);

#endif
