/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_load - load driver for MCP servers that speak line-delimited JSON-RPC on
 * stdin/stdout.  Linux only.
 *
 * USE
 *   mcp_load [options] SCENARIO[,SCENARIO...] -- SERVER [ARG...]
 *
 * Each scenario starts its own server process over three pipes (stderr goes to
 * /dev/null unless --stderr is given), performs the handshake, measures, closes
 * the server's stdin, waits for its exit, and prints ONE line of JSON.
 *
 * SCENARIOS
 *   start       --n spawns (default 20): time from just before the spawn to the
 *               first byte, and to the last byte, of the initialize response;
 *               time from closing stdin to the end of the process
 *   list        one tools/list: size of the answer and latency, --n times
 *   ping        --n sequential ping round trips (default 5000)
 *   call        --n sequential tools/call round trips of --tool/--args
 *   pipeline    --n pings (default 10000) written back to back, no waiting
 *   pipecall    the same with tools/call
 *   echo        --n calls (default 5) of --echo-tool whose argument --echo-key
 *               is a string of --bytes ASCII characters (default 1000000)
 *   concurrent  --n calls (default 100) of --block-tool/--block-args written at
 *               once, plus one ping 100 ms later; wall time says whether the
 *               server serialises calls, ping_ms whether it still answers
 *   cancel      one --block-tool call, cancelled after 200 ms by
 *               notifications/cancelled, then a ping: does the call end early,
 *               is a response sent for it, is the server alive afterwards
 *   soak        --n calls (default 1000000) with --window in flight (default
 *               64); resident set sampled at ten points
 *   garbage     a fixed list of malformed or odd lines, a ping after each: what
 *               is answered, does the server live
 *
 * OPTIONS
 *   --label S        name copied into every output line
 *   --n N            count (see above)
 *   --warmup N       untimed requests before ping/call/pipeline (default 200)
 *   --window N       most requests in flight, 0 = no limit (pipeline: 0)
 *   --tool S         tool for call/pipecall/soak          (default "echo")
 *   --args JSON      its arguments                        (default {"text":"hi"})
 *   --soak-ping      soak sends ping instead of tools/call
 *   --echo-tool S    default "echo";  --echo-key S   default "text"
 *   --echo-extra S   text put verbatim after the echo argument, e.g. ,"b":1
 *   --bytes N        size of the echoed string
 *   --block-tool S   default "slow"; --block-args JSON  default {"ms":1000}
 *   --proto S        protocolVersion to ask for (default 2025-06-18)
 *   --stateless      no initialize; each request carries the _meta fields of
 *                    revision 2026-07-28 (set --proto to match)
 *   --raw            the peer just returns bytes (cat): no handshake at all
 *   --string-ids     request ids are JSON strings
 *   --timeout S      give up after S seconds without progress (default 30)
 *   --max-seconds S  upper bound for one scenario (default 120)
 *   --spin           busy-wait for answers instead of poll() (own core needed)
 *   --env K=V        set in the server's environment (repeatable)
 *   --stderr FILE    append the server's standard error to FILE
 *   --dump           copy the first 400 bytes of each response to our stderr
 *
 * OUTPUT FIELDS (microseconds unless the name says otherwise)
 *   min/p50/p90/p99/max, mean, per_s (requests per second), wall_ms,
 *   cpu_us_per_req (the server's own user+system time divided by requests),
 *   rss_idle_kb, rss_kb, rss_peak_kb (VmRSS, VmHWM), threads, libs and
 *   libs_bytes (distinct mapped shared objects), exe_bytes, errors (responses
 *   with a top-level error), tool_errors (isError true), notes (server lines
 *   that are no response), died, timeout.
 *
 * EXAMPLE
 *   mcp_load --label host --tool noop --args '{}' start,ping,pipeline -- ./kcap-host --plugin x
 *   mcp_load --raw --label floor ping,pipeline -- cat
 */
#include "bench/load.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options options = {.label = "server",
                          .tool = "echo",
                          .args = "{\"text\":\"hi\"}",
                          .echo_tool = "echo",
                          .echo_key = "text",
                          .echo_extra = "",
                          .block_tool = "slow",
                          .block_args = "{\"ms\":1000}",
                          .proto = "2025-06-18",
                          .n = -1,
                          .warmup = 200,
                          .bytes = 1000000,
                          .timeout = 30,
                          .max_seconds = 120};

static void
run(const char *sc)
{
    if (!strcmp(sc, "start"))
        sc_start();
    else if (!strcmp(sc, "ping"))
        sc_seq("ping", K_PING, 5000);
    else if (!strcmp(sc, "call"))
        sc_seq("call", K_CALL, 5000);
    else if (!strcmp(sc, "list"))
        sc_seq("list", K_LIST, 200);
    else if (!strcmp(sc, "pipeline"))
        sc_pipe("pipeline", K_PING, 10000, false);
    else if (!strcmp(sc, "pipecall"))
        sc_pipe("pipecall", K_CALL, 10000, false);
    else if (!strcmp(sc, "soak"))
        sc_pipe("soak", options.soak_ping ? K_PING : K_CALL, 1000000, true);
    else if (!strcmp(sc, "echo"))
        sc_echo();
    else if (!strcmp(sc, "concurrent"))
        sc_concurrent();
    else if (!strcmp(sc, "cancel"))
        sc_cancel();
    else if (!strcmp(sc, "garbage"))
        sc_garbage();
    else
        die("unknown scenario '%s'", sc);
}

int
main(int argc, char **argv)
{
    int i = 1;
    signal(SIGPIPE, SIG_IGN);
#define VAL (i + 1 < argc ? argv[++i] : (die("%s needs a value", argv[i]), (char *)0))
    for (; i < argc && !strncmp(argv[i], "--", 2); i++) {
        const char *a = argv[i] + 2;
        if (!strcmp(a, "label"))
            options.label = VAL;
        else if (!strcmp(a, "n"))
            options.n = atol(VAL);
        else if (!strcmp(a, "warmup"))
            options.warmup = atol(VAL);
        else if (!strcmp(a, "window"))
            options.window = atol(VAL), options.window_set = true;
        else if (!strcmp(a, "bytes"))
            options.bytes = atol(VAL);
        else if (!strcmp(a, "tool"))
            options.tool = VAL;
        else if (!strcmp(a, "args"))
            options.args = VAL;
        else if (!strcmp(a, "echo-tool"))
            options.echo_tool = VAL;
        else if (!strcmp(a, "echo-key"))
            options.echo_key = VAL;
        else if (!strcmp(a, "echo-extra"))
            options.echo_extra = VAL;
        else if (!strcmp(a, "block-tool"))
            options.block_tool = VAL;
        else if (!strcmp(a, "block-args"))
            options.block_args = VAL;
        else if (!strcmp(a, "proto"))
            options.proto = VAL;
        else if (!strcmp(a, "timeout"))
            options.timeout = atof(VAL);
        else if (!strcmp(a, "max-seconds"))
            options.max_seconds = atof(VAL);
        else if (!strcmp(a, "stderr"))
            options.errfile = VAL;
        else if (!strcmp(a, "env"))
            putenv(VAL);
        else if (!strcmp(a, "raw"))
            options.raw = true;
        else if (!strcmp(a, "stateless"))
            options.stateless = true;
        else if (!strcmp(a, "string-ids"))
            options.string_ids = true;
        else if (!strcmp(a, "spin"))
            options.spin = true;
        else if (!strcmp(a, "dump"))
            options.dump = true;
        else if (!strcmp(a, "soak-ping"))
            options.soak_ping = true;
        else
            die("unknown option --%s (see the head of mcp_load.c)", a);
    }
    if (i >= argc)
        die("usage: mcp_load [options] SCENARIO[,...] -- SERVER [ARG...]");
    char *list = strdup(argv[i++]);
    if (i >= argc || strcmp(argv[i], "--") || i + 1 >= argc)
        die("expected: -- SERVER [ARG...]");
    options.argv = argv + i + 1;
    for (char *p = strtok(list, ","); p; p = strtok(NULL, ","))
        run(p);
    free(list);
    return 0;
}
