/* SPDX-License-Identifier: Apache-2.0 */
/* The tools as clients see them. */
#ifndef KCAP_FLOWS_TOOLS_H
#define KCAP_FLOWS_TOOLS_H

#include "flows.h"

struct flows_tool {
    struct kcap_tool tool; /* first: the host hands back a pointer to it */
    int32_t (*run)(struct flows *flows, struct kcap_call *call, const cJSON *args);
};

extern const struct kcap_tool *const tools_list[];

#endif
