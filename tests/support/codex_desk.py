# SPDX-License-Identifier: Apache-2.0
"""Where codex-setup is tried: a home of its own with a config.toml."""
from harness import *


class Desk:
    """A home with a .codex, and a PATH without a codex."""

    def __init__(self, text=None):
        self.dir = TempDir()
        self.home = self.dir.__enter__()
        self.config = os.path.join(self.home, ".codex", "config.toml")
        os.mkdir(os.path.dirname(self.config))
        self.env = clean_env(self.home, PATH="/usr/bin:/bin")
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
