/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/schema.h"

#include <stdint.h>
#include <string.h>

#include "lib/json.h"
#include "lib/text.h"

#define MAX_SHOWN 80 /* of a value in a message */

bool
schema_drop_nulls(cJSON *arguments)
{
    cJSON *item = arguments->child, *next;
    bool any = false;

    for (; item; item = next) {
        next = item->next;
        if (cJSON_IsNull(item)) {
            cJSON_Delete(cJSON_DetachItemViaPointer(arguments, item));
            any = true;
        }
    }
    return any;
}

static const char *
type_of(const cJSON *value)
{
    if (cJSON_IsString(value))
        return "string";
    if (cJSON_IsBool(value))
        return "boolean";
    if (cJSON_IsNumber(value))
        return "number";
    if (cJSON_IsArray(value))
        return "array";
    return cJSON_IsObject(value) ? "object" : "null";
}

/* Without libm, which nothing here links: beyond 2^53 every double is whole. */
static bool
is_whole(double number)
{
    return !(number > -9007199254740992.0 && number < 9007199254740992.0) ||
           number == (double)(int64_t)number;
}

static bool
has_type(const cJSON *value, const char *type)
{
    if (strcmp(type, "integer") == 0) /* 1.0 is an integer in JSON Schema */
        return cJSON_IsNumber(value) && is_whole(value->valuedouble);
    return strcmp(type, type_of(value)) == 0;
}

/* Code points, as JSON Schema counts. */
static double
length_of(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return (double)n;
}

static void
add_name(struct buf *why, const char *name)
{
    buf_addc(why, '\'');
    text_add_line(why, name, text_prefix(name, strlen(name), MAX_SHOWN));
    buf_addc(why, '\'');
}

static void
add_hint(struct buf *why, const cJSON *schema)
{
    const char *hint = json_str(schema, "description");

    buf_addc(why, '.');
    if (hint)
        buf_addf(why, " %s", hint);
}

static bool
check_type(const cJSON *schema, const cJSON *value, struct buf *why)
{
    const cJSON *type = json_get(schema, "type"), *each;
    bool fits = !type;

    if (cJSON_IsString(type))
        fits = has_type(value, type->valuestring);
    else
        cJSON_ArrayForEach(each, type) fits =
            fits || (cJSON_IsString(each) && has_type(value, each->valuestring));
    if (fits)
        return true;
    add_name(why, value->string);
    if (cJSON_IsString(type))
        buf_addf(why, " must be of type %s, not %s", type->valuestring, type_of(value));
    else
        buf_addf(why, " must not be of type %s", type_of(value));
    return false;
}

static bool
check_enum(const cJSON *schema, const cJSON *value, struct buf *why)
{
    const cJSON *allowed = json_get(schema, "enum"), *each;
    const char *between = "";

    if (!allowed)
        return true;
    cJSON_ArrayForEach(each, allowed)
    {
        if (cJSON_Compare(each, value, true))
            return true;
    }
    add_name(why, value->string);
    buf_adds(why, " must be one of ");
    cJSON_ArrayForEach(each, allowed)
    {
        char *text = json_print(each);
        buf_addf(why, "%s%s", between, text ? text : "?");
        cJSON_free(text);
        between = ", ";
    }
    if (cJSON_IsString(value)) {
        buf_adds(why, "; it is ");
        add_name(why, value->valuestring);
    }
    return false;
}

static bool
check_bounds(const cJSON *schema, const cJSON *value, struct buf *why)
{
    static const struct {
        const char *keyword;
        bool string, is_least;
    } bounds[] = {{"minLength", true, true},
                  {"maxLength", true, false},
                  {"minimum", false, true},
                  {"maximum", false, false}};

    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        const cJSON *bound = json_get(schema, bounds[i].keyword);
        double have;

        if (!cJSON_IsNumber(bound) ||
            !(bounds[i].string ? cJSON_IsString(value) : cJSON_IsNumber(value)))
            continue;
        have = bounds[i].string ? length_of(value->valuestring) : value->valuedouble;
        if (bounds[i].is_least ? have >= bound->valuedouble : have <= bound->valuedouble)
            continue;
        add_name(why, value->string);
        if (bounds[i].string && bound->valuedouble == 1 && bounds[i].is_least)
            buf_adds(why, " must not be empty");
        else
            buf_addf(why, " must be at %s %.15g%s, it is %.15g",
                     bounds[i].is_least ? "least" : "most", bound->valuedouble,
                     bounds[i].string ? " characters long" : "", have);
        return false;
    }
    return true;
}

/* A schema whose properties are no object says nothing about any argument. */
static const cJSON *
properties_of(const cJSON *schema)
{
    const cJSON *properties = json_get(schema, "properties");

    return cJSON_IsObject(properties) ? properties : NULL;
}

static bool
is_required(const cJSON *schema, const char *name)
{
    const cJSON *each;

    cJSON_ArrayForEach(each, json_get(schema, "required"))
    {
        if (cJSON_IsString(each) && strcmp(each->valuestring, name) == 0)
            return true;
    }
    return false;
}

/* Unknown names come first: a misspelt argument is why the right one is missing. */
static bool
check_unknown(const cJSON *schema, const cJSON *arguments, struct buf *why)
{
    const cJSON *properties = properties_of(schema), *each, *known;
    const char *between = "";

    if (!cJSON_IsFalse(json_get(schema, "additionalProperties")))
        return true;
    cJSON_ArrayForEach(each, arguments)
    {
        if (json_get(properties, each->string))
            continue;
        buf_adds(why, "unknown argument ");
        add_name(why, each->string);
        buf_adds(why, properties && properties->child ? "; this tool takes "
                                                      : "; this tool takes none");
        cJSON_ArrayForEach(known, properties)
        {
            buf_addf(why, "%s%s", between, known->string);
            between = ", ";
        }
        buf_addc(why, '.');
        return false;
    }
    return true;
}

/* oneOf of required lists: exactly one alternative's names are all given. */
static bool
check_one_of(const cJSON *schema, const cJSON *arguments, struct buf *why)
{
    const cJSON *one_of = json_get(schema, "oneOf"), *alternative, *name;
    const char *between = "exactly one of these must be given: ";
    int fits = 0;

    if (!cJSON_IsArray(one_of))
        return true;
    cJSON_ArrayForEach(alternative, one_of)
    {
        bool all = true;
        cJSON_ArrayForEach(name, json_get(alternative, "required")) all =
            all && cJSON_IsString(name) && json_get(arguments, name->valuestring);
        fits += all;
    }
    if (fits == 1)
        return true;
    cJSON_ArrayForEach(alternative, one_of)
    {
        cJSON_ArrayForEach(name, json_get(alternative, "required"))
        {
            buf_addf(why, "%s%s", between, cJSON_IsString(name) ? name->valuestring : "?");
            between = " and ";
        }
        between = ", ";
    }
    buf_addf(why, " (given: %d).", fits);
    return false;
}

bool
schema_check(const cJSON *schema, const cJSON *arguments, struct buf *why)
{
    const cJSON *property;

    if (!check_unknown(schema, arguments, why))
        return false;
    cJSON_ArrayForEach(property, properties_of(schema))
    {
        const cJSON *value = json_get(arguments, property->string);

        if (!value && !is_required(schema, property->string))
            continue;
        if (!value) {
            add_name(why, property->string);
            buf_adds(why, " is required");
        } else if (check_type(property, value, why) && check_enum(property, value, why) &&
                   check_bounds(property, value, why)) {
            continue;
        }
        add_hint(why, property);
        return false;
    }
    return check_one_of(schema, arguments, why);
}

static bool
is_known_type(const cJSON *type)
{
    static const char *const known[] = {"string", "boolean", "number", "integer",
                                        "array",  "object",  "null"};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (cJSON_IsString(type) && strcmp(type->valuestring, known[i]) == 0)
            return true;
    }
    return false;
}

static bool
property_is_sound(const cJSON *property, struct buf *why)
{
    static const char *const bounds[] = {"minLength", "maxLength", "minimum", "maximum"};
    const cJSON *type = json_get(property, "type"), *allowed = json_get(property, "enum"),
                *each;
    bool sound = cJSON_IsObject(property) || cJSON_IsBool(property);

    if (cJSON_IsArray(type))
        cJSON_ArrayForEach(each, type) sound = sound && is_known_type(each);
    else
        sound = sound && (!type || is_known_type(type));
    sound = sound && (!allowed || cJSON_GetArraySize(allowed) > 0);
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        const cJSON *bound = json_get(property, bounds[i]);
        sound = sound && (!bound || cJSON_IsNumber(bound));
    }
    if (!sound) {
        add_name(why, property->string);
        buf_adds(why, " has an unknown type, an empty enum or a bound that is no number");
    }
    return sound;
}

bool
schema_is_sound(const cJSON *schema, struct buf *why)
{
    const cJSON *properties = properties_of(schema), *each;
    const char *type = json_str(schema, "type");

    if (!type || strcmp(type, "object") != 0) {
        buf_adds(why, "its type must be object");
        return false;
    }
    if (json_get(schema, "properties") && !properties) {
        buf_adds(why, "its properties must be an object");
        return false;
    }
    cJSON_ArrayForEach(each, properties)
    {
        if (!property_is_sound(each, why))
            return false;
    }
    cJSON_ArrayForEach(each, json_get(schema, "required"))
    {
        if (cJSON_IsString(each) && json_get(properties, each->valuestring))
            continue;
        add_name(why, cJSON_IsString(each) ? each->valuestring : "?");
        buf_adds(why, " is required but no property");
        return false;
    }
    return true;
}
