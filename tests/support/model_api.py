# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a model on loopback, so that real agents call real tools without a network or an account.

It plays a list of turns: each is a list of calls (the end of a tool's name, its arguments), or a text that ends the
agent's turn. Which turn is due follows from the request alone, the number of tool calls in its history, so repeated
and side requests do not shift the play. A function in the place of the list is asked with that number and the results.
Speaks OpenAI's Responses and Chat Completions, Anthropic's Messages and Gemini's API, streamed or not.
"""
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def offered_tools(body):
    """(namespace or None, name) of each tool the request offers."""
    found = []
    for tool in body.get("tools") or []:
        if tool.get("type") == "namespace":
            found += [(tool.get("name"), inner.get("name")) for inner in tool.get("tools", [])]
        elif tool.get("name"):
            found.append((None, tool["name"]))
        elif tool.get("function"):
            found.append((None, tool["function"]["name"]))
        found += [(None, inner["name"]) for inner in tool.get("functionDeclarations") or []]
    return found


def history(body):
    """How many rounds of tool calls lie behind, and the texts of every tool result."""
    rounds, results = 0, []
    was_call = False
    for item in body.get("input") or []:  # Responses
        is_call = item.get("type") == "function_call"
        rounds += is_call and not was_call
        was_call = is_call
        if item.get("type") == "function_call_output":
            results.append(json.dumps(item.get("output")))
    for message in body.get("messages") or []:  # Messages
        blocks = message.get("content") if isinstance(message.get("content"), list) else []
        rounds += message.get("role") == "assistant" and any(b.get("type") == "tool_use" for b in blocks)
        results += [json.dumps(b.get("content")) for b in blocks if b.get("type") == "tool_result"]
        rounds += bool(message.get("tool_calls"))  # Chat Completions
        results += [json.dumps(message.get("content"))] if message.get("role") == "tool" else []
    for message in body.get("contents") or []:  # Gemini
        parts = message.get("parts") or []
        rounds += message.get("role") == "model" and any("functionCall" in part for part in parts)
        results += [json.dumps(part["functionResponse"]) for part in parts if "functionResponse" in part]
    return rounds, results


class ModelApi:
    """Use as a context manager; .url is the base address, .results what the model was told by its tools,
    .offered the tools of the last request that offered any."""

    def __init__(self, turns):
        self.turns, self.results, self.offered, self.missing = turns, [], [], []
        self.lock = threading.Condition()
        self.serial = self.rounds = 0
        handler = type("Handler", (_Handler,), {"api": self})
        self.server = _Server(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def wait_for_rounds(self, n, seconds):
        """Until the model was told what n rounds of calls came to."""
        with self.lock:
            if not self.lock.wait_for(lambda: self.rounds >= n, seconds):
                raise AssertionError("%d rounds of %d: %s; missing %s" % (self.rounds, n, self.results, self.missing))

    def next_id(self):
        with self.lock:
            self.serial += 1
            return self.serial

    def decide(self, body):
        """(text, [(namespace, name, arguments)])"""
        offered = offered_tools(body)
        rounds, results = history(body)
        with self.lock:
            if not offered:
                return "ok", []
            self.offered = offered
            if len(results) >= len(self.results):
                self.results = results
            self.rounds = max(self.rounds, rounds)
            self.lock.notify_all()
            if callable(self.turns):
                turn = self.turns(rounds, results)
            else:
                turn = self.turns[rounds] if rounds < len(self.turns) else "done"
            if isinstance(turn, str):
                return turn, []
            calls = []
            for end, arguments in turn:
                hits = [(space, name) for space, name in offered if name.endswith(end)]
                if not hits:
                    self.missing.append(end)
                    return "there is no tool " + end, []
                calls.append(hits[0] + (arguments,))
            return "", calls


class _Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Agents hang up whenever they like."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api = None

    def log_message(self, *args):
        pass

    def answer(self, kind, data):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def events(self, events):
        text = "".join("event: %s\ndata: %s\n\n" % (e["type"], json.dumps(e)) for e in events)
        self.answer("text/event-stream", text.encode())

    def do_HEAD(self):
        self.answer("application/json", b"")

    def do_GET(self):
        self.answer("application/json", b'{"object":"list","data":[],"models":[]}')

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(raw or b"{}")
        path = self.path.split("?")[0]
        if path.endswith("/responses"):
            self.play_responses(*self.api.decide(body))
        elif path.endswith("/messages"):
            self.play_messages(body, *self.api.decide(body))
        elif path.endswith("/chat/completions"):
            self.play_chat(body, *self.api.decide(body))
        elif path.endswith("enerateContent"):
            self.play_gemini(path, body, *self.api.decide(body))
        else:  # token counts, telemetry
            self.answer("application/json", b'{"input_tokens":1}')

    def play_responses(self, text, calls):
        n = self.api.next_id()
        head = {"id": "resp_%d" % n, "object": "response", "status": "in_progress", "output": []}
        items = [{"type": "message", "id": "msg_%d" % n, "role": "assistant", "status": "completed",
                  "content": [{"type": "output_text", "text": text, "annotations": []}]}] if text else []
        for i, (space, name, arguments) in enumerate(calls):
            item = {"type": "function_call", "id": "fc_%d_%d" % (n, i), "call_id": "call_%d_%d" % (n, i),
                    "status": "completed", "name": name, "arguments": json.dumps(arguments)}
            items.append(dict(item, namespace=space) if space else item)
        events = [{"type": "response.created", "response": head}]
        for i, item in enumerate(items):
            events += [{"type": "response.output_item.added", "output_index": i, "item": item},
                       {"type": "response.output_item.done", "output_index": i, "item": item}]
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
                 "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        events.append({"type": "response.completed",
                       "response": dict(head, status="completed", output=items, usage=usage)})
        self.events(events)

    def play_messages(self, body, text, calls):
        n = self.api.next_id()
        blocks = [{"type": "text", "text": text}] if text else []
        blocks += [{"type": "tool_use", "id": "toolu_%d_%d" % (n, i), "name": name, "input": arguments}
                   for i, (_, name, arguments) in enumerate(calls)]
        stop = "tool_use" if calls else "end_turn"
        message = {"id": "msg_%d" % n, "type": "message", "role": "assistant", "model": body.get("model", "mock"),
                   "content": blocks, "stop_reason": stop, "stop_sequence": None,
                   "usage": {"input_tokens": 1, "output_tokens": 1}}
        if not body.get("stream"):
            return self.answer("application/json", json.dumps(message).encode())
        events = [{"type": "message_start", "message": dict(message, content=[], stop_reason=None)}]
        for i, block in enumerate(blocks):
            is_text = block["type"] == "text"
            delta = {"type": "text_delta", "text": block["text"]} if is_text else {
                "type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            events += [{"type": "content_block_start", "index": i,
                        "content_block": {"type": "text", "text": ""} if is_text else dict(block, input={})},
                       {"type": "content_block_delta", "index": i, "delta": delta},
                       {"type": "content_block_stop", "index": i}]
        events += [{"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
                    "usage": {"output_tokens": 1}}, {"type": "message_stop"}]
        self.events(events)

    def play_chat(self, body, text, calls):
        n = self.api.next_id()
        message = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = [{"index": i, "id": "call_%d_%d" % (n, i), "type": "function",
                                      "function": {"name": name, "arguments": json.dumps(arguments)}}
                                     for i, (_, name, arguments) in enumerate(calls)]
        reason = "tool_calls" if calls else "stop"
        head = {"id": "chat_%d" % n, "created": 1, "model": body.get("model", "mock"),
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
        if not body.get("stream"):
            return self.answer("application/json", json.dumps(dict(head, object="chat.completion", choices=[
                {"index": 0, "message": message, "finish_reason": reason}])).encode())
        chunks = [dict(head, object="chat.completion.chunk", choices=[{"index": 0, "delta": delta, "finish_reason": end}])
                  for delta, end in ((message, None), ({}, reason))]
        text = "".join("data: %s\n\n" % json.dumps(chunk) for chunk in chunks) + "data: [DONE]\n\n"
        self.answer("text/event-stream", text.encode())

    def play_gemini(self, path, body, text, calls):
        if not calls and (body.get("generationConfig") or {}).get("responseMimeType") == "application/json":
            text = "{}"  # a side request for a structured answer
        parts = ([{"text": text}] if text else []) + [{"functionCall": {"name": name, "args": arguments}}
                                                       for _, name, arguments in calls]
        answer = {"candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": parts}}],
                  "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
        if path.endswith(":streamGenerateContent"):
            self.answer("text/event-stream", ("data: %s\n\n" % json.dumps(answer)).encode())
        else:
            self.answer("application/json", json.dumps(answer).encode())
