#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where reviewers work: the checkout itself, a copy of it, an empty directory."""

import json
import os
import sqlite3
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import flowd  # noqa: E402

# Reports what it sees: its directory, the files, git's status.
LOOKER = r"""
import json, os, subprocess, sys
sys.stdin.read()
seen = {"cwd": os.getcwd(), "files": {}}
for dir, dirs, names in os.walk("."):
    dirs[:] = [d for d in dirs if d != ".git"]
    for name in names:
        path = os.path.normpath(os.path.join(dir, name))
        seen["files"][path] = os.readlink(path) if os.path.islink(path) else open(path).read()
git = lambda *words: subprocess.run(["git", *words], capture_output=True, text=True).stdout
seen["status"] = sorted(git("status", "--porcelain", "-uall").splitlines())
seen["log"] = git("log", "--format=%s").splitlines()
seen["exec"] = os.access("run.sh", os.X_OK)
open("left-behind", "w").close()
os.mkdir("closed"); open("closed/x", "w").close(); os.chmod("closed", 0)
print(json.dumps({"kind": "findings", "findings": json.dumps(seen)}))
"""
YAML = "participants: [{role: reviewer, vendor: command, workspace: %s}]"


def fingerprint(top):
    """Every file below .git, and what it holds."""
    found = {}
    for dir, _, names in os.walk(os.path.join(top, ".git")):
        for name in names:
            path = os.path.join(dir, name)
            with open(path, "rb") as file:
                found[path] = (file.read(), os.stat(path).st_mtime_ns)
    return found


class Workspace(unittest.TestCase):
    def setUp(self):
        place = flowd.Place()
        place.configure({"vendors": {"command": {"argv": [place.script("looker", LOOKER)]}}},
                        flows={"copy": YAML % "worktree", "nothing": YAML % "context-only"})
        self.flowd = flowd.Flowd(place=place)
        self.addCleanup(self.flowd.end)
        self.repo = flowd.Repo(self.flowd)
        self.repo.write("a.c", "one\n")
        self.repo.write("gone.c", "x\n")
        self.repo.write("sub/b.c", "b\n")
        self.repo.write("run.sh", "#!/bin/sh\n", mode=0o755)
        self.repo.write(".gitignore", "*.o\n")
        self.repo.write(".mcp.json", "{}")
        self.repo.write("sub/.codex/config.toml", "")
        self.repo.commit("first")

    def work(self):
        path = os.path.join(self.flowd.state, "work")
        return os.listdir(path) if os.path.isdir(path) else []

    def seen(self, run):
        ended = self.flowd.finished(run)
        self.assertEqual(ended["round_status"], "findings", ended)
        return ended, json.loads(ended["round_result_text"])

    def test_copy_has_all_that_is_not_committed(self):
        self.repo.write("a.c", "two\n")
        self.repo.write("staged.c", "staged\n")
        self.repo.git("add", "staged.c")
        self.repo.write("new file é.c", "new\n")
        self.repo.write("x.o", "ignored\n")
        os.remove(os.path.join(self.repo.dir, "gone.c"))
        os.symlink("a.c", os.path.join(self.repo.dir, "link"))
        before = fingerprint(self.repo.dir)
        run = self.flowd.start(os.path.join(self.repo.dir, "sub"), kind="copy")["flow_run_id"]
        ended, seen = self.seen(run)
        self.assertEqual(ended["workspace_mode"], "worktree")
        self.assertNotIn("fallback_reason", ended)
        self.assertTrue(seen["cwd"].startswith(os.path.realpath(self.flowd.state)))
        self.assertEqual(seen["files"], {
            "a.c": "two\n", "sub/b.c": "b\n", "run.sh": "#!/bin/sh\n", ".gitignore": "*.o\n",
            "staged.c": "staged\n", "new file é.c": "new\n", "link": "a.c"})
        self.assertTrue(seen["exec"])
        self.assertEqual(seen["log"], ["first"])
        self.assertIn(" M a.c", seen["status"])
        self.assertIn(" D gone.c", seen["status"])
        self.assertIn("?? staged.c", seen["status"])
        self.assertEqual(fingerprint(self.repo.dir), before)  # not a byte of it, not a time
        self.assertFalse(os.path.exists(os.path.join(self.repo.dir, "left-behind")))
        # each round sees the state of the moment, and nothing of the round before
        self.repo.write("a.c", "three\n")
        self.flowd.submit(run)
        _, again = self.seen(run)
        self.assertEqual(again["files"]["a.c"], "three\n")
        self.assertNotIn("left-behind", again["files"])
        self.assertEqual(len(self.work()), 1)
        self.flowd.close_run(run)
        flowd.until("the copy to be removed", lambda: not self.work())

    def test_repository_without_a_commit(self):
        repo = flowd.Repo(self.flowd)
        repo.write("a", "a\n")
        _, seen = self.seen(self.flowd.start(repo.dir, kind="copy")["flow_run_id"])
        self.assertEqual(seen["files"], {"a": "a\n"})

    def test_no_repository(self):
        plain = os.path.join(self.flowd.dir, "plain")
        os.mkdir(plain)
        ended, seen = self.seen(self.flowd.start(plain, kind="copy")["flow_run_id"])
        self.assertEqual((ended["workspace_mode"], ended["fallback_reason"]),
                         ("fallback", "not_a_repository"))
        self.assertEqual(seen["files"], {})

    def test_context_only(self):
        run = self.flowd.start(self.repo.dir, kind="nothing")["flow_run_id"]
        ended, seen = self.seen(run)
        self.assertEqual((ended["workspace_mode"], seen["files"]), ("context-only", {}))
        self.flowd.close_run(run)
        flowd.until("the directory to be removed", lambda: not self.work())

    def test_what_cannot_be_copied_is_told(self):
        self.repo.git("update-ref", "refs/heads/main", self.repo.git("rev-parse", "HEAD"))
        with open(os.path.join(self.repo.dir, ".git", "HEAD"), "w", encoding="utf-8") as head:
            head.write("nonsense\n")
        ended = self.flowd.finished(self.flowd.start(self.repo.dir, kind="copy")["flow_run_id"])
        self.assertEqual((ended["round_status"], ended["round_reason_code"]),
                         ("unclear", "start_failed"))
        self.assertIn("could not be copied: ", ended["round_reason"])
        self.assertEqual(ended["status"], "waiting")

    def test_a_copy_in_the_making_ends_with_its_run(self):
        place = flowd.Place()
        place.configure({"vendors": {"command": {"argv": ["true"]}}},
                        flows={"copy": YAML % "worktree"})
        git = flowd.SlowGit(place)
        self.addCleanup(git.close)
        served = flowd.Flowd(place=place, env={"PATH": git.path})
        self.addCleanup(served.end)
        run = served.start(self.repo.dir, kind="copy")["flow_run_id"]
        pids = git.running()
        served.close_run(run)
        flowd.until("those who copy to end", lambda: not any(map(flowd.is_alive, pids)))
        work = os.path.join(served.state, "work")
        flowd.until("what was copied to be removed", lambda: not os.listdir(work))

    def test_what_a_killed_daemon_left_is_removed(self):
        run = self.flowd.start(self.repo.dir, kind="copy")["flow_run_id"]
        other = self.flowd.start(self.repo.dir, kind="copy")["flow_run_id"]
        self.seen(run)
        self.seen(other)
        self.assertEqual(len(self.work()), 2)
        self.flowd.kill()
        with sqlite3.connect(os.path.join(self.flowd.state, "flowd.db")) as store:
            store.execute("UPDATE flows SET status = 'closed' WHERE id = ?", (run,))
        store.close()
        served = flowd.Flowd(place=self.flowd)
        self.flowd.process, self.flowd.reader = served.process, served.reader
        flowd.until("the one to be removed", lambda: len(self.work()) == 1)
        self.flowd.submit(other)
        self.seen(other)


if __name__ == "__main__":
    unittest.main()
