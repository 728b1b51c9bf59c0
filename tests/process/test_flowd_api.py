#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the routes refuse, and how: coded, with the member's name; nothing hostile gets through."""

import json
import os
import resource
import socket
import sqlite3
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import flowd  # noqa: E402

START = "/api/flows/review/start/v4"
RESULT = "/api/flows/reviewer/result"


class Api(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = flowd.Place()
        cls.git = flowd.SlowGit(place)
        cls.flowd = flowd.Flowd(place=place, env={"PATH": cls.git.path})

    @classmethod
    def tearDownClass(cls):
        cls.flowd.end()
        cls.git.close()

    def refused(self, status, error, method, path, body=None, raw=None):
        got, answer = self.flowd.request(method, path, body, raw)
        self.assertIsInstance(answer, dict, (method, path, answer))
        self.assertEqual((got, answer["error"]), (status, error), answer)
        self.assertTrue(answer["message"])
        return answer["message"]

    def uncoded(self, status, method, path):
        got, answer = self.flowd.request(method, path)
        self.assertEqual(got, status, (method, path))
        self.assertIsInstance(answer, str)

    def begin(self):
        """A run whose reviewer waits: (run id, agent id, round token)"""
        run = self.flowd.start(self.flowd.dir)["flow_run_id"]
        reviewer = self.git.running()[0]
        with open("/proc/%d/environ" % reviewer, "rb") as environ:
            agent = environ.read().split(b"KCAP_FLOW_AGENT_ID=")[1].split(b"\0")[0].decode()
        store = sqlite3.connect(os.path.join(self.flowd.state, "flowd.db"))
        token = store.execute("SELECT token FROM rounds WHERE flow_id = ? ORDER BY number DESC",
                              (run,)).fetchone()[0]
        store.close()
        return run, agent, token

    def result(self, agent, token, kind="findings", text="a: b"):
        body = {"agent_id": agent, "round_token": token, "kind": kind, "text": text}
        return self.flowd.request("POST", RESULT,
                                  {k: v for k, v in body.items() if v is not None})

    def test_routes(self):
        self.assertEqual(self.flowd.request("GET", "/auth/config"), (200, {"provider": "None"}))
        for path in ("/", "/api", "/api/flows/", "/api/flows/a/b",
                     "/api/flows//rounds", "/api/flows/a/rounds/", "/api/flows/session/",
                     "/api/flows/%00", "/api/flows/%zz", "/api/flows/%4", "/api/flows/%ff"):
            self.uncoded(404, "GET", path)
        for method, path in (("POST", "/auth/config"), ("GET", START), ("GET", RESULT),
                             ("DELETE", "/api/flows/abc"), ("PUT", "/api/flows/abc/close")):
            self.uncoded(405, method, path)
        for method, path in (("GET", "/api/flows/abc"), ("GET", "/api/flows/..%2F..%2Fetc"),
                             ("POST", "/api/flows/abc/close")):
            self.refused(404, "unknown_flow", method, path)
        self.refused(404, "unknown_flow", "POST", "/api/flows/abc/rounds", {"context": ""})

    def test_bodies_that_are_no_object(self):
        for raw in ("", "{", "[]", "null", "7", '"x"', '{"a":1,"a":2}', '{"a":"\\u0000"}',
                    b"\xef\xbb\xbf{}", b'{"a":"\xff"}', "{}{}", "[" * 10000, "{'a':1}"):
            for path in (START, RESULT, "/api/flows/abc/rounds"):
                self.refused(400, "invalid_request", "POST", path, raw=raw)

    def test_members_are_named(self):
        good = self.flowd.start_body(self.flowd.dir)
        for name in ("kind", "target_kind", "target_ref", "target_title", "context",
                     "requesting_cwd"):
            for wrong in (None, 7, [], {}, True):
                body = dict(good, **{name: wrong})
                message = self.refused(400, "invalid_request", "POST", START, body)
                self.assertIn('"%s"' % name, message)
            body = {k: v for k, v in good.items() if k != name}
            self.assertIn('"%s"' % name,
                          self.refused(400, "invalid_request", "POST", START, body))
        for name in ("instructions", "mode", "vendor", "model", "requesting_session_id",
                     "requesting_repo_root", "repo_path", "repo_owner", "repo_name",
                     "requester_machine_id"):
            self.assertIn('"%s"' % name, self.refused(
                400, "invalid_request", "POST", START, dict(good, **{name: 7})))
        self.assertIn('"async"', self.refused(
            400, "invalid_request", "POST", START, dict(good, **{"async": "yes"})))
        self.assertIn('"client_flow_protocol_version"', self.refused(
            400, "invalid_request", "POST", START,
            dict(good, client_flow_protocol_version=4.5)))

    def test_start_is_refused(self):
        good = self.flowd.start_body(self.flowd.dir)
        self.refused(404, "unknown_definition", "POST", START, dict(good, kind="dance"))
        self.refused(400, "invalid_request", "POST", START, dict(good, definition_yaml="id: x"))
        self.assertIn("checklist", self.refused(
            400, "reviewer_vendor_unavailable", "POST", START, dict(good, vendor="command")))
        self.assertIn("checklist", self.refused(
            400, "unknown_vendor", "POST", START, dict(good, vendor="no\x1bbody")))
        self.refused(400, "reviewer_model_unavailable", "POST", START, dict(good, model="m"))
        for cwd in ("relative", "/no/such/dir", "/etc/passwd", ""):
            self.assertIn('"requesting_cwd"', self.refused(
                400, "invalid_request", "POST", START, dict(good, requesting_cwd=cwd)))

    def test_too_large(self):
        body = json.dumps({"context": "x" * (4 << 20)})
        self.refused(413, "request_too_large", "POST", START, raw=body)
        self.refused(413, "request_too_large", "POST", START, raw="x" * (4 << 20) + "x")
        connection = flowd.Connection(self.flowd.socket)
        pieces = (b"x" * 65536 for _ in range(70))
        connection.request("POST", START, body=pieces, encode_chunked=True,
                           headers={"Transfer-Encoding": "chunked"})
        self.assertEqual(connection.getresponse().status, 413)
        connection.close()

    def test_just_not_too_large(self):
        body = self.flowd.start_body(self.flowd.dir, context="x" * ((4 << 20) - 1000))
        status, answer = self.flowd.request("POST", START, body)
        self.assertEqual(status, 200, answer)
        self.git.running()
        self.flowd.request("POST", "/api/flows/%s/close" % answer["flow_run_id"])

    def test_endless_body_is_cut_off(self):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(flowd.DEADLINE_SEC)
        client.connect(self.flowd.socket)
        client.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                       % START.encode())
        with self.assertRaises(OSError):
            for _ in range(1000):
                client.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        client.close()

    def test_garbage_does_no_harm(self):
        for data in (b"\0" * 1000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                     b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n", b"x" * 100000,
                     b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"):
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(0.5)  # some of it is waited out: a request may be slow
            client.connect(self.flowd.socket)
            try:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
                while client.recv(65536):
                    pass
            except OSError:
                pass
            client.close()
            self.assertEqual(self.flowd.request("GET", "/auth/config")[0], 200)

    def test_slow_request_is_cut_off(self):
        """A byte now and then keeps a connection from being idle, not from being slow."""
        served = flowd.Flowd("--idle-exit-sec", "1")
        self.addCleanup(served.end)
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(0.2)
        client.connect(served.socket)
        began = time.monotonic()
        with self.assertRaises(OSError):
            for byte in b"GET /auth/config HTTP/1.1\r\nX-Slow: " + b"x" * 1000:
                client.sendall(bytes([byte]))
                try:
                    if client.recv(1000) == b"":
                        raise ConnectionResetError
                except TimeoutError:
                    pass
        self.assertTrue(1.5 < time.monotonic() - began < 10, time.monotonic() - began)
        client.close()

    def test_result_is_recorded_once(self):
        run, agent, token = self.begin()
        self.refused(409, "no_active_flow", "POST", RESULT,
                     {"agent_id": "nobody", "round_token": token, "kind": "clean"})
        self.refused(409, "stale_round_token", "POST", RESULT,
                     {"agent_id": agent, "round_token": "other", "kind": "clean"})
        for body in ({"kind": "maybe"}, {"kind": "findings"}, {"kind": "findings", "text": " "},
                     {"kind": "clean", "text": 7}, {"kind": None}):
            self.refused(400, "invalid_request", "POST", RESULT,
                         dict({"agent_id": agent, "round_token": token}, **body))
        self.assertEqual(self.result(agent, token), (200, {"status": "recorded"}))
        self.assertEqual(self.flowd.status(run)["round_status"], "findings")
        self.assertEqual(self.result(agent, token), (200, {"status": "recorded"}))
        self.assertEqual(self.result(agent, token, text="other")[1]["error"],
                         "stale_round_token")
        self.assertEqual(self.result(agent, "unknown")[1]["error"], "no_open_round")
        self.assertEqual(self.flowd.status(run)["round_result_text"], "a: b")

        self.flowd.request("POST", "/api/flows/%s/rounds" % run, {"context": "", "async": True})
        self.git.running()
        self.assertEqual(self.result(agent, token), (200, {"status": "recorded"}))
        self.assertEqual(self.result(agent, token, text="other")[1]["error"],
                         "stale_round_token")
        self.assertEqual(self.flowd.status(run)["round_status"], "running")

        self.flowd.request("POST", "/api/flows/%s/close" % run)
        self.assertEqual(self.result(agent, token), (200, {"status": "recorded"}))
        self.assertEqual(self.result(agent, "unknown")[1]["error"], "no_active_flow")

    def test_locked_store_means_nothing_was_done(self):
        body = self.flowd.start_body(self.flowd.dir, requesting_session_id="locked")
        store = sqlite3.connect(os.path.join(self.flowd.state, "flowd.db"),
                                isolation_level=None)
        store.execute("BEGIN IMMEDIATE")
        self.refused(503, "store_unavailable", "POST", START, body)
        store.execute("ROLLBACK")
        store.close()
        self.assertEqual(
            self.flowd.request("GET", "/api/flows/session/locked?state=open")[1]["flows"], [])

    def test_participant(self):
        run, _, _ = self.begin()
        self.refused(404, "unknown_participant", "POST", "/api/flows/%s/rounds" % run,
                     {"context": "", "participant": "judge"})
        self.flowd.request("POST", "/api/flows/%s/close" % run)


class Starved(unittest.TestCase):
    @unittest.skipIf("KCAP_WRAP" in os.environ, "a wrapper has descriptors of its own")
    def test_without_descriptors_it_rests_and_resumes(self):
        served = flowd.Flowd()
        self.addCleanup(served.end)
        pid = served.pid()
        used = len(os.listdir("/proc/%d/fd" % pid))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 8, used + 8))
        idle = [flowd.Connection(served.socket) for _ in range(20)]
        for connection in idle:
            connection.connect()
        before = cpu_sec(pid)
        with self.assertRaises(TimeoutError):
            served.request("GET", "/auth/config", timeout=2)
        self.assertLess(cpu_sec(pid) - before, 0.3)
        served.wait_log("no connection can be taken")
        for connection in idle:
            connection.close()
        self.assertEqual(served.request("GET", "/auth/config")[0], 200)


def cpu_sec(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    unittest.main()
