#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns of Codex that come to no result, or to none in time: what ends them, and what is told of it."""

import os
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import flowd  # noqa: E402
from codex_test import ALIVE, CLEAN, RETRY, CodexTest, item, note  # noqa: E402


class End(CodexTest):
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

    def test_only_the_turn_of_one_that_has_answered_is_ended(self):
        self.begin(idle_sec=1)
        run = self.run_id([{"submit": "findings", "text": "one"}, {"wait": 60}])
        self.assertEqual(self.flowd.finished(run)["round_result_text"], "one")
        ended = self.next_round(run, CLEAN)  # waits until the turn before was interrupted
        self.assertEqual((ended["round_status"], ended["reviewer_memory"]), ("clean", "kept"))
        self.assertEqual(self.sent("turn/interrupt"), [{"threadId": "t1", "turnId": "turn1"}])
        self.assertEqual(len(self.pids()), 1)

    def test_a_turn_that_does_not_even_then_costs_the_memory(self):
        self.begin(how={"interrupt": "never"}, idle_sec=1)
        run = self.run_id([{"submit": "findings", "text": "one"}, {"wait": 60}])
        self.assertEqual(self.flowd.finished(run)["round_status"], "findings")
        ended = self.next_round(run, CLEAN)
        self.assertEqual((ended["round_status"], ended["reviewer_memory"]), ("clean", "lost"))
        self.assertEqual(self.flowd.status(run)["last_result_kind"], "clean")

    def test_a_turn_that_goes_on_after_its_answer(self):
        self.begin()
        run = self.run_id([{"submit": "clean"}, {"wait": 60}])
        self.assertEqual(self.flowd.finished(run)["round_status"], "clean")
        self.flowd.submit(run)  # waits for the turn before
        self.assertEqual(self.flowd.status(run)["reviewer_state"], "queued")
        self.flowd.close_run(run)
        self.all_gone()


if __name__ == "__main__":
    unittest.main()
