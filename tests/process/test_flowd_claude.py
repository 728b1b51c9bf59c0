#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Claude Code as a reviewer, over a fake that speaks stream-json both ways."""

import os
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import flowd  # noqa: E402

ALIVE = {"type": "stream_event", "event": {"type": "content_block_delta"}}
RETRY = {"type": "system", "subtype": "api_retry", "error": "overloaded"}
CLEAN = [{"submit": "clean"}, {"complete": "success"}]
OURS = {"name": "$server", "status": "connected"}


def tool(kind, id, name=None):
    part = {"type": kind, "id": id, "name": name} if name else {"type": kind, "tool_use_id": id}
    return {"send": {"type": "assistant" if name else "user", "message": {"content": [part]}}}


class Claude(flowd.AgentTest):
    def begin(self, how=None, **settings):
        self.begin_agent("claude", "fake_claude.py", how, settings)

    def users(self):
        return [m["message"]["content"][0]["text"] for m in self.log() if m.get("type") == "user"]

    def controls(self):
        return [m["request"]["subtype"] for m in self.log() if m.get("type") == "control_request"]

    def test_one_process_for_all_rounds(self):
        self.begin()
        run = self.run_id([{"submit": "findings", "text": "one"}, {"complete": "success"}])
        first = self.flowd.finished(run)
        self.assertEqual((first["round_result_text"], first["reviewer_memory"]), ("one", "first"))
        second = self.next_round(run, CLEAN)
        self.assertEqual((second["round_status"], second["reviewer_memory"]), ("clean", "kept"))
        self.assertEqual(len(self.pids()), 1)
        self.assertEqual(self.controls(), ["initialize", "mcp_status"])
        self.flowd.close_run(run)
        self.all_gone()

    def test_it_is_waited_for_until_connected(self):
        self.begin(how={"status": [[dict(OURS, status="pending")]] * 3 + [[OURS]]})
        self.assertEqual(self.result(CLEAN)["round_status"], "clean")
        self.assertEqual(self.controls().count("mcp_status"), 4)

    def test_but_not_for_ever(self):
        self.begin(how={"status": [[dict(OURS, status="pending")]]}, handshake_sec=3)
        self.failed(self.result(CLEAN), "unclear", "handshake_timeout", "mcp_status", "raise handshake_sec")
        self.assertEqual(self.users(), [])
        self.all_gone()

    def test_leaked_server_is_refused(self):
        other = {"name": "kcap-flows", "status": "connected"}
        for servers, why in (([OURS, other], '"kcap-flows"'), ([other, OURS], '"kcap-flows"'),
                             ([], "has not got"), ("x", "cannot be read"), ([OURS, OURS], "also"),
                             ([dict(OURS, status="failed")], "not connected"),
                             ([{"status": "connected"}], "?")):
            with self.subTest(servers):
                self.begin(how={"status": [servers]})
                self.failed(self.result(CLEAN), "failed", "isolation_violation", why)
                self.assertEqual(self.users(), [])
                self.all_gone()

    def test_so_it_is_at_the_beginning_of_a_turn(self):
        other = {"name": "late", "status": "connected"}
        for servers in ([OURS, other], [], [dict(OURS, status="pending")]):
            with self.subTest(servers):
                self.begin(how={"init": servers})
                self.failed(self.result([{"wait": 60}]), "failed", "isolation_violation")
                self.all_gone()

    def test_control_requests_that_are_not_understood(self):
        for subtype in ("initialize", "mcp_status"):
            self.begin(how={"refuse_at": subtype})
            self.failed(self.result(CLEAN), "failed", "protocol_error")

    def test_any_stream_event_is_activity(self):
        self.begin(idle_sec=1)
        self.assertEqual(self.result([{"every": 0.5, "times": 5, "send": ALIVE}] + CLEAN)
                         ["round_status"], "clean")

    def test_retries_are_none(self):
        self.begin(idle_sec=1)
        self.failed(self.result([{"every": 0.2, "times": 100, "send": RETRY}]),
                    "unclear", "idle_timeout", "overloaded")

    def test_open_tools_have_clocks_of_their_own(self):
        self.begin(idle_sec=1, idle_mcp_call_sec=20, idle_command_sec=2)
        self.assertEqual(self.result([tool("tool_use", "a", "mcp__x__submit"), {"wait": 2.5}] + CLEAN)
                         ["round_status"], "clean")
        ended = self.result([tool("tool_use", "a", "mcp__x__submit"), tool("tool_use", "b", "Bash"),
                             tool("tool_result", "a"), {"wait": 60}])
        self.failed(ended, "unclear", "idle_timeout", "(2 s)")
        ended = self.result([tool("tool_use", "a", "mcp__x__submit"), tool("tool_result", "a"),
                             {"wait": 60}])
        self.failed(ended, "unclear", "idle_timeout", "(1 s)")

    def test_silence_is_interrupted(self):
        self.begin(idle_sec=1)
        began = time.monotonic()
        run = self.run_id([{"send": ALIVE}, {"wait": 60}])
        ended = self.flowd.finished(run)
        self.failed(ended, "unclear", "idle_timeout")
        self.assertLess(time.monotonic() - began, 5)
        self.assertTrue(1000 <= ended["round_silence_ms"] <= 1500, ended)
        self.assertIn("interrupt", self.controls())
        self.all_gone()
        self.assertEqual(self.next_round(run, CLEAN)["reviewer_memory"], "lost")

    def test_interrupt_is_never_answered(self):
        self.begin(how={"interrupt": "never"}, idle_sec=1)
        began = time.monotonic()
        self.failed(self.result([{"wait": 60}]), "unclear", "idle_timeout")
        self.assertLess(time.monotonic() - began, 1 + 10)
        self.all_gone()

    def test_no_verdict_is_reminded_once(self):
        self.begin()
        ended = self.result([{"complete": "success"}],
                            [{"submit": "findings", "text": "late"}, {"complete": "success"}])
        self.assertEqual(ended["round_result_text"], "late")
        self.failed(self.result([{"complete": "success"}], [{"complete": "success"}]),
                    "failed", "no_verdict")

    def test_failed_turn(self):
        self.begin()
        self.failed(self.result([{"complete": "error_max_turns", "error": "too many turns"}]),
                    "failed", "failed", "too many turns")

    def test_requests_are_declined(self):
        self.begin()
        ask = {"type": "control_request", "request_id": "q",
               "request": {"subtype": "can_use_tool"}}
        self.assertEqual(self.result([{"send": ask}, {"hear": "q"}] + CLEAN)["round_status"], "clean")
        (heard,) = [m["heard"]["response"] for m in self.log() if "heard" in m]
        self.assertEqual((heard["subtype"], heard["request_id"]), ("error", "q"))

    def test_exit_in_mid_turn(self):
        self.begin()
        self.failed(self.result([{"exit": 0}]), "unclear", "server_exit", "exit status 0")

    def test_budget(self):
        self.begin(how={"cost": 0.4})
        yaml = ("participants: [{role: reviewer, vendor: claude}]\nlimits: {budget_usd: 0.5}\n")
        self.flowd.configure(flows={"dear": yaml})
        run = self.run_id([{"submit": "findings", "text": "x"}, {"complete": "success"}], kind="dear")
        first = self.flowd.finished(run)
        self.assertEqual((first["status"], first["budget_enforcement"]), ("waiting", "full"))
        self.flowd.submit(run, context='PLAY {"turn": [{"submit": "clean"}, {"complete": "success"}]}')
        last = flowd.until("the budget to be spent", lambda: (
            lambda s: s if s["status"] == "failed" else None)(self.flowd.status(run)))
        self.assertIn("budget_exceeded: 0.80 of 0.50 USD", last["end_reason"])
        self.assertEqual(last["round_status"], "clean")
        status, text = self.flowd.request("POST", "/api/flows/%s/rounds" % run, {"context": ""})
        self.assertEqual((status, text[:16]), (400, "budget_exceeded:"))
        self.all_gone()  # it does not outlive its run


if __name__ == "__main__":
    unittest.main()
