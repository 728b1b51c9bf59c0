# SPDX-License-Identifier: Apache-2.0
"""Servers that misbehave, one way after another: each call has its answer within its window, nothing is sent twice, and
the host goes on."""
import gzip
import socket
import ssl
import struct
import textwrap
import threading

from harness import *

WINDOW_SEC = 2
START = {"kind": "code-review", "target_kind": "commit", "target_ref": "HEAD", "target_title": "T", "context": "c"}
CALLS = {"start_review_flow": START, "submit_review_round": {"flow_run_id": "u1", "context": "c"},
         "get_flow_status": {"flow_run_id": "u1", "wait": True}, "close_flow": {"flow_run_id": "u1"}}

# A certificate for 127.0.0.1 that nobody trusts, and its key: made for these tests, of no use elsewhere.
CERTIFICATE = """
MIIBkDCCATagAwIBAgIUS9alGTFBon6BtRsqkZ87/FvCH9owCgYIKoZIzj0EAwIwFDESMBAGA1UEAwwJMTI3LjAuMC4xMCAXDTI2MTEzMDIxMz
AwN1oYDzIxMjYxMTA2MjEzMDA3WjAUMRIwEAYDVQQDDAkxMjcuMC4wLjEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQFXDOLGDhhQCtAdebK
WOoYgr5oaZXqX17EReSP1xOQXkXLopLomPVPs6fq9Gsh9oLZFxLTRVfyQGEXUnEIuIrKo2QwYjAdBgNVHQ4EFgQUxgZFizfNf9SPnW3bTUe+oq
fa0QowHwYDVR0jBBgwFoAUxgZFizfNf9SPnW3bTUe+oqfa0QowDwYDVR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMC
A0gAMEUCIQD9thyQ0oxtXDNWRCN7w6DlSlGaDmLZujeRixSgFoYnngIgNPkxLbNf2Nz53aajb0I44TCXjA0lAeZYHAV7lQWM7I0=
"""
KEY = """
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgnsVhRvN4PTbsget1fc1cOKisBqLCmtEek8rjI1IAMq6hRANCAAQFXDOLGDhhQC
tAdebKWOoYgr5oaZXqX17EReSP1xOQXkXLopLomPVPs6fq9Gsh9oLZFxLTRVfyQGEXUnEIuIrK
"""


class Server:
    """Takes connections and gives each to behave(connection, request), where request is the head as bytes; with at_once, to
    behave(connection, None) before anything was read."""

    def __init__(self, behave, family=socket.AF_INET, at_once=False, tls=None):
        self.behave, self.at_once, self.tls = behave, at_once, tls
        self.heads, self.open, self.lock = [], [], threading.Lock()
        self.listener = socket.socket(family)
        self.listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        self.listener.listen(64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        with self.lock:
            for connection in self.open:
                connection.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            if self.at_once:
                self.behave(connection, None)
                return
            while True:
                request = read_request(connection)
                if request is None:
                    return
                with self.lock:
                    self.heads.append(request.split(b"\r\n")[0].decode())
                if b" /auth/config " in request:
                    connection.sendall(answer(b'{"provider":"None"}'))
                elif self.behave(connection, request) is not True:
                    connection.close()
                    return
        except OSError:
            pass

    def sent(self, what):
        with self.lock:
            return sum(what in head for head in self.heads)


def read_request(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return None
        data += piece
    head, body = data.split(b"\r\n\r\n", 1)
    length = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while length and len(body) < length[0]:
        piece = connection.recv(65536)
        if not piece:
            return None
        body += piece
    return head


def answer(body, headers=b"", status=b"200 OK"):
    return (b"HTTP/1.1 " + status + b"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % len(body) +
            headers + b"\r\n" + body)


GOOD = b'{"flow_run_id":"u1","status":"running","round_number":1,"round_status":"running"}'


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def hold(connection):
    """Until the client goes away; what it sends meanwhile is dropped."""
    while connection.recv(65536):
        pass


def drip(connection, head, unit):
    """One unit after another until the client goes away."""
    connection.sendall(head)
    connection.settimeout(0.02)
    while True:
        connection.sendall(unit)
        try:
            if not connection.recv(65536):
                return
        except TimeoutError:
            pass


def flood(connection, head, unit):
    connection.sendall(head)
    block = unit * (65536 // len(unit) + 1)
    while True:
        connection.sendall(block)


def part(data, n, end):
    def behave(connection, _):
        connection.sendall(data[:n])
        end(connection)
    return behave


def said(data):
    return lambda connection, _: connection.sendall(data)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LONG = b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n"
BOMB = gzip.compress(b" " * (100 << 20), 9)

FAULTS = {
    "silence": lambda c, _: hold(c),
    "closed unread": lambda c, _: c.close(),
    "reset": lambda c, _: reset(c),
    "status line cut": part(answer(GOOD), 7, reset),
    "headers cut, closed": part(answer(GOOD), 40, lambda c: c.close()),
    "headers cut, reset": part(answer(GOOD), 40, reset),
    "headers cut, silence": part(answer(GOOD), 40, hold),
    "body cut, closed": part(answer(GOOD), len(answer(GOOD)) - 9, lambda c: c.close()),
    "body cut, reset": part(answer(GOOD), len(answer(GOOD)) - 9, reset),
    "body cut, silence": part(answer(GOOD), len(answer(GOOD)) - 9, hold),
    "headers drip": lambda c, _: drip(c, b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "body drips": lambda c, _: drip(c, b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b" "),
    "chunks drip": lambda c, _: drip(c, CHUNKED, b"1\r\n \r\n"),
    "endless headers": lambda c, _: flood(c, b"HTTP/1.1 200 OK\r\n", b"X-Y: " + b"z" * 200 + b"\r\n"),
    "one endless header": lambda c, _: flood(c, b"HTTP/1.1 200 OK\r\nX: ", b"y"),
    "endless interim answers": lambda c, _: flood(c, b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "endless body": lambda c, _: flood(c, LONG, b'{"a":[1,"'),
    "endless chunks": lambda c, _: flood(c, CHUNKED, b"9\r\n123456789\r\n"),
    "length too long": said(answer(GOOD).replace(b"Content-Length: ", b"Content-Length: 9")),
    "length too short": said(answer(GOOD).replace(b"Content-Length: 82", b"Content-Length: 8")),
    "two lengths": said(answer(GOOD, b"Content-Length: 3\r\n")),
    "negative length": said(answer(GOOD).replace(b"Content-Length: ", b"Content-Length: -")),
    "odd chunk size": said(CHUNKED + b"zz\r\n"),
    "huge chunk size": said(CHUNKED + b"ffffffffffffffffff\r\nx"),
    "redirect to itself": said(answer(b"", b"Location: /api/flows/u1\r\n", b"302 Found")),
    "redirect that keeps the method": said(answer(b"", b"Location: /api/flows/u1\r\n", b"307 Again")),
    "gzip unasked": said(answer(BOMB, b"Content-Encoding: gzip\r\n")),
    "unknown coding": said(answer(GOOD, b"Content-Encoding: snafu\r\n")),
    "no HTTP": said(b"220 mail.example ESMTP\r\n"),
    "binary": said(bytes(range(256)) * 50),
    "HTTP/0.9": said(GOOD),
    "HTTP/9": said(answer(GOOD).replace(b"HTTP/1.1", b"HTTP/9.1")),
    "NUL in a header": said(answer(GOOD, b"X: a\0b\r\n")),
    "200 without a body": said(answer(b"")),
    "not UTF-8": said(answer(b'{"flow_run_id":"u1","status":"\xff\xfe"}')),
    "deep": said(answer(b"[" * 200000)),
    "endless retries asked for": said(answer(b'{"error":"flow_settlement_busy","message":"m"}', b"", b"409 Busy")),
    "a wait of years asked for": said(answer(b"", b"Retry-After: 99999999\r\n", b"429 Slow")),
}


def tools_host(home, url, **env):
    host = Host("--plugin", "flows", "--call-window", str(WINDOW_SEC),
                env=clean_env(home, KCAP_URL=url, KCAP_STATE_DIR=home, **env), cwd=home)
    host.initialize()
    return host


def call_all(host, name):
    """Each call at once; all have an answer in time, and a ping is answered meanwhile. A sanitizer makes a flood so
    slow to read that several leave nothing to one another."""
    texts = {}
    if SLOWER == 1 or not name.startswith("endless"):
        return call_these(host, name, CALLS)
    for tool, args in CALLS.items():
        texts.update(call_these(host, name, {tool: args}))
    return texts


def call_these(host, name, calls):
    begin = time.monotonic()
    ids = {tool: host.call(tool, args) for tool, args in calls.items()}
    host.answer(host.send("ping", id=True), 1)
    texts = {}
    for tool, id in ids.items():
        texts[tool] = text_of(host.answer(id, WINDOW_SEC + 1.5)["result"])
        assert host.at - begin < (WINDOW_SEC + 1) * SLOWER, (name, tool, host.at - begin)
        if tool != "start_review_flow":
            assert texts[tool].startswith("flow_run_id: u1\n"), (name, tool, texts[tool])
    return texts


def check_fault(name, behave):
    with TempDir() as home, Server(behave) as server, tools_host(home, "http://127.0.0.1:%d" % server.port) as host:
        texts = call_all(host, name)
        for tool, text in texts.items():
            assert "findings" not in text.split("\n\n")[0] and "clean" not in text.split("\n\n")[0], (name, tool, text)
        if "retries" not in name:
            for path in ("/start/", "/rounds"):
                assert server.sent(path) == 1, (name, path, server.heads)
        polling = 3 if texts["start_review_flow"].startswith("flow_run_id: u1") else 1
        assert server.sent("GET /api/flows/u1?") <= polling, (name, server.heads)  # the next is due after three seconds
        host.close()
        assert host.wait_exit() == 0, name


def in_parallel(jobs, width):
    """Runs the jobs, a few at a time; raises what any of them raised."""
    failures, todo = [], list(jobs)

    def work():
        while todo:
            name, behave = todo.pop()
            try:
                check_fault(name, behave)
            except BaseException as error:
                failures.append((name, error))
    workers = [threading.Thread(target=work) for _ in range(width)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise AssertionError(failures)


def test_each_fault():
    in_parallel(FAULTS.items(), 4 if SLOWER == 1 else 1)  # floods leave nothing to the others


def test_faults_before_a_request():
    """Reset as soon as it was accepted; an answer to nothing; and one who takes no connection at all."""
    for behave in (lambda c, _: reset(c), lambda c, _: c.sendall(answer(GOOD))):
        with TempDir() as home, Server(behave, at_once=True) as server, \
                tools_host(home, "http://127.0.0.1:%d" % server.port) as host:
            call_all(host, "at once")
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    clients = []
    for _ in range(4):  # its queue is full: further ones are neither taken nor refused
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(full.getsockname())
        clients.append(client)
    with TempDir() as home, tools_host(home, "http://127.0.0.1:%d" % full.getsockname()[1]) as host:
        call_all(host, "full queue")
    for one in clients + [full]:
        one.close()


def test_a_certificate_nobody_trusts():
    with TempDir() as home:
        pem = os.path.join(home, "server.pem")
        with open(pem, "w") as file:
            for kind, text in (("PRIVATE KEY", KEY), ("CERTIFICATE", CERTIFICATE)):
                file.write("-----BEGIN %s-----\n%s\n-----END %s-----\n" %
                           (kind, "\n".join(textwrap.wrap(text.replace("\n", ""), 64)), kind))
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(pem)
        with Server(said(answer(GOOD)), tls=tls) as server:
            with tools_host(home, "https://127.0.0.1:%d" % server.port) as host:
                texts = call_all(host, "untrusted")
                assert "certificate could not be verified" in texts["close_flow"], texts
                assert not server.heads, server.heads


def test_ipv6_only():
    try:
        server = Server(lambda c, _: c.sendall(answer(GOOD)) or True, family=socket.AF_INET6)
    except OSError:
        return  # there is no IPv6 here
    with server, TempDir() as home, tools_host(home, "http://[::1]:%d" % server.port) as host:
        assert "status: running" in call_all(host, "ipv6")["get_flow_status"]


def test_proxy():
    """Other hosts are asked through the proxy of the environment; this machine never is."""
    with Server(lambda c, _: c.sendall(answer(GOOD)) or True) as proxy, TempDir() as home:
        address = "http://127.0.0.1:%d" % proxy.port
        with tools_host(home, "http://flows.example", http_proxy=address) as host:
            assert "status: running" in text_of(host.result("get_flow_status", {"flow_run_id": "u1"}))
            assert proxy.sent("GET http://flows.example/api/flows/u1 ") == 1, proxy.heads
        with Server(lambda c, _: c.sendall(answer(GOOD)) or True) as server, \
                tools_host(home, "http://127.0.0.1:%d" % server.port, http_proxy=address) as host:
            seen = len(proxy.heads)
            assert "status: running" in text_of(host.result("get_flow_status", {"flow_run_id": "u1"}))
            assert len(proxy.heads) == seen and server.sent("/api/flows/u1") == 1


def test_a_post_is_never_sent_twice():
    """A kept connection that the server closes under the next request: a GET may be asked for again, a POST may not."""
    def behave(connection, request):
        if request.startswith(b"GET"):
            connection.sendall(answer(GOOD))
            return True
        connection.close()
        return False
    with TempDir() as home, Server(behave) as server, tools_host(home, "http://127.0.0.1:%d" % server.port) as host:
        for n in range(1, 6):
            host.result("get_flow_status", {"flow_run_id": "u1"})
            text = text_of(host.result("submit_review_round", {"flow_run_id": "u1", "context": "c%d" % n}))
            assert "What became of it is unknown" in text, text
            assert server.sent("/rounds") == n, server.heads


def peak_kb(host):
    with open("/proc/%d/status" % host.process.pid) as file:
        return [int(line.split()[1]) for line in file if line.startswith("VmHWM")][0]


def test_a_body_of_64_megabytes():
    """It takes no memory to speak of, and all of it can be read."""
    size = 64 << 20
    head = b'{"flow_run_id":"u1","status":"waiting","round_number":1,"round_status":"findings","round_result_text":"'

    def behave(connection, request):
        if b"/other" in request:
            connection.sendall(answer(b'{"status":"running","round_number":1,"round_status":"running"}'))
            return True
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(head) + size + 2) + head)
        for _ in range(size >> 20):
            connection.sendall(b"0123456789abcdef" * 65536)
        connection.sendall(b'"}')
        return True

    with TempDir() as home, Server(behave) as server, \
            Host("--plugin", "flows", env=clean_env(home, KCAP_URL="http://127.0.0.1:%d" % server.port), cwd=home) as host:
        host.initialize()
        host.result("get_flow_status", {"flow_run_id": "other"})
        before = peak_kb(host)
        text = text_of(host.result("get_flow_status", {"flow_run_id": "u1"}, seconds=30))
        assert "bytes 0 to 262144 of %d)" % size in text, text[:500]
        text = text_of(host.result("get_flow_status", {"flow_run_id": "u1", "offset": size - 10}, seconds=30))
        assert text.rstrip().endswith("\n| 6789abcdef"), text[-300:]
        if SLOWER == 1:  # else the memory is not the host's alone
            assert peak_kb(host) < 20000 and peak_kb(host) - before < 8192, (before, peak_kb(host))


def repeated(unit, size):
    block = unit * (65536 // len(unit))
    for _ in range(size // len(block)):
        yield block


def members(unit):
    """All that is shown of a run, each as long as it takes to be 64 megabytes."""
    yield b'{"status":"waiting","round_number":1,"round_status":"findings","last_result_kind":"clean","round_result_text":"'
    yield from repeated(unit, 20 << 20)
    yield b'","last_result_text":"'
    yield from repeated(unit, 20 << 20)
    yield b'","pending_messages":[{"message_id":"m","text":""}'
    for n in range(24):
        yield b',{"message_id":"m%d","from_participant":"critic","text":"' % n
        yield from repeated(unit, 1 << 20)
        yield b'"}'
    yield b"]}"


BODIES = {
    "line ends": lambda: members(b"\\n"),
    "control characters": lambda: members(b"\\u0001"),
    "DEL": lambda: members(b"\x7f"),
    "quotes": lambda: members(b'\\"'),
    "many strings": lambda: [b'{"status":"waiting","pending_messages":[', *repeated(
        b'{"message_id":"m","text":"' + b"\\n" * 400 + b'"},', 64 << 20), b"0]}"],
    "few strings": lambda: [b'{"status":"waiting","pending_messages":[', *repeated(
        b'{"message_id":"m","text":"' + b"x" * 200 + b'"},', 900 << 10), b"0]}"],
    "no JSON": lambda: repeated(b"<p>\n\x01", 64 << 20),
}


def test_long_bodies_that_grow():
    """Neither what is longer when it is shown, nor what is many things, takes more than the plain text."""
    bodies = iter(())

    def behave(connection, request):
        connection.sendall(CHUNKED)
        for piece in [b'{"status":"running","round_status":"running"}'] if b"/other" in request else bodies:
            connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        connection.sendall(b"0\r\n\r\n")
        return True
    for name, body in BODIES.items() if SLOWER == 1 else ():  # it is all about memory, and minutes long elsewhere
        with TempDir() as home, Server(behave) as server, Host(
                "--plugin", "flows", env=clean_env(home, KCAP_URL="http://127.0.0.1:%d" % server.port), cwd=home) as host:
            host.initialize()
            host.result("get_flow_status", {"flow_run_id": "other"})
            before = peak_kb(host)
            for _ in range(3):
                bodies = body()
                text = text_of(host.result("get_flow_status", {"flow_run_id": "u1"}, seconds=30))
                assert "did not answer" not in text, (name, text)
            assert peak_kb(host) - before < 8192, (name, before, peak_kb(host))


if __name__ == "__main__":
    main(globals())
