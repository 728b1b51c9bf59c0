#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Definitions of one's own, runs with several participants, their messages, and what the server says it can."""

import json
import os
import sqlite3
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import flowd  # noqa: E402

SAY_CLEAN = "import sys\nsys.stdin.read()\nprint('{\"kind\": \"clean\"}')\n"
TWO = """
name: two-looks
participants:
  - role: reviewer
    prompt: Mind the locks.
  - role: tester
    vendor: command
limits: {max_rounds: 2}
"""


class Base(unittest.TestCase):
    def setUp(self):
        place = flowd.Place()
        place.configure({"default_vendor": "command",
                         "vendors": {"command": {"argv": [place.script("say", SAY_CLEAN)]}}},
                        flows={"two": TWO})
        self.flowd = flowd.Flowd(place=place)
        self.addCleanup(self.flowd.end)

    def refused(self, status, error, method, path, body=None):
        got, answer = self.flowd.request(method, path, body)
        self.assertIsInstance(answer, dict, answer)
        self.assertEqual((got, answer["error"]), (status, error), answer)
        return answer["message"]

    def store(self, query, *values):
        store = sqlite3.connect(os.path.join(self.flowd.state, "flowd.db"))
        try:
            return store.execute(query, values).fetchall()
        finally:
            store.close()

    def agent(self, run, role="reviewer"):
        return self.store("SELECT agent_id FROM participants WHERE flow_id = ? AND role = ?",
                          run, role)[0][0]

    def start_yaml(self, yaml, **more):
        body = self.flowd.start_body(self.flowd.dir, client_flow_protocol_version=None,
                                     **dict({"kind": None}, definition_yaml=yaml, **more))
        return self.flowd.request("POST", "/api/flows/review/start", body)


class Participants(Base):
    def test_several_begin_without_a_round(self):
        started = self.flowd.start(self.flowd.dir, kind="two")
        self.assertEqual(started["status"], "running")
        self.assertNotIn("round_id", started)
        self.assertNotIn("round_number", started)
        run = started["flow_run_id"]
        status = self.flowd.status(run, wait_sec=5)
        self.assertEqual((status["status"], status["round_count"]), ("waiting", 0))
        self.assertNotIn("round_number", status)
        self.assertEqual([(p["role"], p["vendor"]) for p in status["participants"]],
                         [("reviewer", "command"), ("tester", "command")])
        path = "/api/flows/%s/rounds" % run
        self.refused(400, "participant_required", "POST", path, {"context": "x"})
        self.assertIn("reviewer, tester", self.refused(
            404, "unknown_participant", "POST", path, {"context": "x", "participant": "judge"}))
        for number, role in enumerate(("tester", "reviewer"), 1):
            answer = self.flowd.submit(run, participant=role)
            self.assertEqual(answer["round_number"], number)
            ended = self.flowd.finished(run)
            self.assertEqual((ended["round_status"], ended["round_participant"]), ("clean", role))
            self.assertEqual(ended["reviewer_memory"], "first")  # of its own
        status, text = self.flowd.request("POST", path, {"context": "x", "participant": "tester"})
        self.assertEqual((status, text), (400, "max_rounds (2) reached"))
        self.assertEqual(self.flowd.status(run)["status"], "waiting")
        listed = self.flowd.start(self.flowd.dir, kind="two", requesting_session_id="s")
        (flow,) = self.flowd.request("GET", "/api/flows/session/s?state=open")[1]["flows"]
        self.assertEqual(flow["flow_run_id"], listed["flow_run_id"])

    def test_inline_definition(self):
        status, started = self.start_yaml("participants: [{role: reviewer, vendor: command}]")
        self.assertEqual((status, started["round_number"]), (200, 1))
        self.assertEqual(started["applied_reviewer_vendor"], "command")
        self.assertEqual(self.flowd.finished(started["flow_run_id"])["definition_id"], "dynamic")
        for name in ("vendor", "model", "kind"):
            status, answer = self.start_yaml("participants: [{role: reviewer}]",
                                             **{name: "code-review"})
            self.assertEqual((status, answer["error"]), (400, "invalid_request"))
            self.assertIn('"%s"' % name, answer["message"])

    def test_a_map_of_roles(self):
        """As kcap's definitions are written, with its word for no workspace."""
        status, started = self.start_yaml("participants:\n  critic: {vendor: command, workspace: none}\n"
                                          "  tester: {vendor: command}\n")
        self.assertEqual((status, started["status"], started["workspace_mode"]), (200, "running", "context-only"))
        shown = self.flowd.status(started["flow_run_id"])
        self.assertEqual([p["role"] for p in shown["participants"]], ["critic", "tester"])

    def test_definitions_are_strict(self):
        for yaml, line, why in (
                ("", None, "is empty"), ("{", 2, "no YAML"), ("a: b", 1, '"a" is not known'),
                ("- x", 1, "must be a mapping"), ("participants: {}", 1, "must be a list"),
                ("participants: []", 1, "must be a list"),
                ("\nname: x\n", 2, '"participants" is missing'),
                ("participants:\n  - vendor: command\n", 2, '"role" is missing'),
                ("participants:\n  a:\n    role: b\n", 3, '"role" is its key already'),
                ("participants:\n  a: {}\n  A: {}\n", 3, "must be of lower-case letters"),
                ("participants: {a: {}, a: {}}", 1, "is another participant's already"),
                ("participants: {a: 7}", 1, "must be a mapping"),
                ("name: \"\"\nparticipants: [{role: a}]\n", 1, '"name" must be a text'),
                ("name:\nparticipants: [{role: a}]\n", 1, '"name" must be a text'),
                ("participants:\n  - role: Bad Role\n", 2, '"role" must be of lower-case'),
                ("participants:\n  - role: a\n  - role: a\n", 3, "another participant's"),
                ("participants:\n  - role: a\n    role: b\n", 3, '"role" is there twice'),
                ("participants:\n  - role: a\n    vendor: nobody\n", 3, '"vendor" names no vendor'),
                ("participants:\n  - role: a\n    prompt: [x]\n", 3, '"prompt" must be a text'),
                ("participants:\n  - role: a\n    workspace: home\n", 3, '"workspace" must be'),
                ("participants: [{role: a}]\nlimits: {max_rounds: 0}", 2, '"max_rounds" must be'),
                ("participants: [{role: a}]\nlimits:\n  idle_sec: '5'", 3, '"idle_sec" must be'),
                ("participants: [{role: a}]\nlimits:\n  budget_usd: -1", 3, '"budget_usd" must be'),
                ("participants: [{role: a}]\nlimits:\n  budget_usd: 1.2345678", 3, "amount"),
                ("participants: [{role: a}]\nlimits:\n  budget_usd: 2.", 3, "amount"),
                ("\n" + "[" * 250000, 2, "levels deep"), ("- " * 120000, 1, "levels deep"),
                ("participants: [{role: a}]\nlimits:\n  rounds: 5", 3, '"rounds" is not known'),
                ("participants: [%s]" % ", ".join("{role: r%d}" % i for i in range(9)), 1,
                 "at most 8"),
                ("a: &x [1]\nparticipants: *y\n", 2, "no YAML"),
                ("? [a]\n: b\n", 1, "a key must be a text"),
                ("participants: [{role: a}]\n---\nx: 1\n", None, None)):
            status, answer = self.start_yaml(yaml)
            if why is None:  # a second document is none of ours
                self.assertEqual(status, 200)
                continue
            self.assertEqual((status, answer["error"]), (400, "invalid_definition"), (yaml, answer))
            self.assertIn(why, answer["message"], yaml)
            if line:
                self.assertIn("definition_yaml: line %d: " % line, answer["message"], yaml)
        self.assertEqual(self.start_yaml("x: " + "a" * (300 << 10))[0], 400)

    def test_files_are_read_anew_and_named(self):
        self.flowd.configure(flows={"mine": "participants:\n  - rule: x\n"})
        body = self.flowd.start_body(self.flowd.dir, kind="mine")
        message = self.refused(400, "invalid_definition", "POST", "/api/flows/review/start/v2", body)
        self.assertIn('flows/mine.yaml: line 2: "rule" is not known here', message)
        self.flowd.configure(flows={"mine": "participants:\n  - role: x\n"})
        run = self.flowd.start(self.flowd.dir, kind="mine")["flow_run_id"]
        self.assertEqual(self.flowd.finished(run)["round_status"], "clean")
        # a run keeps what it began with
        self.flowd.configure(flows={"mine": "participants:\n  - role: y\n"})
        self.assertEqual(self.flowd.submit(run)["round_number"], 2)
        self.flowd.finished(run)
        for name in ("../flowd", "mine.yaml", ".mine", "x/y", "x" * 100, "no-such"):
            body = self.flowd.start_body(self.flowd.dir, kind=name)
            self.assertIn("code-review, spec-review", self.refused(
                404, "unknown_definition", "POST", "/api/flows/review/start/v2", body))


class Messages(Base):
    def setUp(self):
        super().setUp()
        self.run_id = self.flowd.start(self.flowd.dir, kind="two")["flow_run_id"]

    def send(self, role, message_id, text):
        body = {"agent_id": self.agent(self.run_id, role), "message_id": message_id, "text": text}
        return self.flowd.request("POST", "/api/flows/participant/message", body)

    def pending(self):
        return [(m["message_id"], m["from_participant"], m["text"])
                for m in self.flowd.status(self.run_id).get("pending_messages", [])]

    def test_they_come_until_they_are_acknowledged(self):
        self.assertEqual(self.send("tester", "m1", "one é")[0], 200)
        self.assertEqual(self.send("tester", "m1", "one é")[0], 200)  # a retry
        self.assertEqual(self.send("reviewer", "m2", "two")[0], 200)
        both = [("m1", "tester", "one é"), ("m2", "reviewer", "two")]
        self.assertEqual(self.pending(), both)
        answer = self.flowd.submit(self.run_id, participant="tester")
        self.assertEqual(len(answer["pending_messages"]), 2)
        self.flowd.finished(self.run_id)
        ack = "/api/flows/%s/messages/ack" % self.run_id
        self.assertEqual(self.flowd.request("POST", ack, {"message_ids": ["m1", "other"]})[0], 200)
        self.assertEqual(self.pending(), both[1:])
        self.refused(400, "invalid_request", "POST", ack, {"message_ids": "m2"})
        self.refused(400, "invalid_request", "POST", ack, {"message_ids": ["m2", 7]})
        self.assertEqual(self.pending(), both[1:])  # all or nothing
        self.refused(404, "unknown_flow", "POST", "/api/flows/x/messages/ack", {"message_ids": []})
        self.assertEqual(len(self.flowd.close_run(self.run_id)["pending_messages"]), 1)
        self.assertEqual(self.send("reviewer", "m3", "late")[1]["error"], "run_closed")

    def test_they_wake_who_waits(self):
        self.flowd.configure({"default_vendor": "command", "vendors": {"command": {"argv": [
            "tail", "-f", "/dev/null"]}}})
        self.flowd.submit(self.run_id, participant="reviewer")
        connection = flowd.Connection(self.flowd.socket)
        connection.request("GET", "/api/flows/%s?wait_sec=25" % self.run_id)
        self.assertEqual(self.flowd.status(self.run_id)["round_status"], "running")
        self.send("reviewer", "m1", "a question")
        answer = json.loads(connection.getresponse().read())
        self.assertEqual(answer["pending_messages"][0]["text"], "a question")
        self.assertEqual(answer["round_status"], "running")
        connection.close()
        self.flowd.close_run(self.run_id)

    def test_faults(self):
        path = "/api/flows/participant/message"
        good = {"agent_id": self.agent(self.run_id), "message_id": "m", "text": "t"}
        self.refused(409, "no_active_flow", "POST", path, dict(good, agent_id="nobody"))
        for name, wrong in (("text", ""), ("text", " \n"), ("text", 7), ("text", "x" * 70000),
                            ("message_id", ""), ("message_id", "x" * 200), ("message_id", None)):
            message = self.refused(400, "invalid_request", "POST", path, dict(good, **{name: wrong}))
            self.assertIn('"%s"' % name, message)
        self.assertEqual(self.pending(), [])


class Daemons(Base):
    def test_what_can_be_run_here(self):
        path = "/api/daemons?repo_root=" + self.flowd.dir.replace("/", "%2F")
        status, daemons = self.flowd.request("GET", path)
        self.assertEqual((status, len(daemons)), (200, 1))
        (daemon,) = daemons
        self.assertIn(self.flowd.dir, daemon["repo_paths"])
        self.assertNotIn("machine_id", daemon)
        self.assertEqual(sorted(daemon["supported_vendors"]),
                         ["checklist", "claude", "codex", "codex-exec", "command"])
        self.assertIn("command", daemon["unattended_vendors"])
        capable = {c["vendor"]: c["supports_reviewer_model_resolution"]
                   for c in daemon["unattended_vendor_capabilities"]}
        self.assertEqual(sorted(capable), sorted(daemon["unattended_vendors"]))
        self.assertIs(capable["command"], False)
        config = self.flowd.configure({})
        with open(os.path.join(config, "machine.json"), "w", encoding="utf-8") as out:
            out.write('{"id": "%s"}' % ("a" * 32))
        (daemon,) = self.flowd.request("GET", "/api/daemons")[1]
        self.assertEqual(daemon["machine_id"], "a" * 32)
        self.assertNotIn("command", daemon["unattended_vendors"])  # no argv any more
        self.assertEqual(daemon["repo_paths"], [])
        self.flowd.start(self.flowd.dir, vendor="checklist")
        (daemon,) = self.flowd.request("GET", "/api/daemons")[1]
        self.assertEqual(daemon["repo_paths"], [self.flowd.dir])


if __name__ == "__main__":
    unittest.main()
