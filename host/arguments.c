/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/arguments.h"

#include <stdlib.h>
#include <string.h>

#include "host/schema.h"
#include "lib/jscan.h"
#include "lib/json.h"

bool
arguments_prepare(struct kcap_call *call, const cJSON *schema, struct buf *why)
{
    AUTO_JSON cJSON *arguments = NULL;
    const char *fault = NULL;
    char *text;

    buf_adds(why, "Invalid arguments: ");
    arguments = json_parse(call->args, call->args_len, &fault);
    if (!arguments) {
        buf_addf(why, "%s.", fault);
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
