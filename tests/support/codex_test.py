# SPDX-License-Identifier: Apache-2.0
"""What the tests of Codex as a reviewer share: messages of app-server, and a daemon whose codex is fake_app_server.py."""
import flowd

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


class CodexTest(flowd.AgentTest):
    def begin(self, how=None, **settings):
        self.begin_agent("codex", "fake_app_server.py", how, settings)

    def sent(self, method):
        return [m["params"] for m in self.log() if m.get("method") == method]
