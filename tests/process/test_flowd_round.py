#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole rounds: driver's requests in, the real checklist through the real reviewer host, result
out."""

import os
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import flowd  # noqa: E402


class Round(unittest.TestCase):
    def setUp(self):
        self.flowd = flowd.Flowd()
        self.addCleanup(self.flowd.end)
        self.repo = flowd.Repo(self.flowd)
        self.repo.write("a.c", "int a;\n")
        self.repo.commit()

    def test_findings_then_clean(self):
        self.repo.write("a.c", "int a; \n")
        started = self.flowd.start(self.repo.dir)
        self.assertEqual((started["status"], started["round_number"]), ("running", 1))
        self.assertEqual(started["applied_reviewer_vendor"], "checklist")
        self.assertEqual(started["workspace_mode"], "borrowed")
        run = started["flow_run_id"]

        ended = self.flowd.finished(run)
        self.assertEqual((ended["status"], ended["round_status"]), ("waiting", "findings"))
        self.assertIn("a.c:1: ", ended["round_result_text"])
        self.assertEqual(ended["last_result_text"], ended["round_result_text"])

        self.repo.write("a.c", "int a, b;\n")
        status, second = self.flowd.request(
            "POST", "/api/flows/%s/rounds" % run, {"context": "fixed", "async": True})
        self.assertEqual((status, second["round_number"]), (200, 2))
        ended = self.flowd.finished(run)
        self.assertEqual((ended["round_status"], ended["round_count"]), ("clean", 2))
        self.assertNotIn("round_result_text", ended)
        self.assertEqual(ended["last_result_kind"], "clean")

        status, closed = self.flowd.request("POST", "/api/flows/%s/close" % run)
        self.assertEqual((status, closed["status"]), (200, "closed"))
        status, refused = self.flowd.request(
            "POST", "/api/flows/%s/rounds" % run, {"context": "more", "async": True})
        self.assertEqual((status, refused["error"]), (409, "run_closed"))

    def test_vendor_is_echoed(self):
        started = self.flowd.start(self.repo.dir, vendor="checklist")
        self.assertEqual(started["requested_reviewer_vendor"], "checklist")
        self.assertEqual(started["applied_reviewer_vendor"], "checklist")
        self.assertEqual(started["reviewer_vendor_source"], "request")
        self.flowd.finished(started["flow_run_id"])

    def test_bad_revision_is_no_clean(self):
        run = self.flowd.start(self.repo.dir, target_kind="commit",
                               target_ref="--output=/tmp/x")["flow_run_id"]
        ended = self.flowd.finished(run)
        self.assertEqual((ended["status"], ended["round_status"]), ("waiting", "failed"))
        self.assertNotIn("last_result_kind", ended)
        self.assertIn("there is no commit", ended["round_reason"])

    def test_what_was_looked_at_reaches_the_driver(self):
        self.repo.write("b.c", "int b;\n")
        head = self.repo.commit()
        for kind, ref, looked in (
                ("commit", "HEAD", "commit %s (HEAD) against its first parent: 1 file" % head[:12]),
                ("commit", "HEAD~1..HEAD", "the range HEAD~1..HEAD (%s): 1 file" % head[:12]),
                ("range", "HEAD~1..", "the range HEAD~1.. (%s): 1 file" % head[:12]),
                ("Git Range", "HEAD~1...HEAD", "the range HEAD~1...HEAD"),
                ("uncommitted", "", "the working tree against HEAD (%s): 0 files" % head[:12]),
                ("Working-Tree", "HEAD", "the working tree against HEAD"),
                ("working tree", "main", "the working tree against HEAD"),
                ("diff", "working_tree", "the working tree against HEAD"),
                ("changes", ".", "the working tree against HEAD")):
            run = self.flowd.start(self.repo.dir, target_kind=kind, target_ref=ref)
            ended = self.flowd.finished(run["flow_run_id"])
            self.assertEqual(ended["round_status"], "clean", (kind, ref, ended))
            self.assertIn("Looked at " + looked, ended.get("round_note", ""), (kind, ref))
            self.assertNotIn("round_reason", ended)

    def test_what_is_not_understood_is_no_clean(self):
        for kind, ref, why in (
                ("range", "HEAD", "is no range"), ("range", "..", "has no end"),
                ("range", "...", "has no end"), ("commit", "..", "has no end"),
                ("commit", "", "target_ref is blank"), ("commit", "nowhere", "no commit"),
                ("range", "nowhere..HEAD", "no commit"),
                ("working_tree", "HEAD~1..nowhere", "no commit"),
                ("working_tree", "nowhere", "is not what is checked out"),
                ("pr", "17", "target_kind \"pr\""), ("pull_request", "17", "none this"),
                ("branch", "main", "none this"), ("staged", "", "none this"),
                ("x" * 300, "HEAD", "none this"), ("", "", "none this")):
            run = self.flowd.start(self.repo.dir, target_kind=kind, target_ref=ref)
            ended = self.flowd.finished(run["flow_run_id"])
            self.assertEqual(ended["round_status"], "failed", (kind, ref, ended))
            self.assertIn(why, ended["round_reason"], (kind, ref))

    def test_session_listing(self):
        get = "/api/flows/session/a%2Fb%20c?state=open"
        self.assertEqual(self.flowd.request("GET", get)[1]["flows"], [])
        first = self.flowd.start(self.repo.dir, requesting_session_id="a/b c")["flow_run_id"]
        self.flowd.finished(first)
        second = self.flowd.start(self.repo.dir, requesting_session_id="a/b c",
                                  target_title="later")["flow_run_id"]
        self.flowd.finished(second)
        self.flowd.start(self.repo.dir, requesting_session_id="another")
        status, answer = self.flowd.request("GET", get)
        self.assertEqual((status, answer["session_id"]), (200, "a/b c"))
        self.assertEqual([flow["flow_run_id"] for flow in answer["flows"]], [second, first])
        self.assertEqual(answer["flows"][0]["target_title"], "later")
        self.assertEqual(answer["flows"][0]["round_status"], "clean")
        self.flowd.request("POST", "/api/flows/%s/close" % second)
        answer = self.flowd.request("GET", get)[1]
        self.assertEqual([flow["flow_run_id"] for flow in answer["flows"]], [first])


class Waiting(unittest.TestCase):
    def setUp(self):
        place = flowd.Place()
        self.git = flowd.SlowGit(place)
        self.flowd = flowd.Flowd(place=place, env={
            "PATH": self.git.path, "LC_TIME": "C", "SOME_SECRET": "x",
            "CODEX_THREAD_ID": "y", "KCAP_URL": "http://elsewhere"})
        self.addCleanup(self.git.close)
        self.addCleanup(self.flowd.end)
        self.run_id = self.flowd.start(place.dir)["flow_run_id"]
        self.reviewer = self.git.running()[0]

    def test_wait_is_woken_by_the_change(self):
        waiters = [threading.Thread(target=lambda: answers.append(
            (self.flowd.status(self.run_id, wait_sec=25), time.monotonic()))) for _ in range(5)]
        answers = []
        for waiter in waiters:
            waiter.start()
        self.assertEqual(self.flowd.status(self.run_id)["round_status"], "running")
        closed_at = time.monotonic()
        self.flowd.request("POST", "/api/flows/%s/close" % self.run_id)
        for waiter in waiters:
            waiter.join(flowd.DEADLINE_SEC)
        self.assertEqual(len(answers), 5)
        for answer, at in answers:
            self.assertEqual((answer["status"], answer["round_status"]), ("closed", "cancelled"))
            self.assertLess(at - closed_at, 1)

    def test_wait_ends_in_time(self):
        began = time.monotonic()
        self.assertEqual(self.flowd.status(self.run_id, wait_sec=1)["round_status"], "running")
        self.assertTrue(1 <= time.monotonic() - began < 2)

    def test_wait_is_checked(self):
        for text in ("-1", "26", "x", "", "1.5"):
            status, answer = self.flowd.request(
                "GET", "/api/flows/%s?wait_sec=%s" % (self.run_id, text))
            self.assertEqual((status, answer["error"]), (400, "invalid_request"), text)
            self.assertIn("wait_sec", answer["message"])

    def test_hung_up_waiters_are_dropped(self):
        # each keeps a connection as long as it is waited for: more than there may be
        for _ in range(600):
            connection = flowd.Connection(self.flowd.socket)
            connection.connect()
            connection.sock.sendall(("GET /api/flows/%s?wait_sec=25 HTTP/1.1\r\n"
                                     "Host: x\r\n\r\n" % self.run_id).encode())
            connection.close()
        self.assertEqual(self.flowd.status(self.run_id)["round_status"], "running")
        pid = self.flowd.pid()
        flowd.until("the connections to go",
                    lambda: len(os.listdir("/proc/%d/fd" % pid)) < 40)

    def test_one_round_at_a_time(self):
        status, answer = self.flowd.request(
            "POST", "/api/flows/%s/rounds" % self.run_id, {"context": "", "async": True})
        self.assertEqual((status, answer["error"]), (409, "round_in_progress"))

    def test_environment_of_the_reviewer(self):
        with open("/proc/%d/environ" % self.reviewer, "rb") as environ:
            entries = environ.read().decode().rstrip("\0").split("\0")
        env = dict(entry.split("=", 1) for entry in entries)
        self.assertEqual(sorted(env), ["HOME", "KCAP_FLOW_AGENT_ID", "KCAP_REVIEWER",
                                       "KCAP_STATE_DIR", "KCAP_URL", "LC_TIME", "PATH"])
        self.assertEqual(env["KCAP_URL"], "unix://" + self.flowd.socket)
        self.assertRegex(env["KCAP_FLOW_AGENT_ID"], "^[0-9a-f]{32}$")
        for fd in os.listdir("/proc/%d/fd" % self.reviewer):
            self.assertNotIn("flowd.db", os.readlink("/proc/%d/fd/%s" % (self.reviewer, fd)))


if __name__ == "__main__":
    unittest.main()
