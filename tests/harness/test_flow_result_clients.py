# SPDX-License-Identifier: Apache-2.0
"""A real Codex and a real Claude Code, unattended, as reviewers: both must be able to report."""
import threading

import clients
import mock_flow_server
from model_api import ModelApi
from harness import *

FINDINGS = {"round_token": "r1", "kind": "findings", "findings": "one é\ntwo"}
TURNS = [[("send_flow_message", {"text": "why?"})], [("submit_review_result", FINDINGS)], "done"]


class Review:
    """A flow server that records what it is told, and an empty home."""

    def __init__(self, *results):
        self.mock = mock_flow_server.MockServer(("127.0.0.1", 0), mock_flow_server.Scenario({"routes": [
            {"path": "/auth/config", "responses": [{"json": {"provider": "None"}}]},
            {"path": "/api/flows/reviewer/result", "responses": list(results) or [{"json": {"status": "recorded"}}]},
            {"path": "/api/flows/participant/message", "responses": [{"json": {}}]}]}), None)

    def __enter__(self):
        threading.Thread(target=self.mock.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.dir = TempDir()
        self.home = self.dir.__enter__()
        self.cwd = os.path.join(self.home, "work")
        os.mkdir(self.cwd)
        self.env = {"KCAP_FLOW_AGENT_ID": "agent-1", "KCAP_STATE_DIR": os.path.join(self.home, "state"),
                    "KCAP_URL": "http://127.0.0.1:%d" % self.mock.server_address[1]}
        return self

    def __exit__(self, *args):
        self.mock.stop()
        self.mock.server_close()
        self.dir.__exit__(*args)

    def run(self, client, turns):
        with ModelApi(turns) as api:
            done = client(api, self.home, self.cwd, [HOST, "--plugin", "flow-result"], self.env)
        assert done.returncode == 0, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        assert not api.missing, (api.missing, api.offered)
        return api

    def seen(self):
        return [(r["path"], r["json"]) for r in self.mock.records(1) if r["path"] != "/auth/config"]


def check_both_tools(client):
    with Review() as review:
        api = review.run(client, TURNS)
        (message_path, message), (result_path, result) = review.seen()
        assert message_path.endswith("/participant/message") and message["text"] == "why?", message
        assert len(message["message_id"]) == 32, message
        assert result_path.endswith("/reviewer/result"), result_path
        assert result == {"agent_id": "agent-1", "round_token": "r1", "kind": "findings",
                          "text": FINDINGS["findings"]}, result
        assert len(api.results) == 2 and "Sent." in api.results[0] and "Recorded." in api.results[1], api.results
        names = sorted(name for _, name in api.offered if name.endswith(("submit_review_result",
                                                                          "send_flow_message")))
        assert len(names) == 2 and not [n for _, n in api.offered if "start_review" in n], api.offered


def check_an_error_reaches_the_model(client):
    with Review({"status": 503, "text": "busy"}, {"json": {}}) as review:
        again = [[("submit_review_result", FINDINGS)], [("submit_review_result", FINDINGS)], "done"]
        api = review.run(client, again)
        assert [path for path, _ in review.seen()] == ["/api/flows/reviewer/result"] * 2
        assert "Outcome unknown: the server failed (HTTP 503)" in api.results[0], api.results
        assert "Call submit_review_result again" in api.results[0] and "Recorded." in api.results[1], api.results


def test_codex_calls_both_tools():
    check_both_tools(clients.codex)


def test_codex_hears_an_error():
    check_an_error_reaches_the_model(clients.codex)


def test_claude_calls_both_tools():
    check_both_tools(clients.claude)


def test_claude_hears_an_error():
    check_an_error_reaches_the_model(clients.claude)


main(globals())
