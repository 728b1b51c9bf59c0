#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run-python.sh TEST.py [NAME...]: what make check runs a process test with; 77 (skip) without Python.
[ -n "${PYTHON3:-}" ] || { echo "skipped: no python3 (install the package python3)"; exit 77; }
# One that hangs is to fail, and not to hold up all others.
exec timeout --foreground -k 10 "${KCAP_TEST_LIMIT_SEC:-1200}" "$PYTHON3" "$@"
