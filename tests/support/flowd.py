# SPDX-License-Identifier: Apache-2.0
"""A kcap-flowd of its own for a test: started in a temporary state directory, asked over its
socket, ended with everything it started. Also: a git repository nobody else's configuration
reaches, and a git that waits until it is let go."""

import http.client
import json
import os
import queue
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.environ.get("KCAP_TEST_PATHS", os.path.join(os.getcwd(), "tests/process")))
import paths  # noqa: E402  (written by configure)

DEADLINE_SEC = 30
PROGRAM = os.path.join(paths.BUILDDIR, "kcap-flowd")
CHECKLIST = os.path.join(paths.BUILDDIR, "kcap-checklist")
START_ARGUMENTS = {"kind": "code-review", "target_kind": "commit", "target_ref": "HEAD",
                   "target_title": "a change", "context": "please review"}  # of start_review_flow


def until(what, look):
    """Waits for look() to be true, as short as it gets, but not for ever."""
    end = time.monotonic() + DEADLINE_SEC
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        select.select([], [], [], 0.01)
    raise AssertionError("waited in vain for " + what)


class Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout=DEADLINE_SEC):
        super().__init__("flowd", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Place:
    """A temporary home with a state directory."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="kcap-")
        self.state = os.path.join(self.dir, "state")
        self.socket = os.path.join(self.state, "flowd.sock")
        self.env = {
            "HOME": self.dir,
            "PATH": os.environ["PATH"],
            "KCAP_STATE_DIR": self.state,
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        if "KCAP_WRAP" in os.environ:
            self.env["KCAP_WRAP"] = os.environ["KCAP_WRAP"]

    def configure(self, settings=None, env=None, flows=None):
        """Writes flowd.json (from an object or text), flowd.env, and flows/NAME.yaml."""
        config = os.path.join(self.dir, ".config", "kcap")
        os.makedirs(os.path.join(config, "flows"), exist_ok=True)
        files = {"flows/%s.yaml" % name: text for name, text in (flows or {}).items()}
        if settings is not None:
            files["flowd.json"] = settings if isinstance(settings, str) else json.dumps(settings)
        if env is not None:
            files["flowd.env"] = env
        for name, text in files.items():
            path = os.path.join(config, name)
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
            os.chmod(path, 0o600)
        return config

    def script(self, name, text):
        """An executable Python script."""
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write("#!%s\n%s" % (sys.executable, text))
        os.chmod(path, 0o755)
        return path

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def request(self, method, path, body=None, raw=None, timeout=DEADLINE_SEC, headers=None):
        """(status, JSON or text)"""
        connection = Connection(self.socket, timeout)
        try:
            data = raw if raw is not None else None if body is None else json.dumps(body)
            connection.request(method, path, data, headers or {})
            answer = connection.getresponse()
            text = answer.read().decode()
            if answer.headers.get("Content-Type") == "application/json":
                return answer.status, json.loads(text)
            return answer.status, text
        finally:
            connection.close()

    def start_body(self, repo_dir, **more):
        body = {
            "kind": "code-review",
            "target_kind": "uncommitted",
            "target_ref": "",
            "target_title": "a change",
            "context": "please look",
            "requesting_cwd": repo_dir,
            "async": True,
            "client_flow_protocol_version": 2,
        }
        body.update(more)
        return {name: value for name, value in body.items() if value is not None}

    def start(self, repo_dir, **more):
        status, answer = self.request(
            "POST", "/api/flows/review/start/v2", self.start_body(repo_dir, **more))
        assert status == 200, (status, answer)
        return answer

    def submit(self, run, **more):
        status, answer = self.request("POST", "/api/flows/%s/rounds" % run,
                                      dict({"context": "again", "async": True}, **more))
        assert status == 200, (status, answer)
        return answer

    def close_run(self, run):
        status, answer = self.request("POST", "/api/flows/%s/close" % run)
        assert status == 200, (status, answer)
        return answer

    def status(self, run, wait_sec=0):
        status, answer = self.request("GET", "/api/flows/%s?wait_sec=%d" % (run, wait_sec))
        assert status == 200, (status, answer)
        return answer

    def finished(self, run):
        """The status once no round is running."""
        end = time.monotonic() + DEADLINE_SEC
        while time.monotonic() < end:
            answer = self.status(run, wait_sec=5)
            if answer["status"] != "running":
                return answer
        raise AssertionError("the round does not end: %r" % answer)


class Flowd(Place):
    """A daemon in the foreground."""

    def __init__(self, *arguments, env=None, place=None):
        if place:
            self.__dict__.update(place.__dict__)
        else:
            super().__init__()
        self.env = dict(self.env, **(env or {}))
        self.lines = queue.Queue()
        self.log = []
        self.process = subprocess.Popen(
            [PROGRAM, "--foreground", *arguments], env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.wait_log(r" serves unix://")

    def _read(self):
        for line in self.process.stderr:
            self.lines.put(line)
        self.lines.put(None)

    def wait_log(self, pattern):
        """The match of the next log line that has the pattern."""
        end = time.monotonic() + DEADLINE_SEC
        while True:
            try:
                line = self.lines.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError("no %r in the log: %r" % (pattern, self.log)) from None
            if line is None:
                raise AssertionError("the daemon ended with %r: %r" % (
                    self.process.wait(DEADLINE_SEC), self.log))
            self.log.append(line)
            found = re.search(pattern, line)
            if found:
                return found

    def pid(self):
        """Of the daemon itself, whatever wraps it."""
        return int(re.search(r"\[(\d+)\]", self.log[0]).group(1))

    def kill(self):
        self.process.kill()
        self.close()

    def close(self):
        """Lets go of a process that has ended."""
        self.process.wait(DEADLINE_SEC)
        self.reader.join(DEADLINE_SEC)
        self.process.stderr.close()

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(DEADLINE_SEC)
        self.reader.join(DEADLINE_SEC)
        self.process.stderr.close()
        self.remove()
        assert status == 0, (status, self.log)


class Repo:
    """A git repository in a directory of its own."""

    def __init__(self, place):
        self.dir = tempfile.mkdtemp(prefix="repo-", dir=place.dir)
        self.env = dict(place.env, GIT_CONFIG_GLOBAL=os.devnull)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "A Test")
        self.git("config", "user.email", "test@example.org")
        self.git("config", "commit.gpgsign", "false")

    def git(self, *arguments, check=True):
        done = subprocess.run(["git", "-C", self.dir, *arguments], env=self.env, check=False,
                              capture_output=True, timeout=DEADLINE_SEC)
        if check and done.returncode != 0:
            raise AssertionError("git %r: %r" % (arguments, done.stderr))
        return done.stdout.decode(errors="replace").strip()

    def write(self, path, content, mode=None):
        full = os.path.join(self.dir, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as out:
            out.write(content if isinstance(content, bytes) else content.encode())
        if mode is not None:
            os.chmod(full, mode)

    def commit(self, message="a change"):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


class SlowGit:
    """A directory for PATH with a git that says it runs, then waits to be let go. It ignores
    SIGTERM, and it has a child of its own."""

    def __init__(self, place):
        self.dir = os.path.join(place.dir, "bin")
        os.mkdir(self.dir)
        self.hello = os.path.join(self.dir, "hello")
        self.gate = os.path.join(self.dir, "gate")
        os.mkfifo(self.hello)
        os.mkfifo(self.gate)
        self.hello_fd = os.open(self.hello, os.O_RDWR | os.O_NONBLOCK)
        self.gate_fd = os.open(self.gate, os.O_RDWR | os.O_NONBLOCK)
        real = shutil.which("git", path=place.env["PATH"])
        script = os.path.join(self.dir, "git")
        with open(script, "w", encoding="utf-8") as out:
            out.write('#!/bin/sh\ntrap "" TERM\n'
                      "(read -r line <'%s') &\n"
                      "echo $PPID $$ $! >'%s'\nread -r line <'%s'\n"
                      "exec '%s' \"$@\"\n" % (self.gate, self.hello, self.gate, real))
        os.chmod(script, 0o755)
        self.path = self.dir + ":" + place.env["PATH"]

    def running(self):
        """The pids of the reviewer, the git and git's child, once they run."""
        ready, _, _ = select.select([self.hello_fd], [], [], DEADLINE_SEC)
        assert ready, "the reviewer does not call git"
        return [int(word) for word in os.read(self.hello_fd, 100).split()]

    def close(self):
        os.close(self.hello_fd)
        os.close(self.gate_fd)


class AgentTest(unittest.TestCase):
    """A daemon whose reviewer is a fake agent (see fake_app_server.py): what such tests share."""

    def setUp(self):
        self.served = []

    def tearDown(self):
        for served in self.served:
            served.end()

    def begin_agent(self, vendor, fake, how, settings):
        place = Place()
        fake = os.path.join(os.path.dirname(os.path.abspath(__file__)), fake)
        program = place.script(vendor, "import os, sys\n"
                               "os.execv(sys.executable, [sys.executable, %r, *sys.argv[1:]])\n" % fake)
        with open(os.path.join(place.dir, "app-server.json"), "w", encoding="utf-8") as out:
            json.dump(how or {}, out)
        place.configure(dict({"default_vendor": vendor, "handshake_sec": 20,
                              "vendors": {vendor: {"program": program}}}, **settings))
        self.flowd = Flowd(place=place)
        self.served.append(self.flowd)

    def run_id(self, turn, again=None, **more):
        play = {"turn": turn, "again": again or []}
        return self.flowd.start(self.flowd.dir, context="PLAY " + json.dumps(play),
                                **more)["flow_run_id"]

    def result(self, turn, again=None, **more):
        return self.flowd.finished(self.run_id(turn, again, **more))

    def next_round(self, run, turn, again=None):
        self.flowd.submit(run, context="PLAY " + json.dumps({"turn": turn, "again": again or []}))
        return self.flowd.finished(run)

    def log(self):
        """What the fake was sent and did: objects, the newest last."""
        with open(os.path.join(self.flowd.dir, "app-server.log"), encoding="utf-8") as lines:
            found = [json.loads(line) for line in lines]
        return [each for each in found if isinstance(each, dict)]

    def pids(self):
        return [each["started"] for each in self.log() if "started" in each]

    def all_gone(self):
        until("the reviewers to end", lambda: not any(is_alive(pid) for pid in self.pids()))

    def failed(self, ended, status, code, *texts):
        self.assertEqual((ended["status"], ended["round_status"], ended["round_reason_code"]),
                         ("waiting", status, code), ended)
        for text in texts:
            self.assertIn(text, ended["round_reason"])


def serving(state):
    """The pids that the log in a state directory names as serving, the oldest first."""
    with open(os.path.join(state, "flowd.log"), encoding="utf-8") as log:
        return [line["pid"] for line in map(json.loads, log) if " serves " in line["message"]]


def is_alive(pid):
    """Whether it runs: a zombie does not, but one whose other threads are still on their way out cannot be waited for yet."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as stat:
            state = stat.read().rpartition(")")[2].split()[0]
        return state not in "ZX" or len(os.listdir("/proc/%d/task" % pid)) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False
