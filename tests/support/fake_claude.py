# SPDX-License-Identifier: Apache-2.0
"""Plays claude with stream-json both ways, as a test tells it to: see fake_app_server.py for how. Here $HOME/app-server.json
may have "status" (a list of answers to mcp_status, the last one for good) and "init" (the servers of system/init)."""
import json
import os
import sys
import threading

from fake_app_server import Server, log

OURS = [{"name": "$server", "status": "connected"}]


def result_server():
    servers = json.loads(sys.argv[sys.argv.index("--mcp-config") + 1])["mcpServers"]
    ((name, server),) = servers.items()
    return name, server["env"]


class Claude(Server):
    result_server = staticmethod(result_server)

    def alive(self, text):
        self.send({"type": "stream_event", "event": {"type": "content_block_delta", "delta": {"text": text}}})

    def complete(self, status, error=None):
        self.send({"type": "result", "subtype": status, "is_error": status != "success", "result": error or "words",
                   "total_cost_usd": self.how.get("cost", 0.25) * self.turns})

    def answer(self, request, response=None, subtype="success"):
        self.send({"type": "control_response", "response": dict(
            {"subtype": subtype, "request_id": request["request_id"]}, **({"response": response} if response else {}))})

    def control(self, message):
        subtype = message["request"]["subtype"]
        if subtype == self.how.get("silent_at"):
            return
        if subtype == self.how.get("refuse_at"):
            self.answer(message, subtype="error")
        elif subtype == "mcp_status":
            status = self.how.get("status", [OURS])
            self.answer(message, {"mcpServers": status.pop(0) if len(status) > 1 else status[0]})
        elif subtype == "interrupt":
            if self.how.get("interrupt", "complete") == "never":
                return
            self.send({"type": "user", "message": {"content": [{"type": "text", "text": "[interrupted]"}]}})
            self.answer(message)
            self.complete("error_during_execution")
        else:
            self.answer(message, {"commands": []})

    def read(self):
        for line in sys.stdin.buffer:
            message = json.loads(line)
            log(message)
            if message["type"] == "control_request":
                self.control(message)
            elif message["type"] == "control_response":
                self.answers.put(message)
            else:
                self.requests.put(message)
        log("end of input")
        os._exit(0)

    def run(self):
        while True:
            message = self.requests.get()
            steps = self.choose(message["message"]["content"][0]["text"])
            if not self.how.get("no_init"):
                self.send({"type": "system", "subtype": "init", "mcp_servers": self.how.get("init", OURS)})
            for step in steps:
                self.step(step)


claude = Claude()
threading.Thread(target=claude.run, daemon=True).start()
claude.read()
