#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILDDIR: each measure for kcap-host and for the floor, in turn, five times each; prints medians and their ratio.
set -eu
build=$1
host="$build/stage/bin/kcap-host --plugin-file $build/bench/.libs/trivial.so"
flows="$build/stage/bin/kcap-host --plugin flows"
load=$build/bench/mcp_load
floor=$build/bench/floor
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export HOME="$home"
runs=${RUNS:-5}

# field NAME: that number of a line of JSON
field() { sed -n 's/.*"'"$1"'":\([0-9.]*\).*/\1/p'; }
median() { sort -n | awk '{v[NR]=$1} END {print v[int((NR+1)/2)]}'; }

# measure TITLE FIELD SCENARIO OPTIONS -- the host's command; the floor is run in turn
measure() {
    title=$1 name=$2 scenario=$3 options=$4 command=$5
    : >"$home/ours"; : >"$home/theirs"; i=0
    while [ $i -lt "$runs" ]; do
        # words on purpose
        # shellcheck disable=SC2086
        $load $options "$scenario" -- $command | field "$name" >>"$home/ours"
        # shellcheck disable=SC2086
        $load $options "$scenario" -- $floor | field "$name" >>"$home/theirs"
        i=$((i + 1))
    done
    ours=$(median <"$home/ours") theirs=$(median <"$home/theirs")
    awk -v t="$title" -v a="$ours" -v b="$theirs" 'BEGIN {printf "%-44s %12.1f %12.1f %8.2f\n", t, a, b, b ? a / b : 0}'
}

# alone TITLE FIELD SCENARIO OPTIONS COMMAND: a number that has no floor
alone() {
    # shellcheck disable=SC2086
    value=$($load $4 "$3" -- $5 | field "$2")
    awk -v t="$1" -v a="$value" 'BEGIN {printf "%-44s %12.1f\n", t, a}'
}

printf '%-44s %12s %12s %8s\n' "measure (medians of $runs)" kcap-host floor ratio
measure "start to initialize answer, flows, p50 us" full_p50 start "--n 30" "$flows"
measure "ping round trip, p50 us" p50 ping "--n 5000" "$host"
measure "tools/call echo, p50 us" p50 call "--n 5000" "$host"
measure "pipelined calls, per second" per_s pipecall "--n 100000 --window 100" "$host"
measure "10 MB argument, p50 us" p50 echo "--n 3 --bytes 10000000" "$host"
measure "10 MB argument, peak kB" rss_peak_kb echo "--n 3 --bytes 10000000" "$host"
alone "idle memory of --plugin flows, kB" rss_idle_kb ping "--n 1 --warmup 0" "$flows"
alone "100 calls that block 1 s, wall ms" wall_ms concurrent "--n 100" "$host"
alone "... a ping meanwhile, ms" ping_ms concurrent "--n 100" "$host"
alone "cancel of a blocked call: a ping after, ms" ping_ms cancel "" "$host"
