# SPDX-License-Identifier: Apache-2.0
"""Where codex-setup is tried: a home of its own with a config.toml."""
import glob
import random

from harness import *

INPUTS = sorted(glob.glob(os.path.join(paths.SRCDIR, "tests", "data", "codex-config", "*.toml")))


class Desk:
    """A home with a .codex, and a PATH without a codex."""

    def __init__(self, text=None):
        self.dir = TempDir()
        self.home = self.dir.__enter__()
        self.config = os.path.join(self.home, ".codex", "config.toml")
        os.mkdir(os.path.dirname(self.config))
        self.env = clean_env(self.home, PATH="/usr/bin:/bin", TMPDIR=self.home)
        if text is not None:
            self.put(text)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.dir.__exit__(*args)

    def put(self, text):
        with open(self.config, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())

    def get(self):
        with open(self.config, "rb") as file:
            return file.read()

    def run(self, *words, **env):
        return run([HOST, "--plugin", "codex-setup", "--", *words], env=dict(self.env, **env), cwd=self.home)


def made_inputs(count):
    """Shapes put together at random: line ends, marks, neighbours, the entry in every form, with and without its key."""
    chance = random.Random(20261130)
    entries = ["", '[mcp_servers.kcap-flows]\ncommand = "kcap"\nargs = ["mcp", "flows"]\n',
               '[mcp_servers]\nkcap-flows.command = "kcap"\nkcap-flows.args = ["mcp", "flows"]\n',
               'mcp_servers.kcap-flows = { command = "/opt/kcap", args = ["mcp", "flows"] }\n',
               '[mcp_servers."kcap-flows"]\n  command = "/x/kcap-host" # ours\n  args = ["--plugin", "flows"]\n',
               "mcp_servers = { 'kcap-flows' = { command = 'kcap', args = ['mcp', 'flows'], } }\n",
               "mcp_servers = {}\n", "mcp_servers = { a = { command = 'x' }, }\n",
               "[mcp_servers]\n", "mcp_servers.a.command = 'x'\n"]
    heads = ["", "# first\n\n", 'model = "gpt-5" # note\n', 'a.b.c = 1\n', '"quoted key" = """\n[mcp_servers.kcap-flows]\n"""\n']
    tails = ["", "\n[features]\nx = true\n", "\n[[rows]]\nid = 1\n[[rows]]\nid = 2\n", "\n# the end", "\n[z.'a b']\nk = [\n  1, # one\n]\n"]
    for _ in range(count):
        entry = chance.choice(entries)
        head = chance.choice(heads)
        text = head + entry + chance.choice(tails)
        if chance.random() < 0.3:
            text = text.rstrip("\n")
        if chance.random() < 0.3:
            text = text.replace("\n", "\r\n")
        data = text.encode()
        if chance.random() < 0.2:
            data = b"\xef\xbb\xbf" + data
        yield data
