# SPDX-License-Identifier: Apache-2.0
"""A whole review with real agents on both sides: one drives, the other reviews. Two rounds with findings, a message on the
way, a clean one, and the end."""
import re

import driver_desk
import flowd
import flowd_desk
from harness import *
from installed import Installed
from model_api import ModelApi

ROUNDS = [[("message", "I begin with a.c"), ("submit", "findings", "a.c:1: no header"), "done"],
          [("submit", "findings", "a.c:1: still none"), "done"],
          [("submit", "clean"), "done"]]


def drive(vendor):
    """The play of an agent that addresses findings until there are none, and closes."""
    def play(rounds, results):
        if rounds == 0:
            return [("start_review_flow", dict(flowd.START_ARGUMENTS, vendor=vendor))]
        said = results[-1]
        run = {"flow_run_id": re.search("flow_run_id: ([0-9a-f]{32})", said).group(1)}
        if "result_kind: findings" in said:
            return [("submit_review_round", dict(run, context="addressed what you found in call %d" % rounds))]
        if "result_kind: clean" in said:
            return [("close_review_flow", run)]
        return "done" if "status: closed" in said else [("get_review_flow_status", {"wait": True})]
    return play


class Side:
    """What a driver needs, with a home of its own."""

    def __init__(self, reviewer, installed, home, api):
        self.dir, self.api, self.host = home, api, installed.host
        self.state, self.repo = reviewer.flowd.state, reviewer.repo
        self.env = clean_env(home)


def check_loop(client, vendor):
    with Installed() as installed, TempDir() as home, ModelApi(drive(vendor)) as api:
        flowd.PROGRAM = os.path.join(installed.prefix, "bin", "kcap-flowd")
        with flowd_desk.Desk(vendor, ROUNDS) as reviewer:
            begin = time.monotonic()
            driver = client(Side(reviewer, installed, home, api))
            driver.register([installed.host, "--plugin", "flows", "--call-window", "20"])
            driver.start().end()
            assert not api.missing and not reviewer.api.missing, (api.missing, reviewer.api.missing)
            said = [result for result in api.results if driver_desk.STILL not in result]
            kinds = [re.search("result_kind: (\\w+)", result) for result in said]
            assert [kind and kind.group(1) for kind in kinds] == ["findings", "findings", "clean", None], api.results
            assert "no header" in said[0] and "still none" in said[1] and "status: closed" in said[3], said
            # a message comes again until it is acknowledged, which is a second after its answer, and says so
            told = [result for result in said if "I begin with a.c" in result]
            assert told[0] is said[0] and all("shown before" in result for result in told[1:]), said
            assert "applied_reviewer_vendor: %s" % vendor in said[0], said[0]
            print("     %s drives, %s reviews: %d calls, %.1f s" % (client.label, vendor, len(api.results),
                                                                    time.monotonic() - begin))


def test_claude_drives_and_codex_reviews():
    check_loop(driver_desk.Claude, "codex")


def test_codex_drives_and_claude_reviews():
    check_loop(driver_desk.Codex, "claude")


def test_new_claude_drives_and_codex_reviews():
    check_loop(driver_desk.NewClaude, "codex")


def test_gemini_drives_and_codex_reviews():
    check_loop(driver_desk.Gemini, "codex")


def test_opencode_drives_and_claude_reviews():
    check_loop(driver_desk.OpenCode, "claude")


def test_copilot_drives_and_codex_reviews():
    check_loop(driver_desk.Copilot, "codex")


if __name__ == "__main__":
    main(globals())
