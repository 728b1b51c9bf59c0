/* SPDX-License-Identifier: Apache-2.0 */
/* The lexical half of the TOML reader: keys and values. Shared by toml*.c alone. */
#ifndef KCAP_CODEX_SETUP_TOML_SCAN_H
#define KCAP_CODEX_SETUP_TOML_SCAN_H

#include "toml.h"

#define PATH_MAX_KEYS 64

struct scan {
    const char *text;
    size_t len, at;
    const char *error; /* the first fault, and where */
    size_t error_at;
};

struct key {
    char *text;
    size_t at;
};

struct path {
    struct key keys[PATH_MAX_KEYS];
    size_t n;
};

/* Each of these returns false (or NULL) after noting a fault. */
bool scan_fail(struct scan *s, const char *text);
bool scan_fail_at(struct scan *s, size_t at, const char *text);
void scan_position(const struct scan *s, struct toml_error *ret);

bool scan_check_text(struct scan *s); /* UTF-8, no stray control character or carriage return */
bool scan_is(const struct scan *s, const char *word);
bool scan_take(struct scan *s, const char *word, const char *otherwise); /* after blanks */
void scan_blanks(struct scan *s);
bool scan_newline(struct scan *s); /* takes one; false without a fault when there is none */
bool scan_comment(struct scan *s); /* takes one if there is one */
bool scan_space_and_comments(struct scan *s);
size_t scan_line_start(const struct scan *s);

bool scan_path(struct scan *s, struct path *ret); /* a.b."c" */
void path_fini(struct path *path);
char *path_take_last(struct path *path);

struct toml_value *scan_value(struct scan *s, int depth);
struct toml_value *scan_string(struct scan *s);
struct toml_value *scan_number_or_time(struct scan *s);

struct toml_value *toml_new(enum toml_kind kind);
/* Gives value to an array, or with its key to a table. False when out of memory; it belongs to
 * that all the same. */
bool toml_append(struct toml_value *to, struct toml_value *value);

/* Walks a dotted key's tables, making them, and checks that its last part is free. */
struct toml_value *toml_descend(struct scan *s, struct toml_value *table,
                                const struct path *path, unsigned section);

#endif
