# SPDX-License-Identifier: Apache-2.0
"""Where real agents drive reviews: an installation, a repository, kcap-flowd with a reviewer that takes as long as the test
wants, a scripted model, and the agents, started as a user starts them."""
import glob
import sqlite3
import threading
import uuid

import clients
import flowd
from harness import *
from installed import Installed
from model_api import ModelApi

START = ("start_review_flow", flowd.START_ARGUMENTS)
WAIT = ("get_review_flow_status", {"wait": True})
STILL = "Flow still running"


def follow(first=START, then=WAIT):
    """The play of an agent that does as it is told: one call, then the wait it is advised, until there is a result."""
    def play(rounds, results):
        if rounds == 0:
            return [first]
        return "done" if "result_kind: " in results[-1] else [then]
    return play


def toml(value):
    return json.dumps(value)


class Codex:
    label = "Codex 0.171.0"

    def __init__(self, desk):
        self.desk = desk
        self.home = os.path.join(desk.dir, ".codex")
        os.makedirs(self.home, exist_ok=True)
        self.env = dict(desk.env, CODEX_HOME=self.home, MOCK_KEY="x")
        clients.program("codex")

    def register(self, argv, limit_sec=None, name="kcap-flows", more=""):
        with open(os.path.join(self.home, "config.toml"), "w") as file:
            file.write('model = "gpt-5"\nmodel_provider = "mock"\napproval_policy = "never"\n%s'
                       '[model_providers.mock]\nname = "mock"\nbase_url = "%s/v1"\nwire_api = "responses"\n'
                       'env_key = "MOCK_KEY"\n' % (more, self.desk.api.url))
            if argv:
                file.write('[mcp_servers.%s]\nrequired = true\ndefault_tools_approval_mode = "approve"\ncommand = %s\nargs = %s\n'
                           'env = { KCAP_STATE_DIR = %s }\n' % (name, toml(argv[0]), toml(argv[1:]), toml(self.desk.state)))
                if limit_sec:
                    file.write("tool_timeout_sec = %d\n" % limit_sec)

    def start(self, session=None, *words):
        words += ("resume", session, "go") if session else ("go",)
        return Agent(self.desk, [clients.program("codex"), "exec", "--json", "--skip-git-repo-check", "-s", "read-only",
                                 *words], self.env)

    def session(self, agent):
        return agent.event(lambda e: e.get("type") == "thread.started")["thread_id"]

    def can_resume(self, session):
        """Whether it has written the session down."""
        return glob.glob(os.path.join(self.home, "sessions", "**", "*%s.jsonl" % session), recursive=True)


class Claude:
    label = "Claude Code 2.1.197"
    place = ""

    def __init__(self, desk):
        self.desk = desk
        self.path = clients.program("claude", self.place)
        self.env = dict(desk.env, ANTHROPIC_BASE_URL=desk.api.url, ANTHROPIC_API_KEY="x", DISABLE_AUTOUPDATER="1",
                        ENABLE_TOOL_SEARCH="false", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1")

    def register(self, argv, limit_sec=None, name="kcap-flows"):
        entry = {"type": "stdio", "command": argv[0], "args": argv[1:], "env": {"KCAP_STATE_DIR": self.desk.state}}
        if limit_sec:
            entry["timeout"] = limit_sec * 1000  # which its servers do not see, unlike MCP_TOOL_TIMEOUT
        with open(os.path.join(self.desk.dir, "mcp.json"), "w") as file:
            json.dump({"mcpServers": {name: entry}}, file)
        self.name = name

    def start(self, session=None):
        self.id = session or str(uuid.uuid4())
        return Agent(self.desk, [self.path, "-p", "go", "--mcp-config", os.path.join(self.desk.dir, "mcp.json"),
                                 "--strict-mcp-config", "--allowedTools", "mcp__%s__*" % self.name, "--output-format",
                                 "stream-json", "--verbose", *(["--resume", session] if session else ["--session-id", self.id])],
                     self.env)

    def session(self, agent):
        return self.id

    def can_resume(self, session):
        return glob.glob(os.path.join(self.desk.dir, ".claude", "projects", "*", session + ".jsonl"))


class NewClaude(Claude):
    """Opens with server/discover, and moves long calls to the background in interactive sessions."""
    label = "Claude Code 2.1.332"
    place = "newer"


class Other:
    """An agent that is told of its server in a file of its own, and that has no session we could name."""

    def __init__(self, desk):
        self.desk = desk
        self.path = clients.program(self.program, "more")
        done = subprocess.run([self.path, "--version"], env=desk.env, capture_output=True, text=True)
        if done.returncode != 0:  # each wants a Node.js of its own age
            raise Skip("%s does not run here: %s" % (self.label, (done.stdout + done.stderr).strip()[-200:]))

    def put(self, name, content):
        for base in (self.desk.dir, self.desk.repo.dir):  # some look at home, some at the project
            path = os.path.join(base, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                json.dump(content, file)

    def start(self, session=None):
        return Agent(self.desk, [self.path, *self.words], self.env)

    def entry(self, argv, **more):
        return dict({"command": argv[0], "args": argv[1:], "env": {"KCAP_STATE_DIR": self.desk.state}}, **more)


class Gemini(Other):
    label = "Gemini CLI 0.61.0"
    program = "gemini"
    words = ["-p", "go", "--yolo"]

    def register(self, argv, limit_sec=None, name="kcap-flows"):
        self.env = dict(self.desk.env, GEMINI_API_KEY="x", GOOGLE_GEMINI_BASE_URL=self.desk.api.url,
                        GEMINI_CLI_TRUST_WORKSPACE="true")
        limit = {"timeout": limit_sec * 1000} if limit_sec else {}
        self.put(".gemini/settings.json", {"security": {"auth": {"selectedType": "gemini-api-key"}},
                                           "mcpServers": {name: self.entry(argv, trust=True, **limit)}})


class OpenCode(Other):
    label = "opencode 1.18.33"
    program = "opencode"
    words = ["run", "--auto", "go"]

    def register(self, argv, limit_sec=None, name="kcap-flows"):
        self.env = dict(self.desk.env, OPENCODE_DISABLE_MODELS_FETCH="1", OPENCODE_DISABLE_AUTOUPDATE="1")
        server = {"type": "local", "command": argv, "environment": {"KCAP_STATE_DIR": self.desk.state}}
        if limit_sec:
            server["timeout"] = limit_sec * 1000
        self.put("opencode.json", {
            "model": "mock/m", "small_model": "mock/m", "mcp": {name: server},
            "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "mock", "models": {"m": {"name": "m"}},
                                  "options": {"baseURL": self.desk.api.url + "/v1", "apiKey": "x"}}}})


class Copilot(Other):
    label = "Copilot CLI 1.0.102"
    program = "copilot"
    words = ["-p", "go", "--allow-all-tools"]

    def register(self, argv, limit_sec=None, name="kcap-flows"):
        self.env = dict(self.desk.env, COPILOT_OFFLINE="true", COPILOT_PROVIDER_BASE_URL=self.desk.api.url + "/v1",
                        COPILOT_MODEL="m", COPILOT_PROVIDER_API_KEY="x")
        limit = {"timeout": limit_sec * 1000} if limit_sec else {}
        self.put(".copilot/mcp-config.json", {"mcpServers": {name: self.entry(argv, type="local", tools=["*"], **limit)}})


class Agent:
    """A running agent; its events are the JSON lines it prints."""

    def __init__(self, desk, argv, env):
        self.events, self.errors = [], []
        self.desk = desk
        self.process = subprocess.Popen(argv, env=env, cwd=desk.repo.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
        self.changed = threading.Condition()
        for stream, into in ((self.process.stdout, self.events), (self.process.stderr, self.errors)):
            threading.Thread(target=self._read, args=(stream, into), daemon=True).start()

    def _read(self, stream, into):
        for line in stream:
            with self.changed:
                try:
                    into.append(json.loads(line) if into is self.events else line)
                except ValueError:
                    pass
                self.changed.notify_all()

    def event(self, wanted, seconds=60):
        with self.changed:
            if not self.changed.wait_for(lambda: any(wanted(e) for e in self.events), seconds * SLOWER):
                raise AssertionError((self.events[-3:], self.errors[-5:]))
            return [e for e in self.events if wanted(e)][0]

    def end(self, seconds=90):
        status = self.process.wait(seconds * SLOWER)
        assert status == 0, (status, self.events[-3:], self.errors[-10:])

    def family(self):
        """(pid, command line) of all that it started and that is still there, in its session or below."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % pid) as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                with open("/proc/%s/cmdline" % pid, "rb") as file:
                    line = file.read().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if int(fields[3]) == self.process.pid and fields[0] != "Z":
                found.append((int(pid), line))
        return found

    def hosts(self):
        return [pid for pid, line in self.family() if line.startswith(self.desk.host)]

    def kill(self, number=signal.SIGKILL):
        """The agent itself, without its servers."""
        hosts = self.hosts()
        for pid, _ in self.family():
            if pid not in hosts:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
        self.process.wait(30 * SLOWER)


class DriverDesk(flowd.Place):
    """The reviewer finds nothing; it begins when it is let go. Use as a context manager."""

    def __init__(self, client, play):
        super().__init__()
        self.client, self.play = client, play

    def __enter__(self):
        self.installed = Installed()
        self.installed.__enter__()
        self.host = self.installed.host
        flowd.PROGRAM = os.path.join(self.installed.prefix, "bin", "kcap-flowd")
        self.repo = flowd.Repo(self)
        self.repo.write("README.md", "# Tidy\n")
        self.repo.commit("first")
        self.git = flowd.SlowGit(self)
        self.configure({"idle_sec": 1000, "idle_command_sec": 1000}, env="")  # a git that waits says nothing
        self.daemon = flowd.Flowd(place=self, env={"PATH": self.git.path})
        self.api = ModelApi(self.play)
        self.api.__enter__()
        self.agents = []
        self.client = self.client(self)
        return self

    def __exit__(self, *_):
        for agent in self.agents:
            for pid, _ in agent.family():
                os.kill(pid, signal.SIGKILL)
        self.api.__exit__()
        self.git.close()
        self.daemon.end()
        self.installed.__exit__()

    def start(self, window_sec=None, limit_sec=None, session=None):
        window = ["--call-window", str(window_sec)] if window_sec else []
        self.client.register([self.host, "--plugin", "flows", *window], limit_sec)
        return self.run(session)

    def run(self, session=None):
        agent = self.client.start(session)
        self.agents.append(agent)
        return agent

    def let_go(self):
        os.write(self.git.gate_fd, b"go\n" * 50)

    def rounds(self):
        """(flow, number, status) of every round there ever was."""
        store = sqlite3.connect("file:%s?mode=ro" % os.path.join(self.state, "flowd.db"), uri=True, timeout=5)
        try:
            return store.execute("SELECT flow_id, number, status FROM rounds").fetchall()
        finally:
            store.close()

    def again(self, play):
        """Another agent's play on the same model."""
        self.api.turns, self.api.results, self.api.rounds, self.api.missing = play, [], 0, []
