/* SPDX-License-Identifier: Apache-2.0 */
/* The wall around the network: which class may ask for which path. */
#ifndef KCAP_SERVICES_HTTP_ROUTES_H
#define KCAP_SERVICES_HTTP_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the class may send this request. path is as the plugin gave it, query included. */
bool routes_allow(uint32_t trust_class, const char *method, const char *path);

/* What an allowed reviewer path is below a capability URL, or NULL. */
const char *routes_capability_path(const char *path);

#endif
