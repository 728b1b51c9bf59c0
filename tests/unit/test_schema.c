/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "host/schema.h"
#include "tests/unit/suite.h"

static const char schema_text[] = "{\"type\":\"object\",\"additionalProperties\":false,"
                                  "\"required\":[\"id\",\"n\"],\"properties\":{"
                                  "\"id\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":3,"
                                  "\"description\":\"The run's id.\"},"
                                  "\"n\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":9},"
                                  "\"wait\":{\"type\":\"boolean\"},"
                                  "\"kind\":{\"enum\":[\"clean\",\"findings\"]},"
                                  "\"any\":{\"type\":[\"string\",\"number\"]}}}";

static const struct {
    const char *arguments;
    const char *why; /* NULL: valid */
} rows[] = {
    {"{\"id\":\"a\",\"n\":1}", NULL},
    {"{\"id\":\"\xc3\xa9\xc3\xa9\xc3\xa9\",\"n\":1.0}", NULL},
    {"{\"id\":\"a\",\"n\":1,\"wait\":false,\"kind\":\"clean\",\"any\":2}", NULL},
    {"{\"n\":1}", "'id' is required. The run's id."},
    {"{\"id\":5,\"n\":1}", "'id' must be of type string, not number. The run's id."},
    {"{\"id\":\"\",\"n\":1}", "'id' must not be empty. The run's id."},
    {"{\"id\":\"abcd\",\"n\":1}",
     "'id' must be at most 3 characters long, it is 4. The run's id."},
    {"{\"id\":\"a\"}", "'n' is required."},
    {"{\"id\":\"a\",\"n\":1.5}", "'n' must be of type integer, not number."},
    {"{\"id\":\"a\",\"n\":-1}", "'n' must be at least 0, it is -1."},
    {"{\"id\":\"a\",\"n\":10}", "'n' must be at most 9, it is 10."},
    {"{\"id\":\"a\",\"n\":1,\"wait\":\"yes\"}", "'wait' must be of type boolean, not string."},
    {"{\"id\":\"a\",\"n\":1,\"kind\":\"Clean\"}",
     "'kind' must be one of \"clean\", \"findings\"; it is 'Clean'."},
    {"{\"id\":\"a\",\"n\":1,\"any\":[]}", "'any' must not be of type array."},
    {"{\"ID\":\"a\",\"n\":1}",
     "unknown argument 'ID'; this tool takes id, n, wait, kind, any."},
    {"{\"id\":\"a\",\"n\":1,\"x\\ny\":1}",
     "unknown argument 'x\\ny'; this tool takes id, n, wait, kind, any."},
};

START_TEST(schema_row)
{
    cJSON *schema = cJSON_Parse(schema_text), *arguments = cJSON_Parse(rows[_i].arguments);
    struct buf why = BUF_INIT(1000);
    bool valid = schema_check(schema, arguments, &why);

    ck_assert_str_eq(buf_str(&why), rows[_i].why ? rows[_i].why : "");
    ck_assert(valid == !rows[_i].why);
    buf_fini(&why);
    cJSON_Delete(arguments);
    cJSON_Delete(schema);
}
END_TEST

static const struct {
    const char *arguments;
    bool valid;
} one_of[] = {
    {"{\"a\":1}", true}, {"{\"b\":1}", true}, {"{}", false}, {"{\"a\":1,\"b\":1}", false}};

START_TEST(one_of_row)
{
    cJSON *schema = cJSON_Parse("{\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}");
    cJSON *arguments = cJSON_Parse(one_of[_i].arguments);
    struct buf why = BUF_INIT(1000);

    ck_assert(schema_check(schema, arguments, &why) == one_of[_i].valid);
    if (!one_of[_i].valid)
        ck_assert_ptr_nonnull(
            strstr(buf_str(&why), "exactly one of these must be given: a, b"));
    buf_fini(&why);
    cJSON_Delete(arguments);
    cJSON_Delete(schema);
}
END_TEST

START_TEST(nulls_are_dropped)
{
    cJSON *arguments = cJSON_Parse("{\"a\":null,\"b\":1,\"c\":null}");

    ck_assert(schema_drop_nulls(arguments));
    ck_assert_int_eq(cJSON_GetArraySize(arguments), 1);
    ck_assert(!schema_drop_nulls(arguments));
    cJSON_Delete(arguments);
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_loop_test(tests, schema_row, 0, N_ROWS(rows));
    tcase_add_loop_test(tests, one_of_row, 0, N_ROWS(one_of));
    tcase_add_test(tests, nulls_are_dropped);
}

int
main(void)
{
    return suite_run("schema", add);
}
