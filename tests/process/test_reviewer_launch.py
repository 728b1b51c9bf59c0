# SPDX-License-Identifier: Apache-2.0
"""reviewer-launch with a codex that misbehaves in every way: either exactly our server is left, or there is no launch.
tests/harness has the same with the real programs."""
import mock_flow_server
from harness import *

FAKE = os.path.join(paths.SRCDIR, "tests", "support", "fake_codex.py")


class Desk:
    def __enter__(self):
        self.flow = mock_flow_server.MockServer(("127.0.0.1", 0), mock_flow_server.Scenario({"routes": [
            {"path": "/auth/config", "responses": [{"json": {"provider": "None"}}]}]}), None)
        import threading
        threading.Thread(target=self.flow.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.url = "http://127.0.0.1:%d" % self.flow.server_address[1]
        self.dir = TempDir()
        self.home = self.dir.__enter__()
        self.repo = os.path.join(self.home, "repo")
        os.makedirs(os.path.join(self.repo, ".git"))
        os.makedirs(os.path.join(self.repo, "sub"))
        bin = os.path.join(self.home, "bin")
        os.mkdir(bin)
        for name in ("codex", "claude"):
            os.symlink(FAKE, os.path.join(bin, name))
        self.env = clean_env(self.home, KCAP_STATE_DIR=os.path.join(self.home, "state"), CLAUDECODE="1",
                             ANTHROPIC_API_KEY="a", OPENAI_API_KEY="o")
        self.env["PATH"] = bin + ":" + os.path.dirname(sys.executable) + ":" + self.env["PATH"]
        return self

    def __exit__(self, *_):
        self.flow.stop()
        self.flow.server_close()
        self.dir.__exit__()

    def argv(self, *words, vendor="codex", url=None, dir=None):
        return [HOST, "--plugin", "codex-setup", "--", "reviewer-launch", "--vendor", vendor, "--agent-id", "agent-1",
                "--dir", dir or os.path.join(self.repo, "sub"), *(["--url", url or self.url] if url != "" else []), *words]

    def run(self, *words, play=None, input=b"", **more):
        return run(self.argv(*words, **more), env=dict(self.env, FAKE_CODEX=json.dumps(play or {})), cwd=self.home,
                   input=input)


SERVERS = {"alpha": {"command": "x"}, "dotted.name": {"command": "x"}, "": {"command": "x", "enabled": False}}


def test_it_prints_what_it_would_start():
    with Desk() as desk:
        status, out, err = desk.run("--model", "m", "--print", "--", "go", play={"servers": SERVERS})
        assert status == 0 and err == "", (status, err)
        plan = json.loads(out)
        assert plan["vendor"] == "codex" and plan["mode"] == "exec" and plan["verified"] == "codex mcp list", plan
        assert plan["dir"] == os.path.join(desk.repo, "sub") and plan["env"] == {"KCAP_REVIEWER": "1"}, plan
        assert set(plan["env_unset"]) >= {"KCAP_STATE_DIR", "CLAUDECODE", "ANTHROPIC_API_KEY"}, plan
        assert "OPENAI_API_KEY" not in plan["env_unset"], plan
        assert plan["argv"][-5:] == ["exec", "--json", "--skip-git-repo-check", "--", "go"], plan
        assert sum(desk.repo in word and word.startswith("projects=") for word in plan["argv"]) == 1, plan
        again = json.loads(desk.run(play={"servers": SERVERS})[1])
        assert again["server"] != plan["server"], "the server's name can be known beforehand"
        status, out, _ = desk.run("--mode", "app-server", play={"servers": SERVERS})
        assert status == 0 and json.loads(out)["argv"][-1] == "app-server", out


def test_it_becomes_the_reviewer():
    with Desk() as desk:
        process = subprocess.Popen([os.path.join(paths.BUILDDIR, "stage", "bin", "kcap-host"), *desk.argv("--exec")[1:]],
                                   env=dict(desk.env, FAKE_CODEX=json.dumps({"servers": SERVERS})), cwd=desk.home,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(b"the prompt", timeout=30 * SLOWER)
        assert process.returncode == 0, err
        seen = json.loads(out)
        assert seen["pid"] == process.pid and seen["cwd"] == os.path.join(desk.repo, "sub"), seen
        assert seen["input"] == "the prompt", seen
        kcap = {name: value for name, value in seen["env"].items() if name.startswith("KCAP_")}
        assert kcap == {"KCAP_REVIEWER": "1"}, kcap
        with open("/proc/self/status") as file:
            ours = file.read()  # what is ignored here, by nohup or by Python itself, is of no concern
        for mask in ("SigBlk", "SigIgn"):
            inherited, got = (int(line.split()[1], 16) for text in (ours, seen["status"]) for line in text.splitlines()
                              if line.startswith(mask))
            assert got & 0x7fffffff & ~inherited == 0, (mask, got, inherited)


def test_refusals():
    ours = "our result server: "
    cases = [({"fault": fault, "fault_at": at}, want) for at in (1, 2, 3) for fault, want in (
        ("flood", "its answer does not end"), ("status", 'exit status 1: Error: no 0: config.toml:3:9: a bad "..."\n'),
        ("killed", "it was killed"), ("text", "its answer is not JSON"))]
    cases += [({"fault": "nameless", "fault_at": at}, "a server without a name") for at in (1, 2)]
    cases += [({"managed": {"beta": {"command": "x", "enabled": True}}}, 'the server "beta": it stays enabled'),
              ({"servers": {"a": {"command": "x"}}, "managed": {"a": {"enabled": True}}}, 'the server "a": it stays')]
    with Desk() as desk:
        for play, want in cases:
            status, out, err = desk.run(play=play)
            assert status == 5 and out == "" and "refused: " in err and want in err, (play, status, err)
            assert "secret" not in err and len(err) < 2000, err
        assert ours not in err
        # one reason for each source
        _, _, err = desk.run(play={"managed": {"a": {"command": "x", "enabled": True}, "b": {"command": "y", "enabled": True}}})
        assert err.count("refused: ") == 2, err


def test_a_child_that_holds_the_output_is_not_waited_for():
    with Desk() as desk:
        begin = time.monotonic()
        status, _, err = desk.run(play={"fault": "child", "servers": SERVERS})
        assert status == 0 and time.monotonic() - begin < 10 * SLOWER, (status, err)


def test_interrupted_while_codex_is_asked():
    with Desk() as desk:
        process = subprocess.Popen(desk.argv(), env=dict(desk.env, FAKE_CODEX='{"fault":"hang"}'), cwd=desk.home,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for(lambda: children_of(process.pid), 10, "codex to be asked")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10 * SLOWER)
        assert process.returncode != 0 and b"cancelled" in err and out == b"", (process.returncode, err)


def children_of(pid):
    """Those of a process that are Python by now: the fake codex."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open("/proc/%s/stat" % entry) as stat, open("/proc/%s/cmdline" % entry) as line:
                if stat.read().rsplit(")", 1)[1].split()[1] == str(pid) and "codex" in line.read().split("\0")[1]:
                    found.append(entry)
        except (OSError, IndexError):
            pass
    return found


def test_no_way_to_report_no_launch():
    with Desk() as desk:
        for more, want in ((dict(url=""), "url: none is given"), (dict(url="http://me:word@h/"), "user or password"),
                           (dict(dir=os.path.join(desk.home, "none")), "is not a directory"),
                           (dict(url="http://127.0.0.1:9"), "the result server could not report (exit status 4)")):
            for vendor in ("codex", "claude"):
                status, out, err = desk.run(vendor=vendor, **more)
                assert status == 5 and out == "" and want in err and "word" not in err.replace("password", ""), (more, err)
        os.remove(os.path.join(desk.home, "bin", "codex"))
        desk.env["PATH"] = os.path.join(desk.home, "bin")
        status, _, err = desk.run()
        assert status in (5, 127) and (status == 127 or "no such program in PATH" in err), err


def test_words():
    with Desk() as desk:
        for words, want in ((("--vendor", "gemini"), "--vendor"), (("--mode", "x"), "--mode"), (("--model",), "--model"),
                            (("--nonsense",), "--nonsense"), (("--", "a", "b"), "b")):
            status, out, err = desk.run(*words)
            assert status == 2 and want in err and out == "", (words, status, err)
        status, _, err = desk.run("--mode", "app-server", "--", "go")
        assert status == 5 and "prompt:" in err, err


def test_not_from_inside_a_reviewer():
    with Desk() as desk:
        status, out, err = run(desk.argv(), env=dict(desk.env, KCAP_REVIEWER="1"))
        assert status == 2 and out == "", (status, err)


def test_claude_is_refused_for_a_setting():
    with Desk() as desk:
        status, out, err = desk.run("--", "go", vendor="claude")
        assert status == 0 and json.loads(out)["verified"] == "static", err
        os.mkdir(os.path.join(desk.home, ".claude"))
        with open(os.path.join(desk.home, ".claude", "settings.json"), "w") as file:
            file.write('{"deniedMcpServers":[{"serverName":"kcap-flow-result"}],"env":{"KCAP_URL":"x"}}')
        status, out, err = desk.run(vendor="claude")
        assert status == 5 and err.count("refused: ") == 2 and "settings.json: deniedMcpServers" in err, err


main(globals())
