#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lint.sh SRCDIR: what no compiler says. Prints each fault, exits 1 if there was one, 77 if a tool is missing.
set -u
cd "$1" || exit 2
status=0
for tool in clang-format shellcheck mandoc; do
    command -v "$tool" >/dev/null || { echo "lint: no $tool here (install the package)"; exit 77; }
done
fault() { echo "lint: $1"; status=1; }
files() { find include lib launch host services plugins server examples tests -name "$1" | sort; }

# the lists are words on purpose: no name here has a space
# shellcheck disable=SC2046
clang-format --dry-run -Werror $(files '*.[ch]') || fault "format (clang-format -i FILE)"
# shellcheck disable=SC2046
shellcheck quickstart .ci/run $(find build-aux tests -name '*.sh' ! -name ltmain.sh) || fault "shell"
mandoc -Tlint -Wwarning docs/*.1 docs/*.3 || fault "man pages"

banned='\b(strcpy|strcat|sprintf|vsprintf|gets|strtok|atoi|atol|system|popen|tmpnam|mktemp|sleep|usleep|nanosleep|alloca)\('
for file in $(files '*.[ch]' | grep -v '^tests/'); do
    grep -nHE "$banned" "$file" && fault "banned call"
    [ "$(wc -l <"$file")" -le 600 ] || fault "$file is over 600 lines: split it by subject"
    head -n 1 "$file" | grep -q SPDX-License-Identifier || fault "$file has no licence line"
done
# a plugin writes through the host: no stream, no clock of its own
grep -nHE '\b(printf|fprintf|puts|putchar|time|clock_gettime|gettimeofday)\(' plugins/*/*.c services/*/*.c && fault "plugin bypasses the host"
for header in $(files '*.h' | grep -v '^tests/'); do
    printf '#include "%s"\n' "$header" | ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -fsyntax-only -I. -Iinclude -x c - ||
        fault "$header does not stand by itself"
done
[ "$status" -eq 0 ] && echo "lint: clean"
exit "$status"
