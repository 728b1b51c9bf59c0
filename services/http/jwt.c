/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jwt.h"

#include <string.h>

#include "lib/buf.h"
#include "lib/json.h"

#define MAX_PAYLOAD ((size_t)64 << 10)
#define MAX_SEC     INT64_C(253402300799) /* the year 9999 */

static int
value_of(char c)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const char *found = c ? strchr(alphabet, c) : NULL;

    return found ? (int)(found - alphabet) : -1;
}

static bool
decode(const char *text, size_t len, struct buf *to)
{
    uint32_t bits = 0;
    int n_bits = 0;

    for (size_t i = 0; i < len; i++) {
        int value = value_of(text[i]);
        if (value < 0)
            return false;
        bits = (bits << 6 | (uint32_t)value) & 0xffff;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            buf_addc(to, (char)(bits >> n_bits & 0xff));
        }
    }
    return buf_ok(to);
}

bool
jwt_expiry(const char *token, int64_t *ret_ms)
{
    const char *begin = strchr(token, '.'), *end = begin ? strchr(begin + 1, '.') : NULL;
    AUTO_BUF struct buf payload = BUF_INIT(MAX_PAYLOAD);
    AUTO_JSON cJSON *json = NULL;
    int64_t sec;

    if (!end || !decode(begin + 1, (size_t)(end - begin - 1), &payload))
        return false;
    json = json_parse(buf_str(&payload), payload.len, NULL);
    if (!json_int(json, "exp", &sec) || sec <= 0 || sec > MAX_SEC)
        return false;
    *ret_ms = sec * 1000;
    return true;
}
