# SPDX-License-Identifier: Apache-2.0
"""kcap-host as a client sees it: the wire and the calls."""
from harness import *


def test_three_messages_in_one_write():
    with initialized() as warm:
        assert warm.process.poll() is None
    with fixture() as host:
        begin = time.monotonic()
        host.write('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
                   '"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n'
                   '{"jsonrpc":"2.0","id":2,"method":"ping"}\n{"jsonrpc":"2.0","id":3,"method":"tools/list"}\n')
        for id in (1, 2, 3):
            host.answer(id)
        assert host.at - begin < 0.1 * SLOWER, host.at - begin
        assert [line["id"] for _, line in host.lines] == [1, 2, 3]


def test_ping_while_a_call_blocks():
    with initialized() as host:
        slow = host.call("slow", {"ms": 1500})
        took = []
        for _ in range(20):
            begin = time.monotonic()
            host.answer(host.send("ping", id=True))
            took.append(host.at - begin)
        assert not host.has_answer(slow)
        assert sorted(took)[10] < 0.005 * SLOWER, took
        assert text_of(host.answer(slow)["result"]) == "slept 1500"


def test_ten_calls_run_at_once():
    with initialized() as host:
        begin = time.monotonic()
        ids = [host.call("slow", {"ms": 1000}) for _ in range(10)]
        for id in ids:
            host.answer(id)
        took = max(at for at, line in host.lines if line.get("id") in ids) - begin
        assert took < 1.2 * SLOWER, took


def test_more_calls_than_the_limit_are_refused_not_lost():
    with initialized() as host:
        ids = [host.call("slow", {"ms": 1500}) for _ in range(140)]
        texts = [host.answer(id)["result"] for id in ids]
        refused = [r for r in texts if r.get("isError")]
        assert len(refused) == 12 and "in flight" in text_of(refused[0]), len(refused)


def test_cancel_stops_the_call_and_nothing_is_answered():
    with initialized() as host:
        id = host.call("slow", {"ms": 30000}, meta={"progressToken": "t"})
        host.wait_until(lambda: host.notes("notifications/progress"), 5, "progress")
        begin = time.monotonic()
        host.send("notifications/cancelled", {"requestId": id})
        host.error_line("slow ended 4")
        assert time.monotonic() - begin < 0.5 * SLOWER
        host.error_line("settled 1 2")
        seen = len(host.notes("notifications/progress"))
        host.answer(host.send("ping", id=True))
        assert not host.has_answer(id)
        assert len(host.notes("notifications/progress")) == seen


def test_cancel_after_the_answer_is_told_as_late():
    with initialized() as host:
        id = host.call("echo", {"text": "x"})
        host.answer(id)
        host.error_line("settled 1 1")
        host.send("notifications/cancelled", {"requestId": id})
        host.error_line("settled 1 3")
        host.send("notifications/cancelled", {"requestId": 4711})
        host.answer(host.send("ping", id=True))


def test_cancel_after_every_answer_is_no_crossing():
    with Host("--plugin-file", FIXTURE) as host:
        host.initialize(name="opencode", version="1.18.33")
        for serial, reason in ((1, "AbortError: The operation was aborted."), (2, "McpError: Request timed out"), (3, 5)):
            id = host.call("echo", {"text": "x"})
            host.answer(id)
            host.error_line("settled %d 1" % serial)
            host.send("notifications/cancelled", {"requestId": id, "reason": reason})
        host.error_line("settled 2 3")
        host.error_line("settled 3 3")
        assert not [line for line in host.errors if "settled 1 3" in line], host.errors
        id = host.call("slow", {"ms": 60000}, meta={"progressToken": 0})
        host.wait_until(lambda: host.notes("notifications/progress"), 10, "progress")
        host.send("notifications/cancelled", {"requestId": id, "reason": "AbortError: The operation was aborted."})
        host.error_line("settled 4 2")


def test_progress_rises_and_carries_the_raw_token():
    with initialized() as host:
        host.answer(host.call("slow", {"ms": 300}, meta={"progressToken": 0}))
        notes = host.notes("notifications/progress")
        values = [n["params"]["progress"] for n in notes]
        assert len(values) >= 3 and values == sorted(set(values)), values
        assert all(n["params"]["progressToken"] == 0 and n["params"]["total"] == 300 for n in notes)
        kinds = ["method" in line for _, line in host.lines[1:]]
        assert kinds == [True] * len(notes) + [False], "progress came after the answer"
        host.answer(host.call("slow", {"ms": 100}))
        assert len(host.notes("notifications/progress")) == len(notes)


def test_window_ends_a_call_with_a_normal_result():
    with initialized("--call-window", "0.4") as host:
        begin = time.monotonic()
        result = host.result("slow", {"ms": 20000})
        assert text_of(result) == "window over" and "isError" not in result
        assert 0.35 < host.at - begin < 1.0 * SLOWER


def test_window_comes_from_the_client():
    for name, version, want in (("codex-mcp-client", "0.171.0", "harness=codex"),
                                ("claude-code", "2.1.332", "harness=claude-code "),
                                ("stranger", "1", "harness=unknown")):
        with initialized(name=name, version=version) as host:
            text = text_of(host.result("whoami"))
            assert want in text and "name=%s" % name in text, text
            seconds = int(text.split("window=")[1])
            assert seconds == {"codex": 270, "claude-code": 110, "unknown": 50}[want.split("=")[1].strip()]


def test_overrun_is_answered_by_the_host():
    with initialized("--call-window", "0.2") as host:
        begin = time.monotonic()
        result = host.result("deaf", {"ms": 3500})
        assert result["isError"] and "did not finish in time" in text_of(result)
        assert 2.1 < host.at - begin < 3.0 * SLOWER
        host.error_line("settled 1 4", 10)  # what the plugin said later was dropped
        assert len([1 for _, line in host.lines if line.get("id") == 2]) == 1


def test_arguments_are_checked_before_the_plugin():
    with initialized() as host:
        for arguments, want in (({}, "'text' is required. What to say."),
                                ({"text": 5}, "'text' must be of type string, not number"),
                                ({"text": None}, "'text' is required"),
                                ({"txt": "x"}, "unknown argument 'txt'; this tool takes text")):
            result = host.result("echo", arguments)
            assert result["isError"] and want in text_of(result), result
        assert text_of(host.result("echo", {"text": "x"})) == "x"
        host.write(r'{"jsonrpc":"2.0","id":"z","method":"tools/call","params":{"name":"echo",'
                   r'"arguments":{"other":"\\u0000","text":"\u0000"}}}' "\n")
        assert "text must not contain U+0000" in text_of(host.answer("z")["result"])
        host.write('{"jsonrpc":"2.0","id":"n","method":"tools/call","params":{"name":"echo",'
                   '"arguments":{"text":"a","extra":null}}}\n')
        assert text_of(host.answer("n")["result"]) == "a"


def test_plugin_that_misbehaves_is_answered_for():
    with initialized() as host:
        assert host.result("silent")["isError"]
        host.error_line("settled 1 4")
        result = host.result("bad_json")
        assert result["isError"] and "not a JSON object" in text_of(result)
        assert text_of(host.result("noise")) == "quiet"
        host.error_line("noise on standard output")
        assert host.result("test_error_handling")["isError"]
        assert host.result("structured", {"a": 4})["structuredContent"] == {"sum": 5}


def test_ways_to_hold_a_call_wrong():
    with initialized() as host:
        assert text_of(host.result("twice")) == "first"
        assert text_of(host.result("after_return")) == "in time"
        host.error_line("stale: wait 6, progress 6, wake_fd -3")
        assert text_of(host.result("close_wake_fd")) == "closed"
        host.error_line("the number was taken again")
        host.error_line("closed its wake_fd")
        assert text_of(host.result("echo", {"text": "still here"})) == "still here"
        id = host.call("wait_after_cancel")
        host.error_line("waits for its cancel")
        host.send("notifications/cancelled", {"requestId": id})
        host.error_line("waits after the end: 4 4, progress 4")
        assert text_of(host.result("background")) == "started"
        host.error_line(", then -6")
        ids = [line["id"] for _, line in host.lines if "id" in line]
        assert len(ids) == len(set(ids)) and id not in ids, ids
        host.close()
        assert host.wait_exit() == 0


def test_results_after_the_call_returned_are_refused():
    """The late use crosses the freeing of the call, in every order there is."""
    with initialized() as host:
        for _ in range(40):
            for id in [host.call("after_return") for _ in range(40)]:
                host.answer(id)
        assert text_of(host.result("echo", {"text": "still here"})) == "still here"
        host.close()
        assert host.wait_exit() == 0, host.errors[-40:]


def test_a_job_runs_while_every_call_waits():
    with initialized() as host:
        for _ in range(3):
            host.call("slow", {"ms": 20000})
        assert text_of(host.result("wait_for_job")) == "helped"


def test_batch_members_can_be_cancelled_after_their_answer():
    with fixture() as host:
        host.initialize(revision="2025-03-26")
        host.write(json.dumps([call_message("a", "after_return", {}), call_message("b", "slow", {"ms": 1000})]) + "\n")
        host.error_line("stale:")  # it is answered, and the array waits for the other
        host.send("notifications/cancelled", {"requestId": "a"})
        host.error_line("settled 1 2")
        assert text_of(host.answer(host.call("echo", {"text": "again"}, id="a"))["result"]) == "again"
        array = host.wait_until(lambda: host.arrays, 10, "the array")
        assert [member["id"] for member in array[0]] == ["b"], array


def test_an_error_that_answers_no_id_has_none_in_the_stateless_era():
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    with fixture() as host:
        id = host.call("slow", {"ms": 500}, meta)
        host.call("slow", {"ms": 500}, meta, id=id)  # the same one, in use
        host.answer(id)
        errors = [line for _, line in host.lines if "error" in line]
        assert len(errors) == 1 and "id" not in errors[0] and "already in use" in errors[0]["error"]["message"], errors


def test_limits_of_a_message():
    with fixture() as host:
        host.initialize(revision="2025-03-26")
        host.write(json.dumps([{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in range(1000)]) + "\n")
        array = host.wait_until(lambda: host.arrays, 10, "the array")
        assert [member["id"] for member in array[0]] == list(range(1000))
        host.write(json.dumps([{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in range(1001)]) + "\n")
        host.write('{"jsonrpc":"2.0","id":"%s","method":"ping"}\n' % ("i" * 1023))
        host.answer(host.send("ping", id="last"))
        errors = [line["error"]["message"] for _, line in host.lines if "error" in line]
        assert len(errors) == 2 and "limited to 1000" in errors[0] and "1 KiB" in errors[1], errors


def test_wake_fd_shows_cancel_and_deadline():
    with initialized() as host:
        id = host.call("wake_fd")
        host.error_line("wake_fd is watched")
        host.send("notifications/cancelled", {"requestId": id})
        host.error_line("wake_fd polled 1, then 1")
        assert not host.has_answer(id)
    with initialized("--call-window", "0.3") as host:
        assert text_of(host.result("wake_fd")) == "woken"
        host.error_line("wake_fd polled 1, then 1")


def test_answers_and_cancels_that_cross():
    """The cancel leaves when the answer is due: settled once each, and nothing is answered after its cancel."""
    with initialized() as host:
        ids = []
        for group in range(200):
            for n in range(50):
                id = host.call("slow", {"ms": 1}) if n % 2 else host.call("echo", {"text": "x"})
                host.send("notifications/cancelled", {"requestId": id})
                ids.append(id)
            # the last call of a group is not cancelled: when it is answered, those before it have been told
            host.answer(host.call("slow", {"ms": 30}), 30)
        outcomes = {}

        def settled():
            outcomes.clear()
            for line in list(host.errors):
                if "settled " in line:
                    serial, outcome = line.split("settled ")[1].split()
                    outcomes.setdefault(serial, []).append(outcome)
            answered = [line["id"] for _, line in host.lines if "method" not in line]
            return len([o for o in outcomes.values() if o[0] == "1"]) == len(answered) - 1  # but initialize

        host.wait_until(settled, 30, "the outcome of every answer")
        assert all(o in (["1"], ["2"], ["1", "3"]) for o in outcomes.values()), outcomes
        assert any(o == ["2"] for o in outcomes.values()) and any(o == ["1", "3"] for o in outcomes.values())
        answered = [line["id"] for _, line in host.lines if line.get("id") in ids]
        assert len(answered) == len(set(answered)), "answered twice"


def test_descriptors_run_out():
    """EMFILE: calls that need a descriptor end with an error, the others go on, nothing dies."""
    import resource
    if "KCAP_WRAP" in os.environ:
        raise Skip("a wrapper has descriptors of its own")
    process = subprocess.Popen([HOST, "--plugin-file", FIXTURE], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, env=clean_env("/nonexistent"))
    try:
        process.stdin.write(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":'
                            b'"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n')
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 0
        used = max(int(fd) for fd in os.listdir("/proc/%d/fd" % process.pid)) + 1
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (used, used))
        for id in range(1, 4):
            process.stdin.write(b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s"}}\n' %
                                (id, b"wake_fd" if id == 2 else b"test_simple_text"))
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert answer["id"] == id and answer["result"].get("isError", False) == (id == 2), answer
    finally:
        process.kill()
        process.wait()


def test_serial_plugin_is_entered_by_one_at_a_time():
    plugin = os.path.join(paths.BUILDDIR, "tests", "support", ".libs", "serial.so")
    with Host("--plugin-file", plugin) as host:
        host.initialize()
        ids = [host.call("step") for _ in range(40)]
        host.send("notifications/cancelled", {"requestId": ids[30]})  # waits in line, and is skipped there
        host.answer(host.send("ping", id=True))
        with open("/proc/%d/status" % host.process.pid) as file:
            threads = int([l for l in file if l.startswith("Threads")][0].split()[1])
        assert threads < 10, "the line holds %d threads" % threads
        texts = [text_of(host.answer(id)["result"]) for id in ids if id != ids[30]]
        assert texts == ["step %d, at most 1 inside" % (n + 1) for n in range(39)], texts
        host.error_line("settled 40 1")
        assert not host.has_answer(ids[30]) and not [e for e in host.errors if "settled 31 " in e]


def test_a_serial_call_whose_window_went_by_in_line_is_not_started():
    plugin = os.path.join(paths.BUILDDIR, "tests", "support", ".libs", "serial.so")
    with Host("--plugin-file", plugin, "--call-window", "0.2") as host:
        host.initialize()
        first, second = host.call("deaf_step"), host.call("step")
        answer = host.answer(second)["result"]
        assert answer["isError"] and "was not started" in text_of(answer), answer
        assert text_of(host.answer(first)["result"]).startswith("step 1,")
        assert text_of(host.result("step")).startswith("step 2,")


def test_session_reaches_the_plugin():
    with initialized() as host:
        meta = {"threadId": "0199a5b2-77f6-7d13-a1c2-00000000abcd"}
        text = text_of(host.result("whoami", meta=meta))
        assert "session=0199a5b277f67d13a1c200000000abcd from=_meta.threadId" in text, text


main(globals())
