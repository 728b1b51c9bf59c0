/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/arguments.h"

#include <stdlib.h>
#include <string.h>

#include "host/schema.h"
#include "lib/jscan.h"
#include "lib/json.h"

/* cJSON would end a string at \u0000, so such an argument is refused by name. */
static bool
refuse_nul(const struct kcap_call *call, struct buf *why)
{
    struct span key, value;
    struct span_iter iter;
    struct jscan scan, one;

    /* the line had one, but where? */
    if (!call->may_hold_nul || jscan(call->args, call->args_len, &scan) != JSCAN_OK ||
        !scan.has_nul)
        return false;
    span_members(scan.value, &iter);
    while (span_next_member(&iter, &key, &value)) {
        if (jscan(value.p, value.len, &one) == JSCAN_OK && one.has_nul) {
            buf_add(why, key.p + 1, key.len - 2);
            break;
        }
    }
    buf_adds(why, " must not contain U+0000");
    return true;
}

bool
arguments_prepare(struct kcap_call *call, const cJSON *schema, struct buf *why)
{
    AUTO_JSON cJSON *arguments = NULL;
    char *text;

    buf_adds(why, "Invalid arguments: ");
    if (refuse_nul(call, why))
        return false;
    arguments =
        cJSON_ParseWithLength(call->args, call->args_len); /* scanned as part of its line */
    if (!arguments) {
        buf_adds(why, "out of memory.");
        return false;
    }
    if (schema_drop_nulls(arguments)) {
        text = json_print(arguments);
        if (!text) {
            buf_adds(why, "out of memory.");
            return false;
        }
        free(call->args);
        call->args = text;
        call->args_len = strlen(text);
    }
    return schema_check(schema, arguments, why);
}
