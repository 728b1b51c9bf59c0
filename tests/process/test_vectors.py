# SPDX-License-Identifier: Apache-2.0
"""tests/data/mcp-edge-cases.jsonl: one protocol vector a line, each against a process of its own, once as
given and once with the input cut into single bytes.

A vector: name, revision; start, a version to shake hands with first, or null; steps, in order
  {"line": text} | {"raw_hex": bytes} | {"big": [prefix, unit, count, suffix]} | {"sleep_ms": n}
  | {"await": raw id} | {"eof": true};
and expect, of which every member holds
  answers  {id: raw JSON token, or null for "absent or null"; result: {path: value}; error: code or codes;
           data: {path: value}; lacks: paths; count}, each found exactly once (idless: count times)
  silent   raw ids without an answer      order  raw ids in the order of their answers
  notes    {method, params, min, max, before}      batch  raw ids that come in one array
  total    lines after the handshake      exit   {code, within_ms} after the end of input
A value is literal or {"$type": "any"}, {"$len": n}, {"$min": n}, {"$in": [...]}.
Always: every line is one JSON-RPC message, progress rises, and the process lives until the end of input.
"""
import concurrent.futures
import threading

from harness import *

VECTORS = os.path.join(paths.SRCDIR, "tests", "data", "mcp-edge-cases.jsonl")
MISSING = object()


def raw_member(text, name):
    """The raw token of a member of the outermost object."""
    decoder = json.JSONDecoder()
    at = text.index("{") + 1
    while True:
        while text[at] in " \t,":
            at += 1
        if text[at] == "}":
            return None
        key, at = decoder.raw_decode(text, at)
        while text[at] in " \t:":
            at += 1
        begin = at
        _, at = decoder.raw_decode(text, at)
        if key == name:
            return text[begin:at]


def look_up(value, path):
    """a.b.0.c, and a key with dots in brackets: _meta.[io.x/y].name"""
    parts = []
    while path:
        if path[0] == "[":
            part, _, path = path[1:].partition("]")
            path = path[1:] if path.startswith(".") else path
        else:
            part, _, path = path.partition(".")
        parts.append(part)
    for part in parts:
        if isinstance(value, dict):
            value = value.get(part, MISSING)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return MISSING
    return value


def fits(got, want):
    if isinstance(want, dict) and len(want) == 1:
        (kind, argument), = want.items()
        if kind == "$type":
            return got is not MISSING
        if kind == "$len":
            return got is not MISSING and len(got) == argument
        if kind == "$min":
            return isinstance(got, (int, float)) and got >= argument
        if kind == "$in":
            return got in argument
    return got == want


def same_id(a, b):
    if a is None or b is None or a == b:
        return a == b
    x, y = json.loads(a), json.loads(b)
    return isinstance(x, str) and isinstance(y, str) and x == y


class Run:
    """One vector against one process."""

    def __init__(self, vector, cut):
        self.vector, self.cut, self.errors, self.lines = vector, cut, [], []
        self.changed = threading.Condition()
        self.process = subprocess.Popen([HOST, "--plugin-file", FIXTURE], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=clean_env("/nonexistent"))
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line)
                self.changed.notify_all()

    def send(self, data):
        size = 1 if self.cut and len(data) <= 1 << 16 else 1021 if self.cut else len(data)
        try:
            for at in range(0, len(data), size):
                os.write(self.process.stdin.fileno(), data[at:at + size]) if self.cut else \
                    self.process.stdin.write(data)
            self.process.stdin.flush()
        except OSError:
            pass  # the process is gone, which the verdict says

    def ids(self):
        found = []
        for line in self.lines:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, list):
                found += [json.dumps(m["id"]) for m in message if "id" in m and "method" not in m]
            elif "method" not in message:
                found.append(raw_member(line.decode("utf-8", "replace"), "id"))
        return found

    def await_id(self, raw, seconds=8):
        end = time.monotonic() + seconds * SLOWER
        with self.changed:
            while not any(same_id(i, raw) for i in self.ids()):
                left = end - time.monotonic()
                if left <= 0 or self.process.poll() is not None and not self.reader.is_alive():
                    return
                self.changed.wait(min(left, 0.2))

    def play(self):
        vector, base, ended = self.vector, 0, False
        if vector.get("start"):
            self.send(b'{"jsonrpc":"2.0","id":"handshake","method":"initialize","params":{"protocolVersion":"%s",'
                      b'"capabilities":{},"clientInfo":{"name":"vectors","version":"1"}}}\n' % vector["start"].encode())
            self.await_id('"handshake"')
            base = len(self.lines)
            self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        for step in vector["steps"]:
            if "line" in step:
                self.send(step["line"].encode() + b"\n")
            elif "raw_hex" in step:
                self.send(bytes.fromhex(step["raw_hex"]))
            elif "big" in step:
                prefix, unit, count, suffix = step["big"]
                self.send((prefix + unit * count + suffix + "\n").encode())
            elif "sleep_ms" in step:
                threading.Event().wait(step["sleep_ms"] / 1000)  # the input's own timing
            elif "await" in step:
                self.await_id(step["await"])
            elif step.get("eof"):
                self.process.stdin.close()
                ended = True
        self.end(ended)
        return self.lines[base:]

    def end(self, ended):
        expect = self.vector["expect"]
        if ended:
            want = expect.get("exit", {})
            try:
                status = self.process.wait(want.get("within_ms", 5000) / 1000 * SLOWER)
                if status != want.get("code", 0):
                    self.errors.append("exit status %s" % status)
            except subprocess.TimeoutExpired:
                self.errors.append("still running after the end of input")
        else:
            for answer in expect.get("answers", []):
                if answer.get("id") is not None:
                    self.await_id(answer["id"])
            # what must not come is given time to come
            threading.Event().wait(self.vector.get("settle_ms", 150) / 1000)
            if self.process.poll() is not None:
                self.errors.append("the process died: %s" % self.process.returncode)
        self.process.kill()
        self.process.wait()
        self.reader.join()
        if not ended:
            self.process.stdin.close()

    def verdict(self):
        lines = self.play()
        expect = self.vector["expect"]
        messages = self.parse(lines, expect)
        answers = [(id, m) for id, m in messages if "method" not in m]
        for answer in expect.get("answers", []):
            self.check_answer(answer, answers)
        for raw in expect.get("silent", []):
            if any(same_id(id, raw) for id, _ in answers):
                self.errors.append("id %s was answered" % raw)
        if "order" in expect:
            at = [next((k for k, (id, _) in enumerate(answers) if same_id(id, raw)), -1) for raw in expect["order"]]
            if -1 in at or at != sorted(at):
                self.errors.append("order %s" % at)
        if "batch" in expect:
            arrays = [m for m in (json.loads(line) for line in lines) if isinstance(m, list)]
            if not any(sorted(json.dumps(m.get("id")) for m in a) == sorted(expect["batch"]) for a in arrays):
                self.errors.append("no array of %s" % expect["batch"])
        for note in expect.get("notes", []):
            self.check_note(note, messages)
        self.check_progress(messages)
        if "total" in expect and len(lines) != expect["total"]:
            self.errors.append("%d lines, not %d: %s" % (len(lines), expect["total"], [x[:80] for x in lines][:4]))
        return self.errors

    def parse(self, lines, expect):
        messages = []
        for line in lines:
            try:
                text = line.decode("utf-8")
                message = json.loads(text)
            except ValueError:
                self.errors.append("not a line of JSON: %r" % line[:80])
                continue
            if isinstance(message, list):
                if "batch" not in expect:
                    self.errors.append("an array came")
                messages += [(json.dumps(m["id"]) if "id" in m else None, m) for m in message]
            elif message.get("jsonrpc") != "2.0" or \
                    "method" not in message and ("result" in message) == ("error" in message):
                self.errors.append("not a JSON-RPC message: " + text[:80])
            else:
                messages.append((raw_member(text, "id"), message))
        return messages

    def check_answer(self, want, answers):
        codes = want.get("error", [])
        codes = codes if isinstance(codes, list) else [codes]
        if want.get("id") is None:
            hits = [m for id, m in answers if id in (None, "null") and m.get("error", {}).get("code") in codes]
        else:
            hits = [m for id, m in answers if same_id(id, want["id"])]
        if len(hits) != (want.get("count", 1) if want.get("id") is None else 1):
            self.errors.append("id %s: %d answers" % (want.get("id"), len(hits)))
            return
        answer = hits[0]
        if codes:
            if answer.get("error", {}).get("code") not in codes:
                self.errors.append("id %s: %s, not error %s" % (want.get("id"), str(answer)[:120], codes))
            for path, value in want.get("data", {}).items():
                if look_up(answer.get("error", {}).get("data"), path) != value:
                    self.errors.append("id %s: error data %s" % (want.get("id"), answer.get("error")))
            return
        if "result" not in answer:
            self.errors.append("id %s: no result: %s" % (want["id"], str(answer)[:120]))
            return
        for path, value in want.get("result", {}).items():
            got = look_up(answer["result"], path)
            if not fits(got, value):
                self.errors.append("id %s: %s is %s, not %s" % (want["id"], path, str(got)[:80], str(value)[:80]))
        for path in want.get("lacks", []):
            if look_up(answer["result"], path) is not MISSING:
                self.errors.append("id %s: has %s" % (want["id"], path))

    def check_note(self, want, messages):
        hits = [k for k, (_, m) in enumerate(messages) if m.get("method") == want["method"] and
                all(look_up(m.get("params"), path) == value for path, value in want.get("params", {}).items())]
        if not want.get("min", 0) <= len(hits) <= want.get("max", 1 << 30):
            self.errors.append("%s: %d seen" % (want["method"], len(hits)))
        if "before" in want and hits:
            at = next((k for k, (id, m) in enumerate(messages) if "method" not in m and same_id(id, want["before"])), None)
            if at is not None and hits[-1] > at:
                self.errors.append("%s came after the answer" % want["method"])

    def check_progress(self, messages):
        last = {}
        for _, message in messages:
            if message.get("method") == "notifications/progress":
                token = json.dumps(message["params"]["progressToken"])
                if message["params"]["progress"] <= last.get(token, -1):
                    self.errors.append("progress does not rise")
                last[token] = message["params"]["progress"]


def play_all(cut):
    with open(VECTORS, encoding="utf-8") as file:
        vectors = [json.loads(line) for line in file if line.strip()]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        verdicts = list(pool.map(lambda v: Run(v, cut).verdict(), vectors))
    bad = ["%s [%s]: %s" % (v["name"], v["revision"], "; ".join(e)) for v, e in zip(vectors, verdicts) if e]
    assert len(vectors) >= 181 and not bad, "\n".join(bad)


def test_vectors_as_given():
    play_all(False)


def test_vectors_byte_by_byte():
    play_all(True)


main(globals())
