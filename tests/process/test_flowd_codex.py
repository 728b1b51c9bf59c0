#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Codex as a reviewer, over a fake app-server that does what the real one was seen to do, and worse."""

import json
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import flowd  # noqa: E402
from codex_test import ALIVE, CLEAN, CodexTest, item, note  # noqa: E402


class Codex(CodexTest):
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
        for method, sec in (("initialize", 3), ("thread/start", 13), ("mcpServerStatus/list", 3)):
            with self.subTest(method):
                self.begin(how={"silent_at": method}, handshake_sec=3)
                run = self.run_id(CLEAN)
                self.failed(self.flowd.finished(run), "unclear", "handshake_timeout", "(%d s)" % sec,
                            "the answer to " + method, "raise handshake_sec")
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
