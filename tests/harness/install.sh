#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install.sh DIR: the agents of tests/harness from npm, at fixed versions, into DIR. Without npm, or where they are not to
# be had, nothing is there and the tests say that they are skipped.
set -eu
dir=$1
command -v npm >/dev/null || { echo "no npm here (install the package npm)"; exit 0; }
mkdir -p "$dir"
wanted="@openai/codex@0.171.0 @anthropic-ai/claude-code@2.1.197"
[ "$(cat "$dir/installed" 2>/dev/null)" = "$wanted" ] && exit 0
# two words on purpose
# shellcheck disable=SC2086
if (cd "$dir" && npm install --no-fund --no-audit --no-save --silent $wanted) >"$dir/install.log" 2>&1; then
    echo "$wanted" >"$dir/installed"
else
    echo "the agents cannot be installed ($dir/install.log)"
fi
