# SPDX-License-Identifier: Apache-2.0
"""A real Codex and a real Claude Code as kcap-flowd's reviewers: rounds, memory, clocks, the reminder."""
import json
import signal
import threading

from flowd_desk import Desk
from harness import *

CLEAN = [("submit", "clean"), "done"]


def check_rounds(vendor):
    with Desk(vendor, [[("submit", "findings", "one é"), "done"], CLEAN]) as desk:
        run = desk.run_id()
        first = desk.finished(run)
        assert (first["round_status"], first["round_result_text"]) == ("findings", "one é"), first
        assert first["reviewer_memory"] == "first" and first["applied_reviewer_vendor"] == vendor, first
        desk.flowd.submit(run)
        second = desk.finished(run)
        assert (second["round_status"], second["reviewer_memory"]) == ("clean", "kept"), second
        # the model was shown the first round again: the thread is the same
        bodies = [text for number, text in desk.api.bodies if number == 2]
        assert bodies and all("one \\u00e9" in text or "one é" in text or "one \\\\u00e9" in text for text in bodies)
        assert not desk.api.missing, (desk.api.missing, desk.api.offered)
        servers = {(space or name).replace("__submit_review_result", "").replace("__send_flow_message", "")
                   for space, name in desk.api.offered if "mcp__" in (space or name)}
        assert len(servers) == 1, desk.api.offered
        desk.flowd.close_run(run)


def check_servers_of_others(vendor):
    """Whatever servers the user and the repository have: the reviewer's model is offered our two tools, and theirs are not
    even started."""
    with Desk(vendor, [CLEAN]) as desk:
        desk.configure_others()
        ended = desk.result()
        assert ended["round_status"] == "clean", ended
        tools = sorted(name.rsplit("__", 1)[-1] for space, name in desk.api.offered if "mcp__" in (space or name))
        assert tools == ["send_flow_message", "submit_review_result"], desk.api.offered
        assert desk.started() == [], desk.started()


def check_spaced_activity(vendor):
    with Desk(vendor, [[("slow", 1, 6), *CLEAN]], idle_sec=3) as desk:
        ended = desk.result()
        assert ended["round_status"] == "clean" and ended["round_elapsed_ms"] >= 6000, ended


def check_silence(vendor):
    with Desk(vendor, [[("stall",)]], idle_sec=3) as desk:
        ended = desk.result()
        assert (ended["round_status"], ended["round_reason_code"]) == ("unclear", "idle_timeout"), ended
        assert 3000 <= ended["round_silence_ms"] <= 3500, ended


def check_ceiling(vendor):
    with Desk(vendor, [[("slow", 0.3, 1000)]], idle_sec=60, foreground_ceiling_sec=6) as desk:
        run = desk.run_id()
        began = time.monotonic()
        ended = desk.finished(run)
        assert (ended["round_status"], ended["round_reason_code"]) == ("unclear", "foreground_ceiling"), ended
        assert time.monotonic() - began <= 6 + 10, ended


def parent(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as stat:
            return int(stat.read().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def result_servers(root):
    """The pids of the result servers below the process root."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                words = file.read().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        above = int(pid)
        while above not in (0, 1, root):
            above = parent(above)
        if above == root and b"flow-result" in words and b"selftest" not in words and words[0].endswith(b"kcap-host"):
            found.append(int(pid))
    return found


def check_silent_tool_call(vendor):
    """The result server stands still while it is called, for longer than the idle clock."""
    with Desk(vendor, [[("gate", ("submit", "clean")), "done"]], idle_sec=2, idle_mcp_call_sec=30) as desk:
        run = desk.run_id()
        wait_for(lambda: desk.api.bodies, 30, "the model to be asked")
        held = wait_for(lambda: result_servers(desk.flowd.pid()), 30, "the result server")
        for pid in held:
            os.kill(pid, signal.SIGSTOP)
        desk.api.gate.set()
        threading.Event().wait(4)
        now = desk.flowd.status(run)
        assert now["round_status"] == "running", now
        for pid in held:
            os.kill(pid, signal.SIGCONT)
        ended = desk.finished(run)
        assert ended["round_status"] == "clean", ended


def check_endless_retry(vendor):
    with Desk(vendor, [[("fail",)]], idle_sec=4, hard_ceiling_sec=40) as desk:
        ended = desk.result()
        # it gives up by itself, or is given up; it does not go on for ever
        assert ended["round_status"] in ("unclear", "failed"), ended
        assert ended["round_reason_code"] in ("idle_timeout", "hard_ceiling", "failed"), ended


def check_unreachable_provider(vendor):
    """It tries again for ever, says so, and that is no life."""
    with Desk(vendor, [["ok"]], idle_sec=4) as desk:
        desk.api.server.shutdown()
        desk.api.server.server_close()
        ended = desk.result()
        assert (ended["round_status"], ended["round_reason_code"]) == ("unclear", "idle_timeout"), ended
        assert {"codex": "waiting for network", "claude": "the provider does not answer"}[vendor] in \
            ended["round_reason"], ended


def check_reminder(vendor):
    with Desk(vendor, [["all is well", "I said so"], ["all is well", ("submit", "clean"), "done"]]) as desk:
        run = desk.run_id()
        ended = desk.finished(run)
        assert (ended["round_status"], ended["round_reason_code"]) == ("failed", "no_verdict"), ended
        assert any("ended without a result" in text for _, text in desk.api.bodies)
        desk.flowd.submit(run)
        ended = desk.finished(run)
        assert (ended["round_status"], ended["reviewer_memory"]) == ("clean", "kept"), ended


def check_leak(vendor):
    """A server that the administrator forces in: refused before the model is asked anything."""
    server = {"command": "/bin/false"}
    etc = {"codex": {"codex/managed_config.toml": '[mcp_servers.forced]\ncommand = "/bin/false"\nenabled = true\n'},
           "claude": {"claude-code/managed-mcp.json": json.dumps({"mcpServers": {"forced": server}})}}
    with Desk(vendor, [CLEAN], etc=etc[vendor]) as desk:
        ended = desk.result()
        assert (ended["round_status"], ended["round_reason_code"]) == ("failed", "isolation_violation"), ended
        assert not desk.api.bodies, ended


def check_copy(vendor):
    """In a copy of the checkout, which is made anew for the second round, under a thread that stays."""
    with Desk(vendor, [[("submit", "findings", "one"), "done"], CLEAN]) as desk:
        desk.flowd.configure(flows={
            "copy": "participants: [{role: reviewer, vendor: %s, workspace: worktree}]" % vendor})
        desk.repo.write("a.c", "int a; /* not committed */\n")
        desk.repo.write(".mcp.json", json.dumps({"mcpServers": {"theirs": {"command": "/bin/false"}}}))
        run = desk.flowd.start(desk.repo.dir, kind="copy")["flow_run_id"]
        first = desk.finished(run)
        assert (first["round_result_text"], first["workspace_mode"]) == ("one", "worktree"), first
        desk.flowd.submit(run)
        second = desk.finished(run)
        assert (second["round_status"], second["reviewer_memory"]) == ("clean", "kept"), second
        assert all(os.path.join(desk.flowd.state, "work") in text for _, text in desk.api.bodies)
        desk.flowd.close_run(run)


def test_codex_exec():
    with Desk("codex-exec", [[("submit", "findings", "one"), "done"], CLEAN, ["all is well"]], idle_sec=1) as desk:
        run = desk.run_id()
        assert desk.finished(run)["round_result_text"] == "one"
        desk.flowd.submit(run)
        second = desk.finished(run)
        assert (second["round_status"], second["reviewer_memory"]) == ("clean", "none"), second
        desk.flowd.submit(run)
        third = desk.finished(run)
        assert (third["round_status"], third["round_reason_code"]) == ("failed", "no_verdict"), third


def test_codex_exec_servers_of_others():
    check_servers_of_others("codex-exec")


def test_codex_exec_has_ceilings_only():
    with Desk("codex-exec", [[("stall",)]], idle_sec=1, hard_ceiling_sec=5) as desk:
        ended = desk.result()
        assert (ended["round_status"], ended["round_reason_code"]) == ("unclear", "hard_ceiling"), ended


for vendor in ("codex", "claude"):
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            globals()["test_%s_%s" % (vendor, name[len("check_"):])] = lambda check=check, vendor=vendor: check(vendor)

main(globals())
