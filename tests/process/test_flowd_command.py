#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Any command as a reviewer: its contract, its clocks, its environment, and its place in the queue."""

import json
import os
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import flowd  # noqa: E402

# Says what it is told to say by the context of the round: {"say": TEXT, "exit": N, "spaced": [...]}
TALKER = r"""
import json, os, re, sys, threading
prompt = sys.stdin.read()
with open(os.environ["HOME"] + "/prompts", "a") as out:
    out.write(json.dumps(prompt) + "\n")

job = json.loads(re.search(r"JOB (\{.*\})", prompt).group(1))
if job.get("wait"):
    with open(job["wait"] + ".hello", "w") as hello:
        hello.write("%d\n" % os.getpid())
    open(job["wait"]).read(1)
for text in job.get("spaced", []):
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
    threading.Event().wait(job["every"])
if job.get("env"):
    print(json.dumps({"kind": "findings", "findings": json.dumps(dict(os.environ))}))
else:
    sys.stdout.write(job.get("say", "") * job.get("times", 1))
if "complain" in job:
    sys.stderr.write(job["complain"] + "\n")
sys.stdout.flush()
os._exit(job.get("exit", 0))
"""


class Command(unittest.TestCase):
    def begin(self, *arguments, settings=None, env=None, flows=None):
        place = flowd.Place()
        talker = place.script("talker", TALKER)
        base = {"vendors": {"command": {"argv": [talker]}}, "default_vendor": "command"}
        for name, value in (settings or {}).items():
            base[name] = dict(base["vendors"], **value) if name == "vendors" else value
        if settings and "vendors" in settings:
            base["vendors"]["command"] = dict({"argv": [talker]},
                                              **settings["vendors"].get("command", {}))
        place.configure(base, env, flows)
        self.flowd = flowd.Flowd(*arguments, place=place)
        self.addCleanup(self.flowd.end)

    def run_id(self, job, **more):
        return self.flowd.start(self.flowd.dir, context="JOB " + json.dumps(job),
                                **more)["flow_run_id"]

    def result(self, job, **more):
        return self.flowd.finished(self.run_id(job, **more))

    def prompts(self):
        with open(os.path.join(self.flowd.dir, "prompts"), encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def test_contract_on_standard_output(self):
        self.begin()
        ended = self.result({"say": '{"kind": "findings", "findings": "a: b\\u00e9"}\n'})
        self.assertEqual((ended["round_status"], ended["round_result_text"]), ("findings", "a: bé"))
        self.assertEqual(ended["applied_reviewer_vendor"], "command")
        ended = self.result({"say": ' {"kind": "clean", "findings": "dropped"} '})
        self.assertEqual(ended["round_status"], "clean")
        self.assertNotIn("round_result_text", ended)

    def test_no_verdict_is_a_failure(self):
        self.begin()
        for say, why in (
                ("", "nothing"), (" \n", "nothing"), ("all is well", "not one JSON object"),
                ('{"kind": "clean"}{}', "not one JSON object"), ("[]", "not one JSON object"),
                ('{"kind": "clean", "kind": "clean"}', "not one JSON object"),
                ('{"kind": "maybe"}', "no \"kind\""), ('{"findings": "x"}', "no \"kind\""),
                ('{"kind": "findings"}', "without any text"),
                ('{"kind": "findings", "findings": " "}', "without any text"),
                ('{"kind": "findings", "findings": 7}', "are no text")):
            ended = self.result({"say": say})
            self.assertEqual((ended["status"], ended["round_status"]), ("waiting", "failed"), say)
            self.assertEqual(ended["round_reason_code"], "no_verdict")
            self.assertIn(why, ended["round_reason"], say)
        ended = self.result({"say": '{"kind": "clean"}', "exit": 2, "complain": "no\x1bdisk"})
        self.assertEqual((ended["round_status"], ended["round_result_text"]),
                         ("unclear", "participant_died"))
        self.assertIn("exit status 2: no", ended["round_reason"])
        self.assertNotIn("\x1b", ended["round_reason"])
        ended = self.result({"say": "x", "times": 5 << 20})
        self.assertIn("more than 4 MiB", ended["round_reason"])

    def test_the_prompt_is_the_contract(self):
        self.begin()
        run = self.run_id({"say": '{"kind": "findings", "findings": "first words"}'},
                          target_ref="main..topic", instructions="mind the locks")
        self.flowd.finished(run)
        self.flowd.submit(run, context='JOB {"say": "{\\"kind\\": \\"clean\\"}"}')
        ended = self.flowd.finished(run)
        self.assertEqual((ended["round_status"], ended["reviewer_memory"]), ("clean", "none"))
        first, second = self.prompts()
        for text in ("round_token", "main..topic", "mind the locks", '"kind": "clean"',
                     "material to judge"):
            self.assertIn(text, first)
        self.assertNotIn("do not remember", first)
        self.assertRegex(second, "do not remember it. [^~]*first words")
        # whatever stands in the context cannot end the fence
        marks = [line for line in first.splitlines() if line.startswith("=====")]
        self.assertEqual(len(set(marks)), 1)
        self.assertNotIn(marks[0], second)

    def test_spaced_activity_outlives_the_idle_clock(self):
        self.begin(settings={"idle_sec": 1})
        ended = self.result({"spaced": ["."] * 6, "every": 0.5, "say": '{"kind": "clean"}'})
        self.assertEqual(ended["round_status"], "clean")

    def test_silence_ends_it(self):
        self.begin(settings={"idle_sec": 1})
        fifo = os.path.join(self.flowd.dir, "gate")
        os.mkfifo(fifo)
        began = time.monotonic()
        ended = self.result({"wait": fifo})
        self.assertLess(time.monotonic() - began, 1.5 + 2)
        self.assertEqual((ended["round_status"], ended["round_result_text"]),
                         ("unclear", "participant_stopped"))
        self.assertEqual(ended["round_reason_code"], "idle_timeout")
        self.assertGreaterEqual(ended["round_silence_ms"], 1000)
        self.assertLess(ended["round_silence_ms"], 3500)
        self.assertGreaterEqual(ended["round_elapsed_ms"], 1000)

    def test_activity_does_not_move_the_ceilings(self):
        for name, code in (("hard_ceiling_sec", "hard_ceiling"),
                           ("foreground_ceiling_sec", "foreground_ceiling")):
            with self.subTest(name):
                self.begin(settings={"idle_sec": 1, name: 2})
                began = time.monotonic()
                ended = self.result({"spaced": ["."] * 100, "every": 0.1})
                self.assertEqual((ended["round_status"], ended["round_reason_code"]),
                                 ("unclear", code))
                self.assertGreaterEqual(time.monotonic() - began, 2)
                self.assertLess(time.monotonic() - began, 2 + 10)

    def test_a_definition_has_clocks_of_its_own(self):
        self.begin(settings={"hard_ceiling_sec": 100}, flows={"quick": (
            "participants:\n  - role: reviewer\nlimits:\n  round_timeout: 1\n")})
        fifo = os.path.join(self.flowd.dir, "gate")
        os.mkfifo(fifo)
        ended = self.result({"wait": fifo}, kind="quick")
        self.assertEqual(ended["round_reason"], "hard_ceiling (1 s)")
        self.assertEqual(ended["definition_id"], "quick")

    def test_settings_are_read_when_a_turn_starts(self):
        self.begin()
        self.assertEqual(self.result({"say": '{"kind": "clean"}'})["round_status"], "clean")
        self.flowd.configure('{"idle_sec": 0}')
        status, answer = self.flowd.request("POST", "/api/flows/review/start/v2",
                                            self.flowd.start_body(self.flowd.dir))
        self.assertEqual((status, answer["error"]), (500, "invalid_settings"))
        self.assertIn('flowd.json: "idle_sec" must be a whole number from 1 to ', answer["message"])

    def test_environment(self):
        self.begin(env="# of the user\nMY_KEY=s3cret\nOTHER=x\n\nMORE_A=1\n",
                   settings={"vendors": {"command": {"env": ["MY_KEY", "MORE_*"]}}})
        run = self.run_id({"env": True})
        env = json.loads(self.flowd.finished(run)["round_result_text"])
        self.assertEqual((env["MY_KEY"], env["MORE_A"]), ("s3cret", "1"))
        self.assertNotIn("OTHER", env)
        self.assertNotIn("KCAP_CONFIG_DIR", env)
        self.flowd.close_run(run)
        self.flowd.process.terminate()
        self.flowd.reader.join(flowd.DEADLINE_SEC)
        log = "".join(self.flowd.log) + "".join(
            line for line in list(self.flowd.lines.queue) if line)
        self.assertIn("MY_KEY", log)
        self.assertNotIn("s3cret", log)

    def test_environment_file_must_be_private(self):
        self.begin(env="A=1\n")
        path = os.path.join(self.flowd.dir, ".config", "kcap", "flowd.env")
        os.chmod(path, 0o644)
        ended = self.result({"say": '{"kind": "clean"}'})
        self.assertEqual((ended["round_status"], ended["round_reason_code"]),
                         ("unclear", "start_failed"))
        self.assertIn("chmod 600", ended["round_reason"])
        os.chmod(path, 0o600)
        for text, why in (("A\n", "line 1"), ("A=1\n=2\n", "line 2"), ("KCAP_URL=x\n", "KCAP_"),
                          ("A B=1\n", "line 1")):
            self.flowd.configure(env=text)
            self.assertIn(why, self.result({"say": '{"kind": "clean"}'})["round_reason"])

    def test_queue_is_fair(self):
        self.begin(settings={"max_reviewers": 1})
        fifo = os.path.join(self.flowd.dir, "gate")
        os.mkfifo(fifo)
        greedy = [self.run_id({"wait": fifo}, requesting_session_id="greedy") for _ in range(3)]
        flowd.until("the first to run", lambda: os.path.exists(fifo + ".hello"))
        self.assertEqual(self.flowd.status(greedy[0])["reviewer_state"], "working")
        self.assertEqual(self.flowd.status(greedy[1])["reviewer_state"], "queued")
        self.flowd.close_run(greedy[1])
        modest = self.run_id({"say": '{"kind": "clean"}'}, requesting_session_id="modest")
        self.assertEqual(self.flowd.status(modest)["reviewer_state"], "queued")
        self.raise_limit(2)
        # the one in hand is greedy's: it is modest's turn before greedy's next
        os.remove(fifo + ".hello")
        self.flowd.close_run(greedy[0])
        self.assertEqual(self.flowd.finished(modest)["round_status"], "clean")
        flowd.until("the third to run", lambda: os.path.exists(fifo + ".hello"))
        self.flowd.close_run(greedy[2])
        self.assertEqual(self.flowd.status(greedy[1])["round_status"], "cancelled")

    def raise_limit(self, limit):
        with open(os.path.join(self.flowd.dir, ".config", "kcap", "flowd.json"), encoding="utf-8") as file:
            settings = json.load(file)
        self.flowd.configure(dict(settings, max_reviewers=limit))

    def one_works_and_one_waits(self):
        """Their runs, where there is one turn at a time."""
        self.begin(settings={"max_reviewers": 1})
        fifo = os.path.join(self.flowd.dir, "gate")
        os.mkfifo(fifo)
        busy = self.run_id({"wait": fifo})
        flowd.until("the first to run", lambda: os.path.exists(fifo + ".hello"))
        waiting = self.run_id({"say": '{"kind": "clean"}'})
        return busy, waiting

    def test_a_raised_limit_counts_from_the_next_round_on(self):
        busy, waiting = self.one_works_and_one_waits()
        self.raise_limit(2)
        self.assertEqual(self.result({"say": '{"kind": "clean"}'})["round_status"], "clean")
        self.assertEqual(self.flowd.finished(waiting)["round_status"], "clean")
        self.flowd.close_run(busy)

    def test_a_round_that_waited_when_the_daemon_died(self):
        busy, waiting = self.one_works_and_one_waits()
        self.flowd.kill()
        served = flowd.Flowd(place=self.flowd)
        self.flowd.process, self.flowd.reader = served.process, served.reader
        self.assertIn("while the reviewer was at work", self.flowd.status(busy)["round_reason"])
        self.assertIn("no reviewer has seen it", self.flowd.status(waiting)["round_reason"])

    def test_unusable_command(self):
        self.begin(settings={"vendors": {"command": {"argv": ["/no/such/program"]}}})
        ended = self.result({})
        # valgrind's vfork tells of it by the exit status alone
        self.assertEqual(ended["round_status"],
                         "failed" if "cannot be started" in ended["round_reason"] else "unclear")
        self.assertRegex(ended["round_reason"], "/no/such/program cannot be started|exit status 127")
        self.flowd.configure({})
        status, answer = self.flowd.request(
            "POST", "/api/flows/review/start/v4",
            self.flowd.start_body(self.flowd.dir, vendor="command"))
        self.assertEqual((status, answer["error"]), (400, "reviewer_vendor_unavailable"))
        self.assertIn("argv", answer["message"])


# Tries what a reviewer must not be able to do, in itself and in a child that becomes a daemon.
CLIMBER = r"""
import http.client, json, os, socket, sys
prompt = sys.stdin.read()
path = os.environ["KCAP_URL"][len("unix://"):]

class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)

def ask(method, route, body=None):
    connection = Connection("flowd")
    connection.request(method, route, body and json.dumps(body))
    answer = connection.getresponse()
    return [answer.status, json.loads(answer.read()).get("error")]

start = {"kind": "code-review", "target_kind": "k", "target_ref": "r", "target_title": "t", "context": "c",
         "requesting_cwd": "/", "async": True}
tries = lambda: [ask("POST", "/api/flows/review/start/v4", start), ask("GET", "/api/flowd/runs"),
                 ask("POST", "/api/flows/x/close"), ask("GET", "/api/daemons"), ask("GET", "/auth/config"),
                 ask("POST", "/api/flows/participant/message", {
                     "agent_id": os.environ["KCAP_FLOW_AGENT_ID"], "message_id": "m", "text": "t"})]
seen = {"itself": tries()}
out, back = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
    os.write(back, json.dumps(tries()).encode())
    os._exit(0)
seen["daemon"] = json.loads(os.read(out, 65536))
print(json.dumps({"kind": "findings", "findings": json.dumps(seen)}))
"""


class Wall(unittest.TestCase):
    def test_a_reviewer_may_report_and_nothing_else(self):
        place = flowd.Place()
        place.configure({"vendors": {"command": {"argv": [place.script("climber", CLIMBER)]}}})
        served = flowd.Flowd(place=place)
        self.addCleanup(served.end)
        run = served.start(served.dir, vendor="command")["flow_run_id"]
        ended = served.finished(run)
        self.assertEqual(ended["round_status"], "findings", ended)
        refused = [403, "reviewer_refused"]
        for seen in json.loads(ended["round_result_text"]).values():
            self.assertEqual(seen, [refused] * 4 + [[200, None]] * 2)
        self.assertEqual(len(served.request("GET", "/api/flowd/runs")[1]["runs"]), 1)


class Settings(unittest.TestCase):
    def test_faults_are_named_at_the_start(self):
        place = flowd.Place()
        self.addCleanup(place.remove)
        for text, why in (
                ("{", "flowd.json: line 1: "), ('{\n"idle_sec": 1,\n}', "line 3: "), ("[]", "one object"), ('{"idle": 1}', '"idle" is no setting'),
                ('{"idle_sec": "1"}', '"idle_sec" must be'), ('{"handshake_sec": 0}', "from 1 to "),
                ('{"max_reviewers": 0}', "from 1 to 256"), ('{"keep_days": 1.5}', "from 1 to 36500"),
                ('{"default_vendor": "x"}', '"default_vendor" must name'),
                ('{"vendors": []}', '"vendors" must be an object'),
                ('{"vendors": {"x": {}}}', '"x" is no vendor'),
                ('{"vendors": {"command": {"argv": []}}}', '"command": "argv" must be'),
                ('{"vendors": {"command": {"argv": [1]}}}', '"argv" must be a list'),
                ('{"vendors": {"command": {"x": 1}}}', '"x" is not known'),
                ('{"idle_sec": 1, "idle_sec": 2}', "duplicate"),
                ('{"foreground_ceiling_sec": -1}', "from 0 to ")):
            place.configure(text)
            done = flowd.subprocess.run([flowd.PROGRAM], env=place.env, capture_output=True,
                                        text=True, timeout=flowd.DEADLINE_SEC, check=False)
            self.assertEqual(done.returncode, 1, text)
            self.assertIn(why, done.stderr, text)
            self.assertEqual(len(done.stderr.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
