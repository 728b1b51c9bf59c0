/* SPDX-License-Identifier: Apache-2.0 */
/* Starting kcap-flowd when it is the server and is not there. */
#ifndef KCAP_FLOWS_DAEMON_H
#define KCAP_FLOWS_DAEMON_H

#include <kcap/plugin.h>

/* Returns 0 when it says that it, or another one, listens; *ret_error is then NULL. Also 0 with
 * a line in *ret_error (the caller's to free) when it cannot be started. Else what ended the
 * call, or a negative code. */
int32_t daemon_start(const struct kcap_host *host, struct kcap_call *call, char **ret_error);

#endif
