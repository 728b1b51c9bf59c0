# SPDX-License-Identifier: Apache-2.0
"""The reviewer's host as its harness and its launcher see it: environment, arguments, answers, selftest."""
import threading

import mock_flow_server
from harness import *

RESULT, MESSAGE = "/api/flows/reviewer/result", "/api/flows/participant/message"
CLEAN = {"round_token": "r1", "kind": "clean"}


class Desk:
    """A home without anything in it, and a scripted server that wants no login."""

    def __init__(self, *routes, fallback=None):
        self.script = {"routes": [{"path": "*auth/config", "responses": [{"json": {"provider": "None"}}]}] +
                       [{"path": path, "responses": list(responses)} for path, *responses in routes],
                       "fallback": fallback or {"json": {}}}

    def __enter__(self):
        self.mock = mock_flow_server.MockServer(("127.0.0.1", 0), mock_flow_server.Scenario(self.script), None)
        threading.Thread(target=self.mock.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.url = "http://127.0.0.1:%d" % self.mock.server_address[1]
        self.dir = TempDir()
        self.home = self.dir.__enter__()
        self.env = clean_env(self.home, KCAP_FLOW_AGENT_ID="agent-1", KCAP_URL=self.url)
        return self

    def __exit__(self, *args):
        self.mock.stop()
        self.mock.server_close()
        self.dir.__exit__(*args)

    def host(self, *args, without=(), **env):
        env = {k: v for k, v in dict(self.env, **env).items() if k not in without}
        host = Host("--plugin", "flow-result", *args, env=env)
        host.initialize()
        return host

    def selftest(self, without=(), **env):
        env = {k: v for k, v in dict(self.env, **env).items() if k not in without}
        return run([HOST, "--plugin", "flow-result", "--", "selftest"], env=env)

    def seen(self):
        return [r["path"] for r in self.mock.records(1)]

    def kept(self):
        spool = os.path.join(self.home, ".local", "state", "kcap", "spool")
        return os.listdir(spool) if os.path.isdir(spool) else []


# ---- environment, start, end ----

def test_no_agent_id_no_start():
    with Desk() as desk:
        for value in (None, "", " \t"):
            env = {k: v for k, v in desk.env.items() if k != "KCAP_FLOW_AGENT_ID"}
            if value is not None:
                env["KCAP_FLOW_AGENT_ID"] = value
            status, out, err = run([HOST, "--plugin", "flow-result"], env=env)
            assert status == 2 and out == "" and "KCAP_FLOW_AGENT_ID" in err, (value, status, out, err)


def test_either_address_is_enough_and_the_capability_wins():
    rows = [({"KCAP_URL": "{url}/"}, ["/auth/config", RESULT]),
            ({"KCAP_URL": "{url}/base/"}, ["/base/auth/config", "/base" + RESULT]),
            ({"KCAP_FLOW_CAPABILITY_URL": "{url}/cap/"}, ["/cap/flow-result"]),
            ({"KCAP_URL": "http://127.0.0.1:1", "KCAP_FLOW_CAPABILITY_URL": "{url}/cap"}, ["/cap/flow-result"])]
    for env, seen in rows:
        with Desk() as desk:
            env = {name: value.format(url=desk.url) for name, value in env.items()}
            with desk.host(without=("KCAP_URL",) if "KCAP_URL" not in env else (), **env) as host:
                assert desk.seen() == []  # not for initialize
                assert text_of(host.result("submit_review_result", CLEAN)).startswith("Recorded."), env
                assert desk.seen() == seen, (env, desk.seen())
                lines = host.error_line("results go to")
                assert len(lines) == 1 and "127.0.0.1" in lines[0] and "/cap" not in lines[0], lines
            if "KCAP_FLOW_CAPABILITY_URL" in env:
                with desk.host(**env) as host:
                    host.result("send_flow_message", {"text": "x"})
                    assert desk.seen()[-1] == "/cap/flow-message", desk.seen()


def test_an_address_that_cannot_be_used():
    for env, says in (({"KCAP_URL": "127.0.0.1:5"}, "https://"), ({"KCAP_URL": "ftp://h/"}, "https://"),
                      ({"KCAP_FLOW_CAPABILITY_URL": "nonsense"}, "https://"),
                      ({"KCAP_FLOW_CAPABILITY_URL": "http://192.0.2.1/cap"}, "loopback"),
                      ({"KCAP_URL": ""}, "KCAP_FLOW_CAPABILITY_URL")):
        with Desk() as desk, desk.host(**env) as host:
            assert len(host.answer(host.send("tools/list", id=True))["result"]["tools"]) == 2
            for tool, arguments in (("submit_review_result", CLEAN), ("send_flow_message", {"text": "x"})):
                result = host.result(tool, arguments)
                assert result["isError"] and says in text_of(result), (env, result)
                assert text_of(result).startswith("Not delivered: "), result
                assert result["structuredContent"] == {"outcome": "not_delivered", "attempts": 0,
                                                   "text": text_of(result)}, result


def test_ends():
    with Desk((RESULT, {"status": 409, "json": {"error": "no_open_round", "message": "wait"}})) as desk:
        with desk.host() as host:
            host.close()
            assert host.wait_exit() == 0
        with desk.host() as host:  # in the pause between two attempts: leave, and lose nothing
            host.call("submit_review_result", CLEAN)
            wait_for(lambda: RESULT in desk.seen(), 10, "the first attempt")
            begin = time.monotonic()
            host.close()
            assert host.wait_exit() == 0 and time.monotonic() - begin < 2 * SLOWER
        assert len(desk.kept()) == 1, desk.kept()
        with desk.host() as host:
            host.process.terminate()
            assert host.wait_exit() == 128 + signal.SIGTERM
        with desk.host() as host:  # a last line without its end
            host.write('{"jsonrpc":"2.0","id":77,"method":"ping"}')
            host.close()
            assert host.answer(77)["result"] == {}


# ---- the surface ----

def test_the_tools_as_listed():
    with Desk() as desk, desk.host() as host:
        tools = host.answer(host.send("tools/list", id=True))["result"]["tools"]
        assert [t["name"] for t in tools] == ["submit_review_result", "send_flow_message"]
        for tool in tools:
            notes = tool["annotations"]
            assert (notes["readOnlyHint"], notes["destructiveHint"], notes["openWorldHint"]) == (False,) * 3, notes
            assert tool["outputSchema"]["properties"]["outcome"]["enum"] == ["delivered", "not_delivered", "unknown"]
        submit, message = (t["inputSchema"] for t in tools)
        assert submit["required"] == ["round_token", "kind"]
        assert submit["properties"]["kind"]["enum"] == ["findings", "clean"]
        assert list(submit["properties"]) == ["round_token", "kind", "findings"]
        assert message["required"] == ["text"] and list(message["properties"]) == ["text"]


def test_arguments_are_checked_in_order_and_named():
    rows = [  # what is wrong, what the message names
        ({}, ["round_token", "required", "instructions"]),
        ({"round_token": None, "kind": "x"}, ["round_token", "required"]),
        ({"round_token": "", "kind": "x"}, ["round_token", "empty"]),
        ({"round_token": " \t", "kind": "clean"}, ["round_token", "blank"]),
        ({"round_token": 7, "kind": "x"}, ["round_token", "string", "number"]),
        ({"round_token": ["r"]}, ["round_token", "string", "array"]),
        ({"round_token": "r1"}, ["kind", "required"]),
        ({"round_token": "r1", "kind": None}, ["kind", "required"]),
        ({"round_token": "r1", "kind": "Clean"}, ["kind", '"findings", "clean"', "Clean"]),
        ({"round_token": "r1", "kind": {}}, ["kind", "string", "object"]),
        ({"round_token": "r1", "kind": "findings"}, ["findings", "needs the text"]),
        ({"round_token": "r1", "kind": "findings", "findings": " \n"}, ["findings", "needs the text"]),
        ({"round_token": "r1", "kind": "clean", "findings": 7}, ["findings", "string", "number"]),
        ({"round_token": "r1\0", "kind": "clean"}, ["round_token", "U+0000"]),
    ]
    messages = [({}, ["text", "required"]), ({"text": None}, ["text", "required"]), ({"text": ""}, ["text", "empty"]),
                ({"text": " \n"}, ["text", "blank"]), ({"text": 7}, ["text", "string", "number"]),
                ({"text": ["x"]}, ["text", "string", "array"])]
    with Desk() as desk, desk.host() as host:
        for tool, arguments, names in [("submit_review_result", a, n) for a, n in rows] + [
                ("send_flow_message", a, n) for a, n in messages]:
            result = host.result(tool, arguments)
            assert result["isError"] and all(n in text_of(result) for n in names), (arguments, result)
        assert desk.seen() == []
        for arguments in (dict(CLEAN, findings="dropped", other=[1]), dict(CLEAN, findings=None)):
            result = host.result("submit_review_result", arguments)
            assert not result.get("isError"), result
        for record in desk.mock.records(1)[1:]:
            assert record["json"] == {"agent_id": "agent-1", "round_token": "r1", "kind": "clean"}, record["json"]


def test_what_is_sent():
    with Desk() as desk, desk.host() as host:
        text = "é \U0001f600 \"&'+<>\\\n" + "x" * 3000000
        assert not host.result("submit_review_result", {"round_token": "r1", "kind": "findings", "findings": text},
                               seconds=20).get("isError")
        assert not host.result("send_flow_message", {"text": "why?"}).get("isError")
        records = desk.mock.records(1)
        assert [r["path"] for r in records] == ["/auth/config", RESULT, MESSAGE]
        assert records[1]["json"] == {"agent_id": "agent-1", "round_token": "r1", "kind": "findings", "text": text}
        assert sorted(records[2]["json"]) == ["agent_id", "message_id", "text"], records[2]["json"]
        for record in records[1:]:
            assert record["headers"]["content-type"].startswith("application/json"), record["headers"]
            assert record["headers"]["x-kcap-cli-version"] and record["headers"]["accept"] == "application/json"
            assert "authorization" not in record["headers"]


def test_odd_lines_do_not_end_it():
    lines = (b"", b"  ", b"nonsense", b'{"a":1', b'{"id":1} x', b"[]", b"null", b"7", b'"x"', b"{}",
             b'{"jsonrpc":"2.0","method":"ping"}', b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
             b'{"jsonrpc":"2.0","id":9,"method":7}', b'{"jsonrpc":"2.0","method":7}', b'{"id":1,"id":2,"method":"ping"}',
             b'{"jsonrpc":"2.0","id":9,"method":"tools/call"}',
             b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":7}}',
             b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"submit_review_result","arguments":[]}}',
             b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"submit_review_result",'
             b'"arguments":{"kind":"clean","kind":"clean"}}}',
             b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":[]}', b"\xff\xfe", b"[" * 5000)
    with Desk() as desk, desk.host() as host:
        for i, line in enumerate(lines):
            host.write(line + b"\n")
            assert host.answer(host.send("ping", id="after %d" % i)).get("result") == {}, line
        assert desk.seen() == []


def test_outcomes_over_the_wire():
    coded = {"error": "stale_round_token", "message": "discard this"}
    rows = [("Recorded.", {"status": 204}), ("Recorded.", {"json": {"any": 1}}),
            ("discard this", {"status": 409, "json": coded}),
            ("Not delivered: the server is catching up: replay", {"status": 409, "json": {
                "error": "server_catching_up", "message": "replay", "last_processed_seq": 7}}),
            ("Not delivered: the server refused the result (HTTP 403): go away", {"status": 403, "text": "go away"}),
            ("Not delivered: the server refused the result (HTTP 302)", {"status": 302, "headers": {"Location": "/x"}}),
            ("Outcome unknown: the server failed (HTTP 500)", {"status": 500, "json": {"error": 7, "message": []}}),
            ("Outcome unknown: what answered is not the flow server (HTTP 200)", {"text": "<html>"})]
    for says, answer in rows:
        with Desk((RESULT, answer)) as desk, desk.host() as host:
            result = host.result("submit_review_result", CLEAN)
            assert text_of(result).startswith(says), (answer, result)
            assert desk.seen() == ["/auth/config", RESULT], desk.seen()
            reminded = "Call submit_review_result again" in text_of(result)
            assert reminded == ("HTTP" in says), (says, result)
            assert ("isError" in result) == (says != "Recorded."), result


def test_a_round_that_opens_late():
    no = {"status": 409, "json": {"error": "no_open_round", "message": "wait"}}
    with Desk((RESULT, no, {"json": {}})) as desk, desk.host() as host:
        begin = time.monotonic()
        result = host.result("submit_review_result", CLEAN)
        assert text_of(result).startswith("Recorded.") and result["structuredContent"]["attempts"] == 2, result
        assert 2.9 < time.monotonic() - begin < 3 + 2 * SLOWER
        bodies = [r["body"] for r in desk.mock.records(1) if r["path"] == RESULT]
        assert len(bodies) == 2 and bodies[0] == bodies[1], bodies


# ---- selftest ----

def test_selftest():
    def login(desk, seconds):
        tokens = os.path.join(desk.home, ".config", "kcap", "tokens")
        os.makedirs(tokens)
        with open(os.path.join(tokens, "default.json"), "w") as file:
            json.dump({"access_token": "tok", "github_username": "ada", "provider": "x", "expires_at": time.strftime(
                "%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))}, file)

    with Desk() as desk:
        status, out, err = desk.selftest()
        assert status == 0 and "reached: yes\nlogin: usable, or none needed\n" in out, (status, out, err)
        assert "server: %s (from KCAP_URL)" % desk.url in out and "kept results: 0" in out, out
        assert desk.seen() == ["/auth/config"], desk.seen()
        assert desk.selftest(KCAP_FLOW_AGENT_ID="")[0] == 2
        assert desk.selftest(KCAP_URL="ftp://x")[0] == 3 and desk.selftest(without=("KCAP_URL",))[0] == 3
        status, out, _ = desk.selftest(KCAP_URL="http://127.0.0.1:1")
        assert status == 4 and "no connection could be made" in out, out
        status, out, _ = desk.selftest(KCAP_FLOW_CAPABILITY_URL="http://127.0.0.1:1/secret")
        assert status == 4 and "secret" not in out, out
        before = len(desk.seen())
        status, out, _ = desk.selftest(KCAP_FLOW_CAPABILITY_URL=desk.url + "/secret")
        assert status == 0 and "secret" not in out and len(desk.seen()) == before, (out, desk.seen())
        assert "login: not asked for" in out, out
    for answer in ({"status": 404}, {"text": "<html>"}, {"status": 502}, {"json": []}):
        with Desk() as desk:
            desk.mock.scenario.load({"routes": [{"path": "/auth/config", "responses": [answer]}]})
            status, out, _ = desk.selftest()
            assert status == 4 and "is not a flow server" in out, (answer, status, out)
    for seconds, wanted, says in ((None, 5, "nobody is logged in"), (-5, 5, "has expired"), (3600, 0, "usable")):
        with Desk() as desk:
            desk.mock.scenario.load({"routes": [{"path": "/auth/config", "responses": [{"json": {"provider": "x"}}]}]})
            if seconds is not None:
                login(desk, seconds)
            status, out, err = desk.selftest()
            assert status == wanted and says in out, (seconds, status, out, err)
            assert "tok" not in (out + err).replace("token", "") and desk.seen() == ["/auth/config"], desk.seen()


def test_selftest_submits_nothing_that_is_kept():
    with Desk((RESULT, {"status": 503})) as desk:
        with desk.host() as host:
            assert host.result("submit_review_result", CLEAN)["isError"]
        desk.mock.forget()
        desk.mock.scenario.load({"fallback": {"json": {"provider": "None"}}})
        status, out, _ = desk.selftest()
        assert status == 0 and "kept results: 1" in out and desk.seen() == ["/auth/config"], (out, desk.seen())


main(globals())
