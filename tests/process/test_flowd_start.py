#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How kcap-flowd comes and goes: one daemon per state directory, whatever happens at once."""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import flowd  # noqa: E402

# As version 1 of the store made it.
SCHEMA_1 = """
CREATE TABLE flows ( id TEXT PRIMARY KEY, definition_id TEXT NOT NULL, target_kind TEXT NOT NULL,
  target_ref TEXT NOT NULL, target_title TEXT NOT NULL, session_id TEXT, cwd TEXT NOT NULL,
  requested_vendor TEXT, status TEXT NOT NULL, round_count INTEGER NOT NULL, end_shown INTEGER NOT
  NULL DEFAULT 0, started_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX flows_by_session ON flows (session_id, updated_ms);
CREATE TABLE participants ( flow_id TEXT NOT NULL REFERENCES flows, role TEXT NOT NULL, vendor TEXT
  NOT NULL, agent_id TEXT NOT NULL UNIQUE, PRIMARY KEY (flow_id, role)) WITHOUT ROWID;
CREATE TABLE rounds ( id TEXT PRIMARY KEY, flow_id TEXT NOT NULL REFERENCES flows, number INTEGER
  NOT NULL, token TEXT NOT NULL, context TEXT NOT NULL, instructions TEXT, status TEXT NOT NULL,
  result_kind TEXT, result_text TEXT, reason TEXT, started_ms INTEGER NOT NULL, ended_ms INTEGER,
  UNIQUE (flow_id, number), UNIQUE (flow_id, token)) WITHOUT ROWID;
CREATE INDEX rounds_open ON rounds (status) WHERE ended_ms IS NULL;
CREATE TABLE launches ( round_id TEXT PRIMARY KEY REFERENCES rounds, agent_id TEXT NOT NULL, pid
  INTEGER NOT NULL, start_ticks INTEGER NOT NULL, boot_id TEXT NOT NULL) WITHOUT ROWID;
PRAGMA user_version = 1;
"""


class Started:
    """A kcap-flowd in the background. Its output goes to files: under a wrapper such as valgrind
    the daemon keeps a copy of its starter's standard error, and a pipe would never end."""

    def __init__(self, place, *arguments, env=None):
        self.out = tempfile.TemporaryFile("w+")
        self.err = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [flowd.PROGRAM, *arguments], env=dict(place.env, **(env or {})),
            stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err)

    def wait(self):
        self.returncode = self.process.wait(flowd.DEADLINE_SEC)
        for name, file in (("stdout", self.out), ("stderr", self.err)):
            file.seek(0)
            setattr(self, name, file.read())
            file.close()
        return self


def run(place, *arguments, env=None):
    return Started(place, *arguments, env=env).wait()


def daemons(place):
    """The pids the daemon's own log names as serving."""
    return flowd.serving(place.state)


class Start(unittest.TestCase):
    def setUp(self):
        self.place = flowd.Place()

    def tearDown(self):
        if os.path.exists(os.path.join(self.place.state, "flowd.log")):
            for pid in daemons(self.place):
                if flowd.is_alive(pid):
                    os.kill(pid, 15)
                    flowd.until("the daemon's end", lambda: not flowd.is_alive(pid))
        self.place.remove()

    def test_twenty_cold_starts_make_one_daemon(self):
        starters = [Started(self.place) for _ in range(20)]
        for starter in starters:
            done = starter.wait()
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            self.assertEqual(self.place.request("GET", "/auth/config")[0], 200)
        self.assertEqual(len(daemons(self.place)), 1)

    def test_idle_exit_and_restart_lose_nobody(self):
        for _ in range(4):
            done = run(self.place, "--idle-exit-sec", "1")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(self.place.request("GET", "/auth/config"),
                             (200, {"provider": "None"}))
            flowd.until("the socket to go", lambda: not os.path.exists(self.place.socket))
        pids = daemons(self.place)
        self.assertEqual(len(pids), 4)
        flowd.until("the last one's end", lambda: not flowd.is_alive(pids[-1]))
        self.assertEqual(sorted(os.listdir(self.place.state)),
                         ["flowd.db", "flowd.lock", "flowd.log"])

    def test_a_killed_daemon_is_replaced(self):
        run(self.place)
        pid = daemons(self.place)[0]
        os.kill(pid, 9)
        flowd.until("its end", lambda: not flowd.is_alive(pid))
        done = run(self.place)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.place.request("GET", "/auth/config")[0], 200)

    @unittest.skipIf("KCAP_WRAP" in os.environ, "a wrapper needs a standard error itself")
    def test_closed_standard_descriptors(self):
        done = subprocess.run(["/bin/sh", "-c", 'exec "$0" <&- >&- 2>&-', flowd.PROGRAM],
                              env=self.place.env, timeout=flowd.DEADLINE_SEC, check=False)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.place.request("GET", "/auth/config")[0], 200)
        fds = "/proc/%d/fd/" % daemons(self.place)[0]
        self.assertEqual(os.readlink(fds + "0"), "/dev/null")
        self.assertEqual(os.readlink(fds + "2"), os.path.join(self.place.state, "flowd.log"))

    def test_removed_socket_comes_back(self):
        run(self.place)
        for _ in range(3):
            os.unlink(self.place.socket)
            flowd.until("the socket", lambda: os.path.exists(self.place.socket))
            self.assertEqual(self.place.request("GET", "/auth/config")[0], 200)
        self.assertEqual(len(daemons(self.place)), 1)

    def test_removed_directory_ends_the_daemon(self):
        for _ in range(15):
            run(self.place)
            pid = daemons(self.place)[0]
            shutil.rmtree(self.place.state)  # nothing is made in it meanwhile
            flowd.until("the daemon's end", lambda: not flowd.is_alive(pid))
            self.assertFalse(os.path.exists(self.place.state))

    def test_second_daemon_names_the_first(self):
        run(self.place)
        done = run(self.place, "--foreground")
        self.assertEqual(done.returncode, 0)
        self.assertIn(self.place.socket, done.stdout)

    def test_state_is_private(self):
        run(self.place)
        self.assertEqual(os.stat(self.place.state).st_mode & 0o777, 0o700)
        for name in os.listdir(self.place.state):
            mode = os.stat(os.path.join(self.place.state, name)).st_mode
            self.assertEqual(mode & 0o077, 0, name)

    @unittest.skipIf("KCAP_WRAP" in os.environ, "/proc shows the wrapper's environment")
    def test_environment_is_dropped(self):
        run(self.place, env={"SOME_SECRET": "hunter2", "CLAUDE_CODE_SESSION_ID": "x",
                             "LC_TIME": "C"})
        with open("/proc/%d/environ" % daemons(self.place)[0], "rb") as environ:
            text = environ.read()
        self.assertNotIn(b"hunter2", text)
        self.assertNotIn(b"CLAUDE", text)

    def test_usage(self):
        for arguments in (["--nonsense"], ["extra"], ["--idle-exit-sec"],
                          ["--idle-exit-sec", "0"], ["--idle-sec", "1x"],
                          ["--hard-ceiling-sec", "-1"], ["--keep-days", "0"],
                          ["--keep-days", "99999999"]):
            done = run(self.place, *arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn("kcap-flowd", done.stderr)
        self.assertEqual(run(self.place, "--version").returncode, 0)
        self.assertIn("--idle-exit-sec", run(self.place, "--help").stdout)

    def test_old_runs_are_forgotten(self):
        for arguments, days, kept in (([], 29, True), ([], 31, False),
                                      (["--keep-days", "100"], 99, True),
                                      (["--keep-days", "1"], 2, False)):
            served = flowd.Flowd(place=self.place)
            runs = [served.start(self.place.dir)["flow_run_id"] for _ in range(2)]
            for run_id in runs:
                served.finished(run_id)
            served.request("POST", "/api/flows/%s/close" % runs[0])
            served.process.terminate()
            served.close()
            with sqlite3.connect(os.path.join(self.place.state, "flowd.db")) as store:
                store.execute("UPDATE flows SET updated_ms = updated_ms - ?",
                              (days * 86400 * 1000,))
            store.close()
            served = flowd.Flowd(*arguments, place=self.place)
            status, _ = served.request("GET", "/api/flows/%s" % runs[0])
            self.assertEqual(status, 200 if kept else 404, (arguments, days))
            idle = served.status(runs[1])  # open: closed at last, and kept from then on
            self.assertEqual((idle["status"], idle["end_reason"].split(":")[0]),
                             ("closed", "idle_ttl"))
            served.process.terminate()
            served.close()
            with sqlite3.connect(os.path.join(self.place.state, "flowd.db")) as store:
                (left,) = store.execute(
                    "SELECT (SELECT count(*) FROM rounds WHERE flow_id = ?1) +"
                    " (SELECT count(*) FROM participants WHERE flow_id = ?1)",
                    (runs[0],)).fetchone()
            store.close()
            self.assertEqual(left, 2 if kept else 0)

    def test_later_version_replaces_an_idle_daemon(self):
        served = flowd.Flowd(place=self.place)
        for agent in ("kcap-host/0.0.9", "kcap-host/", "kcap-host/x", "curl/99.0.0", "kcap-host"):
            self.assertEqual(self.place.request("GET", "/auth/config",
                                                headers={"User-Agent": agent})[0], 200)
        self.place.configure({"vendors": {"command": {"argv": ["tail", "-f", "/dev/null"]}}})
        run = self.place.start(self.place.dir, vendor="command")["flow_run_id"]
        later = {"User-Agent": "kcap-host/99.0.0"}
        self.assertEqual(self.place.request("GET", "/auth/config", headers=later)[0], 200)
        served.wait_log("a later version has asked")
        self.assertEqual(self.place.status(run)["round_status"], "running")  # busy: it drains first
        self.place.close_run(run)
        served.wait_log("leaving$")
        served.close()
        self.assertEqual(served.process.returncode, 0)

    def test_a_killed_daemons_socket_in_a_child_is_no_daemon(self):
        """A child on its way to another program has the lock and the socket, and nobody answers there."""
        os.makedirs(self.place.state, 0o700)
        child = subprocess.Popen([sys.executable, "-c", (
            "import fcntl, os, socket, sys\n"
            "lock = open(sys.argv[1] + '/flowd.lock', 'w')\nfcntl.flock(lock, fcntl.LOCK_EX)\n"
            "served = socket.socket(socket.AF_UNIX)\nserved.bind(sys.argv[1] + '/flowd.sock')\n"
            "served.listen()\n"
            "if os.fork() == 0:\n    sys.stdin.read()\n"), self.place.state], stdin=subprocess.PIPE)
        child.wait(flowd.DEADLINE_SEC)
        daemon = subprocess.Popen([flowd.PROGRAM, "--foreground"], env=self.place.env, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with self.assertRaises(subprocess.TimeoutExpired):
            daemon.wait(0.5)
        child.stdin.close()
        self.assertIn(" serves unix://", daemon.stderr.readline())
        daemon.terminate()
        self.assertEqual(daemon.communicate(timeout=flowd.DEADLINE_SEC)[0], "")

    def test_older_store_is_brought_up_to_date(self):
        os.makedirs(self.place.state, 0o700)
        path = os.path.join(self.place.state, "flowd.db")
        now_ms = int(time.time() * 1000)
        with sqlite3.connect(path) as store:
            store.executescript(SCHEMA_1)
            store.execute("INSERT INTO flows VALUES ('f', 'code-review', 'k', 'r', 't', 's', '/',"
                          " NULL, 'waiting', 1, 0, ?1, ?1)", (now_ms,))
            store.execute("INSERT INTO participants VALUES ('f', 'reviewer', 'checklist', 'a')")
            store.execute("INSERT INTO rounds VALUES ('o', 'f', 1, 'token', 'c', NULL, 'findings',"
                          " 'findings', 'text', 'note', ?1, ?1)", (now_ms,))
            store.execute("INSERT INTO launches VALUES ('o', 'a', 999999, 1, 'another boot')")
        store.close()
        served = flowd.Flowd(place=self.place)
        self.addCleanup(served.end)
        status = served.status("f")
        self.assertEqual((status["round_result_text"], status["round_note"]), ("text", "note"))
        self.assertEqual(status["participants"], [
            {"role": "reviewer", "vendor": "checklist", "model": "", "stopped": False}])
        answer = served.request("POST", "/api/flows/f/rounds", {"context": "again"})[1]
        self.assertEqual(answer["round_number"], 2)
        served.finished("f")
        with sqlite3.connect(path) as store:
            self.assertEqual(store.execute("PRAGMA user_version").fetchone(), (2,))
            self.assertEqual(store.execute("PRAGMA integrity_check").fetchone(), ("ok",))
        store.close()

    def test_newer_store_is_refused(self):
        os.makedirs(self.place.state, 0o700)
        with sqlite3.connect(os.path.join(self.place.state, "flowd.db")) as store:
            store.execute("PRAGMA user_version = 99")
        store.close()
        done = run(self.place)
        self.assertEqual(done.returncode, 1)
        self.assertIn("newer kcap-flowd", done.stderr)

    def test_bad_state_directories(self):
        done = run(self.place, env={"KCAP_STATE_DIR": "relative"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("absolute", done.stderr)
        done = run(self.place, env={"KCAP_STATE_DIR": self.place.dir + "/" + 100 * "x"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("too long", done.stderr)
        os.makedirs(self.place.state)
        os.chmod(self.place.state, 0o777)
        done = run(self.place)
        self.assertEqual(done.returncode, 1)
        self.assertIn(self.place.state, done.stderr)


if __name__ == "__main__":
    unittest.main()
