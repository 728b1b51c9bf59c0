# SPDX-License-Identifier: Apache-2.0
"""The fault table: whatever breaks, a reviewer hears one of three things, delivered, not delivered or unknown, and
it is true; and after a restart the result is there once."""
import resource
import threading

from result_server import FAULTS, ResultServer
from harness import *

LEADS = {"delivered": "Recorded.", "not_delivered": "Not delivered: ", "unknown": "Outcome unknown: "}
FINDINGS = "x" * 2000000  # more than the socket's buffers, so that "during the body" is
WINDOW_SEC = min(8 * SLOWER, 25)  # time for a second attempt, and none after one that hangs for 30 s


class Cell:
    """One reviewer, one server, one state directory."""

    def __init__(self, state_kind="well"):
        self.dir = TempDir()
        self.home = self.dir.__enter__()
        self.state = os.path.join(self.home, "state")
        self.server = ResultServer()
        self.env = clean_env(self.home, KCAP_FLOW_AGENT_ID="agent-1", KCAP_STATE_DIR=self.state,
                             KCAP_FLOW_CAPABILITY_URL=self.server.url, KCAP_CALL_WINDOW_SEC="%g" % WINDOW_SEC)

    def host(self):
        host = Host("--plugin", "flow-result", env=self.env)
        host.initialize()
        return host

    def kept(self):
        spool = os.path.join(self.state, "spool")
        return [f for f in os.listdir(spool) if f.endswith(".json")] if os.path.isdir(spool) else []

    def submit(self, host, token="r1", text=FINDINGS):
        result = host.result("submit_review_result", {"round_token": token, "kind": "findings", "findings": text},
                             seconds=30)
        return result["structuredContent"]["outcome"], text_of(result), bool(result.get("isError"))

    def close(self):
        self.server.stop()
        self.dir.__exit__(None, None, None)


def check(outcome, text, is_error, cell, name):
    """Exactly one of the three, and true."""
    recorded = len(cell.server.recorded)
    assert is_error == (outcome != "delivered"), (name, outcome, text)
    assert text.startswith(LEADS[outcome]), (name, outcome, text)
    assert sum(text.startswith(lead) for lead in LEADS.values()) == 1, (name, text)
    assert outcome != "delivered" or recorded == 1, (name, "said to be delivered, is not", text)
    assert outcome != "not_delivered" or recorded == 0, (name, "said to be not delivered, is there", text)


def run_cell(name, plan, wanted, disk, restart):
    cell = Cell()
    try:
        cell.server.plan = list(plan)
        if disk == "unwritable":
            cell.env["KCAP_STATE_DIR"] = "/dev/null/state"
        host = cell.host()
        if disk == "full":
            resource.prlimit(host.process.pid, resource.RLIMIT_FSIZE, (1000, 1000))
        with host:
            outcome, text, is_error = cell.submit(host)
            check(outcome, text, is_error, cell, name)
            assert outcome == wanted, (name, outcome, text)
            if disk != "well":
                host.error_line("cannot be kept on disk")
            warned = [e for e in host.errors if "cannot be kept on disk" in e]
            assert len(warned) == (disk != "well"), (name, host.errors)
        if not restart:
            return
        assert len(cell.kept()) == (outcome != "delivered" and "probably recorded" not in text), (name, cell.kept())
        cell.server.plan = ["well"]
        with cell.host():
            wait_for(lambda: not cell.kept(), 15, "%s: the kept result's delivery" % name)
        assert [r["text"] for r in cell.server.recorded] == [FINDINGS], name
    finally:
        cell.close()


def in_parallel(cells):
    """Each cell waits for its retries, so they run beside each other."""
    failures, gate = [], threading.Semaphore(20)

    def one(cell):
        with gate:
            try:
                run_cell(*cell)
            except BaseException as error:
                failures.append("%s: %r" % (cell[0], error))
    threads = [threading.Thread(target=one, args=(cell,)) for cell in cells]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, "\n".join(failures)


def once(fault):
    """What can be known when the second attempt meets a healthy server."""
    _, records, answers = FAULTS[fault]
    if fault == "well":
        return "delivered"
    return "unknown" if records or answers == "silence" else "delivered"  # silence: no second attempt in time


def test_each_fault_once_and_for_good():
    faults = [fault for fault in FAULTS if fault != "well"]
    in_parallel([("once: " + f, [f, "well"], once(f), "well", True) for f in faults] +
                [("for good: " + f, [f], "unknown", "well", True) for f in faults])


def test_each_fault_without_a_disk():
    in_parallel([("%s disk, %s" % (disk, fault), [fault, "well"], once(fault), disk, False)
                 for disk in ("full", "unwritable") for fault in FAULTS])


def test_no_server_at_all():
    cell = Cell()
    try:
        with cell.host() as host:
            cell.server.stop()
            outcome, text, is_error = cell.submit(host)
            check(outcome, text, is_error, cell, "no server")
            assert outcome == "not_delivered" and "Call submit_review_result again" in text, text
        assert len(cell.kept()) == 1
        # back again, on the same address
        again = ResultServer()
        cell.env["KCAP_FLOW_CAPABILITY_URL"] = again.url
        with again, cell.host():
            wait_for(lambda: not cell.kept(), 15, "the kept result's delivery")
            assert len(again.recorded) == 1
    finally:
        cell.dir.__exit__(None, None, None)


def test_the_reviewer_is_killed_between_call_and_answer():
    for recorded in (False, True):
        cell = Cell()
        try:
            cell.server.plan = ["recorded, never answered" if recorded else "never answered"]
            with cell.host() as host:
                host.call("submit_review_result", {"round_token": "r1", "kind": "findings", "findings": FINDINGS})
                wait_for(lambda: cell.server.silent, 10, "the request")
                host.process.kill()
            assert len(cell.kept()) == 1
            cell.server.plan = ["well"]
            with cell.host() as host:
                # asked again at once: the kept one goes first, and what is said of the second is true
                outcome, text, is_error = cell.submit(host, text="something else")
                check(outcome, text, is_error, cell, "killed")
                assert outcome == "unknown" and "Do not submit it again" in text, text
            assert [r["text"] for r in cell.server.recorded] == [FINDINGS] and not cell.kept()
        finally:
            cell.close()


def test_a_damaged_spool_and_a_clock_that_stepped():
    for what in ("empty", "torn", "another's", "ten years ahead", "ten years ago"):
        cell = Cell()
        cell.env["KCAP_CALL_WINDOW_SEC"] = "2"  # one attempt
        try:
            cell.server.plan = ["killed before the body"]
            with cell.host() as host:
                outcome, text, is_error = cell.submit(host, text="short")
                check(outcome, text, is_error, cell, what)
            path = os.path.join(cell.state, "spool", cell.kept()[0])
            with open(path) as file:
                content = file.read()
            step = {"ten years ahead": 10, "ten years ago": -10}.get(what)
            if step:
                moment = time.time() + step * 365 * 86400
                os.utime(path, (moment, moment))
            else:
                with open(path, "w") as file:
                    file.write({"empty": "", "torn": content[:40]}.get(what, content.replace("agent-1", "agent-2")))
            cell.server.plan = ["well"]
            with cell.host() as host:
                wait_for(lambda: not cell.kept(), 15, "%s: an end" % what)
                if step:
                    assert len(cell.server.recorded) == 1, what
                else:
                    host.error_line("is damaged")
                    assert cell.server.requests == 1 and not cell.server.recorded, (what, cell.server.requests)
                    outcome, text, is_error = cell.submit(host, text="short")
                    check(outcome, text, is_error, cell, what)
                    assert outcome == "delivered", (what, text)
        finally:
            cell.close()


main(globals())
