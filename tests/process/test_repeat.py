# SPDX-License-Identifier: Apache-2.0
"""The very same start again, through real processes: whoever gives up and how, it is one review."""
import sqlite3

import flowd
from harness import *

if not paths.HAVE_FLOWD:
    print("skipped: built with --disable-flowd")
    sys.exit(77)


class Desk(flowd.Place):
    """A home, a repository with one tidy commit, a daemon, and, if wanted, a git that waits until it is let go."""

    def __init__(self, slow=True):
        super().__init__()
        self.slow = slow

    def __enter__(self):
        self.repo = flowd.Repo(self)
        self.repo.write("README.md", "# Tidy\n")
        self.repo.commit("first")
        self.git = flowd.SlowGit(self) if self.slow else None
        self.daemon = flowd.Flowd(place=self, env={"PATH": self.git.path} if self.git else None)
        return self

    def __exit__(self, *_):
        if self.git:
            self.git.close()
        self.daemon.end()

    def host(self, *args):
        """A client that has no session id."""
        host = Host("--plugin", "flows", *args, env=self.env, cwd=self.repo.dir)
        host.initialize("qwen-code")
        return host

    def let_go(self):
        os.write(self.git.gate_fd, b"go\n" * 50)

    def rounds(self):
        store = sqlite3.connect("file:%s?mode=ro" % os.path.join(self.state, "flowd.db"), uri=True, timeout=5)
        try:
            return store.execute("SELECT number, status FROM rounds").fetchall()
        finally:
            store.close()


def has_run(desk):
    """Whether the id of a run is in the journal."""
    for name in os.listdir(os.path.join(desk.state, "journal")):
        with open(os.path.join(desk.state, "journal", name)) as file:
            if '"event":"run"' in file.read():
                return True
    return False


def test_four_processes_killed_one_after_another():
    with Desk() as desk:
        with desk.host() as host:  # killed in the middle of the call
            host.call("start_review_flow", flowd.START_ARGUMENTS)
            wait_for(lambda: has_run(desk), 20, "the run in the journal")
        ids = set()
        for _ in range(3):  # each with all the time it needs to do harm
            with desk.host("--call-window", "1") as host:
                result = host.result("start_review_flow", flowd.START_ARGUMENTS, seconds=20)
                assert "Flow still running" in text_of(result), result
                ids.add(result["structuredContent"]["flow_run_id"])
        assert len(ids) == 1, ids
        assert desk.rounds() == [(1, "running")], desk.rounds()
        with desk.host() as host:
            id = host.call("start_review_flow", flowd.START_ARGUMENTS)
            desk.let_go()
            result = host.answer(id, 30)["result"]
            assert result["structuredContent"]["result_kind"] == "clean", result
            assert "joined: the very same start" in text_of(result), result
        assert desk.rounds() == [(1, "clean")], desk.rounds()


def test_four_processes_at_once():
    with Desk() as desk:
        hosts = [desk.host() for _ in range(4)]
        results = []
        try:
            ids = [host.call("start_review_flow", flowd.START_ARGUMENTS) for host in hosts]
            desk.git.running()
            desk.let_go()
            results = [host.answer(id, 30)["result"] for host, id in zip(hosts, ids)]
        finally:
            for host in hosts:
                host.kill()
        assert len({result["structuredContent"]["flow_run_id"] for result in results}) == 1, results
        assert sum("joined: " in text_of(result) for result in results) == 3, results
        assert desk.rounds() == [(1, "clean")], desk.rounds()


def test_a_cancel_crosses_the_answer():
    """The client gives up when its answer is ready, and repeats the call: the same review, with its result."""
    with Desk(slow=False) as desk, desk.host() as host:
        for n in range(1, 13):
            args = dict(flowd.START_ARGUMENTS, context="please review %d" % n)
            id = host.call("start_review_flow", args)
            wait_for(lambda: [status for _, status in desk.rounds()].count("clean") == n, 20, "the verdict")
            host.send("notifications/cancelled", {"requestId": id})
            result = host.answer(host.call("start_review_flow", args), 30)["result"]
            assert result["structuredContent"]["result_kind"] == "clean", result
            assert "joined: " in text_of(result) and len(desk.rounds()) == n, (result, desk.rounds())
            host.result("close_review_flow", {"flow_run_id": result["structuredContent"]["flow_run_id"]})


main(globals())
