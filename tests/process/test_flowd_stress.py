#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many drivers at once, and a daemon that is killed in between: every result arrives once, none is lost, nothing is stuck
and no process is left. KCAP_STRESS="RUNS,ROUNDS,DRIVERS,KILLS" makes it larger; it prints what it measured."""

import http.client
import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import flowd  # noqa: E402

RUNS, ROUNDS, DRIVERS, KILLS = map(int, os.environ.get("KCAP_STRESS", "24,2,8,4").split(","))
FULL = "KCAP_STRESS" in os.environ

# Asks and writes beside the load, one request after the other, and prints how long each took, in ms.
PROBE = r"""
import http.client, json, os, socket, sys, time
class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
agent, run = sys.argv[2:4]
connection = Connection("flowd")
number = 0
while os.getppid() != 1:
    number += 1
    for method, path, body in (("GET", "/api/flows/" + run, None),
                               ("POST", "/api/flows/participant/message",
                                {"agent_id": agent, "message_id": "m%d" % (number % 5), "text": "x"})):
        began = time.monotonic()
        connection.request(method, path, body and json.dumps(body))
        answer = connection.getresponse()
        answer.read()
        print("%.2f" % ((time.monotonic() - began) * 1000), flush=True)
        assert answer.status == 200, answer.status
"""


def sql(place, query, *values):
    store = sqlite3.connect(os.path.join(place.state, "flowd.db"), timeout=30)
    try:
        return store.execute(query, values).fetchall()
    finally:
        store.close()


def rss_kib(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def children_left(state):
    """Processes whose environment names the state directory, but for daemons."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as environ:
                entries = environ.read().split(b"\0")
            if b"KCAP_STATE_DIR=" + state.encode() in entries and any(
                    entry.startswith(b"KCAP_REVIEWER=") for entry in entries) and flowd.is_alive(int(pid)):
                found.append(int(pid))
        except (OSError, ValueError):
            continue
    return found


class Driver(threading.Thread):
    """Does its runs one after the other; whatever fails on the way is looked up and gone on with."""

    def __init__(self, test, number, runs, repo):
        super().__init__(daemon=True)
        self.test, self.number, self.runs, self.repo = test, number, runs, repo
        self.seen, self.error, self.tries = [], None, 0

    def ask(self, method, path, body=None):
        """None: it is not known whether the request was heard."""
        while not self.test.over:
            try:
                status, answer = self.test.flowd.request(method, path, body)
                if status == 503:
                    continue
                return status, answer
            except (FileNotFoundError, ConnectionRefusedError):
                self.test.back.wait(0.05)  # the next daemon comes
            except (OSError, http.client.HTTPException):
                if method == "GET":
                    continue
                return None
        raise AssertionError("it is over")

    def start_run(self, n):
        session = "s%d-%d" % (self.number, n)
        body = self.test.flowd.start_body(self.repo.dir, requesting_session_id=session)
        answer = self.ask("POST", "/api/flows/review/start/v2", body)
        if answer is None:
            flows = self.ask("GET", "/api/flows/session/%s?state=open" % session)[1]["flows"]
            return flows[0]["flow_run_id"] if flows else self.start_run(n)
        assert answer[0] == 200, answer
        return answer[1]["flow_run_id"]

    def finished(self, run):
        while True:
            _, answer = self.ask("GET", "/api/flows/%s?wait_sec=20" % run)
            if answer["status"] != "running":
                return answer

    def next_round(self, run):
        answer = self.ask("POST", "/api/flows/%s/rounds" % run, {"context": "again", "async": True})
        if answer is not None:
            assert answer[0] in (200, 409), answer

    def run(self):
        try:
            for n in range(self.runs):
                run, answered, last = self.start_run(n), 0, 0
                while True:
                    ended = self.finished(run)
                    if ended["round_number"] == last:  # the request for another was not heard
                        self.next_round(run)
                        continue
                    last = ended["round_number"]
                    if ended["round_status"] in ("findings", "clean"):
                        answered += 1
                        self.seen.append((run, ended["round_number"], ended["round_status"],
                                          ended.get("round_result_text")))
                    else:
                        assert ended["round_status"] == "unclear", ended
                        self.tries += 1
                    if answered == ROUNDS:
                        break
                    self.next_round(run)
                while self.ask("POST", "/api/flows/%s/close" % run) is None:
                    pass
        except BaseException as error:  # told by the main thread
            self.error = error


class Stress(unittest.TestCase):
    def drive(self, kills):
        place = flowd.Place()
        place.configure({"keep_days": 1})
        self.flowd = flowd.Flowd(place=place)
        self.over, self.back = False, threading.Event()
        repo = flowd.Repo(self.flowd)
        repo.write("a.c", "int a;\n")
        repo.commit()
        repo.write("a.c", "int a; \n")
        drivers = [Driver(self, n, max(1, RUNS // DRIVERS), repo) for n in range(DRIVERS)]
        probe = None if kills else self.probe(repo)
        memory = []
        began = time.monotonic()
        for driver in drivers:
            driver.start()
        until = began + (3600 if FULL else 240)
        for _ in range(kills):
            for driver in drivers[:1]:
                driver.join(random.uniform(0.05, 0.6))
            self.flowd.kill()
            self.flowd = flowd.Flowd(place=self.flowd)
            self.assertEqual(sql(self.flowd, "PRAGMA integrity_check"), [("ok",)])
        for driver in drivers:
            while driver.is_alive() and time.monotonic() < until:
                driver.join(1)
                memory.append(rss_kib(self.flowd.pid()))
        self.over = True
        if probe:
            probe.kill()
        for driver in drivers:
            driver.join(30)
            self.assertIsNone(driver.error)
        self.check(drivers, time.monotonic() - began, memory)
        if probe:
            self.check_probe(probe)
        self.flowd.end()

    def probe(self, repo):
        run = self.flowd.start(repo.dir)["flow_run_id"]
        self.flowd.finished(run)
        ((agent,),) = sql(self.flowd, "SELECT agent_id FROM participants WHERE flow_id = ?", run)
        return subprocess.Popen([sys.executable, "-c", PROBE, self.flowd.socket, agent, run],
                                stdout=subprocess.PIPE, text=True)

    def check_probe(self, probe):
        times = sorted(float(line) for line in probe.communicate()[0].splitlines()[:-1])
        p99 = times[int(len(times) * 0.99)]
        print("api: %d calls beside the load, p50 %.2f ms, p99 %.2f ms, worst %.2f ms" %
              (len(times), times[len(times) // 2], p99, times[-1]))
        self.assertGreater(len(times), 20)
        if FULL:
            self.assertLessEqual(p99, 20)

    def check(self, drivers, seconds, memory):
        seen = [each for driver in drivers for each in driver.seen]
        self.assertEqual(len(seen), DRIVERS * max(1, RUNS // DRIVERS) * ROUNDS)
        self.assertEqual(len({(run, number) for run, number, _, _ in seen}), len(seen))
        stored = {(run, number): (status, text) for run, number, status, text in sql(
            self.flowd, "SELECT flow_id, number, status, result_text FROM rounds")}
        for run, number, status, text in seen:
            self.assertEqual(stored[run, number], (status, text))
        self.assertEqual(sql(self.flowd, "SELECT count(*) FROM rounds WHERE ended_ms IS NULL"), [(0,)])
        runs = {run for run, _, _, _ in seen}
        ended = {run for (run,) in sql(self.flowd, "SELECT id FROM flows WHERE status = 'closed'")}
        self.assertLessEqual(runs, ended)
        flowd.until("the reviewers to end", lambda: not children_left(self.flowd.state))
        flowd.until("their ends to be on record",
                    lambda: sql(self.flowd, "SELECT count(*) FROM launches") == [(0,)])
        self.assertEqual(sql(self.flowd, "PRAGMA integrity_check"), [("ok",)])
        memory = memory or [0]
        print("%d results in %.1f s, %d rounds done again, memory %d KiB after a quarter, %d at the end" % (
            len(seen), seconds, sum(driver.tries for driver in drivers), memory[len(memory) // 4], memory[-1]))

    def test_many_drivers(self):
        self.drive(0)

    def test_kills_in_between(self):
        self.drive(KILLS)

    def test_what_was_acknowledged_is_there(self):
        """Results are posted while the daemon is killed; each that was called recorded is in the store."""
        place = flowd.Place()
        place.configure({"default_vendor": "command", "max_reviewers": 1,
                         "vendors": {"command": {"argv": ["tail", "-f", "/dev/null"]}}})
        self.flowd = flowd.Flowd(place=place)
        recorded, unknown = {}, {}
        for _ in range(max(3, KILLS)):
            runs = [self.flowd.start(self.flowd.dir)["flow_run_id"] for _ in range(6)]
            rows = sql(self.flowd, "SELECT r.id, r.token, p.agent_id FROM rounds r JOIN participants p"
                       " ON p.flow_id = r.flow_id WHERE r.flow_id IN (%s)" % ",".join("?" * 6), *runs)

            def post(rows=rows):
                for id, token, agent in rows:
                    body = {"agent_id": agent, "round_token": token, "kind": "findings", "text": "of " + id}
                    unknown[id] = "of " + id
                    try:
                        status, _ = self.flowd.request("POST", "/api/flows/reviewer/result", body)
                    except (OSError, http.client.HTTPException):
                        return
                    if status == 200:
                        recorded[id] = unknown.pop(id)

            thread = threading.Thread(target=post)
            thread.start()
            thread.join(random.uniform(0, 0.03))
            self.flowd.kill()
            thread.join()
            self.flowd = flowd.Flowd(place=self.flowd)
            self.assertEqual(sql(self.flowd, "PRAGMA integrity_check"), [("ok",)])
        stored = dict(sql(self.flowd, "SELECT id, result_text FROM rounds WHERE status = 'findings'"))
        for id, text in recorded.items():
            self.assertEqual(stored.pop(id), text)
        for id, text in stored.items():  # accepted, and the answer lost
            self.assertEqual(unknown[id], text)
        self.flowd.end()


if __name__ == "__main__":
    unittest.main()
