# SPDX-License-Identifier: Apache-2.0
"""What every process test uses: the real programs over pipes, as a client runs them.

A test file defines functions named test_*; main(globals()) runs them in order, prints a line for each and
exits 0, 1 or 77. Nothing here sleeps: each wait is for an event and has a bound.
"""
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, os.environ.get("KCAP_TEST_PATHS", os.path.join(os.getcwd(), "tests", "process")))
import paths  # noqa: E402  (written by configure into the build directory)

HOST = os.path.join(paths.BUILDDIR, "kcap-host")
FLOWD = os.path.join(paths.BUILDDIR, "kcap-flowd")
FIXTURE = os.path.join(paths.BUILDDIR, "tests", "support", ".libs", "fixture.so")
SLOWER = float(os.environ.get("KCAP_TEST_SLOWER", "1"))  # valgrind and sanitizers stretch the bounds


class Skip(Exception):
    """Raised by a test that lacks something this machine cannot have."""


def clean_env(home, **more):
    """An environment in which nothing of the developer's own reaches the program."""
    env = {"HOME": home, "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8"}
    for name, value in os.environ.items():
        if name in ("KCAP_WRAP", "TMPDIR") or name.endswith("SAN_OPTIONS"):
            env[name] = value
    env.update(more)
    return env


class TempDir:
    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="kcap-test-")
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


class Host:
    """A kcap-host with pipes. Lines that come back are sorted into answers (by raw id) and the rest;
    the arrays that answer batches are kept apart."""

    def __init__(self, *args, env=None, cwd=None, program=HOST, stderr=subprocess.PIPE):
        self.home = None
        if env is None:
            self.home = tempfile.mkdtemp(prefix="kcap-test-home-")
            env = clean_env(self.home)
        self.process = subprocess.Popen([program, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=stderr, env=env, cwd=cwd)
        self.lines, self.arrays, self.errors = [], [], []
        self.changed = threading.Condition()
        self.next_id = 0
        readers = [self._read_out] + ([self._read_err] if stderr == subprocess.PIPE else [])
        self.reading = len(readers)  # nothing more can come once it is 0
        for reader in readers:
            threading.Thread(target=self._read, args=(reader,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        if self.home:
            shutil.rmtree(self.home, ignore_errors=True)

    def _read(self, reader):
        try:
            reader()
        finally:
            with self.changed:
                self.reading -= 1
                self.changed.notify_all()

    def _read_out(self):
        for line in self.process.stdout:
            with self.changed:
                answer = json.loads(line)
                if isinstance(answer, list):
                    self.arrays.append(answer)
                else:
                    self.lines.append((time.monotonic(), answer))
                self.changed.notify_all()

    def _read_err(self):
        for line in self.process.stderr:
            with self.changed:
                self.errors.append(line.decode("utf-8", "replace").rstrip("\n"))
                self.changed.notify_all()

    def wait_until(self, predicate, seconds, what):
        """Waits for predicate() to give something true; raises when seconds have passed."""
        end = time.monotonic() + seconds * SLOWER
        with self.changed:
            while True:
                found = predicate()
                if found:
                    return found
                left = end - time.monotonic()
                if left <= 0 or (self.reading == 0 and self.process.poll() is not None):
                    raise AssertionError("%s for %s; lines %s; stderr %s" %
                                         ("waited %gs" % seconds if left <= 0 else "in vain: it has ended",
                                          what, self.lines[-5:], self.errors[-8:]))
                self.changed.wait(min(left, 0.5))

    def write(self, data):
        self.process.stdin.write(data if isinstance(data, bytes) else data.encode())
        self.process.stdin.flush()

    def send(self, method, params=None, id=None):
        """Sends one message; a request when id is given (True: the next free number). Returns the id."""
        message = {"jsonrpc": "2.0", "method": method}
        if id is True:
            self.next_id += 1
            id = self.next_id
        if id is not None:
            message["id"] = id
        if params is not None:
            message["params"] = params
        self.write(json.dumps(message) + "\n")
        return id

    def answer(self, id, seconds=10):
        """The answer to id; with .at, the time it came."""
        def find():
            for at, line in self.lines:
                if line.get("id") == id and "method" not in line and type(line["id"]) is type(id):
                    return at, line
            return None
        self.at, line = self.wait_until(find, seconds, "the answer to %r" % (id,))
        return line

    def has_answer(self, id):
        with self.changed:
            return any(line.get("id") == id for _, line in self.lines)

    def notes(self, method):
        with self.changed:
            return [line for _, line in self.lines if line.get("method") == method]

    def error_line(self, text, seconds=10):
        return self.wait_until(lambda: [e for e in self.errors if text in e], seconds, "stderr %r" % text)

    def initialize(self, name="test", version="1", revision="2025-06-18"):
        id = self.send("initialize", {"protocolVersion": revision, "capabilities": {},
                                      "clientInfo": {"name": name, "version": version}}, id=True)
        answer = self.answer(id)
        self.send("notifications/initialized")
        return answer["result"]

    def call(self, tool, arguments=None, meta=None, id=True):
        params = {"name": tool, "arguments": arguments or {}}
        if meta is not None:
            params["_meta"] = meta
        return self.send("tools/call", params, id=id)

    def result(self, tool, arguments=None, meta=None, seconds=10):
        """Calls a tool and returns its result object."""
        answer = self.answer(self.call(tool, arguments, meta), seconds)
        assert "result" in answer, answer
        return answer["result"]

    def close(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass

    def wait_exit(self, seconds=5):
        return self.process.wait(seconds * SLOWER)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.close()


def fixture(*args, **kwargs):
    """A host with the fixture plugin."""
    return Host("--plugin-file", FIXTURE, *args, **kwargs)


def call_message(id, tool, arguments):
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def initialized(*args, name="test", version="1", **kwargs):
    host = fixture(*args, **kwargs)
    host.initialize(name, version)
    return host


def text_of(result):
    return result["content"][0]["text"]


def run(args, env=None, input=b"", cwd=None, seconds=30):
    """Runs a program to its end: (status, stdout, stderr), text."""
    with TempDir() as home:
        done = subprocess.run(args, env=env or clean_env(home), input=input, cwd=cwd, capture_output=True,
                              timeout=seconds * SLOWER)
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def wait_for(predicate, seconds, what, tick=0.01):
    """For events that can only be looked at (a file, a process). Bounded; the tick is no measure."""
    end = time.monotonic() + seconds * SLOWER
    while True:
        found = predicate()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError("waited %gs for %s" % (seconds, what))
        threading.Event().wait(tick)


def main(names, only=None):
    tests = [(n, f) for n, f in names.items() if n.startswith("test_") and callable(f)]
    only = sys.argv[1:] or only
    failed = skipped = passed = 0
    for name, function in tests:
        if only and name not in only:
            continue
        begin = time.monotonic()
        try:
            function()
            passed += 1
            print("ok   %s (%.2fs)" % (name, time.monotonic() - begin), flush=True)
        except Skip as reason:
            skipped += 1
            print("skip %s: %s" % (name, reason), flush=True)
        except BaseException:
            failed += 1
            print("FAIL %s" % name, flush=True)
            print(traceback.format_exc()[-4000:], flush=True)
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped), flush=True)
    sys.exit(1 if failed or not (passed or skipped) else 77 if skipped else 0)


__all__ = ["Host", "HOST", "FLOWD", "FIXTURE", "SLOWER", "Skip", "TempDir", "call_message", "clean_env", "fixture",
           "initialized", "main", "paths", "run", "text_of", "wait_for", "json", "os", "queue", "shutil", "signal",
           "subprocess", "sys", "time"]
