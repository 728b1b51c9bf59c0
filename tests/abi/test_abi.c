/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ABI as numbers: every field of the public structs, where it stood when it was released. A
 * golden row that moved strands every plugin in the field, so rows are only ever added (print:
 * run with --print).
 */
#include "config.h"

#include <kcap/http.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct row {
    const char *name;
    size_t offset, size;
};

#define FIELD(type, field)                                                                \
    {                                                                                     \
#type "." #field, offsetof(struct type, field), sizeof(((struct type *)0)->field) \
    }
#define VALUE(macro)               \
    {                              \
#macro, (size_t)(macro), 0 \
    }

static const struct row rows[] = {
    FIELD(kcap_fd, fd),
    FIELD(kcap_fd, events),
    FIELD(kcap_fd, revents),
    FIELD(kcap_client, struct_size),
    FIELD(kcap_client, reserved),
    FIELD(kcap_client, name),
    FIELD(kcap_client, version),
    FIELD(kcap_client, harness),
    FIELD(kcap_client, session_id),
    FIELD(kcap_client, session_source),
    FIELD(kcap_client, meta),
    FIELD(kcap_tool, struct_size),
    FIELD(kcap_tool, flags),
    FIELD(kcap_tool, name),
    FIELD(kcap_tool, title),
    FIELD(kcap_tool, description),
    FIELD(kcap_tool, input_schema),
    FIELD(kcap_tool, output_schema),
    FIELD(kcap_tool, hints),
    FIELD(kcap_tool, reserved),
    FIELD(kcap_command, struct_size),
    FIELD(kcap_command, flags),
    FIELD(kcap_command, name),
    FIELD(kcap_command, summary),
    FIELD(kcap_command, run),
    FIELD(kcap_option, struct_size),
    FIELD(kcap_option, flags),
    FIELD(kcap_option, name),
    FIELD(kcap_option, summary),
    FIELD(kcap_plugin, magic),
    FIELD(kcap_plugin, struct_size),
    FIELD(kcap_plugin, abi_major),
    FIELD(kcap_plugin, abi_minor),
    FIELD(kcap_plugin, trust_class),
    FIELD(kcap_plugin, threads),
    FIELD(kcap_plugin, reserved),
    FIELD(kcap_plugin, name),
    FIELD(kcap_plugin, version),
    FIELD(kcap_plugin, summary),
    FIELD(kcap_plugin, tools),
    FIELD(kcap_plugin, commands),
    FIELD(kcap_plugin, options),
    FIELD(kcap_plugin, init),
    FIELD(kcap_plugin, call),
    FIELD(kcap_plugin, settled),
    FIELD(kcap_plugin, fini),
    FIELD(kcap_host, struct_size),
    FIELD(kcap_host, abi_major),
    FIELD(kcap_host, abi_minor),
    FIELD(kcap_host, log),
    FIELD(kcap_host, option),
    FIELD(kcap_host, env),
    FIELD(kcap_host, now_ns),
    FIELD(kcap_host, wall_ms),
    FIELD(kcap_host, seq),
    FIELD(kcap_host, notify),
    FIELD(kcap_host, wait),
    FIELD(kcap_host, wake_fd),
    FIELD(kcap_host, remaining_ms),
    FIELD(kcap_host, serial),
    FIELD(kcap_host, client),
    FIELD(kcap_host, progress),
    FIELD(kcap_host, result),
    FIELD(kcap_host, background),
    FIELD(kcap_host, extension),
    FIELD(kcap_host, content),
    FIELD(kcap_host, require),
    FIELD(kcap_note, namesz),
    FIELD(kcap_note, name),
    FIELD(kcap_note, abi_major),
    FIELD(kcap_note, trust_class),
    FIELD(kcap_http_server, struct_size),
    FIELD(kcap_http_server, kind),
    FIELD(kcap_http_server, url),
    FIELD(kcap_http_server, source),
    FIELD(kcap_http_server, error),
    FIELD(kcap_http_request, struct_size),
    FIELD(kcap_http_request, flags),
    FIELD(kcap_http_request, method),
    FIELD(kcap_http_request, path),
    FIELD(kcap_http_request, body),
    FIELD(kcap_http_request, body_len),
    FIELD(kcap_http_request, until_ns),
    FIELD(kcap_http_request, max_body_len),
    FIELD(kcap_http_request, receive),
    FIELD(kcap_http_request, receive_arg),
    FIELD(kcap_http_response, struct_size),
    FIELD(kcap_http_response, outcome),
    FIELD(kcap_http_response, status),
    FIELD(kcap_http_response, body),
    FIELD(kcap_http_response, body_len),
    FIELD(kcap_http_response, content_type),
    FIELD(kcap_http_response, retry_after_ms),
    FIELD(kcap_http_response, error),
    FIELD(kcap_http, struct_size),
    FIELD(kcap_http, server),
    FIELD(kcap_http, request),
    FIELD(kcap_http, response_free),
    FIELD(kcap_http, check),
    VALUE(KCAP_MAGIC),
    VALUE(KCAP_CLASS_DRIVER),
    VALUE(KCAP_CLASS_REVIEWER),
    VALUE(KCAP_CLASS_SETUP),
    VALUE(KCAP_CLASS_SERVICE),
    VALUE(KCAP_THREADS_SERIAL),
    VALUE(KCAP_THREADS_PARALLEL),
    VALUE(KCAP_WAIT_CHANGED),
    VALUE(KCAP_WAIT_FD),
    VALUE(KCAP_WAIT_TIMEOUT),
    VALUE(KCAP_WAIT_CANCELLED),
    VALUE(KCAP_WAIT_DEADLINE),
    VALUE(KCAP_WAIT_SHUTDOWN),
    VALUE(KCAP_SETTLED_WRITTEN),
    VALUE(KCAP_SETTLED_CANCELLED),
    VALUE(KCAP_SETTLED_LATE_CANCEL),
    VALUE(KCAP_SETTLED_DROPPED),
    VALUE(KCAP_FD_READ),
    VALUE(KCAP_FD_WRITE),
    VALUE(KCAP_FD_ERROR),
    VALUE(KCAP_HINT_READ_ONLY),
    VALUE(KCAP_HINT_DESTRUCTIVE),
    VALUE(KCAP_HINT_IDEMPOTENT),
    VALUE(KCAP_HINT_OPEN_WORLD),
    VALUE(KCAP_HTTP_ANSWER),
    VALUE(KCAP_HTTP_NOT_SENT),
    VALUE(KCAP_HTTP_UNKNOWN),
};
#define N_ROWS (sizeof rows / sizeof rows[0])

static bool
matches(const char *line, char *ret_name, size_t name_len)
{
    unsigned long long offset, size;
    char name[128];

    if (sscanf(line, "%127s %llu %llu", name, &offset, &size) != 3)
        return false;
    (void)snprintf(ret_name, name_len, "%s", name);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].offset == offset && rows[i].size == size;
    }
    return false;
}

int
main(int argc, char **argv)
{
    char line[256], name[128] = "?";
    size_t seen = 0, bad = 0;
    FILE *golden;

    (void)argv;
    for (size_t i = 0; argc > 1 && i < N_ROWS; i++)
        (void)printf("%s %zu %zu\n", rows[i].name, rows[i].offset, rows[i].size);
    if (argc > 1)
        return 0;
    if (sizeof(void *) != 8) {
        (void)puts("skipped: the golden numbers are those of 64-bit machines");
        return 77;
    }
    golden = fopen(KCAP_SRCDIR "/tests/abi/abi-1.0.txt", "re");
    if (!golden) {
        perror("abi-1.0.txt");
        return 1;
    }
    for (; fgets(line, sizeof line, golden); seen++) {
        if (!matches(line, name, sizeof name)) {
            (void)printf("moved or gone: %s\n", line);
            bad++;
        }
    }
    (void)fclose(golden);
    (void)printf("%zu rows, %zu bad\n", seen, bad);
    return seen >= N_ROWS && bad == 0 ? 0 : 1;
}
