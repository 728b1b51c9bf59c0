#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install.sh DIR: the agents of tests/harness from npm, at fixed versions, into DIR. Without npm, or where they are not to
# be had, nothing is there and the tests say that they are skipped.
set -eu
command -v npm >/dev/null || { echo "no npm here (install the package npm)"; exit 0; }

# put DIR PACKAGE...: npm looks for a package.json further up when there is none
put() {
    dir=$1
    shift
    [ "$(cat "$dir/installed" 2>/dev/null)" = "$*" ] && return
    mkdir -p "$dir"
    echo '{"private": true}' >"$dir/package.json"
    if (cd "$dir" && npm install --no-fund --no-audit --no-save --silent "$@") >"$dir/install.log" 2>&1; then
        echo "$*" >"$dir/installed"
    else
        echo "the agents cannot be installed ($dir/install.log)"
    fi
}

put "$1" @openai/codex@0.171.0 @anthropic-ai/claude-code@2.1.197
put "$1/newer" @anthropic-ai/claude-code@2.1.332
put "$1/more" @google/gemini-cli@0.61.0 opencode-ai@1.18.33 @github/copilot@1.0.102
