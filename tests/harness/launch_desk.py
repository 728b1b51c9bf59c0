# SPDX-License-Identifier: Apache-2.0
"""Where real agents are started as reviewer-launch composes it: a home, a repository, a flow server, a scripted model, and
servers that leave a file when they are started."""
import threading

import clients
import mock_flow_server
from model_api import ModelApi
from harness import *

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

REPORT = ("submit_review_result", {"round_token": "r", "kind": "findings", "findings": "f"})


def toml(value):
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s = %s" % (json.dumps(k), toml(v)) for k, v in value.items())
    return json.dumps(value)


class Desk:
    """A home, a repository, a flow server, and canaries that leave a file when they are started."""

    def __enter__(self):
        self.flow = mock_flow_server.MockServer(("127.0.0.1", 0), mock_flow_server.Scenario({"routes": [
            {"path": "/auth/config", "responses": [{"json": {"provider": "None"}}]},
            {"path": "/api/flows/reviewer/result", "responses": [{"json": {"status": "recorded"}}]}]}), None)
        threading.Thread(target=self.flow.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
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
        self.api = ModelApi([[REPORT], "done"])
        self.api.__enter__()
        self.env = clean_env(self.home, CODEX_HOME=self.codex_home, MOCK_KEY="x", ANTHROPIC_BASE_URL=self.api.url,
                             ANTHROPIC_API_KEY="x", DISABLE_AUTOUPDATER="1", ENABLE_TOOL_SEARCH="false",
                             CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", KCAP_STATE_DIR=os.path.join(self.home, "state"))
        self.env["PATH"] = clients.BIN + ":" + self.env["PATH"]
        self.prefix = []
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
        return "[mcp_servers.%s]\n%s\n" % (json.dumps(name), "".join("%s = %s\n" % (k, toml(v))
                                                                        for k, v in keys.items()))

    def mark(self, name):
        return os.path.join(self.home, "started-" + name.encode().hex())

    def started(self):
        return sorted(bytes.fromhex(name[8:]).decode() for name in os.listdir(self.home) if name.startswith("started-"))

    def config(self, more="", head=""):
        self.put(".codex/config.toml", 'model = "gpt-5"\nmodel_provider = "mock"\n%s[model_providers.mock]\nname = "mock"\n'
                 'base_url = "%s/v1"\nwire_api = "responses"\nenv_key = "MOCK_KEY"\n%s' % (head, self.api.url, more))

    def etc(self, **files):
        """From now on the programs see an /etc with these files (a_b for a/b), in a mount namespace of their own."""
        upper, work = os.path.join(self.home, "etc-upper"), os.path.join(self.home, "etc-work")
        os.makedirs(work, exist_ok=True)
        os.makedirs(upper, exist_ok=True)
        for name, text in files.items():
            self.put("etc-upper/" + name.replace("__", "."), text)
        self.prefix = ["unshare", "-m", "sh", "-c", 'mount -t overlay overlay -o "$1" /etc && shift && exec "$@"', "sh",
                       "lowerdir=/etc,upperdir=%s,workdir=%s" % (upper, work)]
        try:
            done = subprocess.run(self.prefix + ["true"], capture_output=True, text=True)
        except OSError as error:
            raise Skip("no unshare here: %s" % error)
        if done.returncode != 0:
            raise Skip("no /etc of one's own here: " + done.stderr.strip())

    def plugin(self, name, place="config.toml"):
        """An installed and enabled Codex plugin that brings the canary of that name."""
        self.put("market/.agents/plugins/marketplace.json", json.dumps({"name": "debug", "plugins": [
            {"name": "evil", "source": {"source": "local", "path": "./plugins/evil"},
             "policy": {"installation": "AVAILABLE"}}]}))
        self.put("market/plugins/evil/.codex-plugin/plugin.json", json.dumps(
            {"name": "evil", "version": "1.0.0", "description": "x", "mcpServers": "./.mcp.json"}))
        self.put("market/plugins/evil/.mcp.json", json.dumps(
            {"mcpServers": {name: {"command": self.canary, "args": [self.mark(name)]}}}))
        for words in (("marketplace", "add", os.path.join(self.home, "market")), ("add", "evil@debug")):
            subprocess.run([clients.program("codex"), "plugin", *words], check=True, env=self.env, cwd=self.home,
                           capture_output=True)

    def trust(self, path, level="trusted"):
        with open(os.path.join(self.codex_home, "config.toml"), "a") as file:
            file.write('[projects.%s]\ntrust_level = "%s"\n' % (json.dumps(path), level))

    def codex(self, *words, cwd=None):
        """A codex as the user would start it: what is offered then shows that a source is live at all."""
        done = self.start({"env": {}, "env_unset": [], "dir": cwd or self.repo},
                          [clients.program("codex"), *words, "exec", "--json", "--skip-git-repo-check", "-s", "read-only",
                           "--", "go"])
        assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
        found, self.api.offered = self.servers(), []
        for name in self.started():
            os.remove(self.mark(name))
        return found

    def launch(self, *words, vendor="codex", cwd=None, command=HOST, **env):
        return run([*self.prefix, command, "--plugin", "codex-setup", "--", "reviewer-launch", "--vendor", vendor, "--dir",
                    cwd or self.repo, "--url", self.url, "--agent-id", "agent-1", *words],
                   env=dict(self.env, **env), cwd=self.home, seconds=90)

    def plan(self, *words, **more):
        status, out, err = self.launch(*words, **more)
        assert status == 0, (status, out, err)
        return json.loads(out)

    def start(self, plan, argv=None):
        env = {k: v for k, v in self.env.items() if k not in plan["env_unset"]}
        return subprocess.run(self.prefix + (argv or plan["argv"]), env=dict(env, **plan["env"]), cwd=plan["dir"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=90 * SLOWER)

    def servers(self):
        """The MCP servers whose tools the model was offered."""
        return sorted({space for space, _ in self.api.offered if space and space.startswith("mcp__")} |
                      {name.rsplit("__", 1)[0] for _, name in self.api.offered if name and name.startswith("mcp__")})

    def starts_agents(self):
        return [each for each in self.api.offered if "agent" in "%s %s" % each or each[1] in ("Task", "Workflow")]

    def reported(self):
        return [r["json"]["agent_id"] for r in self.flow.records(1) if r["path"].endswith("/reviewer/result")]


def check_look_and_no_write(vendor, look, write):
    """A reviewer reads the repository and runs what only looks; nothing it does is left behind."""
    clients.program(vendor)
    with Desk() as desk:
        desk.put("repo/notes", "words of the file\n")
        desk.api.turns = [[look], [write], [REPORT], "done"]
        done = desk.start(desk.plan("--", "go", vendor=vendor))
        assert done.returncode == 0 and desk.reported() == ["agent-1"], (done.stdout[-1500:], done.stderr[-1500:])
        assert "notes" in desk.api.results[0] or "words of the file" in desk.api.results[0], desk.api.results
        assert not os.path.exists(os.path.join(desk.repo, "written")), (vendor, desk.api.results)


def check_flows_are_refused(vendor, shell):
    """shell(COMMAND) is the vendor's call that runs a command. Below a reviewer, also without its environment, there is no
    way to a tool that starts flows, if it may run a program at all."""
    clients.program(vendor)
    command = "env -i HOME=/nonexistent %s --plugin flows --call list_reviewer_vendors 2>&1; echo status $?" % HOST
    with Desk() as desk:
        desk.api.turns = [[shell(command)], [REPORT], "done"]
        done = desk.start(desk.plan("--", "go", vendor=vendor))
        assert done.returncode == 0 and desk.reported() == ["agent-1"], (done.stdout[-1500:], done.stderr[-1500:])
        heard = desk.api.results[0]
        assert ("status 2" in heard and "reviewer" in heard) or "has been denied" in heard, heard
        assert not [r["path"] for r in desk.flow.records(1) if "daemons" in r["path"]]
