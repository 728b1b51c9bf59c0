/* SPDX-License-Identifier: Apache-2.0 */
/* Text from outside: UTF-8 checks, escapes that keep it harmless, strict numbers. */
#ifndef KCAP_LIB_TEXT_H
#define KCAP_LIB_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"

/* Length (1 to 4) of the well-formed UTF-8 character at p, 0 when there is none within len
 * bytes. */
size_t text_utf8_len(const char *p, size_t len);
/* How many bytes from p on are ASCII that a JSON string holds as they are: no control
 * character, quote or backslash. Eight at a time, because most of a long message is such. */
size_t text_plain_len(const char *p, size_t len);

bool text_is_utf8(const char *p, size_t len);

/* Encodes a code point into out; returns 1 to 4. */
size_t text_encode_utf8(uint32_t code_point, char out[4]);

/* Appends text as free text: bad UTF-8 and control characters other than \n and \t become
 * U+FFFD. */
void text_add_clean(struct buf *to, const char *text, size_t len);

/* Appends text as part of one line: as above, and line ends, tabs and marks that turn
 * the reading direction become \n, \r, \t and \uXXXX in letters. */
void text_add_line(struct buf *to, const char *text, size_t len);

/* Appends text as a JSON string with its quotes; bad UTF-8 becomes U+FFFD. */
void text_add_json(struct buf *to, const char *text, size_t len);

/* Appends text as a TOML string with its quotes. The text is UTF-8. */
void text_add_toml(struct buf *to, const char *text);

/* The longest prefix of at most max bytes that does not cut a character. */
size_t text_prefix(const char *text, size_t len, size_t max);

/* A whole decimal number from min to max and nothing else. */
bool text_to_int(const char *text, int64_t min, int64_t max, int64_t *ret);

/* 64 bits of FNV-1a over the text, from a start of the caller's: for file names, not against
 * malice. */
uint64_t text_hash(const char *text, uint64_t start);

/* NULL, empty or white space alone. */
bool text_is_blank(const char *text);

#endif
