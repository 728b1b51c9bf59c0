# SPDX-License-Identifier: Apache-2.0
"""kcap-host from the shell: one call, one command, what it tells of itself."""
from harness import *


def test_call_from_the_shell():
    status, out, err = run([HOST, "--plugin-file", FIXTURE, "--call", "echo", '{"text":"hi"}'])
    assert (status, out) == (0, "hi\n"), (status, out, err)
    status, out, _ = run([HOST, "--plugin-file", FIXTURE, "--call", "echo", "-"], input=b'{"text":"in"}')
    assert (status, out) == (0, "in\n")
    with TempDir() as home:
        path = os.path.join(home, "args.json")
        with open(path, "w") as file:
            file.write('{"text":"file"}')
        status, out, _ = run([HOST, "--plugin-file", FIXTURE, "--call", "echo", "@" + path])
        assert (status, out) == (0, "file\n")
        status, out, err = run([HOST, "--plugin-file", FIXTURE, "--call", "echo", "@" + path + "x"])
        assert status == 2 and "args.jsonx" in err, err
    status, out, _ = run([HOST, "--plugin-file", FIXTURE, "--call", "test_error_handling"])
    assert (status, out) == (1, "failed as asked\n")
    status, out, _ = run([HOST, "--plugin-file", FIXTURE, "--call", "echo", '{"text":1}'])
    assert status == 1 and "'text' must be" in out
    status, out, err = run([HOST, "--plugin-file", FIXTURE, "--call", "nothing"])
    assert status == 2 and "no tool nothing" in err
    status, out, err = run([HOST, "--plugin-file", FIXTURE, "--call", "echo", "{"])
    assert status == 2 and "not a JSON object" in err
    status, out, err = run([HOST, "--plugin-file", FIXTURE, "--call-window", "0.3", "--call", "slow",
                            '{"ms":60000}'])
    assert (status, out) == (0, "window over\n"), (status, out, err)


def test_interrupt_cancels_a_call_from_the_shell():
    with Host("--plugin-file", FIXTURE, "--call", "slow", '{"ms":60000}') as host:
        host.error_line("sleeping")
        host.process.send_signal(signal.SIGINT)
        host.error_line("slow ended 4")
        host.error_line("what it had started goes on")
        assert host.wait_exit() == 130


def test_command_keeps_standard_output():
    status, out, _ = run([HOST, "--plugin-file", FIXTURE, "--", "hello", "you"])
    assert (status, out) == (7, "hello you\n")
    status, out, err = run([HOST, "--plugin-file", FIXTURE, "--", "goodbye"])
    assert status == 2 and out == "" and "no command goodbye" in err


def test_dumps():
    status, out, _ = run([HOST, "--dump-plugin", FIXTURE])
    lines = out.splitlines()
    assert status == 0 and "class=driver" in lines and "abi=1.0" in lines and "tool_1=echo" in lines, out
    status, out, _ = run([HOST, "--check-plugin", FIXTURE])
    assert status == 0 and "well formed" in out, out
    for name in ("driver/flows.so",):
        status, out, _ = run([HOST, "--check-plugin", os.path.join(paths.BUILDDIR, "stage/lib/kcap-host", name)])
        assert status == 0 and "well formed" in out, out
    status, out, _ = run([HOST, "--dump-config"], env=clean_env("/x", KCAP_CALL_WINDOW_SEC="7"))
    assert status == 0 and "abi=1.0" in out and "/x/.local/lib/kcap/driver" in out and "harness=codex" in out
    assert "set to 7.000 s for every client" in out, out


def test_no_discover():
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                      "io.modelcontextprotocol/clientCapabilities": {}}}
    with fixture("--no-discover") as host:
        assert host.answer(host.send("server/discover", meta, id=True))["error"]["code"] == -32601
    with fixture() as host:
        assert host.answer(host.send("server/discover", meta, id=True))["result"]["supportedVersions"] == ["2026-07-28"]


def test_usage():
    status, out, _ = run([HOST, "--version"])
    assert status == 0 and out.startswith("kcap-host 0.")
    status, out, _ = run([HOST, "--help"])
    assert status == 0 and "--plugin NAME" in out
    status, out, _ = run([HOST, "--plugin-file", FIXTURE, "--help"])
    assert status == 0 and "colour" in out and "whoami" in out and "hello" in out
    status, out, err = run([HOST, "--plugin-file", FIXTURE, "color=red"])
    assert status == 2 and "no option color" in err
    status, out, err = run([HOST, "--nonsense"])
    assert status == 2 and "--nonsense" in err and out == ""
    status, out, err = run([HOST, "--plugin", "no-such-plugin"])
    assert status == 2 and "no plugin 'no-such-plugin'" in err and "driver" in err


def test_closed_standard_descriptors_do_no_harm():
    if "KCAP_WRAP" in os.environ:
        raise Skip("a wrapper needs a standard error itself")
    status, _, _ = run(["sh", "-c", '"$0" --plugin-file "$1" --call echo "{\\"text\\":\\"x\\"}" <&- 2>&-',
                        HOST, FIXTURE])
    assert status == 0


main(globals())
