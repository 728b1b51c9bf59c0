/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments against a schema: the first line of the input is the schema, the rest the
 * arguments. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "host/schema.h"
#include "lib/json.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *line_end = size > 0 ? memchr(text, '\n', size) : NULL;
    struct buf why = BUF_INIT(64u << 10);
    cJSON *schema, *arguments;

    if (!line_end)
        return 0;
    schema = json_parse(text, (size_t)(line_end - text), NULL);
    arguments = json_parse(line_end + 1, size - (size_t)(line_end - text) - 1, NULL);
    if (cJSON_IsObject(schema) && cJSON_IsObject(arguments)) {
        (void)schema_is_sound(schema, &why);
        buf_clear(&why);
        (void)schema_drop_nulls(arguments);
        if (schema_check(schema, arguments, &why) != (why.len == 0 && buf_ok(&why)))
            abort(); /* a refusal without a reason, or a reason without a refusal */
    }
    cJSON_Delete(arguments);
    cJSON_Delete(schema);
    buf_fini(&why);
    return 0;
}
