# SPDX-License-Identifier: Apache-2.0
"""Plays codex: "mcp list" and "mcp get" as fake_codex.py does, and "app-server" as a test tells it to.

How it begins stands in $HOME/app-server.json. What it does in a turn stands in the prompt, as a line PLAY {"turn": [...],
"again": [...]}: a list of steps for the first turn that shows it, and one for the next (the reminder). A step is one of
  {"send": MESSAGE}       a message; "$thread", "$turn" and "$server" in it are filled in, and "$big" with as many
                          characters as the step's "big" says
  {"raw": TEXT}           these bytes; {"split": TEXT} the same, byte by byte
  {"wait": SEC}           silence
  {"every": SEC, "times": N, "send": MESSAGE}   spaced messages
  {"flood": SEC}          class A messages without a pause
  {"start": "before"|"after"|"never"}           how turn/start is answered; first, else "after"
  {"submit": KIND, "text": TEXT}                what the result tool would do
  {"complete": STATUS}    the end of the turn
  {"hear": ID}            waits for our answer to its request of that id
  {"exit": STATUS}
What happened is appended to $HOME/app-server.log, one JSON value a line.
"""
import http.client
import json
import os
import queue
import re
import select
import socket
import sys
import threading
import time
import tomllib

HOME = os.environ["HOME"]
HERE = os.path.dirname(os.path.abspath(__file__))


def log(value):
    with open(os.path.join(HOME, "app-server.log"), "a", encoding="utf-8") as out:
        out.write(json.dumps(value) + "\n")


def wait(seconds):
    select.select([], [], [], seconds)


def result_server():
    """Its name, and the environment it would be started with."""
    for word in sys.argv:
        found = re.match(r"mcp_servers\.(kcap-flow-result-[0-9a-f]+)=(.*)", word, re.S)
        if found:
            return found.group(1), tomllib.loads("x = " + found.group(2))["x"]["env"]
    return None, {}


class Connection(http.client.HTTPConnection):
    def __init__(self, url):
        super().__init__("flowd", timeout=10)
        self.path = url[len("unix://"):]

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)


class Server:
    """What a test's fakes of agents have in common is here too: fake_claude.py has the rest of its own."""

    def __init__(self):
        try:
            with open(os.path.join(HOME, "app-server.json"), encoding="utf-8") as file:
                self.how = json.load(file)
        except FileNotFoundError:
            self.how = {}
        self.name, self.env = self.result_server()
        self.requests, self.answers = queue.Queue(), queue.Queue()
        self.turns = 0
        self.turn = None
        self.token = None
        self.play = {}
        self.lock = threading.Lock()
        log({"started": os.getpid(), "env": sorted(os.environ), "cwd": os.getcwd()})

    result_server = staticmethod(result_server)

    def raw(self, data):
        with self.lock:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def send(self, message, big=0):
        text = json.dumps(message, ensure_ascii=False)
        for name, value in (("$thread", "t1"), ("$turn", self.turn or ""), ("$server", self.name), ("$big", "é" * big)):
            text = text.replace(name, value)
        self.raw(text.encode() + b"\n")

    def note(self, method, **params):
        self.send({"method": method, "params": params, "emittedAtMs": 1})

    def read(self):
        for line in sys.stdin.buffer:
            message = json.loads(line)
            log(message)
            if "method" not in message:
                self.answers.put(message)
            elif message["method"] == "turn/interrupt":
                self.interrupted(message)
            elif "id" in message:
                self.requests.put(message)
        log("end of input")
        os._exit(0)

    def interrupted(self, message):
        how = self.how.get("interrupt", "complete")
        if how == "never":
            return
        if how == "no_active":
            self.complete("completed")
            self.send({"id": message["id"], "error": {"code": -32600, "message": "no active turn to interrupt"}})
            return
        self.send({"id": message["id"], "result": {}})
        self.complete("interrupted")

    def alive(self, text):
        self.note("item/agentMessage/delta", threadId="t1", turnId=self.turn, itemId="i", delta=text)

    def complete(self, status, error=None):
        self.note("thread/status/changed", threadId="t1", status={"type": "idle"})
        self.note("turn/completed", threadId="t1", turn={"id": self.turn, "status": status, "error": error, "items": []})

    def submit(self, kind, text=None):
        body = {"agent_id": self.env["KCAP_FLOW_AGENT_ID"], "round_token": self.token, "kind": kind}
        if text is not None:
            body["text"] = text
        connection = Connection(self.env["KCAP_URL"])
        connection.request("POST", "/api/flows/reviewer/result", json.dumps(body))
        answer = connection.getresponse()
        log({"submitted": answer.status, "answer": json.loads(answer.read())})

    def step(self, step):
        if "every" in step:
            for _ in range(step["times"]):
                wait(step["every"])
                self.send(step["send"])
        elif "send" in step:
            self.send(step["send"], step.get("big", 0))
        elif "raw" in step:
            self.raw(step["raw"].encode())
        elif "split" in step:
            for byte in step["split"].replace("$turn", self.turn).encode():
                self.raw(bytes([byte]))
                wait(0.001)
        elif "wait" in step:
            wait(step["wait"])
        elif "flood" in step:
            end = time.monotonic() + step["flood"]
            while time.monotonic() < end:
                self.alive("x" * 1000)
        elif "submit" in step:
            self.submit(step["submit"], step.get("text"))
        elif "complete" in step:
            self.complete(step["complete"], step.get("error"))
        elif "hear" in step:
            log({"heard": self.answers.get(timeout=10)})
        elif "exit" in step:
            os._exit(step["exit"])

    def choose(self, text):
        """The steps for a turn with this prompt."""
        token = re.search(r"round_token .*?([0-9a-f]{32})", text)
        self.token = token.group(1) if token else self.token
        found = re.search(r"^PLAY (\{.*\})$", text, re.M)
        self.turns += 1
        if not found:
            return self.play.get("again", [])
        self.play = json.loads(found.group(1))
        return self.play["turn"]

    def run_turn(self, request):
        steps = self.choose(request["params"]["input"][0]["text"])
        start = steps[0].get("start", "after") if steps else "after"
        turn = "turn%d" % self.turns
        if start == "error":
            self.send({"id": request["id"], "error": {"code": -32600, "message": "no such model"}})
            return
        self.turn = turn
        answer = {"id": request["id"], "result": {"turn": {"id": turn}}}
        if start == "after":
            self.send(answer)
        self.note("turn/started", threadId="t1", turn={"id": turn, "status": "inProgress"})
        if start == "before":
            self.send(answer)
        for step in steps:
            self.step(step)

    def run(self):
        while True:
            request = self.requests.get()
            method = request["method"]
            if method == self.how.get("silent_at"):
                continue
            if method == "initialize":
                if self.how.get("noise"):
                    self.raw(b"not JSON\n\xff\xfe\n[]\n\n")
                result = {"userAgent": "codex/0.171.0"}
            elif method == "thread/start":
                if "thread_error" in self.how:
                    self.send({"id": request["id"], "error": self.how["thread_error"]})
                    continue
                result = {"thread": {"id": "t1"}}
                self.note("thread/started", thread={"id": "t1"})
            elif method == "mcpServerStatus/list":
                ours = {"name": self.name, "runtimeStatus": "connected", "tools": {"submit_review_result": {}}}
                result = {"data": self.how.get("servers", [ours]), "nextCursor": self.how.get("cursor")}
                result = json.loads(json.dumps(result).replace("$server", self.name))
            elif method == "turn/start":
                threading.Thread(target=self.run_turn, args=(request,), daemon=True).start()
                continue
            else:
                result = {}
            self.send({"id": request["id"], "result": result})


if __name__ != "__main__":
    pass
elif "app-server" in sys.argv:
    server = Server()
    threading.Thread(target=server.run, daemon=True).start()
    server.read()
else:
    os.execv(sys.executable, [sys.executable, os.path.join(HERE, "fake_codex.py"), *sys.argv[1:]])
