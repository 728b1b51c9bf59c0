/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "host/rpc.h"
#include "tests/unit/suite.h"

#define V "\"jsonrpc\":\"2.0\","

static const struct {
    const char *line;
    enum rpc_kind kind;
    int code;
    const char *id; /* raw, or NULL: absent */
} rows[] = {
    {"{" V "\"id\":1,\"method\":\"ping\"}", RPC_REQUEST, 0, "1"},
    {"{" V "\"id\":\"\",\"method\":\"ping\",\"params\":{}}", RPC_REQUEST, 0, "\"\""},
    {"{" V "\"id\":123456789012345678901234567890,\"method\":\"ping\"}", RPC_REQUEST, 0,
     "123456789012345678901234567890"},
    {"{" V "\"method\":\"notifications/x\"}", RPC_NOTIFICATION, 0, NULL},
    {"{" V "\"id\":1,\"result\":{}}", RPC_IGNORE, 0, "1"},
    {"{" V "\"id\":1,\"error\":{}}", RPC_IGNORE, 0, "1"},
    {"{\"method\":\"x\"}", RPC_IGNORE, 0, NULL},
    {"{" V "\"method\":5}", RPC_IGNORE, 0, NULL},
    {"{\"id\":78,\"method\":5}", RPC_BAD, RPC_INVALID_REQUEST, "78"},
    {"{" V "\"id\":78,\"method\":5}", RPC_BAD, RPC_INVALID_REQUEST, "78"},
    {"{" V "\"id\":78}", RPC_BAD, RPC_INVALID_REQUEST, "78"},
    {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", RPC_BAD, RPC_INVALID_REQUEST, "1"},
    {"{" V "\"id\":null,\"method\":\"ping\"}", RPC_BAD, RPC_INVALID_REQUEST, NULL},
    {"{" V "\"id\":true,\"method\":\"ping\"}", RPC_BAD, RPC_INVALID_REQUEST, NULL},
    {"{" V "\"id\":1.5,\"method\":\"ping\"}", RPC_BAD, RPC_INVALID_REQUEST, NULL},
    {"{" V "\"id\":{},\"method\":\"ping\"}", RPC_BAD, RPC_INVALID_REQUEST, NULL},
    {"{" V "\"id\":[1],\"method\":\"ping\"}", RPC_BAD, RPC_INVALID_REQUEST, NULL},
    {"{" V "\"id\":1,\"id\":2,\"method\":\"ping\"}", RPC_BAD, RPC_INVALID_REQUEST, NULL},
    {"[]", RPC_BAD, RPC_INVALID_REQUEST, NULL},
    {"3", RPC_BAD, RPC_INVALID_REQUEST, NULL},
    {"null", RPC_BAD, RPC_INVALID_REQUEST, NULL},
    {"{", RPC_BAD, RPC_PARSE_ERROR, NULL},
    {"{} {}", RPC_BAD, RPC_PARSE_ERROR, NULL},
    {"hello", RPC_BAD, RPC_PARSE_ERROR, NULL},
    {"{\"ID\":1," V "\"method\":\"ping\"}", RPC_NOTIFICATION, 0, NULL},
};

START_TEST(line_row)
{
    struct rpc rpc;

    rpc_read(rows[_i].line, strlen(rows[_i].line), false, &rpc);
    ck_assert_int_eq(rpc.kind, rows[_i].kind);
    if (rpc.kind == RPC_BAD)
        ck_assert_int_eq(rpc.code, rows[_i].code);
    if (rows[_i].id) {
        ck_assert_uint_eq(rpc.id.len, strlen(rows[_i].id));
        ck_assert_mem_eq(rpc.id.p, rows[_i].id, rpc.id.len);
    } else {
        ck_assert_ptr_null(rpc.id.p);
    }
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_loop_test(tests, line_row, 0, N_ROWS(rows));
}

int
main(void)
{
    return suite_run("rpc", add);
}
