# SPDX-License-Identifier: Apache-2.0
"""An installation for tests that must not see the build tree."""
import glob
import os
import shutil
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


def build_hello(installed, where):
    """The third party's plugin of examples/, built below where and installed for the user whose home that is."""
    source = os.path.join(where, "hello")
    shutil.copytree(os.path.join(paths.SRCDIR, "examples", "hello"), source)
    pkgconfig = os.path.dirname(installed.files("kcap-host.pc")[0])
    # the .pc names its final prefix; a staged copy is reached by redefining it
    env = dict(os.environ, PKG_CONFIG_PATH=pkgconfig, HOME=where)
    pc = os.path.join(where, "kcap-host.pc")
    with open(os.path.join(pkgconfig, "kcap-host.pc")) as file:
        text = file.read()
    with open(pc, "w") as file:
        file.write("\n".join("prefix=" + installed.prefix if line.startswith("prefix=") else line
                             for line in text.splitlines()) + "\n")
    env["PKG_CONFIG_PATH"] = where + ":" + env["PKG_CONFIG_PATH"]
    env = {k: v for k, v in env.items() if not k.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(["make", "-s", "install"], cwd=source, env=env, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    return os.path.join(source, "hello.so")


def is_sanitized():
    """Then the host wants plugins that are built likewise."""
    with open(os.path.join(paths.BUILDDIR, "Makefile")) as file:
        return any(line.startswith("KCAP_HARDEN") and "-fsanitize=" in line for line in file)
