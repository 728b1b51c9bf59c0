#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the shipped modules are made of: one exported symbol each, libcurl in http.so alone, and
nothing of the flow-starting side where a reviewer could reach it."""
import os
import subprocess
import sys

sys.path.insert(0, os.environ.get("KCAP_TEST_PATHS", "tests/process"))
import paths  # noqa: E402

MODULES = {
    "plugins/flows/.libs/flows.so": "kcap_plugin_v1",
    "plugins/flow-result/.libs/flow-result.so": "kcap_plugin_v1",
    "services/http/.libs/http.so": "kcap_service_v1",
}
STARTING = (b"start_review", b"review/start", b"start_flow", b"submit_review_round", b"/rounds")


def output(*argv):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def main():
    faults = []
    for name, symbol in MODULES.items():
        path = os.path.join(paths.BUILDDIR, name)
        exported = [line.split()[-1] for line in output("nm", "-D", "--defined-only", path).splitlines()]
        if exported != [symbol]:
            faults.append("%s exports %s" % (name, exported))
        needs_curl = "libcurl" in output("readelf", "-d", path)
        if needs_curl != name.startswith("services/"):
            faults.append("%s: libcurl is %sneeded" % (name, "" if needs_curl else "not "))
        with open(path, "rb") as file:
            content = file.read()
        found = [word for word in STARTING if word in content]
        if bool(found) != name.startswith("plugins/flows/"):
            faults.append("%s holds %s of the starting side" % (name, found))
    for fault in faults:
        print(fault)
    return 1 if faults else 0


sys.exit(main())
