#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stage.sh PROGRAM...   (run by make in the build directory)
#
# Lays programs and modules out as an installation has them and writes a wrapper for each program.
# KCAP_WRAP, when set, is put before the program: KCAP_WRAP="valgrind -q" build/kcap-host ...
set -eu
put() { # FILE TO: a new file each time, so that a running copy keeps its own
    cp "$1" "$2.new" && chmod 755 "$2.new" && mv -f "$2.new" "$2"
}
modules() { # CLASS LA...
    class=$1; shift
    mkdir -p "stage/lib/kcap-host/$class"
    for la in "$@"; do
        name=$(basename "$la" .la)
        put "$(dirname "$la")/.libs/$name.so" "stage/lib/kcap-host/$class/$name.so"
    done
}
umask 022
mkdir -p stage/bin
for program in "$@"; do
    name=$(basename "$program")
    put "$program" "stage/bin/$name"
    # shellcheck disable=SC2016 # the wrapper is to expand it, not we
    printf '#!/bin/sh\nexec ${KCAP_WRAP:-} "%s/stage/bin/%s" "$@"\n' "$(pwd)" "$name" >"$name.new"
    chmod 755 "$name.new" && mv -f "$name.new" "$name"
done
skills=$(dirname "$0")/../skills
for skill in review-flows agent-flows; do
    mkdir -p "stage/share/kcap-host/skills/$skill"
    cp -f "$skills/$skill/SKILL.md" "stage/share/kcap-host/skills/$skill/SKILL.md"
done
# the lists are words on purpose
# shellcheck disable=SC2086
{ modules driver ${DRIVER:-}; modules reviewer ${REVIEWER:-}; modules setup ${SETUP:-}; modules service ${SERVICE:-}; }
