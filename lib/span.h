/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values as spans of JSON text that jscan has accepted; on other text the result is undefined.
 * Nothing is copied, so numbers and ids keep the digits they came with.
 */
#ifndef KCAP_LIB_SPAN_H
#define KCAP_LIB_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
    const char *p; /* NULL: absent */
    size_t len;
};

struct span_iter {
    const char *p, *end;
};

/* Walks the members of an object: key is the raw name with its quotes. */
void span_members(struct span object, struct span_iter *ret);
bool span_next_member(struct span_iter *iter, struct span *ret_key, struct span *ret_value);

/* Walks the elements of an array. */
void span_elements(struct span array, struct span_iter *ret);
bool span_next_element(struct span_iter *iter, struct span *ret_value);
bool span_has_elements(struct span array);

/* The member's value, or an absent span; also when object is no object. */
struct span span_get(struct span object, const char *name);

/* What a value is, by its first character: '{' '[' '"' '0' (number) 't' (true or false) 'n'
 * (null), 0 when absent. */
char span_type(struct span value);

/* Whether the string value (raw, quoted) says name once its escapes are read. */
bool span_is(struct span string, const char *name);

/* Whether two raw values are the same token; strings are compared after their escapes are read.
 */
bool span_same(struct span a, struct span b);

/* Integer without fraction or exponent, as raw text of any size. */
bool span_is_integer(struct span value);

/* A copy of a string value, escapes read; NULL when out of memory. A \u0000 is kept, so see
 * *ret_len. */
char *span_string(struct span string, size_t *ret_len);

/* Order of two raw strings by their bytes, escapes read; 0 when equal. */
int span_compare_strings(struct span a, struct span b);

/* A hash of what the raw string says, the same however it is escaped. */
uint64_t span_hash_string(struct span string);

/* The value of four checked hexadecimal digits. */
unsigned span_hex4(const char *p);

#endif
