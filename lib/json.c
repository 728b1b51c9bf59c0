/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "lib/json.h"

#include "lib/jscan.h"

cJSON *
json_parse(const char *text, size_t len, const char **ret_error)
{
    struct jscan scan;
    int r = jscan(text, len, &scan);
    const char *error = r < 0          ? jscan_message(r)
                        : scan.has_nul ? "a string holds \\u0000"
                                       : NULL;
    cJSON *value = NULL;

    if (!error) {
        value = cJSON_ParseWithLength(scan.value.p, scan.value.len);
        if (!value)
            error = jscan_message(JSCAN_NOMEM);
    }
    if (error && ret_error)
        *ret_error = error;
    return value;
}

const cJSON *
json_get(const cJSON *object, const char *name)
{
    return cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, name) : NULL;
}

const char *
json_str(const cJSON *object, const char *name)
{
    return cJSON_GetStringValue(json_get(object, name));
}

bool
json_int(const cJSON *object, const char *name, int64_t *ret)
{
    const cJSON *item = json_get(object, name);

    if (!cJSON_IsNumber(item) || !(item->valuedouble >= -9007199254740992.0) ||
        !(item->valuedouble <= 9007199254740992.0) ||
        item->valuedouble != (double)(int64_t)item->valuedouble)
        return false;
    *ret = (int64_t)item->valuedouble;
    return true;
}

bool
json_bool(const cJSON *object, const char *name, bool fallback)
{
    const cJSON *item = json_get(object, name);

    return cJSON_IsBool(item) ? (bool)cJSON_IsTrue(item) : fallback;
}

bool
json_add_str(cJSON *object, const char *name, const char *text)
{
    return !text || cJSON_AddStringToObject(object, name, text) != NULL;
}

char *
json_print(const cJSON *value)
{
    return cJSON_PrintUnformatted(value);
}
