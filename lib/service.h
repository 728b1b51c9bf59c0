/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract between the host and its own service modules (pkglibdir/service/NAME.so).
 * Private: a service is built and shipped with the host, so this may change with every release.
 */
#ifndef KCAP_LIB_SERVICE_H
#define KCAP_LIB_SERVICE_H

#include <kcap/plugin.h>

/* Exported as: const struct kcap_service kcap_service_v1. Carries the note of
 * KCAP_CLASS_SERVICE. */
struct kcap_service {
    uint32_t magic; /* KCAP_MAGIC */
    uint32_t struct_size;
    uint16_t abi_major, abi_minor;
    uint32_t reserved;
    const char *provides; /* the extension's name, such as "kcap.http/1" */
    const char *version;

    /* Once per process, on the first request for the extension, under the host's lock: no
     * waiting. trust_class is the class of the plugin that will use the table. Returns the
     * extension's table, or NULL after logging why. */
    const void *(*open)(const struct kcap_host *host, uint32_t trust_class);
};

extern KCAP_EXPORT const struct kcap_service kcap_service_v1;

#endif
