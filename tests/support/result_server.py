# SPDX-License-Identifier: Apache-2.0
"""A flow server that takes results and fails in a chosen way: it knows what it has recorded, so that a test can
compare what the reviewer was told with what is true."""
import json
import socket
import struct
import threading

# what a connection meets: how much of the request is read, whether it is recorded, what is answered
FAULTS = {
    "well": ("all", True, "whole"),
    "closed at once": ("none", False, "close"),
    "killed before the body": ("head", False, "reset"),
    "killed during the body": ("part", False, "reset"),
    "killed after the body": ("all", False, "reset"),
    "recorded, answer lost": ("all", True, "reset"),
    "recorded, closed": ("all", True, "close"),
    "recorded, answer cut": ("all", True, "cut"),
    "recorded, never answered": ("all", True, "silence"),
    "never answered": ("all", False, "silence"),
}


class ResultServer:
    def __init__(self):
        self.plan, self.recorded, self.requests = ["well"], [], 0
        self.lock = threading.Lock()
        self.silent = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d/cap" % self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """From now on nobody can connect."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _next_fault(self):
        with self.lock:
            self.requests += 1
            return FAULTS[self.plan.pop(0) if len(self.plan) > 1 else self.plan[0]]

    @staticmethod
    def _read(connection, how_much):
        """The body as far as it is read."""
        data = b""
        if how_much == "none":
            return data
        while b"\r\n\r\n" not in data:
            more = connection.recv(1 if how_much == "head" else 65536)
            if not more:
                return b""
            data += more
        head, body = data.split(b"\r\n\r\n", 1)
        length = int([line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")][0][15:])
        while how_much != "head" and len(body) < (length if how_much == "all" else length // 2):
            more = connection.recv(65536)
            if not more:
                return b""
            body += more
        return body

    def _record(self, body):
        """As servers do: one result a round, and a second one is told that it comes too late."""
        token = json.loads(body)["round_token"]
        with self.lock:
            if any(known["round_token"] == token for known in self.recorded):
                return 409, {"error": "stale_round_token", "message": "discard this"}
            self.recorded.append(json.loads(body))
            return 200, {"status": "recorded"}

    def _serve(self, connection):
        how_much, records, answers = self._next_fault()
        with connection:
            try:
                body = self._read(connection, how_much)
                status, answer = self._record(body) if records and body else (500, {})
                if answers == "silence":
                    self.silent.append(connection.dup())
                    return
                if answers == "reset":
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
                if answers == "close":
                    return
                text = json.dumps(answer).encode()
                head = "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (
                    status, len(text))
                connection.sendall(head.encode() + (text if answers == "whole" else text[:5]))
            except OSError:
                pass
