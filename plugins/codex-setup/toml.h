/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads TOML (1.0, and the 1.1 forms that Codex reads) into values that know where in the text
 * they stand, so that an editor can change its own bytes and nothing else. Strict: what the
 * specification forbids is an error with line and column. The text is not kept; spans are
 * offsets into it.
 */
#ifndef KCAP_CODEX_SETUP_TOML_H
#define KCAP_CODEX_SETUP_TOML_H

#include <stdbool.h>
#include <stddef.h>

#define TOML_MAX_DEPTH 64

enum toml_kind {
    TOML_TABLE,
    TOML_ARRAY,
    TOML_STRING,
    TOML_INTEGER,
    TOML_FLOAT,
    TOML_BOOL,
    TOML_DATETIME,
    TOML_LOCAL_DATETIME,
    TOML_LOCAL_DATE,
    TOML_LOCAL_TIME,
};

/* How a table came to be. */
enum toml_form {
    TOML_IMPLICIT, /* named on the way to another: [a.b] makes a */
    TOML_HEADER,   /* [a], or an element of [[a]] */
    TOML_DOTTED,   /* a.b = 1 makes a */
    TOML_INLINE,   /* { ... } */
};

struct toml_span {
    size_t from, to;
};

struct toml_value {
    enum toml_kind kind;
    enum toml_form form; /* of a table */
    char *key;           /* decoded; NULL in arrays and for the root */
    char *text; /* of a scalar: a string's bytes, else a spelling that equal values share */
    size_t text_len;
    struct toml_span span; /* a value: its text. A header table: its header line */
    struct toml_span
        statement;         /* a key = value line with its line end, from the line's start */
    struct toml_span path; /* the key path of that line, as spelled */
    size_t body_end;       /* a header table: the end of its last line before the next header */
    struct toml_value *first, *last, *next; /* members or elements, in order */

    /* the parser's own */
    bool explicit_, frozen, of_tables;
    unsigned section;
    size_t n;                    /* members or elements */
    struct toml_value **by_name; /* a hash table of the members, once there are many */
    size_t by_name_room;         /* a power of two */
};

struct toml_error {
    size_t line, column; /* from 1; columns count bytes */
    const char *text;    /* constant */
};

/* Returns 0 and the root table, or -1 and *ret_error. */
int toml_parse(const char *text, size_t len, struct toml_value **ret_root,
               struct toml_error *ret_error);
void toml_free(struct toml_value *value);

/* The member of a table, or NULL; also when table is NULL or no table. Takes the same time
 * however large the table is. */
struct toml_value *toml_get(const struct toml_value *table, const char *key);

/* Whether two values are the same as values, whatever their spelling and order of members. */
bool toml_equal(const struct toml_value *a, const struct toml_value *b);

#endif
