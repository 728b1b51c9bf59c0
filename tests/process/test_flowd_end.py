#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How reviewers end when they do not end by themselves, and what is left when flowd does."""

import json
import os
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import flowd  # noqa: E402


class End(unittest.TestCase):
    def begin(self, *arguments):
        place = flowd.Place()
        self.git = flowd.SlowGit(place)
        self.addCleanup(self.git.close)
        self.flowd = flowd.Flowd(*arguments, place=place, env={"PATH": self.git.path})
        self.addCleanup(lambda: self.flowd.end())
        self.run_id = self.flowd.start(place.dir, requesting_session_id="s")["flow_run_id"]
        self.pids = self.git.running()
        for pid in self.pids:
            self.assertTrue(flowd.is_alive(pid))

    def all_gone(self):
        flowd.until("the reviewer's processes to end",
                    lambda: not any(flowd.is_alive(pid) for pid in self.pids))

    def test_close_ends_the_whole_group(self):
        self.begin()
        status, answer = self.flowd.request("POST", "/api/flows/%s/close" % self.run_id)
        self.assertEqual((status, answer["status"]), (200, "closed"))
        self.all_gone()
        status = self.flowd.status(self.run_id)
        self.assertEqual((status["status"], status["round_status"]), ("closed", "cancelled"))
        self.assertTrue(status["participants"][0]["stopped"])
        # once more is fine
        self.assertEqual(self.flowd.request("POST", "/api/flows/%s/close" % self.run_id)[0], 200)

    def test_hard_ceiling(self):
        self.begin("--hard-ceiling-sec", "1")
        ended = self.flowd.finished(self.run_id)
        self.assertEqual((ended["status"], ended["round_status"]), ("waiting", "unclear"))
        self.assertEqual(ended["round_reason"], "hard_ceiling (1 s)")
        self.all_gone()

    def test_silence(self):
        self.begin("--idle-sec", "1")
        ended = self.flowd.finished(self.run_id)
        self.assertEqual(ended["round_status"], "unclear")
        self.assertEqual(ended["round_reason"], "idle_timeout (1 s)")
        self.all_gone()

    def test_killed_reviewer(self):
        self.begin()
        os.kill(self.pids[0], 9)
        ended = self.flowd.finished(self.run_id)
        self.assertEqual((ended["status"], ended["round_status"]), ("waiting", "unclear"))
        self.assertEqual(ended["round_result_text"], "participant_died")
        self.assertIn("signal 9", ended["round_reason"])
        self.all_gone()

    def test_stop_ends_reviewers(self):
        self.begin()
        self.flowd.process.terminate()
        self.flowd.close()
        self.all_gone()
        self.flowd = flowd.Flowd(place=self.flowd)
        ended = self.flowd.status(self.run_id)
        self.assertEqual((ended["status"], ended["round_status"]), ("waiting", "unclear"))
        self.assertEqual(ended["round_reason"], "kcap-flowd was told to stop")

    def test_clients_are_answered_while_reviewers_leave(self):
        place = flowd.Place()
        script = place.script("slow-to-leave", """
import os, signal, sys
here = os.path.dirname(os.path.abspath(__file__))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
sys.stdin.read()
open(here + "/works", "w").close()
signal.sigwait([signal.SIGTERM])
open(here + "/told", "w").close()
os.read(os.open(here + "/gate", os.O_RDONLY), 1)
""")
        os.mkfifo(os.path.join(place.dir, "gate"))
        gate = os.open(os.path.join(place.dir, "gate"), os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, gate)
        place.configure({"vendors": {"command": {"argv": [script]}}})
        self.flowd = flowd.Flowd(place=place)
        self.addCleanup(lambda: self.flowd.end())
        run = self.flowd.start(place.dir, vendor="command")["flow_run_id"]
        connection = flowd.Connection(self.flowd.socket)
        connection.connect()
        flowd.until("it to work", lambda: os.path.exists(place.dir + "/works"))
        self.flowd.process.terminate()
        flowd.until("it to be told to leave", lambda: os.path.exists(place.dir + "/told"))
        connection.request("GET", "/api/flows/" + run)
        answer = connection.getresponse()
        self.assertEqual((answer.status, json.loads(answer.read())["status"]), (200, "running"))
        connection.close()
        os.write(gate, b"x")
        self.flowd.close()
        self.flowd = flowd.Flowd(place=self.flowd)
        self.assertEqual(self.flowd.status(run)["round_status"], "unclear")

    def test_pipelined_requests_at_the_stop(self):
        self.begin()
        connections = []
        for _ in range(4):
            connections.append(flowd.Connection(self.flowd.socket))
            connections[-1].connect()
            connections[-1].sock.sendall(b"GET /api/flowd/status HTTP/1.1\r\nHost: x\r\n\r\n" * 300)
        self.flowd.process.terminate()
        self.assertEqual(self.flowd.process.wait(flowd.DEADLINE_SEC), 0)
        self.flowd.close()
        for connection in connections:
            connection.close()
        self.flowd = flowd.Flowd(place=self.flowd)

    def test_kill_and_restart(self):
        self.begin()
        self.flowd.kill()
        self.flowd = flowd.Flowd(place=self.flowd)
        self.all_gone()
        ended = self.flowd.status(self.run_id)
        self.assertEqual((ended["status"], ended["round_status"]), ("waiting", "unclear"))
        self.assertEqual(ended["round_result_text"], "participant_died")
        listed = self.flowd.request("GET", "/api/flows/session/s?state=open")[1]["flows"]
        self.assertEqual([flow["flow_run_id"] for flow in listed], [self.run_id])
        status, answer = self.flowd.request(
            "POST", "/api/flows/%s/rounds" % self.run_id, {"context": "again", "async": True})
        self.assertEqual((status, answer["round_number"]), (200, 2))
        self.pids = self.git.running()
        self.flowd.request("POST", "/api/flows/%s/close" % self.run_id)
        self.all_gone()

    def test_kill_when_only_a_grandchild_is_left(self):
        self.begin()
        self.flowd.kill()
        os.kill(self.pids[0], 9)
        self.flowd = flowd.Flowd(place=self.flowd)
        self.all_gone()

    def test_waiters_are_answered_at_the_stop(self):
        self.begin()
        connection = flowd.Connection(self.flowd.socket)
        connection.request("GET", "/api/flows/%s?wait_sec=25" % self.run_id)
        self.assertEqual(self.flowd.status(self.run_id)["status"], "running")
        began = time.monotonic()
        self.flowd.process.terminate()
        self.assertIn(connection.getresponse().status, (200, 503))
        self.assertLess(time.monotonic() - began, 10)
        connection.close()


if __name__ == "__main__":
    unittest.main()
