#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looking after a kcap-flowd: its commands, its log, its TCP listener."""

import http.client
import json
import os
import socket
import sqlite3
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import flowd  # noqa: E402

SAY = "import sys\nsys.stdin.read()\nprint('{\"kind\": \"findings\", \"findings\": \"a: b\\\\u001b[31m\"}')\n"


def command(place, *words, env=None):
    done = subprocess.run([flowd.PROGRAM, *words], env=env or place.env, capture_output=True,
                          text=True, timeout=flowd.DEADLINE_SEC, check=False)
    return done.returncode, done.stdout, done.stderr


class Commands(unittest.TestCase):
    def setUp(self):
        place = flowd.Place()
        self.hold = place.script("hold", "import sys, signal\nsys.stdin.read()\nsignal.pause()\n")
        self.say = place.script("say", SAY)
        place.configure({"default_vendor": "command",
                         "vendors": {"command": {"argv": [self.say], "env": ["MY_KEY"]}}},
                        env="MY_KEY=s3cret\n")
        self.flowd = flowd.Flowd(place=place)
        self.addCleanup(self.end)

    def end(self):
        if self.flowd.process.poll() is None:
            self.flowd.end()
        else:
            self.flowd.close()
            self.flowd.remove()

    def test_runs_are_shown(self):
        run = self.flowd.start(self.flowd.dir, target_title="a \x1b[31mred title")["flow_run_id"]
        self.flowd.finished(run)
        status, out, _ = command(self.flowd, "list")
        self.assertEqual(status, 0)
        (line,) = [line for line in out.splitlines() if line.startswith(run)]
        self.assertEqual(line.split()[1:5], ["waiting", "1", "command", "findings"])
        self.assertNotIn("\x1b", out)
        status, out, _ = command(self.flowd, "show", run)
        self.assertEqual(status, 0)
        for text in ("round 1 (reviewer): findings", "a: b", "environment: HOME, ", "MY_KEY"):
            self.assertIn(text, out)
        self.assertNotIn("s3cret", out)
        self.assertNotIn("\x1b", out)
        status, out, _ = command(self.flowd, "tail", run)
        self.assertEqual((status, out.splitlines()[-1][:4]), (0, "a: b"))
        self.flowd.close_run(run)
        self.assertNotIn(run, command(self.flowd, "list")[1])
        self.assertIn(run, command(self.flowd, "list", "--all")[1])

    def test_a_live_run(self):
        self.flowd.configure({"default_vendor": "command",
                              "vendors": {"command": {"argv": [self.hold]}}})
        run = self.flowd.start(self.flowd.dir)["flow_run_id"]
        flowd.until("it to work", lambda: "working" in command(self.flowd, "list")[1])
        out = command(self.flowd, "status")[1]
        self.assertIn("turns: 1 running, 0 waiting", out)
        self.assertIn("pid: %d\n" % self.flowd.pid(), out)
        watch = subprocess.Popen([flowd.PROGRAM, "list", "--watch"], env=self.flowd.env,
                                 stdout=subprocess.PIPE, text=True)
        seen = ""
        while seen.count(run) < 2:  # it goes on by itself
            seen += watch.stdout.read(50)
        watch.stdout.close()
        self.assertIn(watch.wait(flowd.DEADLINE_SEC), (0, -13))
        tail = subprocess.Popen([flowd.PROGRAM, "tail", run], env=self.flowd.env,
                                stdout=subprocess.PIPE, text=True)
        self.flowd.close_run(run)
        out, _ = tail.communicate(timeout=flowd.DEADLINE_SEC)
        self.assertIn("round 1: cancelled", out)

    def test_open_runs_are_not_hidden_by_ended_ones(self):
        self.flowd.configure(flows={"two": "participants:\n- {role: one, vendor: checklist}\n"
                                           "- {role: two, vendor: command}\n"})
        run = self.flowd.start(self.flowd.dir, kind="two")["flow_run_id"]
        self.assertEqual(command(self.flowd, "tail", run)[1], "no round yet, waiting\n")
        for _ in range(201):
            self.flowd.close_run(self.flowd.start(self.flowd.dir, kind="two")["flow_run_id"])
        out = command(self.flowd, "list")[1]
        self.assertEqual((len(out.splitlines()), out.count(run)), (2, 1))
        out = command(self.flowd, "list", "--all")[1]
        self.assertEqual((len(out.splitlines()), out.count(run)), (202, 0))
        self.assertIn("and older ones", out.splitlines()[-1])
        self.flowd.submit(run, participant="two")
        self.flowd.finished(run)
        self.assertIn(" command ", command(self.flowd, "list")[1])  # whose round it is

    def test_faults(self):
        for words in (("show",), ("show", "../x"), ("show", "a", "b"), ("list", "--x"), ("tail",),
                      ("backup",), ("status", "x")):
            status, _, err = command(self.flowd, *words)
            self.assertEqual((status, len(err.splitlines())), (2, 1), words)
        self.assertIn("digits", command(self.flowd, "tail", "zzz")[2])
        status, _, err = command(self.flowd, "show", "abc")
        self.assertEqual(status, 1)
        self.assertIn("no run of that id", err)

    def test_stop(self):
        self.assertEqual(command(self.flowd, "stop")[0], 0)
        self.assertIsNotNone(self.flowd.process.wait(flowd.DEADLINE_SEC))
        for words in (("stop",), ("status",), ("list",), ("show", "abc")):
            status, out, _ = command(self.flowd, *words)
            self.assertEqual(status, 3)
            self.assertIn("not running", out)

    def test_backup(self):
        run = self.flowd.start(self.flowd.dir)["flow_run_id"]
        self.flowd.finished(run)
        copy = os.path.join(self.flowd.dir, "copy.db")
        self.assertEqual(command(self.flowd, "backup", copy), (0, "", ""))
        self.assertEqual(os.stat(copy).st_mode & 0o777, 0o600)
        with sqlite3.connect(copy) as store:
            self.assertEqual(store.execute("PRAGMA integrity_check").fetchone(), ("ok",))
            self.assertEqual(store.execute("SELECT id FROM flows").fetchall(), [(run,)])
        store.close()
        status, _, err = command(self.flowd, "backup", copy)
        self.assertEqual(status, 1)
        self.assertIn("is there already", err)
        fresh = flowd.Place()
        self.addCleanup(fresh.remove)
        self.assertIn("no kcap-flowd has run there", command(fresh, "backup", copy + "2")[2])
        status, _, err = command(self.flowd, "backup", "/no/such/dir/copy")
        self.assertEqual((status, len(err.splitlines())), (1, 1))


class Log(unittest.TestCase):
    def test_file_is_json(self):
        place = flowd.Place()
        self.addCleanup(place.remove)
        self.assertEqual(command(place)[0], 0)
        place.start(place.dir, vendor="checklist")
        self.assertEqual(command(place, "stop")[0], 0)
        with open(os.path.join(place.state, "flowd.log"), encoding="utf-8") as log:
            lines = [json.loads(line) for line in log]
        self.assertGreater(len(lines), 2)
        for line in lines:
            self.assertEqual(sorted(line), ["message", "pid", "time"])


class Listen(unittest.TestCase):
    def setUp(self):
        self.flowd = flowd.Flowd("--listen", "127.0.0.1:0")
        self.addCleanup(self.flowd.end)
        self.port = int(self.flowd.wait_log(r"http://127\.0\.0\.1:(\d+)").group(1))
        path = os.path.join(self.flowd.state, "flowd.token")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        with open(path, encoding="utf-8") as file:
            self.token = file.read().strip()

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=flowd.DEADLINE_SEC)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {name.title(): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def test_token(self):
        self.assertRegex(self.token, "^[0-9a-f]{64}$")
        self.assertEqual(self.ask("GET", "/auth/config"), (200, {"provider": "GitHubApp"}))
        self.assertEqual(self.flowd.request("GET", "/auth/config")[1], {"provider": "None"})
        for authorization in (None, "", "Bearer", "Bearer ", "Bearer " + self.token[:-1],
                              "Bearer " + self.token + "0", "Bearer " + "0" * 64, self.token,
                              "Basic " + self.token, "bearer " + self.token):
            headers = {} if authorization is None else {"authorization": authorization}
            for method, path in (("GET", "/api/flows/x"), ("GET", "/api/daemons"), ("GET", "/x"),
                                 ("POST", "/api/flows/review/start/v4"), ("GET", "/api/flowd/runs"),
                                 ("POST", "/api/flows/reviewer/result")):
                status, answer = self.ask(method, path, {} if method == "POST" else None, **headers)
                self.assertEqual((status, answer["error"]), (401, "unauthorized"),
                                 (authorization, path))
        status, started = self.ask("POST", "/api/flows/review/start/v4",
                                   self.flowd.start_body(self.flowd.dir),
                                   authorization="Bearer " + self.token)
        self.assertEqual(status, 200, started)
        self.flowd.finished(started["flow_run_id"])

    def test_pages_and_other_names_are_refused(self):
        good = {"authorization": "Bearer " + self.token}
        for headers in ({"origin": "https://evil.example"}, {"origin": "null"},
                        {"host": "evil.example"}, {"host": "127.0.0.1.evil.example"},
                        {"host": "localhost.evil:80"}, {"host": ""}):
            status, answer = self.ask("GET", "/auth/config", **headers)
            self.assertEqual((status, answer["error"][-8:]), (403, "_refused"), headers)
            self.assertEqual(self.ask("GET", "/api/daemons", **headers, **good)[0], 403)
        for host in ("localhost:%d" % self.port, "127.0.0.1", "[::1]:1"):
            self.assertEqual(self.ask("GET", "/api/daemons", host=host, **good)[0], 200)

    def test_token_is_kept_and_must_be_private(self):
        place = self.flowd
        place.process.terminate()
        place.close()
        again = flowd.Flowd("--listen", "127.0.0.1:0", place=place)
        again.wait_log("http://")
        with open(os.path.join(place.state, "flowd.token"), encoding="utf-8") as file:
            self.assertEqual(file.read().strip(), self.token)
        again.process.terminate()
        again.close()
        path = os.path.join(place.state, "flowd.token")
        os.chmod(path, 0o644)
        status, _, err = command(place, "--foreground", "--listen", "127.0.0.1:0")
        self.assertEqual(status, 1)
        self.assertIn("chmod 600", err)
        os.chmod(path, 0o600)
        for spec in ("0.0.0.0:0", "192.168.0.1:80", "x", "70000", "[::]:0", "example.org:80",
                     "127.0.0.1:-1", ""):
            status, _, err = command(place, "--foreground", "--listen", spec)
            self.assertEqual(status, 1, spec)
            self.assertIn("only loopback", err)
        self.flowd = again
        self.flowd.__init__(place=place)

    def test_garbage_and_slow_clients(self):
        for data in (b"GET / HTTP/1.1\r\n", b"\0" * 100, b"POST /api/flows/x/rounds HTTP/1.1\r\n"
                     b"Host: localhost\r\nContent-Length: 100\r\n\r\n"):
            client = socket.create_connection(("127.0.0.1", self.port))
            client.sendall(data)
            self.assertEqual(self.ask("GET", "/auth/config")[0], 200)  # others are not kept waiting
            client.close()


if __name__ == "__main__":
    unittest.main()
