/* SPDX-License-Identifier: Apache-2.0 */
/* What stands between tools/call and the plugin: the arguments, made fit for it. */
#ifndef KCAP_HOST_ARGUMENTS_H
#define KCAP_HOST_ARGUMENTS_H

#include <stdbool.h>

#include "host/calls.h"
#include "lib/buf.h"

/* Drops null members and checks call->args against schema (the tool's input schema). False with
 * a text for the agent in why. */
bool arguments_prepare(struct kcap_call *call, const cJSON *schema, struct buf *why);

#endif
