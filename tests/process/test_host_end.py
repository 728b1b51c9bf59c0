# SPDX-License-Identifier: Apache-2.0
"""How kcap-host ends: end of input, signals, a client that is gone, does not read, or never stops asking."""
import threading

from harness import *


def test_end_of_input_answers_what_was_asked():
    with fixture() as host:
        host.write('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
                   '"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n'
                   '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{"ms":200}}}\n'
                   '{"jsonrpc":"2.0","id":3,"method":"ping"}')
        host.close()
        assert host.wait_exit() == 0
        assert sorted(line["id"] for _, line in host.lines) == [1, 2, 3]


def test_end_of_input_does_not_wait_for_long_calls():
    with initialized() as host:
        for tool in ("slow", "deaf"):
            for _ in range(5):
                host.call(tool, {"ms": 60000})
        host.answer(host.send("ping", id=True))
        begin = time.monotonic()
        host.close()
        assert host.wait_exit() == 0
        assert 0.4 < time.monotonic() - begin < 0.7 * SLOWER


def test_idle_end_of_input_is_quick():
    with initialized() as host:
        begin = time.monotonic()
        host.close()
        assert host.wait_exit() == 0
        assert time.monotonic() - begin < 0.1 * SLOWER
        host.error_line("fini")


def test_whoever_still_waits_is_told_to_leave():
    for tries_left in (2, 1, 0):  # all of it has a tenth of a second, which a busy machine may not give to 65 threads
        with initialized() as host:
            host.call("slow", {"ms": 60000})
            host.call("background")
            host.error_line("background jobs")
            host.close()
            assert host.wait_exit() == 0
            if SLOWER > 1:
                return
            try:
                host.error_line("slow ended 6", 2)
                host.wait_until(lambda: sum("background ended 6" in line for line in host.errors) == 64, 2, "64 ends")
                host.error_line("fini", 2)
                return
            except AssertionError:
                if not tries_left:
                    raise


def test_descriptors_somebody_made_non_blocking():
    """stdin and stdout are shared with others, who may set O_NONBLOCK; nothing spins and nothing is lost."""
    import fcntl
    inner_in, outer_in = os.pipe()
    outer_out, inner_out = os.pipe()
    for fd in (inner_in, inner_out):
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK)
    process = subprocess.Popen([HOST, "--plugin-file", FIXTURE], stdin=inner_in, stdout=inner_out,
                               stderr=subprocess.DEVNULL, env=clean_env("/nonexistent"))
    os.close(inner_in)
    os.close(inner_out)
    try:
        os.write(outer_in, b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
                           b'"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n')
        text = b"x" * 200000
        for id in range(1, 6):
            os.write(outer_in, b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":'
                               b'{"text":"%s"}}}\n' % (id, text))
        spent = cpu_ticks(process.pid)
        threading.Event().wait(1)
        assert cpu_ticks(process.pid) - spent < 20, "it spins"
        with os.fdopen(outer_out, "rb") as answers:
            seen = {json.loads(answers.readline())["id"] for _ in range(6)}
            assert seen == set(range(6)), seen
            os.close(outer_in)
            assert process.wait(5 * SLOWER) == 0
    finally:
        process.kill()
        process.wait()


def cpu_ticks(pid):
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_client_that_asks_and_never_reads_is_not_read_for_ever():
    process = subprocess.Popen([HOST, "--plugin-file", FIXTURE], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, env=clean_env("/nonexistent"))
    sent = [0]

    def ask():
        line = b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n'
        try:
            process.stdin.write(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":'
                                b'"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n')
            for id in range(1, 60001):
                process.stdin.write(line % id)
                sent[0] = id
            process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass
    writer = threading.Thread(target=ask, daemon=True)
    writer.start()
    try:
        def stands_still():
            before = sent[0]
            threading.Event().wait(0.5)
            return before and sent[0] == before
        wait_for(stands_still, 30, "the host to stop reading")
        with open("/proc/%d/status" % process.pid) as file:
            peak = int([l for l in file if l.startswith("VmHWM")][0].split()[1])
        assert peak < 300000 or SLOWER > 1, peak  # a sanitizer's memory is its own
        assert sent[0] < 60000
        for id in range(0, 60001):  # and once it is listened to, nothing is missing
            assert json.loads(process.stdout.readline())["id"] == id
    finally:
        process.kill()
        process.wait()


def test_signals_end_at_once():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with initialized() as host:
            host.call("deaf", {"ms": 60000})
            host.answer(host.send("ping", id=True))
            begin = time.monotonic()
            host.process.send_signal(number)
            status = host.wait_exit()
            assert status in (128 + number, -number), status
            assert time.monotonic() - begin < 0.1 * SLOWER


def test_ends_with_a_hundred_calls_in_flight():
    for round in range(60 if SLOWER == 1 else 6):  # a sanitizer takes a second to leave
        tool = ("slow", "deaf")[round % 2]
        number = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)[round % 3]
        with initialized(stderr=subprocess.DEVNULL) as host:
            for _ in range(100):
                host.call(tool, {"ms": 60000})
            host.answer(host.send("ping", id=True))
            begin = time.monotonic()
            host.process.send_signal(number)
            assert host.wait_exit() in (128 + number, -number)
            assert time.monotonic() - begin < 0.5 * SLOWER
    for tool in ("slow", "deaf"):
        with initialized(stderr=subprocess.DEVNULL) as host:
            for _ in range(100):
                host.call(tool, {"ms": 60000})
            host.answer(host.send("ping", id=True))
            begin = time.monotonic()
            host.close()
            assert host.wait_exit() == 0
            assert time.monotonic() - begin < 0.7 * SLOWER


def test_parent_killed():
    """The client dies without a word: the end of input is all the host hears, and enough."""
    script = '"$0" --plugin-file "$1" <&3 >/dev/null & echo $!; kill -9 $$'
    with TempDir() as home:
        read_end, write_end = os.pipe()
        done = subprocess.run(["sh", "-c", script.replace("<&3", "<&%d" % read_end), HOST, FIXTURE], env=clean_env(home),
                              pass_fds=[read_end], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20)
        os.close(read_end)
        pid = int(done.stdout)
        os.close(write_end)
        wait_for(lambda: not os.path.exists("/proc/%d" % pid), 5, "the orphan's end")


def test_a_client_that_does_not_read_loses_nothing():
    """64 KiB fit the pipe; far more is queued, the reader goes on, and everything arrives later."""
    process = subprocess.Popen([HOST, "--plugin-file", FIXTURE], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, env=clean_env("/nonexistent"))
    try:
        process.stdin.write(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":'
                            b'"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n')
        text = "x" * 100000
        for id in range(1, 101):
            line = {"jsonrpc": "2.0", "id": id, "method": "tools/call",
                    "params": {"name": "echo", "arguments": {"text": text}}}
            process.stdin.write(json.dumps(line).encode() + b"\n")  # blocks if the reader ever stops
        process.stdin.flush()
        seen = set()
        for _ in range(101):
            message = json.loads(process.stdout.readline())
            seen.add(message["id"])
            if message["id"]:
                assert text_of(message["result"]) == text
        assert seen == set(range(101))
    finally:
        process.kill()
        process.wait()


def test_a_client_that_does_not_read_for_long():
    """Over 64 MB queued: progress is dropped first, then new calls are refused; no answer is lost, and the reader
    goes on."""
    process = subprocess.Popen([HOST, "--plugin-file", FIXTURE], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, env=clean_env("/nonexistent"))
    try:
        process.stdin.write(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":'
                            b'"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n')
        text = "x" * (1 << 20)
        for id in range(1, 91):
            process.stdin.write(b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":'
                                b'{"text":"%s"}}}\n' % (id, text.encode()))
        process.stdin.flush()
        spent = [-1]

        def is_done():  # the workers have answered what they were given, as far as they ever will
            before, spent[0] = spent[0], cpu_ticks(process.pid)
            return spent[0] == before
        wait_for(is_done, 60, "the workers", tick=0.3)
        process.stdin.write(b'{"jsonrpc":"2.0","id":91,"method":"tools/call","params":{"name":"slow","arguments":'
                            b'{"ms":120},"_meta":{"progressToken":1}}}\n{"jsonrpc":"2.0","id":92,"method":"ping"}\n')
        process.stdin.flush()
        kinds, notes = {}, 0
        while len(kinds) < 93:
            message = json.loads(process.stdout.readline())
            if "method" in message:
                notes += 1
                continue
            assert message["id"] not in kinds
            result = message["result"]
            kinds[message["id"]] = "ok" if message["id"] in (0, 92) else "refused" if result.get("isError") else "ok"
            if 1 <= message["id"] <= 90 and not result.get("isError"):
                assert text_of(result) == text
        assert set(kinds) == set(range(93))
        assert kinds[1] == "ok" and kinds[91] == "refused" and notes == 0, kinds
    finally:
        process.kill()
        process.wait()


def test_a_client_that_does_not_read_stderr_blocks_nothing():
    process = subprocess.Popen([HOST, "--plugin-file", FIXTURE], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=clean_env("/nonexistent"))
    try:
        process.stdin.write(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":'
                            b'"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n')
        process.stdin.flush()
        process.stdout.readline()
        for id in range(1, 3001):  # each logs one line: far over what the pipe holds
            process.stdin.write(b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo",'
                                b'"arguments":{"text":"x"}}}\n' % id)
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == id
    finally:
        process.kill()
        process.wait()


def test_client_gone_ends_the_host():
    process = subprocess.Popen([HOST, "--plugin-file", FIXTURE], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, env=clean_env("/nonexistent"))
    try:
        process.stdout.close()
        process.stdin.write(b'{"jsonrpc":"2.0","id":0,"method":"ping"}\n')
        process.stdin.flush()
        assert process.wait(5 * SLOWER) == 0
    finally:
        process.kill()
        process.wait()


main(globals())
