#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that leave their reviewer's group, its session and its environment: they end with it."""

import json
import os
import signal
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import flowd  # noqa: E402

# Leaves a daemon behind that keeps its environment or throws it away, with a child in one more
# session; tells their numbers, then answers when the gate is opened.
LEAVER = r"""
import json, os, sys
prompt = sys.stdin.read()
here = os.path.dirname(os.path.abspath(__file__))
out, back = os.pipe()
os.set_inheritable(back, True)
LAST = "import os, sys, time; os.write(int(sys.argv[1]), b'%d ' % os.getpid()); os.close(int(sys.argv[1])); time.sleep(600)"
FIRST = LAST.replace("; os.close", "; import subprocess; subprocess.Popen([sys.executable, '-c', sys.argv[2], "
                     "sys.argv[1]], start_new_session=True, close_fds=False); os.close")
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        env = {} if "forgetful" in prompt else dict(os.environ)
        os.execve(sys.executable, [sys.executable, "-c", FIRST, str(back), LAST], env)
    os._exit(0)
os.close(back)
text = b""
while True:
    got = os.read(out, 100)
    text += got
    if not got:
        break
with open(os.path.join(here, "pids-" + os.environ["KCAP_FLOW_AGENT_ID"]), "w") as file:
    file.write(text.decode())
os.rename(file.name, file.name + ".whole")
if "patient" in prompt:
    open(os.path.join(here, "gate")).read()
print(json.dumps({"kind": "clean", "findings": ""}))
"""


class Stray(unittest.TestCase):
    def begin(self):
        self.place = flowd.Place()
        self.place.configure({"idle_sec": 25, "vendors": {
            "command": {"argv": [self.place.script("leaver", LEAVER)]}}})
        os.mkfifo(os.path.join(self.place.dir, "gate"))
        self.serve()

    def serve(self):
        self.flowd = flowd.Flowd(place=self.place)
        self.addCleanup(self.end, self.flowd)

    def end(self, served):
        if served.process.poll() is None:
            served.end()
        else:
            served.remove()

    def pids(self, count=1):
        """Of the two processes that each reviewer left, by agent."""
        def look():
            names = [n for n in os.listdir(self.place.dir) if n.endswith(".whole")]
            return names if len(names) == count else None
        found = {}
        for name in flowd.until("the strays to be there", look):
            with open(os.path.join(self.place.dir, name), encoding="utf-8") as file:
                found[name] = [int(word) for word in file.read().split()]
            self.assertEqual(len(found[name]), 2)
        return found

    def gone(self, pids):
        flowd.until("the strays to end", lambda: not any(map(flowd.is_alive, pids)))

    def test_they_end_with_their_reviewer(self):
        for context in ("mindful", "forgetful"):
            with self.subTest(context):
                self.begin()
                run = self.flowd.start(self.flowd.dir, vendor="command", context=context)["flow_run_id"]
                self.assertEqual(self.flowd.finished(run)["round_status"], "clean")
                self.gone(sum(self.pids().values(), []))

    def test_they_live_as_long_as_it_and_end_at_the_close(self):
        self.begin()
        run = self.flowd.start(self.flowd.dir, vendor="command", context="patient")["flow_run_id"]
        patient = self.pids()
        other = self.flowd.start(self.flowd.dir, vendor="command", context="another")["flow_run_id"]
        self.assertEqual(self.flowd.finished(other)["round_status"], "clean")
        all_pids = self.pids(2)
        self.gone(sum((pids for name, pids in all_pids.items() if name not in patient), []))
        self.assertTrue(all(map(flowd.is_alive, sum(patient.values(), []))))
        self.flowd.close_run(run)
        self.gone(sum(patient.values(), []))

    def test_they_end_at_the_stop(self):
        self.begin()
        self.flowd.start(self.flowd.dir, vendor="command", context="patient forgetful")
        pids = sum(self.pids().values(), [])
        self.flowd.process.terminate()
        self.flowd.close()
        self.assertFalse(any(map(flowd.is_alive, pids)))  # before the daemon, not after it

    def test_children_of_other_origin_are_left_alone(self):
        self.begin()
        place = flowd.Place()
        self.addCleanup(place.remove)
        place.configure({"vendors": {"command": {"argv": [place.script("leaver", LEAVER)]}}})
        log = os.path.join(place.dir, "log")
        with open(log, "w", encoding="utf-8") as err:
            daemon = subprocess.Popen(
                ["sh", "-c", "cat <'%s/in' >/dev/null & echo $! >'%s/pid'; exec '%s' --foreground"
                 % (place.dir, place.dir, flowd.PROGRAM)], env=place.env, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=err, preexec_fn=lambda: os.mkfifo(place.dir + "/in"))
        try:
            flowd.until("the daemon", lambda: os.path.exists(place.socket))
            run = place.start(place.dir, vendor="command")["flow_run_id"]
            self.assertEqual(place.finished(run)["round_status"], "clean")
            with open(place.dir + "/pid", encoding="utf-8") as file:
                sibling = int(file.read())
            self.assertTrue(flowd.is_alive(sibling))
            with open(log, encoding="utf-8") as file:
                self.assertIn("children of other origin", file.read())
            for name in os.listdir(place.dir):
                if name.endswith(".whole"):
                    with open(os.path.join(place.dir, name), encoding="utf-8") as file:
                        for pid in file.read().split():
                            os.kill(int(pid), signal.SIGKILL)
        finally:
            daemon.terminate()
            self.assertEqual(daemon.wait(flowd.DEADLINE_SEC), 0)
            os.close(os.open(place.dir + "/in", os.O_RDWR))  # its end of input


if __name__ == "__main__":
    unittest.main()
