# SPDX-License-Identifier: Apache-2.0
"""A start or a round that one process has sent and waits for is not sent by another one."""
import threading

import mock_flow_server
from harness import *

START = {"kind": "code-review", "target_kind": "commit", "target_ref": "HEAD", "target_title": "T", "context": "c"}
ROUND = {"flow_run_id": "u1", "context": "fixed"}
CALLS = {"start_review_flow": START, "submit_review_round": ROUND}


class Server:
    """Holds every POST for a minute."""

    def __enter__(self):
        self.mock = mock_flow_server.MockServer(("127.0.0.1", 0), mock_flow_server.Scenario({"routes": [
            {"path": "/auth/config", "responses": [{"json": {"provider": "None"}}]},
            {"method": "POST", "path": "*", "responses": [{"delay_ms": 60000, "json": {}}]},
            {"method": "GET", "path": "/api/flows/u1", "responses": [
                {"json": {"flow_run_id": "u1", "status": "waiting", "round_number": 1, "round_status": "findings"}}]}]}), None)
        threading.Thread(target=self.mock.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.dir = TempDir()
        self.home = self.dir.__enter__()
        return self

    def __exit__(self, *_):
        self.mock.stop()
        self.mock.server_close()
        self.dir.__exit__()

    def host(self):
        url = "http://127.0.0.1:%d" % self.mock.server_address[1]
        host = Host("--plugin", "flows", "--call-window", "12", cwd=self.home,
                    env=clean_env(self.home, KCAP_URL=url, KCAP_STATE_DIR=self.home))
        host.initialize("qwen-code")
        return host

    def posts(self):
        return [record["path"] for record in self.mock.records(0) if record["method"] == "POST"]


def test_while_the_first_one_waits():
    for tool, args in CALLS.items():
        with Server() as server, server.host() as first, server.host() as second:
            first.call(tool, args)
            wait_for(lambda: len(server.posts()) == 1, 10, "the first request")
            result = second.result(tool, args, seconds=20)
            assert "Flow still running: another kcap-host" in text_of(result) and "joined: " in text_of(result), result
            assert len(server.posts()) == 1, server.posts()


def test_when_the_first_one_is_gone():
    """A round that the server does not show is then sent again; a start is not, without the user's word."""
    for tool, args in CALLS.items():
        with Server() as server, server.host() as second:
            with server.host() as first:
                first.call(tool, args)
                wait_for(lambda: len(server.posts()) == 1, 10, "the first request")
            id = second.call(tool, args)
            if tool == "start_review_flow":
                assert "ask the user" in text_of(second.answer(id, 20)["result"]) and len(server.posts()) == 1
            else:
                wait_for(lambda: len(server.posts()) == 2, 20, "the second request")


if __name__ == "__main__":
    main(globals())
