# SPDX-License-Identifier: Apache-2.0
"""Real agents that drive reviews, on a scripted model, with an installed kcap-host and kcap-flowd: whatever they do to a
call, the review is found again and its result is read."""
from driver_desk import *
from harness import *
from installed import build_hello

LOST = "timed out"


def the_only_run(desk):
    flows = {flow for flow, _, _ in desk.rounds()}
    assert len(flows) == 1, desk.rounds()
    return flows.pop()


def last_result(desk):
    assert not desk.api.missing, (desk.api.missing, desk.api.offered)
    return desk.api.results[-1]


def check_window_under_the_limit(client, **how):
    """A review far longer than the limit: every call ends by itself, normally, with the id; the last one has the result."""
    with DriverDesk(client, follow()) as desk:
        agent = desk.start(**how)
        desk.git.running()
        desk.api.wait_for_rounds(3, 60)
        desk.let_go()
        agent.end()
        run = the_only_run(desk)
        assert "result_kind: clean" in last_result(desk), desk.api.results
        assert len(desk.api.results) >= 4, desk.api.results
        for result in desk.api.results:
            assert run in result and LOST not in result, result
        for result in desk.api.results[:-1]:
            assert STILL in result, result


def check_call_cut_off(client):
    """The agent's own limit ends the call, so its model never saw an id. The call that is advised needs none."""
    with DriverDesk(client, follow()) as desk:
        agent = desk.start(window_sec=200, limit_sec=3)
        desk.git.running()
        desk.api.wait_for_rounds(1, 60)
        assert LOST in desk.api.results[0] and the_only_run(desk) not in desk.api.results[0], desk.api.results
        desk.let_go()
        agent.end()
        assert "result_kind: clean" in last_result(desk) and the_only_run(desk) in last_result(desk), desk.api.results


def check_killed(client, number):
    """The agent goes away in the middle of the call, its server with it; the same session goes on later."""
    with DriverDesk(client, [[START], "done"]) as desk:
        agent = desk.start(window_sec=200)
        desk.git.running()
        session = desk.client.session(agent)
        wait_for(agent.hosts, 10, "the host")
        wait_for(lambda: desk.client.can_resume(session), 30, "the session to be kept")
        agent.kill(number)
        wait_for(lambda: not agent.hosts(), 5, "the host to leave")
        assert [status for _, _, status in desk.rounds()] == ["running"], desk.rounds()
        desk.let_go()
        desk.again(lambda _, results: "done" if results and "result_kind: " in results[-1] else [WAIT])
        desk.run(session).end()
        assert "result_kind: clean" in last_result(desk) and the_only_run(desk) in last_result(desk), desk.api.results


def check_compacted(client):
    """A new session knows no run of its own; told the old session's id, it finds the old one's."""
    with DriverDesk(client, [[START], "done"]) as desk:
        agent = desk.start(window_sec=2)
        desk.git.running()
        session = desk.client.session(agent)
        agent.end()
        desk.let_go()
        desk.again([[WAIT], [(WAIT[0], {"wait": True, "session_id": session})], "done"])
        desk.run().end()
        first, second = desk.api.results
        assert "status: none" in first and the_only_run(desk) not in first, first
        assert "result_kind: clean" in second and the_only_run(desk) in second, second


def check_quit(client, number):
    """The agent ends while a call blocks: nothing of ours is left behind but the review, which goes on."""
    with DriverDesk(client, [[START], "done"]) as desk:
        agent = desk.start(window_sec=200)
        desk.git.running()
        wait_for(agent.hosts, 10, "the host")
        agent.kill(number)
        wait_for(lambda: not agent.family(), 3, "all it started to end")
        assert [status for _, _, status in desk.rounds()] == ["running"], desk.rounds()
        desk.let_go()
        wait_for(lambda: [status for _, _, status in desk.rounds()] == ["clean"], 20, "the verdict")


def check_third_partys_plugin(client):
    """A plugin that was built against the installed headers, from the user's own directory."""
    with DriverDesk(client, [[("hello", {"name": "Ada"})], "done"]) as desk:
        build_hello(desk.installed, desk.dir)
        desk.client.register([desk.host, "--plugin", "hello"], name="hello")
        desk.run().end()
        assert "Hello, Ada!" in last_result(desk), desk.api.results


def test_codex_window_under_the_limit():
    check_window_under_the_limit(Codex, window_sec=2, limit_sec=4)


def test_codex_call_cut_off():
    check_call_cut_off(Codex)


def test_codex_killed():
    check_killed(Codex, signal.SIGKILL)


def test_codex_interrupted():
    check_killed(Codex, signal.SIGINT)


def test_codex_compacted():
    check_compacted(Codex)


def test_codex_quits():
    check_quit(Codex, signal.SIGTERM)


def test_codex_as_codex_setup_registers_it():
    """What was there stays, byte for byte; Codex lists the server with its limit, and calls it."""
    with DriverDesk(Codex, follow()) as desk:
        config = os.path.join(desk.client.home, "config.toml")
        desk.client.register(None)
        with open(config, "a") as file:
            file.write('# mine\n[mcp_servers."other one"]   # spaces matter\ncommand = "true"\nenabled = false\n')
        with open(config) as file:
            before = file.read()
        status, out, err = run([desk.host, "--plugin", "codex-setup", "--", "install"],
                               env=dict(desk.client.env, PATH=clients.BIN + ":" + desk.env["PATH"]))
        assert status == 0, (status, out, err)
        with open(config) as file:
            after = file.read()
        assert before in after and after.replace(before, "").strip().startswith("[mcp_servers.kcap-flows]"), after
        status, out, err = run([clients.program("codex"), "mcp", "get", "kcap-flows", "--json"], env=desk.client.env, seconds=30)
        entry = json.loads(out)
        assert entry["tool_timeout_sec"] == 600 and entry["transport"]["command"] == desk.host, entry
        # what a user answers when he is asked for the first time
        agent = desk.client.start(None, "-c", 'mcp_servers.kcap-flows.default_tools_approval_mode="approve"')
        desk.agents.append(agent)
        desk.git.running()
        desk.let_go()
        agent.end()
        assert "result_kind: clean" in last_result(desk), desk.api.results


def test_codex_third_partys_plugin():
    check_third_partys_plugin(Codex)


def test_claude_window_under_the_limit():
    check_window_under_the_limit(Claude, window_sec=2, limit_sec=4)


def test_claude_call_cut_off():
    check_call_cut_off(Claude)


def test_claude_killed():
    check_killed(Claude, signal.SIGKILL)


def test_claude_interrupted():
    check_killed(Claude, signal.SIGINT)


def test_claude_compacted():
    check_compacted(Claude)


def test_claude_quits():
    check_quit(Claude, signal.SIGTERM)


def test_claude_third_partys_plugin():
    check_third_partys_plugin(Claude)


def test_new_claude_window_under_the_limit():
    check_window_under_the_limit(NewClaude, window_sec=2, limit_sec=4)


def test_new_claude_call_cut_off():
    check_call_cut_off(NewClaude)


def test_new_claude_killed():
    check_killed(NewClaude, signal.SIGKILL)


def test_new_claude_compacted():
    check_compacted(NewClaude)


def test_new_claude_quits():
    check_quit(NewClaude, signal.SIGTERM)


def test_new_claude_third_partys_plugin():
    check_third_partys_plugin(NewClaude)


def test_new_claude_knows_the_id_before_a_call_is_moved_to_the_background():
    """It moves calls after 120 s (here 4); ours has answered by then, so the id is in its context."""
    with DriverDesk(NewClaude, follow()) as desk:
        desk.client.env.update(CLAUDE_AUTO_BACKGROUND_TASKS="1", CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS="4000")
        agent = desk.start(window_sec=2)
        desk.git.running()
        desk.api.wait_for_rounds(2, 60)
        desk.let_go()
        agent.end()
        assert the_only_run(desk) in desk.api.results[0] and "background" not in "".join(desk.api.results), desk.api.results
        assert "result_kind: clean" in last_result(desk), desk.api.results


def test_new_claude_finds_a_run_whose_call_was_moved_to_the_background():
    """Where the window is too long, its model knows no id either: the advised call needs none."""
    with DriverDesk(NewClaude, follow()) as desk:
        desk.client.env.update(CLAUDE_AUTO_BACKGROUND_TASKS="1", CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS="3000")
        agent = desk.start(window_sec=200)
        desk.git.running()
        desk.api.wait_for_rounds(1, 60)
        assert "background" in desk.api.results[0] and the_only_run(desk) not in desk.api.results[0], desk.api.results
        desk.let_go()
        agent.end()
        assert "result_kind: clean" in last_result(desk) and the_only_run(desk) in last_result(desk), desk.api.results


def test_gemini_window_under_the_limit():
    check_window_under_the_limit(Gemini, window_sec=2, limit_sec=4)


def test_gemini_call_cut_off():
    check_call_cut_off(Gemini)


def test_gemini_quits():
    check_quit(Gemini, signal.SIGKILL)  # it does not end by SIGTERM while a call blocks


def test_gemini_third_partys_plugin():
    check_third_partys_plugin(Gemini)


def test_opencode_window_under_the_limit():
    check_window_under_the_limit(OpenCode, window_sec=2, limit_sec=4)


def test_opencode_call_cut_off():
    check_call_cut_off(OpenCode)


def test_opencode_quits():
    check_quit(OpenCode, signal.SIGTERM)


def test_opencode_third_partys_plugin():
    check_third_partys_plugin(OpenCode)


def test_copilot_window_under_the_limit():
    check_window_under_the_limit(Copilot, window_sec=2, limit_sec=4)


def test_copilot_call_cut_off():
    check_call_cut_off(Copilot)


def test_copilot_quits():
    check_quit(Copilot, signal.SIGTERM)


def test_copilot_third_partys_plugin():
    check_third_partys_plugin(Copilot)


if __name__ == "__main__":
    main(globals())
