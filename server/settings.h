/* SPDX-License-Identifier: Apache-2.0 */
/* flowd.json: what the user settled about reviewers. Read anew whenever a turn starts. */
#ifndef KCAP_SERVER_SETTINGS_H
#define KCAP_SERVER_SETTINGS_H

#include <stdbool.h>

#include "lib/buf.h"
#include "lib/json.h"
#include "server/clocks.h"

struct settings {
    struct clocks clocks;
    int64_t max_reviewers; /* turns at the same time */
    int64_t idle_ttl_sec;
    int64_t keep_days;
    const char *default_vendor; /* borrowed from json */
    cJSON *json;
};

/* What the command line says: it wins over the file. Zero and CLOCKS_UNSET: nothing. */
struct settings_override {
    struct clocks clocks;
    int64_t keep_days;
};

/* No file at path is fine. Returns 0, or -EINVAL or -errno with a line for people in error that
 * names the file and the member; *ret holds the defaults then. */
int settings_read(const char *path, const struct settings_override *override,
                  struct settings *ret, struct buf *error);
void settings_fini(struct settings *settings);

/* The vendor's object, or NULL. */
const cJSON *settings_vendor(const struct settings *settings, const char *name);
/* Its "program", else fallback. */
const char *settings_program(const struct settings *settings, const char *vendor,
                             const char *fallback);

#endif
