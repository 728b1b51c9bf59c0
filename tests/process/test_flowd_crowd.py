#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many at once: connections that say nothing, and bodies that are long and slow. Nobody else is kept out."""

import json
import os
import socket
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import flowd  # noqa: E402

MANY = 600  # more than there may be in all
MIB = 1 << 20

# Sends bodies and does not end them.
FILLER = r"""
import json, os, socket, sys
sys.stdin.read()
here = os.path.dirname(os.path.abspath(__file__))
held = []
for _ in range(40):
    held.append(socket.socket(socket.AF_UNIX))
    held[-1].connect(os.environ["KCAP_URL"][len("unix://"):])
    held[-1].sendall(b"POST /api/flows/reviewer/result HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (4 << 20))
    held[-1].sendall(b" " * ((4 << 20) - 1))
open(here + "/told", "w").close()
os.read(os.open(here + "/gate", os.O_RDONLY), 1)
print(json.dumps({"kind": "clean", "findings": ""}))
"""

# Holds connections until the gate is opened, and says once they are there.
HOLDER = r"""
import json, os, socket, sys
sys.stdin.read()
here = os.path.dirname(os.path.abspath(__file__))
held = []
for _ in range(%d):
    held.append(socket.socket(socket.AF_UNIX))
    held[-1].connect(os.environ["KCAP_URL"][len("unix://"):])
open(here + "/told", "w").close()
os.read(os.open(here + "/gate", os.O_RDONLY), 1)
print(json.dumps({"kind": "clean", "findings": ""}))
""" % MANY


def read_answer(sock):
    text = b""
    while b"\r\n\r\n" not in text:
        got = sock.recv(65536)
        if not got:
            break
        text += got
    head, _, body = text.partition(b"\r\n\r\n")
    length = int([l for l in head.lower().split(b"\r\n") if l.startswith(b"content-length:")][0].split(b":")[1])
    while len(body) < length:
        body += sock.recv(65536)
    return int(head.split()[1]), json.loads(body)


class Crowd(unittest.TestCase):
    def begin(self, *arguments, place=None):
        self.flowd = flowd.Flowd(*arguments, place=place)
        self.addCleanup(self.flowd.end)
        self.held = []
        self.addCleanup(lambda: [sock.close() for sock in self.held])

    def tcp(self):
        self.held.append(socket.create_connection(("127.0.0.1", self.port), timeout=flowd.DEADLINE_SEC))
        return self.held[-1]

    def local(self):
        self.held.append(socket.socket(socket.AF_UNIX))
        self.held[-1].settimeout(flowd.DEADLINE_SEC)
        self.held[-1].connect(self.flowd.socket)
        return self.held[-1]

    def begin_tcp(self):
        self.begin("--listen", "127.0.0.1:0")
        self.port = int(self.flowd.wait_log(r"http://127\.0\.0\.1:(\d+)").group(1))

    def peak_kib(self):
        with open("/proc/%d/status" % self.flowd.pid(), encoding="utf-8") as status:
            return int([line for line in status if line.startswith("VmHWM:")][0].split()[1])

    def check_grew_less(self, before, mib):
        if "KCAP_TEST_SLOWER" not in os.environ:  # a sanitizer's memory is not ours
            self.assertLess(self.peak_kib() - before, mib * 1024)

    def check_is_served(self):
        began = time.monotonic()
        self.assertEqual(self.flowd.request("GET", "/api/flowd/runs")[0], 200)
        self.assertLess(time.monotonic() - began, 5)

    def test_connections_over_tcp(self):
        self.begin_tcp()
        for _ in range(160):
            self.tcp()
        late = self.tcp()
        late.sendall(b"GET /auth/config HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        for _ in range(MANY):  # most of them do not get as far as the line
            self.held.append(socket.socket())
            self.held[-1].setblocking(False)
            self.held[-1].connect_ex(("127.0.0.1", self.port))
        self.check_is_served()
        for sock in self.held:
            if sock is not late:
                sock.close()
        self.assertEqual(read_answer(late)[0], 200)  # it stood in line

    def test_connections_of_a_reviewer(self):
        self.check_reviewer(HOLDER)

    def test_bodies_of_a_reviewer(self):
        self.check_reviewer(FILLER)

    def test_a_reviewer_that_keeps_connecting(self):
        """Its own ceiling still ends it."""
        place = flowd.Place()
        flood = place.script("flood", """
import os, socket, sys
sys.stdin.read()
for _ in range(3):
    os.fork()
while True:
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.connect(os.environ["KCAP_URL"][len("unix://"):])
    except OSError:
        pass
    sock.close()
""")
        place.configure({"hard_ceiling_sec": 1, "vendors": {"command": {"argv": [flood]}}})
        self.begin(place=place)
        run = self.flowd.start(place.dir, vendor="command")["flow_run_id"]
        self.assertEqual(self.flowd.finished(run)["round_reason_code"], "hard_ceiling")

    def check_reviewer(self, script):
        place = flowd.Place()
        os.mkfifo(os.path.join(place.dir, "gate"))
        gate = os.open(os.path.join(place.dir, "gate"), os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, gate)
        place.configure({"vendors": {"command": {"argv": [place.script("crowd", script)]}}})
        self.begin(place=place)
        run = self.flowd.start(place.dir, vendor="command")["flow_run_id"]
        flowd.until("it to hold them", lambda: os.path.exists(place.dir + "/told"))
        self.check_is_served()
        beside = self.flowd.start(place.dir)["flow_run_id"]  # by a body, too
        self.flowd.close_run(beside)
        os.write(gate, b"x")
        self.assertEqual(self.flowd.finished(run)["round_status"], "clean")

    def post(self, sock, length, headers=""):
        sock.sendall(("POST /api/flows/review/start/v4 HTTP/1.1\r\nHost: 127.0.0.1\r\n%s"
                      "Content-Length: %d\r\n\r\n" % (headers, length)).encode())
        sock.sendall(b" " * (length - 1))

    def test_long_bodies(self):
        self.begin()
        before = self.peak_kib()
        for _ in range(48):
            self.post(self.local(), 4 * MIB)
        self.check_is_served()
        self.check_grew_less(before, 160)
        answers = []
        for sock in self.held:
            sock.sendall(b"x")
            answers.append(read_answer(sock))
        self.assertLessEqual({answer[1]["error"] for answer in answers}, {"invalid_request", "server_busy"})
        busy = [answer for answer in answers if answer[0] == 503]
        self.assertTrue(20 < len(busy) < 48, len(busy))
        self.assertIn("again", busy[0][1]["message"])
        # the memory is given back to those who come next
        self.post(self.local(), 4 * MIB)
        self.held[-1].sendall(b"x")
        self.assertEqual(read_answer(self.held[-1])[1]["error"], "invalid_request")

    def test_bodies_of_strangers_are_not_kept(self):
        self.begin_tcp()
        before = self.peak_kib()
        for headers in ("", "Authorization: Bearer x\r\n", "Origin: http://example.org\r\n"):
            for _ in range(12):
                self.post(self.tcp(), 4 * MIB, headers)
        self.check_grew_less(before, 16)
        for sock in self.held:
            sock.sendall(b"x")
            self.assertIn(read_answer(sock)[1]["error"], ("unauthorized", "origin_refused"))


if __name__ == "__main__":
    unittest.main()
