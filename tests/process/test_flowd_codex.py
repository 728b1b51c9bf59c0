#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Codex as a reviewer, over a fake app-server that does what the real one was seen to do, and worse."""

import json
import os
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import flowd  # noqa: E402

ALIVE = {"method": "item/agentMessage/delta",
         "params": {"threadId": "$thread", "turnId": "$turn", "itemId": "i", "delta": "x"}}
RETRY = {"method": "error", "params": {
    "threadId": "$thread", "turnId": "$turn", "willRetry": True,
    "error": {"message": "waiting for network", "codexErrorInfo": "serverOverloaded"}}}
CLEAN = [{"submit": "clean"}, {"complete": "completed"}]


def item(method, kind, name="i1", **more):
    return {"send": {"method": "item/" + method, "params": dict(
        threadId="$thread", turnId="$turn", item=dict(more, type=kind, id=name))}}


def note(method, **params):
    return {"send": {"method": method, "params": dict({"threadId": "$thread", "turnId": "$turn"},
                                                      **params)}}


class Codex(flowd.AgentTest):
    def begin(self, how=None, **settings):
        self.begin_agent("codex", "fake_app_server.py", how, settings)

    def sent(self, method):
        return [m["params"] for m in self.log() if m.get("method") == method]

    # ---- good turns ----

    def test_one_thread_for_all_rounds(self):
        self.begin(how={"noise": True})
        run = self.run_id([{"start": "before"}, item("started", "reasoning"),
                           {"submit": "findings", "text": "one"}, {"complete": "completed"}])
        first = self.flowd.finished(run)
        self.assertEqual((first["round_result_text"], first["reviewer_memory"]), ("one", "first"))
        second = self.next_round(run, CLEAN)
        self.assertEqual((second["round_status"], second["reviewer_memory"]), ("clean", "kept"))
        self.assertEqual(len(self.pids()), 1)
        self.assertEqual(len(self.sent("thread/start")), 1)
        self.assertEqual(len(self.sent("turn/start")), 2)
        start = self.sent("thread/start")[0]
        self.assertEqual((start["approvalPolicy"], start["sandbox"], start["ephemeral"]),
                         ("never", "read-only", True))
        self.assertTrue(flowd.is_alive(self.pids()[0]))
        self.flowd.close_run(run)
        self.all_gone()

    def test_memory_that_is_gone_is_told(self):
        self.begin()
        run = self.run_id([{"submit": "findings", "text": "one"}, {"complete": "completed"}])
        self.flowd.finished(run)
        os.kill(self.pids()[0], 9)
        self.all_gone()
        second = self.next_round(run, CLEAN)
        self.assertEqual((second["round_status"], second["reviewer_memory"]), ("clean", "lost"))
        self.assertIn("does not remember", second["round_note"])
        self.assertIn("one", self.sent("turn/start")[1]["input"][0]["text"])
        self.flowd.close_run(run)

    def test_a_copy_is_made_anew_under_a_thread_that_stays(self):
        self.begin()
        self.flowd.configure(flows={
            "copy": "participants: [{role: reviewer, vendor: codex, workspace: worktree}]"})
        repo = flowd.Repo(self.flowd)
        repo.write("a.c", "one\n")
        repo.commit()
        answer = [{"submit": "findings", "text": "x"}, {"complete": "completed"}]
        body = self.flowd.start(repo.dir, kind="copy", context="PLAY " + json.dumps({"turn": answer}))
        first = self.flowd.finished(body["flow_run_id"])
        self.assertEqual(first["workspace_mode"], "worktree")
        (start,) = self.sent("thread/start")
        self.assertEqual(os.path.dirname(start["cwd"]), os.path.join(self.flowd.state, "work"))
        self.assertEqual(os.path.realpath(self.log()[0]["cwd"]), os.path.realpath(start["cwd"]))
        repo.write("a.c", "two\n")
        second = self.next_round(body["flow_run_id"], CLEAN)
        self.assertEqual((second["round_status"], second["reviewer_memory"]), ("clean", "kept"))
        self.assertEqual(os.readlink("/proc/%d/cwd" % self.pids()[0]), os.path.realpath(start["cwd"]))
        with open(os.path.join(start["cwd"], "a.c"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "two\n")
        self.flowd.close_run(body["flow_run_id"])
        flowd.until("the copy to be removed", lambda: not os.path.exists(start["cwd"]))

    def test_environment_of_the_agent(self):
        self.begin()
        self.flowd.configure(env="OPENAI_API_KEY=k\nANTHROPIC_API_KEY=a\nCODEX_HOME=/c\n")
        run = self.run_id(CLEAN)
        self.flowd.finished(run)
        env = self.log()[0]["env"]
        self.assertIn("OPENAI_API_KEY", env)
        self.assertIn("CODEX_HOME", env)
        self.assertIn("KCAP_REVIEWER", env)
        for name in ("ANTHROPIC_API_KEY", "KCAP_FLOW_AGENT_ID", "KCAP_URL"):
            self.assertNotIn(name, env)
        self.flowd.close_run(run)

    def test_spaced_activity_outlives_the_idle_clock(self):
        self.begin(idle_sec=1)
        run = self.run_id([{"every": 0.5, "times": 5, "send": ALIVE}] + CLEAN)
        self.assertEqual(self.flowd.finished(run)["round_status"], "clean")

    def test_waiting_for_a_tool_outlives_it_too(self):
        self.begin(idle_sec=1, idle_mcp_call_sec=20)
        run = self.run_id([item("started", "mcpToolCall"), {"wait": 2.5},
                           item("completed", "mcpToolCall")] + CLEAN)
        self.assertEqual(self.flowd.finished(run)["round_status"], "clean")

    def test_so_does_a_command(self):
        self.begin(idle_sec=1, idle_command_sec=20)
        run = self.run_id([item("started", "commandExecution"), {"wait": 2.5}] + CLEAN)
        self.assertEqual(self.flowd.finished(run)["round_status"], "clean")

    def test_a_child_thread_is_of_the_turn_and_does_not_end_it(self):
        self.begin(idle_sec=1)
        child = {"method": "item/agentMessage/delta",
                 "params": {"threadId": "c", "turnId": "ct", "delta": "x"}}
        run = self.run_id([
            item("started", "collabAgentToolCall", receiverThreadIds=["c"]),
            note("turn/started", threadId="c", turn={"id": "ct", "rootTurnId": "$turn"}),
            {"every": 0.5, "times": 4, "send": child},
            note("turn/completed", threadId="c", turn={"id": "ct", "status": "completed"}),
            {"wait": 0.3}] + CLEAN)
        self.assertEqual(self.flowd.finished(run)["round_status"], "clean")
        self.assertEqual(len(self.sent("turn/start")), 1)  # no reminder in between

    def test_long_and_split_lines(self):
        self.begin()
        big = dict(item("completed", "commandExecution", aggregatedOutput="$big"), big=1 << 20)
        done = json.dumps({"method": "turn/completed", "params": {
            "threadId": "t1", "turn": {"id": "$turn", "status": "completed", "note": "é\u2026"}}},
            ensure_ascii=False)
        run = self.run_id([big, {"raw": "{\n"}, {"raw": "\x00\n"}, {"submit": "clean"},
                           {"split": done + "\n"}])
        self.assertEqual(self.flowd.finished(run)["round_status"], "clean")
        self.assertEqual(self.next_round(run, CLEAN)["reviewer_memory"], "kept")

    def test_its_requests_are_answered(self):
        self.begin()
        asked = [("item/commandExecution/requestApproval", 0, {"result": {"decision": "decline"}}),
                 ("item/fileChange/requestApproval", "x", {"result": {"decision": "decline"}}),
                 ("mcpServer/elicitation/request", 3,
                  {"result": {"action": "decline", "content": None}}),
                 ("item/tool/call", 4, None)]
        steps = []
        for method, id, _ in asked:
            steps += [{"send": {"id": id, "method": method, "params": {}}}, {"hear": id}]
        run = self.run_id(steps + CLEAN)
        self.assertEqual(self.flowd.finished(run)["round_status"], "clean")
        heard = [m["heard"] for m in self.log() if "heard" in m]
        for (method, id, wanted), answer in zip(asked, heard):
            self.assertEqual(answer["id"], id)
            self.assertEqual({k: v for k, v in answer.items() if k != "id"} if wanted else
                             answer["error"]["code"], wanted or -32601)

    # ---- turns without a result ----

    def test_no_verdict_is_reminded_once(self):
        self.begin()
        run = self.run_id([{"complete": "completed"}],
                          [{"submit": "findings", "text": "after all"}, {"complete": "completed"}])
        ended = self.flowd.finished(run)
        self.assertEqual(ended["round_result_text"], "after all")
        turns = self.sent("turn/start")
        self.assertEqual(len(turns), 2)
        self.assertEqual(turns[0]["threadId"], turns[1]["threadId"])
        self.assertIn("ended without a result", turns[1]["input"][0]["text"])
        run = self.run_id([{"complete": "completed"}], [{"complete": "completed"}])
        self.failed(self.flowd.finished(run), "failed", "no_verdict", "the reminder")
        self.assertEqual(len(self.sent("turn/start")), 4)
        # and the thread is fit for another round
        self.assertEqual(self.next_round(run, CLEAN)["reviewer_memory"], "kept")

    def test_the_reminder_is_under_the_same_ceiling(self):
        self.begin(hard_ceiling_sec=2)
        began = time.monotonic()
        run = self.run_id([{"every": 0.3, "times": 4, "send": ALIVE}, {"complete": "completed"}],
                          [{"every": 0.3, "times": 100, "send": ALIVE}])
        self.failed(self.flowd.finished(run), "unclear", "hard_ceiling")
        self.assertLess(time.monotonic() - began, 6)

    def test_failed_turn(self):
        self.begin()
        run = self.run_id([note("error", willRetry=False, error={"message": "no credit"}),
                           {"complete": "failed", "error": {
                               "message": "no credit", "codexErrorInfo": "usageLimitExceeded"}}])
        self.failed(self.flowd.finished(run), "failed", "failed", "no credit", "usageLimitExceeded")
        self.assertEqual(self.next_round(run, CLEAN)["round_status"], "clean")
        self.failed(self.next_round(run, [{"start": "error"}]), "failed", "failed", "no such model")

    def test_silence_after_a_first_sign(self):
        self.begin(idle_sec=1)
        began = time.monotonic()
        run = self.run_id([item("started", "reasoning"), {"wait": 60}])
        ended = self.flowd.finished(run)
        self.failed(ended, "unclear", "idle_timeout")
        self.assertLess(time.monotonic() - began, 5)
        self.assertEqual(ended["round_result_text"], "participant_stopped")
        self.assertLess(ended["round_silence_ms"], 1500)
        self.assertEqual(self.sent("turn/interrupt"), [{"threadId": "t1", "turnId": "turn1"}])
        self.all_gone()  # an interrupt alone would leave commands
        self.assertEqual(self.next_round(run, CLEAN)["reviewer_memory"], "lost")

    def test_retries_are_no_life(self):
        self.begin(idle_sec=1)
        run = self.run_id([{"every": 0.2, "times": 100, "send": RETRY}])
        self.failed(self.flowd.finished(run), "unclear", "idle_timeout", "waiting for network")

    def test_what_is_no_proof_of_life(self):
        self.begin(idle_sec=1)
        others = [dict(ALIVE, method=method) for method in (
            "thread/status/changed", "account/rateLimits/updated", "warning",
            "command/exec/outputDelta", "item/agentMessage/deltas", "x")]
        others += [{"method": ALIVE["method"], "params": dict(ALIVE["params"], **params)}
                   for params in ({"turnId": "old"}, {"threadId": "other"}, {"threadId": 7})]
        run = self.run_id([{"every": 0.05, "times": 1, "send": other} for other in others] * 100)
        self.failed(self.flowd.finished(run), "unclear", "idle_timeout")

    def test_flood_does_not_move_the_ceiling(self):
        self.begin(hard_ceiling_sec=2)
        began = time.monotonic()
        run = self.run_id([{"flood": 30}])
        self.failed(self.flowd.finished(run), "unclear", "hard_ceiling")
        self.assertLess(time.monotonic() - began, 2 + 10)
        self.all_gone()

    def test_interrupt_crosses_the_end(self):
        self.begin(how={"interrupt": "no_active"}, idle_sec=1)
        run = self.run_id([{"wait": 60}])
        self.failed(self.flowd.finished(run), "unclear", "idle_timeout")
        self.all_gone()

    def test_a_result_during_the_ladder_counts(self):
        self.begin(how={"interrupt": "never"}, idle_sec=1)
        run = self.run_id([{"wait": 2}, {"submit": "findings", "text": "just in time"},
                           {"wait": 60}])
        ended = self.flowd.finished(run)
        self.assertEqual((ended["round_status"], ended["round_result_text"]),
                         ("findings", "just in time"))
        self.all_gone()

    def test_interrupt_is_never_answered(self):
        self.begin(how={"interrupt": "never"}, idle_sec=1)
        began = time.monotonic()
        run = self.run_id([{"wait": 60}])
        self.failed(self.flowd.finished(run), "unclear", "idle_timeout")
        self.assertLess(time.monotonic() - began, 1 + 10)
        self.all_gone()

    def test_turn_start_is_never_answered(self):
        self.begin(how={"silent_at": "turn/start"}, idle_sec=1)
        run = self.run_id([])
        self.failed(self.flowd.finished(run), "unclear", "idle_timeout")
        self.assertEqual(self.sent("turn/interrupt")[0]["turnId"], "")

    def test_exit_in_mid_turn(self):
        self.begin()
        for status in (0, 1):
            run = self.run_id([{"exit": status}])
            ended = self.flowd.finished(run)
            self.failed(ended, "unclear", "server_exit", "exit status %d" % status)
            self.assertEqual(ended["round_result_text"], "participant_died")

    def test_a_turn_that_goes_on_after_its_answer(self):
        self.begin()
        run = self.run_id([{"submit": "clean"}, {"wait": 60}])
        self.assertEqual(self.flowd.finished(run)["round_status"], "clean")
        self.flowd.submit(run)  # waits for the turn before
        self.assertEqual(self.flowd.status(run)["reviewer_state"], "queued")
        self.flowd.close_run(run)
        self.all_gone()

    # ---- before the first turn ----

    def test_leaked_server_is_refused(self):
        ours = {"name": "$server", "runtimeStatus": "connected",
                "tools": {"submit_review_result": {}}}
        other = {"name": "kcap-flows", "runtimeStatus": "connected", "tools": {}}
        for servers, why in (([ours, other], '"kcap-flows"'), ([other], '"kcap-flows"'),
                             ([], "result server"), ("x", "cannot be read"),
                             ([dict(ours, tools={})], "result server"),
                             ([ours, dict(other, runtimeStatus=None)], '"kcap-flows"'),
                             ([ours, {}], "?")):
            with self.subTest(servers):
                self.begin(how={"servers": servers})
                run = self.run_id(CLEAN)
                self.failed(self.flowd.finished(run), "failed", "isolation_violation", why)
                self.assertEqual(self.sent("turn/start"), [])
                self.all_gone()
        self.begin(how={"servers": [ours, dict(other, runtimeStatus="disabled")]})
        self.assertEqual(self.result(CLEAN)["round_status"], "clean")

    def test_thread_error(self):
        self.begin(how={"thread_error": {"code": -32603, "message": "required MCP servers failed"}})
        run = self.run_id(CLEAN)
        self.failed(self.flowd.finished(run), "failed", "protocol_error", "thread/start",
                    "required MCP servers failed")
        self.all_gone()

    def test_handshake_has_a_clock(self):
        for method in ("initialize", "thread/start", "mcpServerStatus/list"):
            with self.subTest(method):
                self.begin(how={"silent_at": method}, handshake_sec=3)
                run = self.run_id(CLEAN)
                self.failed(self.flowd.finished(run), "unclear", "handshake_timeout", "(3 s)")
                self.all_gone()

    def test_program_that_is_no_codex(self):
        self.begin()
        for text, code in (("import sys\nsys.exit(1)\n", "isolation_violation"),
                           ("print('[]')\n", "isolation_violation")):
            self.flowd.script("codex", text)
            run = self.run_id(CLEAN)
            self.failed(self.flowd.finished(run), "failed", code)
        os.remove(os.path.join(self.flowd.dir, "codex"))
        status, answer = self.flowd.request("POST", "/api/flows/review/start/v4",
                                            self.flowd.start_body(self.flowd.dir, vendor="codex"))
        self.assertEqual((status, answer["error"]), (400, "reviewer_vendor_unavailable"))

    def test_killed_daemon_leaves_nothing(self):
        self.begin()
        run = self.run_id([{"wait": 60}])
        flowd.until("the turn to begin", lambda: os.path.exists(
            os.path.join(self.flowd.dir, "app-server.log")) and self.sent("turn/start"))
        self.flowd.kill()
        self.all_gone()  # by the end of its input, before any restart
        self.flowd = self.served[0] = flowd.Flowd(place=self.flowd)
        self.failed(self.flowd.status(run), "unclear", "server_restart")


if __name__ == "__main__":
    unittest.main()
