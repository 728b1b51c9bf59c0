#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kcap 1.2.0 itself, both sides of it, unchanged, against kcap-flowd's TCP listener. Skipped where kcap is not installed
(KCAP_CLI names it, or it is in PATH)."""

import json
import os
import shutil
import sqlite3
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import flowd  # noqa: E402
from harness import Host, clean_env, text_of  # noqa: E402

KCAP = os.environ.get("KCAP_CLI") or shutil.which("kcap")


@unittest.skipUnless(KCAP, "no kcap here (KCAP_CLI names one)")
class Kcap(unittest.TestCase):
    def setUp(self):
        place = flowd.Place()
        place.configure({"default_vendor": "command",
                         "vendors": {"command": {"argv": ["tail", "-f", "/dev/null"]}}})
        self.flowd = flowd.Flowd("--listen", "127.0.0.1:0", place=place)
        self.addCleanup(self.flowd.end)
        self.url = "http://127.0.0.1:" + self.flowd.wait_log(r"http://127\.0\.0\.1:(\d+)").group(1)
        with open(os.path.join(place.state, "flowd.token"), encoding="utf-8") as file:
            self.token = file.read().strip()
        self.repo = flowd.Repo(self.flowd)
        self.repo.commit()
        self.home = os.path.join(place.dir, "kcap-home")
        self.put("config.json", {"version": 2, "active_profile": "default",
                                 "profiles": {"default": {"server_url": self.url}}})

    def put(self, name, value):
        path = os.path.join(self.home, ".config", "kcap", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            json.dump(value, out)
        os.chmod(path, 0o600)

    def log_in(self, token):
        self.put("tokens/default.json", {
            "access_token": token, "expires_at": "2099-01-01T00:00:00Z", "github_username": "someone",
            "provider": "GitHubApp", "server_url": self.url})

    def kcap(self, *words, **env):
        host = Host("mcp", *words, program=KCAP, cwd=self.repo.dir,
                    env=clean_env(self.home, CLAUDE_CODE_SESSION_ID="s-1", **env))
        self.addCleanup(host.kill)
        host.initialize()
        return host

    def start(self, host):
        return host.result("start_review_flow", dict(flowd.START_ARGUMENTS, vendor="command"), seconds=60)

    def test_without_the_token_nothing_is_done(self):
        for token in (None, "0" * 64):
            if token:
                self.log_in(token)
            result = self.start(self.kcap("flows"))
            self.assertTrue(result.get("isError"), result)
        store = sqlite3.connect(os.path.join(self.flowd.state, "flowd.db"))
        self.assertEqual(store.execute("SELECT count(*) FROM flows").fetchone(), (0,))
        store.close()

    def test_both_sides(self):
        self.log_in(self.token)
        driver = self.kcap("flows")
        call = driver.call("start_review_flow", dict(flowd.START_ARGUMENTS, vendor="command"))
        store = sqlite3.connect(os.path.join(self.flowd.state, "flowd.db"))
        ((run, agent, token),) = flowd.until("the run", lambda: store.execute(
            "SELECT r.flow_id, p.agent_id, r.token FROM rounds r JOIN participants p"
            " ON p.flow_id = r.flow_id").fetchall())
        store.close()
        reviewer = self.kcap("flow-result", KCAP_FLOW_AGENT_ID=agent, KCAP_URL=self.url)
        said = reviewer.result("send_flow_message", {"text": "which branch?"}, seconds=30)
        self.assertFalse(said.get("isError"), said)
        said = reviewer.result("submit_review_result", {
            "round_token": token, "kind": "findings", "findings": "a.c:1: wrong"}, seconds=30)
        self.assertFalse(said.get("isError"), said)
        text = text_of(driver.answer(call, 60)["result"])
        for part in (run, "findings", "a.c:1: wrong", "which branch?", "applied_reviewer_vendor"):
            self.assertIn(part, text)
        # kcap acknowledged what it showed
        self.assertNotIn("which branch?", text_of(driver.result(
            "get_review_flow_status", {"flow_run_id": run}, seconds=30)))
        again = driver.call("submit_review_round", {"flow_run_id": run, "context": "fixed"})
        flowd.until("the second round", lambda: self.flowd.status(run)["round_count"] == 2)
        stale = reviewer.result("submit_review_result", {"round_token": token, "kind": "clean"}, seconds=30)
        self.assertTrue(stale.get("isError"))
        store = sqlite3.connect(os.path.join(self.flowd.state, "flowd.db"))
        ((token,),) = store.execute("SELECT token FROM rounds WHERE number = 2").fetchall()
        store.close()
        said = reviewer.result("submit_review_result", {"round_token": token, "kind": "clean"}, seconds=30)
        self.assertFalse(said.get("isError"), said)
        self.assertIn("clean", text_of(driver.answer(again, 60)["result"]))
        closed = driver.result("close_review_flow", {"flow_run_id": run}, seconds=30)
        self.assertIn("closed", text_of(closed))
        vendors = driver.result("list_reviewer_vendors", {}, seconds=30)
        self.assertFalse(vendors.get("isError"), vendors)


if __name__ == "__main__":
    unittest.main()
