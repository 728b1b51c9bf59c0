# SPDX-License-Identifier: Apache-2.0
"""A kcap-flowd that starts real agents on a scripted model, which reads the round's token in its prompt."""
import json
import re
import threading

import clients
import flowd
from harness import *
from launch_desk import CANARY
from model_api import ModelApi, _Handler, history, offered_tools

TOKEN = re.compile(r"round_token of this round \((\d+)\) is: ([0-9a-f]{32})")


class Reviewer(ModelApi):
    """What it does in a round is said by rounds[N - 1]: a list of moves, one for each request that the agent makes in it.
    A move is ("submit", kind, findings), ("message", text), a text that ends the turn, ("slow", SEC, TIMES): a text in spaced pieces, then
    the end of the turn, ("stall",): an answer that never goes on, ("fail",): HTTP 500, or ("gate", MOVE): the move, once gate is set."""

    def __init__(self, rounds):
        super().__init__([])
        self.rounds, self.done, self.bodies = rounds, {}, []
        self.gate = threading.Event()
        self.server.RequestHandlerClass = type("Handler", (_Moves,), {"api": self})

    def move(self, body):
        text = json.dumps(body)
        found = TOKEN.findall(text)
        if not found or not offered_tools(body):
            return "ok", None
        number, token = int(found[-1][0]), found[-1][1]
        with self.lock:
            self.offered = offered_tools(body)
            self.bodies.append((number, text))
            self.results = history(body)[1]
            at = self.done[number] = self.done.get(number, -1) + 1
        moves = self.rounds[number - 1]
        return moves[min(at, len(moves) - 1)], token


class _Moves(_Handler):
    def tool(self, end, arguments):
        hits = [(space, name) for space, name in self.api.offered if name.endswith(end)]
        if not hits:
            self.api.missing.append(end)
            return "there is no tool " + end, []
        return "", [hits[0] + (arguments,)]

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        path = self.path.split("?")[0]
        if not path.endswith(("/responses", "/messages")):
            return self.answer("application/json", b'{"input_tokens":1}')
        move, token = self.api.move(body)
        if move[0] == "gate":
            self.api.gate.wait(30)
            move = move[1]
        text, calls = (move, []) if isinstance(move, str) else ("", [])
        if move[0] == "submit":
            arguments = {"round_token": token, "kind": move[1]}
            if move[1] == "findings":
                arguments["findings"] = move[2]
            text, calls = self.tool("submit_review_result", arguments)
        elif move[0] == "message":
            text, calls = self.tool("send_flow_message", {"text": move[1]})
        elif move[0] == "fail":
            self.send_response(500)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        elif move[0] in ("slow", "stall"):
            return self.trickle(path, body, *(move[1:] or (0, 1)), stall=move[0] == "stall")
        if path.endswith("/responses"):
            return self.play_responses(text, calls)
        return self.play_messages(body, text, calls)

    def event(self, event):
        data = ("event: %s\ndata: %s\n\n" % (event["type"], json.dumps(event))).encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def trickle(self, path, body, every, times, stall):
        """A text in pieces; with stall the connection then stays open without another word."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        n = self.api.next_id()
        is_responses = path.endswith("/responses")
        head = {"id": "resp_%d" % n, "object": "response", "status": "in_progress", "output": []}
        item = {"type": "message", "id": "msg_%d" % n, "role": "assistant", "status": "in_progress", "content": []}
        message = {"id": "msg_%d" % n, "type": "message", "role": "assistant", "model": body.get("model", "mock"),
                   "content": [], "stop_reason": None, "stop_sequence": None,
                   "usage": {"input_tokens": 1, "output_tokens": 1}}
        try:
            if is_responses:
                self.event({"type": "response.created", "response": head})
                self.event({"type": "response.output_item.added", "output_index": 0, "item": item})
            else:
                self.event({"type": "message_start", "message": message})
                self.event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
            for _ in range(times):
                if is_responses:
                    self.event({"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0,
                                "content_index": 0, "delta": "word "})
                else:
                    self.event({"type": "content_block_delta", "index": 0,
                                "delta": {"type": "text_delta", "text": "word "}})
                threading.Event().wait(every)
            if stall:
                self.rfile.read(1)  # until the agent hangs up
                self.close_connection = True
                return
            if is_responses:
                item = dict(item, status="completed", content=[{"type": "output_text", "text": "word " * times,
                                                                "annotations": []}])
                self.event({"type": "response.output_item.done", "output_index": 0, "item": item})
                usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
                         "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
                self.event({"type": "response.completed",
                            "response": dict(head, status="completed", output=[item], usage=usage)})
            else:
                self.event({"type": "content_block_stop", "index": 0})
                self.event({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                            "usage": {"output_tokens": 1}})
                self.event({"type": "message_stop"})
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True


class Desk:
    """flowd, the model, and a repository. Settings are those of flowd.json; etc are files that the daemon and all below it
    see in /etc besides."""

    def __init__(self, vendor, rounds, etc=None, **settings):
        clients.program(vendor.split("-")[0])
        self.vendor, self.rounds, self.etc, self.settings = vendor, rounds, etc, settings

    def wrap(self, place):
        """A program to be put before the daemon, which then sees the files."""
        upper, work, script = (os.path.join(place.dir, name) for name in ("etc-upper", "etc-work", "wrap"))
        os.makedirs(work)
        for name, text in self.etc.items():
            os.makedirs(os.path.dirname(os.path.join(upper, name)), exist_ok=True)
            with open(os.path.join(upper, name), "w") as file:
                file.write(text)
        with open(script, "w") as file:
            file.write('#!/bin/sh\nexec unshare -m sh -c \'mount -t overlay overlay -o lowerdir=/etc,upperdir=%s,workdir=%s '
                       '/etc && exec "$@"\' sh "$@"\n' % (upper, work))
        os.chmod(script, 0o755)
        if subprocess.run([script, "true"], capture_output=True).returncode != 0:
            raise Skip("no /etc of one's own here")
        return {"KCAP_WRAP": script}

    def __enter__(self):
        self.api = Reviewer(self.rounds)
        self.api.__enter__()
        place = flowd.Place()
        self.repo = flowd.Repo(place)
        self.repo.write("a.c", "int a;\n")
        self.repo.commit()
        os.makedirs(os.path.join(place.dir, ".codex"))
        with open(os.path.join(place.dir, ".codex", "config.toml"), "w") as file:
            file.write('model = "gpt-5"\nmodel_provider = "mock"\n[model_providers.mock]\nname = "mock"\n'
                       'base_url = "%s/v1"\nwire_api = "responses"\nenv_key = "OPENAI_MOCK_KEY"\n'
                       'request_max_retries = 1\n' % self.api.url)
        place.configure(dict({"default_vendor": self.vendor, "handshake_sec": 30}, **self.settings), env=(
            "OPENAI_MOCK_KEY=x\nANTHROPIC_API_KEY=x\nANTHROPIC_BASE_URL=%s\nDISABLE_AUTOUPDATER=1\n"
            "ENABLE_TOOL_SEARCH=false\nCLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1\n" % self.api.url))
        self.flowd = flowd.Flowd(place=place, env=dict(
            {"PATH": clients.BIN + ":" + place.env["PATH"]}, **(self.wrap(place) if self.etc else {})))
        return self

    def __exit__(self, *_):
        self.flowd.end()
        self.api.__exit__()

    def configure_others(self):
        """Servers of the user's and of the repository's, which is trusted. started() tells which of them ran."""
        place, repo = self.flowd, self.repo.dir
        canary = place.script("canary", CANARY)
        toml = '[mcp_servers.%s]\ncommand = "%s"\nargs = ["%s"]\n'

        def put(path, text, mode="w"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, mode) as file:
                file.write(text)

        def entry(name):
            return {"command": canary, "args": [os.path.join(place.dir, "started-" + name)]}
        put(os.path.join(place.dir, ".codex", "config.toml"), toml % ("user", canary, entry("codex-user")["args"][0]) +
            '[projects."%s"]\ntrust_level = "trusted"\n' % repo, "a")
        put(os.path.join(repo, ".codex", "config.toml"), toml % ("repo", canary, entry("codex-repo")["args"][0]))
        put(os.path.join(place.dir, ".claude.json"), json.dumps({
            "mcpServers": {"user": entry("claude-user")}, "hasCompletedOnboarding": True,
            "projects": {repo: {"mcpServers": {"local": entry("claude-local")}, "hasTrustDialogAccepted": True,
                                "enabledMcpjsonServers": ["repo"]}}}))
        put(os.path.join(repo, ".mcp.json"), json.dumps({"mcpServers": {"repo": entry("claude-repo")}}))

    def started(self):
        return sorted(name for name in os.listdir(self.flowd.dir) if name.startswith("started-"))

    def run_id(self):
        return self.flowd.start(self.repo.dir)["flow_run_id"]

    def finished(self, run, seconds=90):
        end = time.monotonic() + seconds * SLOWER
        while time.monotonic() < end:
            answer = self.flowd.status(run, wait_sec=10)
            if answer["status"] != "running":
                return answer
        raise AssertionError("the round does not end: %r" % answer)

    def result(self):
        return self.finished(self.run_id())
