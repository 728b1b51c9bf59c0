/* SPDX-License-Identifier: Apache-2.0 */
/* Reads TOML from standard input and prints it as toml-test's typed JSON; a fault goes to
 * stderr, status 1. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/text.h"
#include "plugins/codex-setup/toml.h"

static void
add_value(struct buf *to, const struct toml_value *value)
{
    static const char *const types[] = {
        [TOML_STRING] = "string",         [TOML_INTEGER] = "integer",
        [TOML_FLOAT] = "float",           [TOML_BOOL] = "bool",
        [TOML_DATETIME] = "datetime",     [TOML_LOCAL_DATETIME] = "datetime-local",
        [TOML_LOCAL_DATE] = "date-local", [TOML_LOCAL_TIME] = "time-local"};
    bool table = value->kind == TOML_TABLE;

    if (!table && value->kind != TOML_ARRAY) {
        buf_addf(to, "{\"type\":\"%s\",\"value\":", types[value->kind]);
        text_add_json(to, value->text, value->text_len);
        buf_addc(to, '}');
        return;
    }
    buf_addc(to, table ? '{' : '[');
    for (const struct toml_value *each = value->first; each; each = each->next) {
        if (each != value->first)
            buf_addc(to, ',');
        if (table) {
            text_add_json(to, each->key, strlen(each->key));
            buf_addc(to, ':');
        }
        add_value(to, each);
    }
    buf_addc(to, table ? '}' : ']');
}

int
main(void)
{
    struct buf in = BUF_INIT(16u << 20), out = BUF_INIT(64u << 20);
    struct toml_value *root = NULL;
    struct toml_error error;
    char some[4096], *exact;
    size_t n;
    int status = 1;

    while ((n = fread(some, 1, sizeof some, stdin)) > 0)
        buf_add(&in, some, n);
    exact = malloc(in.len + 1); /* no NUL behind it, so that reading on is seen */
    if (exact)
        memcpy(exact, buf_str(&in), in.len);
    if (exact && toml_parse(exact, in.len, &root, &error) == 0) {
        add_value(&out, root);
        status = puts(buf_str(&out)) < 0;
    } else if (exact) {
        (void)fprintf(stderr, "%zu:%zu: %s\n", error.line, error.column, error.text);
    }
    toml_free(root);
    free(exact);
    buf_fini(&in);
    buf_fini(&out);
    return status;
}
