# SPDX-License-Identifier: Apache-2.0
"""A real Codex and a real Claude Code, started as reviewer-launch composes it: the model is offered our result server
and no other, whatever is configured; and what would let another one in is refused or shown to leak."""
import clients
import mock_flow_server
from model_api import ModelApi
from harness import *

OURS = "mcp__kcap_flow_result_"
CANARY = """#!/usr/bin/env python3
import json, os, sys
open(sys.argv[1], "a").close()  # I was started
for line in sys.stdin:
    request = json.loads(line)
    if request.get("method") == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "canary", "version": "1"}}
    elif request.get("method") == "tools/list":
        result = {"tools": [{"name": "canary_tool", "inputSchema": {"type": "object"},
                             "annotations": {"readOnlyHint": True}}]}
    else:
        result = {}
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


class Desk:
    """A home, a repository, a flow server, and canaries that leave a file when they are started."""

    def __enter__(self):
        self.flow = mock_flow_server.MockServer(("127.0.0.1", 0), mock_flow_server.Scenario({"routes": [
            {"path": "/auth/config", "responses": [{"json": {"provider": "None"}}]},
            {"path": "/api/flows/reviewer/result", "responses": [{"json": {"status": "recorded"}}]}]}), None)
        threading_start(self.flow)
        self.url = "http://127.0.0.1:%d" % self.flow.server_address[1]
        self.dir = TempDir()
        self.home = self.dir.__enter__()
        self.codex_home = os.path.join(self.home, ".codex")
        self.repo = os.path.join(self.home, "repo")
        os.makedirs(self.codex_home)
        subprocess.run(["git", "init", "-q", self.repo], check=True, env=clean_env(self.home))
        self.canary = os.path.join(self.home, "canary.py")
        with open(self.canary, "w") as file:
            file.write(CANARY)
        os.chmod(self.canary, 0o755)
        self.api = ModelApi([[("submit_review_result", {"round_token": "r", "kind": "findings", "findings": "f"})], "done"])
        self.api.__enter__()
        self.env = clean_env(self.home, CODEX_HOME=self.codex_home, MOCK_KEY="x", ANTHROPIC_BASE_URL=self.api.url,
                             ANTHROPIC_API_KEY="x", DISABLE_AUTOUPDATER="1", ENABLE_TOOL_SEARCH="false",
                             CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", KCAP_STATE_DIR=os.path.join(self.home, "state"))
        self.env["PATH"] = clients.BIN + ":" + self.env["PATH"]
        self.config()
        return self

    def __exit__(self, *_):
        self.api.__exit__()
        self.flow.stop()
        self.flow.server_close()
        self.dir.__exit__()

    def put(self, name, text, mode="w"):
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, mode) as file:
            file.write(text)

    def entry(self, name, **more):
        """A [mcp_servers] table of a canary."""
        keys = dict(command=self.canary, args=[self.mark(name)], **more)
        return "[mcp_servers.%s]\n%s\n" % (json.dumps(name), "".join("%s = %s\n" % (k, json.dumps(v))
                                                                        for k, v in keys.items()))

    def mark(self, name):
        return os.path.join(self.home, "started-" + name.encode().hex())

    def started(self):
        return sorted(bytes.fromhex(name[8:]).decode() for name in os.listdir(self.home) if name.startswith("started-"))

    def config(self, more="", head=""):
        self.put(".codex/config.toml", 'model = "gpt-5"\nmodel_provider = "mock"\n%s[model_providers.mock]\nname = "mock"\n'
                 'base_url = "%s/v1"\nwire_api = "responses"\nenv_key = "MOCK_KEY"\n%s' % (head, self.api.url, more))

    def launch(self, *words, vendor="codex", cwd=None, command=HOST, **env):
        return run([command, "--plugin", "codex-setup", "--", "reviewer-launch", "--vendor", vendor, "--dir",
                    cwd or self.repo, "--url", self.url, "--agent-id", "agent-1", *words],
                   env=dict(self.env, **env), cwd=self.home, seconds=90)

    def plan(self, *words, **more):
        status, out, err = self.launch(*words, **more)
        assert status == 0, (status, out, err)
        return json.loads(out)

    def start(self, plan, argv=None):
        env = {k: v for k, v in self.env.items() if k not in plan["env_unset"]}
        return subprocess.run(argv or plan["argv"], env=dict(env, **plan["env"]), cwd=plan["dir"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=90 * SLOWER)

    def servers(self):
        """The MCP servers whose tools the model was offered."""
        return sorted({space for space, _ in self.api.offered if space and space.startswith("mcp__")} |
                      {name.rsplit("__", 1)[0] for _, name in self.api.offered if name and name.startswith("mcp__")})

    def reported(self):
        return [r["json"]["agent_id"] for r in self.flow.records(1) if r["path"].endswith("/reviewer/result")]


def threading_start(server):
    import threading
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()


def check_codex_alone(desk, plan):
    done = desk.start(plan)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    assert desk.servers() == [OURS + plan["server"].rsplit("-", 1)[1]], desk.api.offered
    assert sorted(name for space, name in desk.api.offered if space in desk.servers()) == \
        ["send_flow_message", "submit_review_result"], desk.api.offered
    assert desk.started() == [], desk.started()
    assert desk.reported() == ["agent-1"], desk.flow.records(1)


def test_codex_with_servers_of_the_user():
    clients.program("codex")
    with Desk() as desk:
        more = "".join(desk.entry(name) for name in ("alpha", "dotted.name", 'quo"te é', "kcap-flow-result"))
        more += desk.entry("must", required=True) + desk.entry("off", enabled=False)
        more += '[mcp_servers.web]\nurl = "http://127.0.0.1:9/x?key=SECRET"\n'
        desk.config(more)
        before = open(os.path.join(desk.codex_home, "config.toml")).read()
        plan = desk.plan("--model", "gpt-5", "--", "go")
        assert plan["verified"] == "codex mcp list" and "SECRET" not in json.dumps(plan), plan
        assert plan["env"] == {"KCAP_REVIEWER": "1"} and "KCAP_STATE_DIR" in plan["env_unset"], plan
        check_codex_alone(desk, plan)
        assert open(os.path.join(desk.codex_home, "config.toml")).read() == before


def run_exec(desk, *overrides):
    codex = clients.program("codex")
    words = [word for override in overrides for word in ("-c", override)]
    done = desk.start({"env": {}, "env_unset": [], "dir": desk.repo},
                      [codex, *words, "exec", "--json", "--skip-git-repo-check", "-s", "read-only", "--", "go"])
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])


def test_naive_and_reversed_compositions_leak():
    """If one of these ever holds, launch/codex.c can become simpler."""
    ours = 'mcp_servers.ours={command=%s,args=["--plugin","flow-result"],env={KCAP_URL="%s",KCAP_FLOW_AGENT_ID="a"}}'
    for overrides, want in (
            (("mcp_servers={}", ours), ["mcp__alpha", "mcp__ours"]),                      # clear, then add: not cleared
            ((ours, "mcp_servers={}"), ["mcp__alpha"]),                                   # reversed: ours is lost
            (('mcp_servers={"alpha"={enabled=false}}', ours), ["mcp__ours"]),             # disabled by name, then added
            ((ours, 'mcp_servers={"alpha"={enabled=false}}'), [])):                       # reversed: no way to report
        with Desk() as desk:
            desk.config(desk.entry("alpha"))
            run_exec(desk, *[o % (json.dumps(HOST), desk.url) if "%s" in o else o for o in overrides])
            assert desk.servers() == want, (overrides, desk.servers())
            assert desk.started() == (["alpha"] if "mcp__alpha" in want else []), (overrides, desk.started())


def check_claude_alone(desk, plan):
    done = desk.start(plan)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    events = [json.loads(line) for line in done.stdout.splitlines()]
    init = [e for e in events if e.get("subtype") == "init"][0]
    assert init["mcp_servers"] == [{"name": plan["server"], "status": "connected"}], init
    assert desk.servers() == ["mcp__kcap-flow-result"], desk.api.offered
    assert not {"Agent", "Task", "Workflow"} & {name for _, name in desk.api.offered}, desk.api.offered
    assert desk.started() == [], desk.started()
    assert desk.reported() == ["agent-1"], (desk.flow.records(1), desk.api.results)


def claude_servers(desk):
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


def test_claude_with_servers_everywhere():
    clients.program("claude")
    with Desk() as desk:
        claude_servers(desk)
        plan = desk.plan("--", "go", vendor="claude")
        assert plan["verified"] == "static", plan
        check_claude_alone(desk, plan)


main(globals())
