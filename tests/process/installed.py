# SPDX-License-Identifier: Apache-2.0
"""An installation for tests that must not see the build tree."""
import glob
import os
import subprocess

from harness import SLOWER, TempDir, paths


class Installed:
    """An installation below a temporary directory. The build may be elsewhere; nothing of it is used."""

    def __enter__(self):
        self.dir = TempDir()
        self.top = self.dir.__enter__()
        make_env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
        done = subprocess.run(["make", "-s", "install", "DESTDIR=" + self.top], cwd=paths.BUILDDIR, env=make_env,
                              capture_output=True, text=True, timeout=120 * SLOWER)
        assert done.returncode == 0, done.stdout + done.stderr
        found = [os.path.join(d, "kcap-host") for d, _, files in os.walk(self.top) if "kcap-host" in files]
        self.host = [f for f in found if os.path.basename(os.path.dirname(f)) == "bin"][0]
        self.prefix = os.path.dirname(os.path.dirname(self.host))
        return self

    def __exit__(self, *args):
        self.dir.__exit__(*args)

    def files(self, pattern):
        return [f for f in glob.glob(os.path.join(self.prefix, "**", pattern), recursive=True)]


def is_sanitized():
    """Then the host wants plugins that are built likewise."""
    with open(os.path.join(paths.BUILDDIR, "Makefile")) as file:
        return any(line.startswith("KCAP_HARDEN") and "-fsanitize=" in line for line in file)
