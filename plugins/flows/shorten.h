/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server's answer while it comes in: JSON whose long strings are shortened, so that no answer
 * takes more memory than a few of them, and none is refused for a long one. Anything else
 * passes as it is, up to a cap.
 *
 * What no text may hold, or is no character at all, becomes U+FFFD: \u0000, half a surrogate
 * pair, bytes that are no UTF-8. A result is not lost for one of them; an id that has one stays
 * a fault.
 *
 * Only members whose names end in "text" may be long; of others what a line can show is enough.
 */
#ifndef KCAP_FLOWS_SHORTEN_H
#define KCAP_FLOWS_SHORTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/buf.h"

#define SHORTEN_NAMES     8u
#define SHORTEN_MAX_FIELD 8192 /* bytes of a string that is no text */

/* Whatever was shortened ends with a note of it. Inner texts that found no room are null, and
 * so are inner strings that are too long for what they are: half an id is none.
 *
 * A text of the outermost object that was shortened: of its total bytes (in UTF-8) those from
 * that one on are there, as many as are kept, up to the character that did not fit. */
struct shorten_cut {
    char name[64];
    int64_t from, total;
};

struct shortener {
    struct buf out;   /* the text so far */
    bool too_long;    /* out ends early: not for its strings */
    int64_t keep;     /* bytes that stay of a long text, fewer if most of them are escaped */
    int64_t offset;   /* of texts of the outermost object: from that byte on */
    int64_t received; /* bytes */
    struct shorten_cut cuts[SHORTEN_NAMES];
    size_t n_cuts;

    /* where in the text we are */
    uint64_t in_object; /* a bit for each level: an object, else an array */
    int depth;
    bool after_colon, in_string;
    int64_t n_values;
    char name[64];    /* of the member whose value comes */
    size_t inner_len; /* of the inner texts that are there */

    /* the string under way */
    char escape[8]; /* until it is complete */
    size_t escape_len;
    char high[6]; /* the first half of a surrogate pair, until the second comes */
    bool has_high;
    char bytes[4]; /* of a character, until it is complete */
    size_t n_bytes;
    bool is_value, is_text, is_id, is_outer, is_long, is_over, is_null;
    int64_t limit;     /* bytes that may stay of it */
    size_t start;      /* in out, behind its quote */
    int64_t at;        /* decoded bytes so far */
    int64_t from;      /* first decoded byte that is kept, -1: none yet */
    size_t mark;       /* in out, where offset was reached */
    int64_t mark_from; /* and which byte that was, -1: not yet */
};

void shorten_init(struct shortener *shortener, int64_t keep, int64_t offset);
void shorten_fini(struct shortener *shortener);

/* Begins anew. */
void shorten_clear(struct shortener *shortener);

/* The next bytes of the text. False: there is no end to it. */
bool shorten_add(struct shortener *shortener, const char *bytes, size_t len);

#endif
