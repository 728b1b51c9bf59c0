# SPDX-License-Identifier: Apache-2.0
"""A real Claude Code, started as reviewer-launch composes it: it has our result server and no other; and each setting that
is refused beforehand would have taken it away."""
import clients
from launch_desk import Desk, check_flows_are_refused, check_look_and_no_write
from harness import *

HOST_PROGRAM = os.path.join(paths.BUILDDIR, "stage", "bin", "kcap-host")


def check_alone(desk, plan):
    done = desk.start(plan)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    events = [json.loads(line) for line in done.stdout.splitlines()]
    init = [e for e in events if e.get("subtype") == "init"][0]
    assert init["mcp_servers"] == [{"name": plan["server"], "status": "connected"}], init
    assert desk.servers() == ["mcp__kcap-flow-result"], desk.api.offered
    assert desk.started() == [] and desk.starts_agents() == [], (desk.started(), desk.api.offered)
    assert desk.reported() == ["agent-1"], (desk.flow.records(1), desk.api.results)


def put_servers(desk):
    """Servers of the user, of this project in the user's file, and of the repository; hooks of the repository."""
    def server(name):
        return {name: {"command": desk.canary, "args": [desk.mark(name)]}}
    desk.put(".claude.json", json.dumps({"mcpServers": server("user"), "projects": {desk.repo: {
        "mcpServers": server("local"), "hasTrustDialogAccepted": True}}}))
    desk.put("repo/.mcp.json", json.dumps({"mcpServers": server("repository")}))
    desk.put("repo/.claude/settings.json", json.dumps({
        "enableAllProjectMcpServers": True, "permissions": {"deny": ["mcp__kcap-flow-result"]},
        "deniedMcpServers": [{"serverName": "kcap-flow-result"}], "hooks": {"SessionStart": [{"hooks": [
            {"type": "command", "command": "touch " + desk.mark("hook")}]}]}}))


def test_with_servers_everywhere():
    clients.program("claude")
    with Desk() as desk:
        put_servers(desk)
        plan = desk.plan("--", "go", vendor="claude")
        assert plan["verified"] == "static", plan
        check_alone(desk, plan)


def test_with_a_plugin_and_a_subagent_of_its_own():
    clients.program("claude")
    with Desk() as desk:
        desk.put("plugin/.claude-plugin/plugin.json", json.dumps({"name": "evil", "version": "1.0.0", "mcpServers": {
            "plug": {"command": desk.canary, "args": [desk.mark("plugin")]}}}))
        desk.put("plugin/.claude-plugin/marketplace.json", json.dumps({"name": "debug", "owner": {"name": "x"}, "plugins": [
            {"name": "evil", "source": "./"}]}))
        for words in (("marketplace", "add", os.path.join(desk.home, "plugin")), ("install", "evil@debug")):
            subprocess.run([clients.program("claude"), "plugin", *words], check=True, env=desk.env, cwd=desk.home,
                           capture_output=True, timeout=90)
        desk.put(".claude/agents/helper.md", "---\nname: helper\ndescription: helps\nmcpServers:\n  - agents:\n"
                 "      command: %s\n      args: [%s]\n---\nHelp.\n" % (desk.canary, desk.mark("agent")))
        assert any("plug" in name for name in as_the_user(desk)), desk.api.offered
        check_alone(desk, desk.plan("--", "go", vendor="claude"))


def as_the_user(desk):
    """What the model is offered without our composition: shows that a source is live at all."""
    done = desk.start({"env": {}, "env_unset": [], "dir": desk.repo},
                      [clients.program("claude"), "-p", "--output-format", "stream-json", "--verbose", "--", "go"])
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    found, desk.api.offered = desk.servers(), []
    for name in desk.started():
        os.remove(desk.mark(name))
    return found


def test_naive_compositions_leak():
    """Without the strict flag, and without the choice of settings."""
    clients.program("claude")
    with Desk() as desk:
        put_servers(desk)
        argv = desk.plan("--", "go", vendor="claude")["argv"]
        naive = [word for word in argv if word != "--strict-mcp-config"]
        desk.start({"env": {}, "env_unset": [], "dir": desk.repo}, naive)
        assert set(desk.servers()) > {"mcp__kcap-flow-result"} and "user" in desk.started(), (desk.servers(), desk.started())
        at = argv.index("--setting-sources")
        os.remove(desk.mark("user"))
        desk.start({"env": {}, "env_unset": [], "dir": desk.repo}, argv[:at] + argv[at + 2:])
        assert "hook" in desk.started() and desk.servers() != ["mcp__kcap-flow-result"], (desk.servers(), desk.started())


def test_settings_that_take_our_server_away():
    """Each is refused; and started all the same, it would have had no way to report: the check is needed."""
    clients.program("claude")
    denied = [{"serverName": "kcap-flow-result"}]
    command = [{"serverCommand": [HOST_PROGRAM, "--plugin", "flow-result"]}]
    rule = {"permissions": {"deny": ["mcp__kcap-flow-result__submit_review_result"]}}
    for place, settings, part in (
            ("user", {"deniedMcpServers": denied}, "deniedMcpServers names"),
            ("user", {"deniedMcpServers": command}, "deniedMcpServers names"),
            ("user", {"allowedMcpServers": []}, "allowedMcpServers lacks"),
            ("user", {"allowedMcpServers": denied + [{"serverCommand": ["x"]}]}, "allowedMcpServers lacks"),
            ("user", rule, "permissions.deny has a rule"),
            ("user", {"permissions": {"ask": ["mcp__kcap-flow-result"]}}, "permissions.ask has a rule"),
            ("user", {"permissions": {"deny": ["mcp__*"]}}, "permissions.deny has a rule"),
            ("managed", {"deniedMcpServers": denied}, "/etc/claude-code/managed-settings.json: deniedMcpServers"),
            ("managed", rule, "/etc/claude-code/managed-settings.json: permissions.deny"),
            ("part", {"allowedMcpServers": []}, "/etc/claude-code/managed-settings.d/a.json: allowedMcpServers"),
            ("servers", {"mcpServers": {}}, "/etc/claude-code/managed-mcp.json")):
        with Desk() as desk:
            plan = desk.plan("--", "go", vendor="claude")
            if place != "user":
                desk.etc()
            desk.put({"user": ".claude/settings.json", "managed": "etc-upper/claude-code/managed-settings.json",
                      "part": "etc-upper/claude-code/managed-settings.d/a.json",
                      "servers": "etc-upper/claude-code/managed-mcp.json"}[place], json.dumps(settings))
            status, out, err = desk.launch("--", "go", vendor="claude")
            assert status == 5 and out == "" and part in err, (settings, status, err)
            desk.start(plan)
            assert desk.reported() == [], (place, settings, "is refused without need")
    with Desk() as desk:  # and what allows us is not refused
        desk.put(".claude/settings.json", json.dumps({"allowedMcpServers": command, "allowManagedPermissionRulesOnly": True, "permissions": {"deny": ["Bash(rm *)"]}}))
        check_alone(desk, desk.plan("--", "go", vendor="claude"))


def test_in_conversation():
    """Both ways stream-json: the way kcap-flowd talks to it."""
    clients.program("claude")
    with Desk() as desk:
        plan = desk.plan("--mode", "app-server", vendor="claude")
        env = {k: v for k, v in desk.env.items() if k not in plan["env_unset"]}
        with subprocess.Popen(plan["argv"], env=dict(env, **plan["env"]), cwd=plan["dir"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            message = {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "go"}]}}
            out, _ = process.communicate(json.dumps(message) + "\n", timeout=90 * SLOWER)
        init = [e for e in map(json.loads, out.splitlines()) if e.get("subtype") == "init"]
        assert init[0]["mcp_servers"] == [{"name": "kcap-flow-result", "status": "connected"}], init
        assert desk.reported() == ["agent-1"] and desk.servers() == ["mcp__kcap-flow-result"], desk.api.offered


def test_it_can_look_and_cannot_write():
    check_look_and_no_write("claude", ("Bash", {"command": "git status --short"}), ("Bash", {"command": "touch written"}))


def test_below_it_no_flow_can_be_started():
    check_flows_are_refused("claude", lambda command: ("Bash", {"command": command}))


main(globals())
