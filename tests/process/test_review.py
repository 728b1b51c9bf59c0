# SPDX-License-Identifier: Apache-2.0
"""Whole reviews through real processes: driver host, kcap-flowd, checklist, reviewer host, and back."""
import re
import socket
import sqlite3
import threading

import flowd
from harness import *

if not paths.HAVE_FLOWD:
    print("skipped: built with --disable-flowd")
    sys.exit(77)


class Desk(flowd.Place):
    """A home, a repository with one tidy commit, and everything that was started there ended at the end."""

    def __enter__(self):
        self.repo = flowd.Repo(self)
        self.repo.write("README.md", "# Tidy\n")
        self.repo.commit("first")
        self.gate = None
        return self

    def __exit__(self, *_):
        if self.gate:
            self.let_go()
        self.end_daemons()
        self.remove()

    def daemons(self, state=None):
        """Pids of the daemons that served this desk and are alive, from their own log."""
        try:
            pids = flowd.serving(state or self.state)
        except OSError:
            return []
        return [pid for pid in pids if flowd.is_alive(pid)]

    def end_daemons(self, state=None):
        for pid in self.daemons(state):
            os.kill(pid, signal.SIGTERM)
        wait_for(lambda: not self.daemons(state), 10, "the daemon's end")

    def hold_git(self):
        """From now on git waits for let_go, so a round lasts as long as the test wants."""
        self.gate = os.path.join(self.dir, "gate")
        os.mkfifo(self.gate)
        shim = os.path.join(self.dir, "shim")
        os.mkdir(shim)
        with open(os.path.join(shim, "git"), "w") as file:
            file.write('#!/bin/sh\n[ ! -e "%s" ] || read -r line <"%s"\nexec "%s" "$@"\n' %
                       (self.gate, self.gate, shutil.which("git")))
        os.chmod(os.path.join(shim, "git"), 0o755)
        self.env["PATH"] = shim + ":" + self.env["PATH"]

    def let_go(self):
        gate, self.gate = self.gate, None
        fd = os.open(gate, os.O_RDWR | os.O_NONBLOCK)  # the pipe outlives its name for those who wait in it
        os.rename(gate, gate + ".open")
        os.write(fd, b"go\n" * 50)
        self.fd = fd

    def host(self, *args, session="session-1", name="test", **env):
        host = Host("--plugin", "flows", *args, env=dict(self.env, KCAP_SESSION_ID=session, **env),
                    cwd=self.repo.dir)
        host.initialize(name)
        return host


def run_id(result):
    text = text_of(result)
    first = text.splitlines()[0]
    assert re.fullmatch(r"flow_run_id: \w+", first), text
    return first.split()[1]


def findings(text):
    return [line[2:] for line in text.splitlines() if line.startswith("| ") and not line.startswith("| Looked")]


def test_planted_faults_are_found_and_nothing_else():
    with Desk() as desk:
        desk.repo.write("merge.c", "int a;\n<<<<<<< ours\nint b;\n=======\nint c;\n>>>>>>> theirs\n")
        desk.repo.write("blank.py", "x = 1 \ny = 2\n")
        desk.repo.write("bad.json", '{"a": 1,}\n')
        desk.repo.commit("faults")
        with desk.host() as host:
            result = host.result("start_review_flow", flowd.START_ARGUMENTS, seconds=30)
            found = findings(text_of(result))
            assert len(found) == 3, found
            assert sorted(f.split(":")[0] for f in found) == ["bad.json", "blank.py", "merge.c"], found
            assert result["structuredContent"]["result_kind"] == "findings", result
            id = run_id(result)
            # the driver mends them and asks for the next round on the working tree
            desk.repo.write("merge.c", "int a;\nint b;\n")
            desk.repo.write("blank.py", "x = 1\ny = 2\n")
            desk.repo.write("bad.json", '{"a": 1}\n')
            desk.repo.git("add", "-A")
            desk.repo.git("commit", "-q", "--amend", "--no-edit")
            result = host.result("submit_review_round", {"flow_run_id": id, "context": "mended"}, seconds=30)
            assert result["structuredContent"]["result_kind"] == "clean", result
            result = host.result("close_review_flow", {"flow_run_id": id})
            assert "status: closed" in text_of(result), result


def test_tidy_is_clean():
    with Desk() as desk, desk.host() as host:
        result = host.result("start_review_flow", flowd.START_ARGUMENTS, seconds=30)
        assert result["structuredContent"]["result_kind"] == "clean", result
        assert not result.get("isError") and not findings(text_of(result)), result


def test_who_can_review_here():
    """kcap-flowd has every repository of this machine; asked before and after there was a flow, which made machine.json."""
    with Desk() as desk, desk.host() as host:
        for _ in range(2):
            answer = host.result("list_reviewer_vendors", seconds=30)["structuredContent"]
            assert answer["repo"]["resolved"] and answer["diagnostics"]["repo_hosting_daemons"] == 1, answer
            assert "checklist" in [reviewer["vendor"] for reviewer in answer["reviewers"]], answer
            host.result("start_review_flow", flowd.START_ARGUMENTS, seconds=30)


def test_a_round_longer_than_the_window():
    """As Codex: a normal result with the id before the cut; then a bare call from a new process finds it."""
    with Desk() as desk:
        desk.hold_git()
        meta = {"threadId": "0199a5b2-77f6-7d13-a1c2-00000000abcd", "progressToken": 1}
        with desk.host("--call-window", "1", name="codex-mcp-client") as host:
            begin = time.monotonic()
            result = host.answer(host.call("start_review_flow", flowd.START_ARGUMENTS, meta=meta), 20)["result"]
            assert host.at - begin < 2 * SLOWER
            id = run_id(result)
            text = text_of(result)
            assert not result.get("isError") and "Flow still running" in text and "get_review_flow_status" in text, text
            # a ping is answered at once while another call blocks on the same run
            waiting = host.call("get_review_flow_status", {"wait": True}, meta=meta)
            took = []
            for _ in range(11):
                begin = time.monotonic()
                host.answer(host.send("ping", id=True))
                took.append(host.at - begin)
            assert sorted(took)[5] < 0.005 * SLOWER and not host.has_answer(waiting), took
            assert run_id(host.answer(waiting)["result"]) == id
        with desk.host("--call-window", "30", name="codex-mcp-client") as host:
            waiting = host.call("get_review_flow_status", {"wait": True}, meta=meta)
            desk.let_go()
            result = host.answer(waiting, 30)["result"]
            assert run_id(result) == id and result["structuredContent"]["result_kind"] == "clean", result


def test_cancelled_start_is_found_again():
    with Desk() as desk:
        desk.hold_git()
        with desk.host() as host:
            id = host.call("start_review_flow", flowd.START_ARGUMENTS)
            wait_for(lambda: os.path.exists(desk.socket) and rounds(desk), 20, "the round on disk")
            host.send("notifications/cancelled", {"requestId": id})
            host.answer(host.send("ping", id=True))
            waiting = host.call("get_review_flow_status", {"wait": True})
            desk.let_go()
            result = host.answer(waiting, 30)["result"]
            assert result["structuredContent"]["result_kind"] == "clean", result
            assert not host.has_answer(id)


def rounds(desk):
    """(number, status) of each round in the store."""
    try:
        store = sqlite3.connect("file:%s?mode=ro" % os.path.join(desk.state, "flowd.db"), uri=True, timeout=5)
        try:
            return store.execute("SELECT number, status FROM rounds ORDER BY number").fetchall()
        finally:
            store.close()
    except sqlite3.Error:
        return []


def test_server_killed_during_a_round():
    with Desk() as desk:
        desk.hold_git()
        with desk.host("--call-window", "1") as host:
            id = run_id(host.result("start_review_flow", flowd.START_ARGUMENTS, seconds=20))
            (daemon,) = desk.daemons()
            os.kill(daemon, signal.SIGKILL)
            wait_for(lambda: not desk.daemons(), 10, "the daemon's death")
            result = host.result("get_review_flow_status", {}, seconds=20)  # starts a new one
            assert run_id(result) == id and "participant_died" in text_of(result), result
            assert len(desk.daemons()) == 1
            desk.let_go()
            result = host.result("submit_review_round", {"flow_run_id": id, "context": "again"}, seconds=30)
            assert result["structuredContent"]["result_kind"] == "clean", result
            assert rounds(desk) == [(1, "unclear"), (2, "clean")], rounds(desk)


def test_driver_killed_during_a_round():
    with Desk() as desk:
        desk.hold_git()
        host = desk.host()
        try:
            host.call("start_review_flow", flowd.START_ARGUMENTS)
            wait_for(lambda: rounds(desk), 20, "the round on disk")
        finally:
            host.process.send_signal(signal.SIGKILL)
            host.kill()
        assert rounds(desk) == [(1, "running")]
        desk.let_go()
        wait_for(lambda: rounds(desk) == [(1, "clean")], 20, "the verdict")
        with desk.host() as host:
            result = host.result("get_review_flow_status", {}, seconds=20)
            assert result["structuredContent"]["result_kind"] == "clean", result


def test_a_bare_environment_joins_the_same_daemon():
    with Desk() as desk:
        home = os.path.join(desk.dir, "home")
        os.mkdir(home)
        full = dict(desk.env, HOME=home, XDG_STATE_HOME=os.path.join(desk.dir, "xdg"), EDITOR="vi")
        bare = {"HOME": home, "PATH": desk.env["PATH"]}
        for name in ("KCAP_STATE_DIR",):
            full.pop(name)
        try:
            for context, env in (("one", full), ("another", bare)):
                with Host("--plugin", "flows", env=env, cwd=desk.repo.dir) as host:
                    host.initialize()
                    start = dict(flowd.START_ARGUMENTS, context=context, new_run=True)
                    assert not host.result("start_review_flow", start, seconds=30).get("isError")
            store = sqlite3.connect(os.path.join(home, ".local", "state", "kcap", "flowd.db"))
            assert store.execute("SELECT count(*) FROM rounds").fetchone() == (2,)
            store.close()
            log = open(os.path.join(home, ".local", "state", "kcap", "flowd.log")).read()
            assert log.count(" serves unix://") == 1, log
            assert "xdg" not in os.listdir(desk.dir)
        finally:
            desk.end_daemons(os.path.join(home, ".local", "state", "kcap"))


def test_twenty_cold_starts_make_one_daemon():
    with Desk() as desk:
        results = []

        def start(number):
            with desk.host(session="session-%d" % number) as host:
                results.append(host.result("start_review_flow", flowd.START_ARGUMENTS, seconds=60))

        threads = [threading.Thread(target=start, args=(n,)) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(results) == 20 and not any(r.get("isError") for r in results), results
        assert len({run_id(r) for r in results}) == 20
        assert len(desk.daemons()) == 1
        log = open(os.path.join(desk.state, "flowd.log")).read()
        assert log.count(" serves unix://") == 1, log


def test_the_drivers_environment_goes_no_further():
    with Desk() as desk:
        desk.hold_git()
        with desk.host("--call-window", "1", SECRET_OF_THE_DRIVER="hunter2") as host:
            host.result("start_review_flow", flowd.START_ARGUMENTS, seconds=20)
            (daemon,) = desk.daemons()
            family = [pid for pid in os.listdir("/proc") if pid.isdigit() and parent(pid) == daemon]
            assert family
            for pid in [str(daemon)] + family:
                with open("/proc/%s/environ" % pid, "rb") as file:
                    assert b"hunter2" not in file.read(), pid


def parent(pid):
    try:
        return int(open("/proc/%s/stat" % pid).read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def test_no_server_and_no_daemon_is_explained():
    with Desk() as desk:
        with desk.host("server-url=http://127.0.0.1:%d" % closed_port()) as host:
            result = host.result("start_review_flow", flowd.START_ARGUMENTS, seconds=20)
            assert result["isError"] and "127.0.0.1" in text_of(result), result
        with desk.host(KCAP_URL="ftp://x") as host:
            result = host.result("start_review_flow", flowd.START_ARGUMENTS)
            assert result["isError"] and "KCAP_URL" in text_of(result), result
        assert not desk.daemons()


def closed_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


main(globals())
