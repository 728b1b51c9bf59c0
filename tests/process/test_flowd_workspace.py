#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where reviewers work: the checkout itself, a copy of it, an empty directory."""

import hashlib
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
seen = {"cwd": os.getcwd(), "files": {}, "links": {}}
for dir, dirs, names in os.walk("."):
    dirs[:] = [d for d in dirs if d != ".git"]
    for name in names + dirs:
        path = os.path.normpath(os.path.join(dir, name))
        if os.path.islink(path):
            seen["links"][path] = os.readlink(path)
        elif os.path.isfile(path):
            seen["files"][path] = open(path).read()
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

    def status(self):
        done = flowd.subprocess.run(["git", "-C", self.repo.dir, "status", "--porcelain", "-uall"],
                                    env=self.repo.env, check=True, capture_output=True, text=True)
        return sorted(done.stdout.splitlines())

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
        status = self.status()
        before = fingerprint(self.repo.dir)
        run = self.flowd.start(os.path.join(self.repo.dir, "sub"), kind="copy")["flow_run_id"]
        ended, seen = self.seen(run)
        self.assertEqual(ended["workspace_mode"], "worktree")
        self.assertNotIn("fallback_reason", ended)
        self.assertTrue(seen["cwd"].startswith(os.path.realpath(self.flowd.state)))
        self.assertEqual(seen["files"], {
            "a.c": "two\n", "sub/b.c": "b\n", "run.sh": "#!/bin/sh\n", ".gitignore": "*.o\n",
            "staged.c": "staged\n", "new file é.c": "new\n"})
        self.assertEqual(seen["links"], {"link": "a.c"})
        self.assertTrue(seen["exec"])
        self.assertEqual(seen["log"], ["first"])
        self.assertEqual(seen["status"], status)
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

    def test_a_directory_that_became_a_link(self):
        """What is tracked below it is gone, as git says; nothing is written through the link."""
        self.repo.write("old/x.c", "x\n")
        self.repo.write("was-file", "f\n")
        self.repo.commit("second")
        flowd.shutil.rmtree(os.path.join(self.repo.dir, "old"))
        os.symlink("sub", os.path.join(self.repo.dir, "old"))
        self.repo.write("sub/x.c", "not that one\n")
        os.remove(os.path.join(self.repo.dir, "was-file"))
        self.repo.write("was-file/y.c", "y\n")
        _, seen = self.seen(self.flowd.start(self.repo.dir, kind="copy")["flow_run_id"])
        self.assertEqual(seen["files"]["was-file/y.c"], "y\n")
        self.assertEqual(seen["links"], {"old": "sub"})
        self.assertEqual(seen["status"], self.status())

    def test_configuration_does_not_come_in_through_links(self):
        self.repo.write("cfg/settings.json", "{}")
        self.repo.write("cfg/copilot/mcp.json", "{}")
        self.repo.write("cfg/mcp.json", "{}")
        self.repo.write("mine.json", "{}")
        for link, target in ((".claude", "cfg"), ("sub/.github", "../cfg"), (".kiro/settings", "../cfg"),
                             (".vscode/mcp.json", "../mine.json"), ("opencode.json", "mine.json"),
                             ("sub/.gemini", "../cfg"), ("plain", "cfg")):
            os.makedirs(os.path.dirname(os.path.join(self.repo.dir, link)), exist_ok=True)
            os.symlink(target, os.path.join(self.repo.dir, link))
        self.repo.commit("links")
        _, seen = self.seen(self.flowd.start(self.repo.dir, kind="copy")["flow_run_id"])
        self.assertEqual(seen["links"], {"plain": "cfg"})
        self.assertIn("cfg/settings.json", seen["files"])
        self.assertEqual(seen["status"], [])  # they do not look deleted
        self.repo.git("rm", "-q", ".mcp.json")  # that one is
        _, seen = self.seen(self.flowd.start(self.repo.dir, kind="copy")["flow_run_id"])
        self.assertEqual(seen["status"], ["D  .mcp.json"])

    def test_an_index_can_hold_any_name(self):
        self.repo.write("a.c", "one\n")
        self.repo.git("update-index", "--add", "--cacheinfo", "100644,%s,xx/evil" % self.repo.git("hash-object", "a.c"))
        with open(os.path.join(self.repo.dir, ".git", "index"), "rb") as file:
            index = file.read()[:-20].replace(b"xx/evil", b"../evil")
        with open(os.path.join(self.repo.dir, ".git", "index"), "wb") as file:
            file.write(index + hashlib.sha1(index).digest())
        with open(os.path.join(self.flowd.dir, "evil"), "w", encoding="utf-8") as file:
            file.write("evil\n")
        self.flowd.finished(self.flowd.start(self.repo.dir, kind="copy")["flow_run_id"])
        self.assertNotIn("evil", self.work())

    def test_sparse_checkout_and_split_index(self):
        self.repo.write("far/away.c", "far\n")
        self.repo.commit("far")
        self.repo.git("sparse-checkout", "set", "--no-cone", "/*", "!/far/")
        self.repo.write("a.c", "changed\n")
        _, seen = self.seen(self.flowd.start(self.repo.dir, kind="copy")["flow_run_id"])
        self.assertNotIn("far/away.c", seen["files"])
        self.assertEqual(seen["status"], [" M a.c"])
        self.repo.git("sparse-checkout", "disable")
        self.repo.git("update-index", "--split-index")
        self.repo.write("new.c", "new\n")
        self.repo.git("add", "new.c")
        _, seen = self.seen(self.flowd.start(self.repo.dir, kind="copy")["flow_run_id"])
        self.assertEqual(seen["status"], [" M a.c", "?? new.c"])  # all that the files show

    def test_submodules_come_along(self):
        inner, outer = flowd.Repo(self.flowd), flowd.Repo(self.flowd)
        inner.write("deep.c", "deep\n")
        inner.commit("deep")
        allow = ("-c", "protocol.file.allow=always")
        outer.git(*allow, "submodule", "add", "-q", inner.dir, "inner")
        outer.write("lib.c", "lib\n")
        outer.write(".mcp.json", "{}")
        outer.commit("outer")
        self.repo.git(*allow, "submodule", "add", "-q", outer.dir, "third/lib")
        self.repo.git(*allow, "submodule", "update", "-q", "--init", "--recursive")
        self.repo.git(*allow, "submodule", "add", "-q", inner.dir, "unused")
        self.repo.commit("submodules")
        self.repo.git("submodule", "deinit", "-q", "-f", "unused")
        self.repo.write("third/lib/lib.c", "changed\n")
        self.repo.write("third/lib/new.c", "new\n")
        self.repo.write("elsewhere/.git/HEAD", "ref: refs/heads/main\n")  # of nobody's
        run = self.flowd.start(self.repo.dir, kind="copy")["flow_run_id"]
        _, seen = self.seen(run)
        found = {name: text for name, text in seen["files"].items() if "/" in name}
        self.assertEqual({name: found[name] for name in found if name.startswith("third")}, {
            "third/lib/lib.c": "changed\n", "third/lib/new.c": "new\n",
            "third/lib/.gitmodules": found["third/lib/.gitmodules"],
            "third/lib/inner/deep.c": "deep\n"})
        self.assertFalse([name for name in found if name.startswith(("unused", "elsewhere"))])
        self.assertFalse([line for line in seen["status"] if "third" in line or "unused" in line], seen["status"])

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
