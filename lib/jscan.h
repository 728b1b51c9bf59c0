/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict reading of JSON text that keeps everything as spans of that text: RFC 8259 grammar,
 * UTF-8, no byte order mark, no duplicate member names, bounded depth. cJSON alone accepts all
 * of those, turns large integers into doubles and ends strings at \u0000, so every text from
 * outside passes here first.
 */
#ifndef KCAP_LIB_JSCAN_H
#define KCAP_LIB_JSCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/span.h"

#define JSCAN_MAX_DEPTH 128

#define JSCAN_OK        0
#define JSCAN_SYNTAX    (-1) /* not JSON, or more than one value */
#define JSCAN_UTF8      (-2)
#define JSCAN_DEPTH     (-3)
#define JSCAN_DUPLICATE (-4)
#define JSCAN_NOMEM     (-5)

struct jscan {
    struct span value; /* the one value, without the space around it */
    bool has_nul;      /* a string holds \u0000 */
    size_t error_at;   /* offset of the first fault */
};

/* Checks that text is exactly one JSON value. Returns JSCAN_*; *ret is filled as far as known.
 */
int jscan(const char *text, size_t len, struct jscan *ret);

/* One line for people, such as "duplicate member name". */
const char *jscan_message(int code);

#endif
