# SPDX-License-Identifier: Apache-2.0
"""A real Codex, started as reviewer-launch composes it: the model is offered our result server and no other, whatever is
configured where; and what would let another one in is refused, or shown to leak without us."""
import pty
import threading

import clients
from launch_desk import Desk, check_flows_are_refused, check_look_and_no_write
from harness import *

OURS = "mcp__kcap_flow_result_"


def assert_alone(desk, plan):
    """What the model was offered, what was started, and that it could report."""
    assert desk.servers() == [OURS + plan["server"].rsplit("-", 1)[1]], desk.api.offered
    assert sorted(name for space, name in desk.api.offered if space in desk.servers()) == \
        ["send_flow_message", "submit_review_result"], desk.api.offered
    assert desk.started() == [] and desk.starts_agents() == [], (desk.started(), desk.api.offered)
    assert desk.reported() == ["agent-1"], desk.flow.records(1)


def check_alone(desk, plan):
    done = desk.start(plan)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    assert_alone(desk, plan)


def test_with_servers_of_the_user():
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
        check_alone(desk, plan)
        assert open(os.path.join(desk.codex_home, "config.toml")).read() == before


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
            words = [word for o in overrides
                     for word in ("-c", o % (json.dumps(HOST), desk.url) if "%s" in o else o)]
            assert desk.codex(*words) == want, (overrides, desk.api.offered)


def check_source(desk, canary, cwd=None, codex_cwd=None):
    """The source is live for a user's codex, and closed in the launch."""
    want = "mcp__" + canary
    assert want in desk.codex(cwd=codex_cwd or cwd), "this source is not live, so the test shows nothing"
    check_alone(desk, desk.plan("--", "go", cwd=cwd))


def test_in_a_repository_that_is_not_trusted():
    with Desk() as desk:
        desk.put("repo/.codex/config.toml", desk.entry("repo"))
        check_alone(desk, desk.plan("--", "go"))


def test_in_a_trusted_repository():
    with Desk() as desk:
        desk.put("repo/.codex/config.toml", desk.entry("repo"))
        desk.put("repo/sub/.codex/config.toml", desk.entry("below"))
        desk.trust(desk.repo)
        check_source(desk, "repo")
        sub = os.path.join(desk.repo, "sub")
        desk.flow.forget()
        check_source(desk, "below", cwd=sub)


def test_in_a_repository_with_an_odd_name():
    with Desk() as desk:
        odd = os.path.join(desk.home, 'a "b"=c.d é\n\\x')
        os.rename(desk.repo, odd)
        desk.repo = odd
        os.makedirs(os.path.join(odd, ".codex"))
        with open(os.path.join(odd, ".codex", "config.toml"), "w") as file:
            file.write(desk.entry("repo"))
        desk.trust(odd)
        check_source(desk, "repo")


def test_in_a_worktree_of_a_trusted_repository():
    with Desk() as desk:
        git = ["git", "-C", desk.repo, "-c", "user.name=n", "-c", "user.email=e@x"]
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True, env=desk.env)
        tree = os.path.join(desk.home, "tree")
        subprocess.run([*git, "worktree", "add", "-q", tree], check=True, env=desk.env, capture_output=True)
        desk.put("tree/.codex/config.toml", desk.entry("tree"))
        desk.trust(desk.repo)
        check_source(desk, "tree", cwd=tree)


def test_with_a_profile_beside_the_config():
    with Desk() as desk:
        desk.put(".codex/work.config.toml", desk.entry("profile"))
        assert "mcp__profile" in desk.codex("--profile", "work")
        check_alone(desk, desk.plan("--", "go"))
        desk.config(head='profile = "work"\n')
        status, _, err = desk.launch()
        assert status == 5 and "codex mcp list: exit status 1" in err and "legacy `profile = " in err, err


def test_with_a_plugin():
    with Desk() as desk:
        desk.plugin("plug")
        check_source(desk, "plug")


def test_with_a_plugin_that_the_repository_enables():
    with Desk() as desk:
        desk.plugin("plug")
        text = open(os.path.join(desk.codex_home, "config.toml")).read()
        head, enabled, tail = text.partition('[plugins."evil@debug"]')
        desk.put(".codex/config.toml", head)
        desk.put("repo/.codex/config.toml", enabled + tail)
        desk.trust(desk.repo)
        check_source(desk, "plug")


def test_with_a_configuration_of_the_system():
    with Desk() as desk:
        desk.etc(**{"codex/config__toml": desk.entry("system")})
        check_source(desk, "system")


def test_with_a_managed_configuration():
    with Desk() as desk:
        desk.etc(**{"codex/managed_config__toml": desk.entry("managed")})
        check_source(desk, "managed")
        desk.put("etc-upper/codex/managed_config.toml", desk.entry("managed", enabled=True) +
                 desk.entry("kcap-flow-result", enabled=True))
        status, out, err = desk.launch()
        assert status == 5 and out == "" and err.count("it stays enabled in spite of our overrides") == 2, err
        assert 'refused: the server "managed":' in err and 'refused: the server "kcap-flow-result":' in err, err


def test_with_requirements():
    with Desk() as desk:
        desk.etc(**{"codex/requirements__toml": '[mcp_servers.other.identity]\ncommand = "/bin/true"\n'})
        status, _, err = desk.launch()
        assert status == 5 and "our result server: Codex does not enable it" in err, err


def test_with_plugins_that_an_administrator_insists_on():
    with Desk() as desk:
        desk.plugin("plug")
        desk.etc(**{"codex/requirements__toml": "[features]\nplugins = true\napps = true\n"})
        assert "mcp__plug" in desk.codex("--disable", "plugins"), "they can be switched off, so the test shows nothing"
        status, out, err = desk.launch("--", "go")
        assert status == 5 and out == "" and "codex mcp list: exit status 1" in err, (status, out, err)


def test_with_an_environment_file():
    """Codex reads it and lets it win over its environment; what it passes to our server is in the launch."""
    with Desk() as desk:
        desk.put(".codex/.env", "KCAP_URL=http://127.0.0.1:9\nKCAP_FLOW_AGENT_ID=other\n"
                                "KCAP_FLOW_CAPABILITY_URL=http://127.0.0.1:9/x\n")
        check_alone(desk, desk.plan("--", "go"))


def converse(desk, plan, sandbox):
    """One turn over the app-server."""
    env = {k: v for k, v in desk.env.items() if k not in plan["env_unset"]}
    with Host(*plan["argv"][1:], program=plan["argv"][0], env=dict(env, **plan["env"]), cwd=plan["dir"]) as server:
        server.answer(server.send("initialize", {"clientInfo": {"name": "t", "version": "1"}}, id=True), 30)
        server.send("initialized")
        thread = server.answer(server.send("thread/start", {"cwd": plan["dir"], "approvalPolicy": "never",
                                                            "sandbox": sandbox}, id=True), 60)["result"]["thread"]["id"]
        server.send("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "go", "text_elements": []}]}, id=True)
        server.wait_until(lambda: server.notes("turn/completed"), 60, "the turn's end")
        server.close()
        server.wait_exit(10)


def test_app_server_trusts_nothing_by_itself():
    for sandbox in ("read-only", "workspace-write"):
        with Desk() as desk:
            desk.put("repo/.codex/config.toml", desk.entry("repo"))
            desk.config(desk.entry("alpha"))
            before = open(os.path.join(desk.codex_home, "config.toml")).read()
            plan = desk.plan("--mode", "app-server")
            converse(desk, plan, sandbox)
            assert_alone(desk, plan)
            assert open(os.path.join(desk.codex_home, "config.toml")).read() == before, sandbox
    with Desk() as desk:  # without the override it would: the reason for it
        desk.put("repo/.codex/config.toml", desk.entry("repo"))
        converse(desk, {"argv": [clients.program("codex"), "app-server"], "env": {}, "env_unset": [], "dir": desk.repo},
                 "workspace-write")
        assert "mcp__repo" in desk.servers(), desk.api.offered


def on_screen(desk, plan):
    """Runs the agent on a terminal until it has reported."""
    env = {k: v for k, v in desk.env.items() if k not in plan["env_unset"]}
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(plan["dir"])
        os.execve(plan["argv"][0], plan["argv"], dict(env, TERM="xterm-256color", **plan["env"]))
    screen = bytearray()

    def read():
        try:
            while True:
                data = os.read(terminal, 65536)
                screen.extend(data)
                if b"\x1b[6n" in data:
                    os.write(terminal, b"\x1b[1;1R")
        except OSError:
            pass
    threading.Thread(target=read, daemon=True).start()
    try:
        wait_for(desk.reported, 60, "the report")
    except AssertionError as error:
        raise AssertionError("%s; on the screen: %r" % (error, bytes(screen[-1500:])))
    finally:
        os.killpg(child, signal.SIGKILL)  # pty.fork made it the leader of its group
        os.waitpid(child, 0)


def test_on_its_screen():
    with Desk() as desk:
        desk.config(desk.entry("alpha"))
        plan = desk.plan("--mode", "tui", "--", "go")
        on_screen(desk, plan)
        assert_alone(desk, plan)
        desk.put("repo/.codex/config.toml", desk.entry("repo"))
        status, _, err = desk.launch("--mode", "tui", "--", "go")
        assert status == 5 and "the repository's .codex/config.toml" in err, err


def test_on_its_screen_beside_its_shared_server():
    """The server was started without our flags; the reviewer does not live in it, so that it ends with its process group."""
    with Desk() as desk:
        desk.config(desk.entry("alpha"))
        daemon = [clients.program("codex"), "app-server", "daemon"]
        begun = subprocess.run([*daemon, "start"], env=desk.env, cwd=desk.home, capture_output=True, text=True, timeout=90)
        assert begun.returncode == 0, begun
        try:
            plan = desk.plan("--mode", "tui", "--", "go")
            on_screen(desk, plan)
            assert_alone(desk, plan)
        finally:
            subprocess.run([*daemon, "stop"], env=desk.env, cwd=desk.home, capture_output=True, timeout=90)
            for line in begun.stderr.splitlines():  # it leaves one behind that looks for updates
                if '"process_spawned"' in line:
                    try:
                        os.kill(json.loads(line)["details"]["pid"], signal.SIGKILL)
                    except ProcessLookupError:
                        pass


def test_with_all_of_it_at_once():
    with Desk() as desk:
        desk.config(desk.entry("alpha") + desk.entry("must", required=True))
        desk.plugin("plug")
        desk.put(".codex/work.config.toml", desk.entry("profile"))
        desk.put("repo/.codex/config.toml", desk.entry("repo"))
        desk.trust(desk.repo)
        desk.etc(**{"codex/config__toml": desk.entry("system"), "codex/managed_config__toml": desk.entry("managed")})
        live = desk.codex("--profile", "work")
        assert live == ["mcp__" + name for name in ("alpha", "managed", "must", "plug", "profile", "repo", "system")], live
        check_alone(desk, desk.plan("--", "go"))


def test_a_fixed_name_can_be_taken_over():
    """Why the server's name differs in each launch: an entry of its name is merged under ours."""
    with Desk() as desk:
        desk.config(desk.entry("kcap-flow-result", env={"KCAP_FLOW_CAPABILITY_URL": desk.url + "/elsewhere"}))
        desk.codex("-c", 'mcp_servers.kcap-flow-result={command=%s,args=["--plugin","flow-result"],env={KCAP_URL="%s",'
                   'KCAP_FLOW_AGENT_ID="agent-1"},default_tools_approval_mode="approve"}' % (json.dumps(HOST), desk.url))
        assert desk.reported() == [] and "not delivered" in desk.api.results[0].lower(), desk.api.results
        check_alone(desk, desk.plan("--", "go"))


def test_it_can_look_and_cannot_write():
    check_look_and_no_write("codex", ("exec_command", {"cmd": "cat notes"}),
                            ("exec_command", {"cmd": "touch written; echo tried"}))


def test_below_it_no_flow_can_be_started():
    check_flows_are_refused("codex", lambda command: ("exec_command", {"cmd": command}))


main(globals())
