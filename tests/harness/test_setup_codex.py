# SPDX-License-Identifier: Apache-2.0
"""codex-setup beside a real Codex: it takes every file we write, its own edits and ours do not undo each other, and it
finds the skills where we put them."""
import concurrent.futures

import clients
from codex_desk import INPUTS, Desk, made_inputs
from harness import *


class RealDesk(Desk):
    def __init__(self, text=None):
        clients.program("codex")
        super().__init__(text)
        self.env["PATH"] = clients.BIN + ":" + os.environ["PATH"]

    def codex(self, *words):
        return run([clients.program("codex"), *words], env=self.env, cwd=self.home)

    def registered(self):
        status, out, err = self.codex("mcp", "get", "kcap-flows", "--json")
        assert status == 0, err
        return json.loads(out)


def check_accepted(name, text):
    with RealDesk(text) as desk:
        taken_before = desk.codex("mcp", "list", "--json")[0] == 0
        status, out, err = desk.run("install")
        if status != 0:
            assert status == 4 and desk.get() == text and (not taken_before or "By hand, add" in err or
                                                           "another server named" in err), (name, status, err)
            return "refused"
        assert desk.codex("mcp", "list", "--json")[0] == 0, (name, desk.get())
        if desk.get() != text:
            assert desk.registered()["tool_timeout_sec"] == 600, name
        assert desk.run("remove")[0] in ((0, 4) if desk.get() == text else (0,)) and desk.get() == text, name
        return "taken"


def test_it_takes_every_file_we_write():
    cases = [(os.path.basename(path), open(path, "rb").read()) for path in INPUTS]
    cases += [("made %d" % number, text) for number, text in enumerate(made_inputs(60))]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        kinds = list(pool.map(lambda case: check_accepted(*case), cases))
    assert kinds.count("taken") >= 75, kinds


def test_its_own_edits_and_ours():
    """Codex reads, changes and writes without a lock, so its own edits can undo each other; they come one after another
    here, while twenty of ours go on."""
    with RealDesk('# mine\nmodel = "x"\n') as desk:
        with concurrent.futures.ThreadPoolExecutor(21) as pool:
            ours = [pool.submit(desk.run, "install") for _ in range(20)]
            for number in range(10):
                status, _, err = desk.codex("mcp", "add", "other%d" % number, "--", "/bin/true")
                assert status == 0, err
            results = [job.result() for job in ours]
        assert all(status == 0 for status, _, _ in results), results
        names = {server["name"] for server in json.loads(desk.codex("mcp", "list", "--json")[1])}
        assert names == {"other%d" % n for n in range(10)} | {"kcap-flows"}, names
        assert desk.registered()["tool_timeout_sec"] == 600


def test_it_writes_anew_and_ours_is_taken_out():
    for text in ('# mine\nmodel = "x"\n\n[mcp_servers.a] # a\ncommand = "x"\n\n[z]\nk = 1\n', "",
                 '[mcp_servers]\na = { command = "x" }\n', "mcp_servers.a.command = 'x'\n", "mcp_servers = { a = { command = 'x' } }\n"):
        with RealDesk(text) as desk:
            assert desk.run("install", KCAP_URL="http://127.0.0.1:1")[0] == 0
            assert desk.codex("mcp", "add", "other", "--", "/bin/true")[0] == 0
            status, out, err = desk.run("remove")
            assert status == 0, (text, out, err, desk.get())
            names = {server["name"] for server in json.loads(desk.codex("mcp", "list", "--json")[1])}
            assert names == {"other"} | ({"a"} if "a" in text and text else set()), (names, desk.get())


def test_it_finds_the_skills():
    with RealDesk() as desk:
        os.makedirs(os.path.join(desk.home, "repo", ".git"))
        repo = os.path.join(desk.home, "repo")
        assert desk.run("install", "--skills")[0] == 0
        with Host("app-server", program=clients.program("codex"), env=desk.env, cwd=repo) as server:
            server.answer(server.send("initialize", {"clientInfo": {"name": "t", "version": "1"}}, id=True), 30)
            server.send("initialized")
            found = server.answer(server.send("skills/list", {"cwds": [repo]}, id=True), 30)["result"]["data"]
            server.close()
            server.wait_exit(10)
        names = {skill["name"] for each in found for skill in each["skills"]}
        assert {"review-flows", "agent-flows"} <= names, names


main(globals())
