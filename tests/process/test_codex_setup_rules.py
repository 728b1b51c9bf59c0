# SPDX-License-Identifier: Apache-2.0
"""codex-setup: whose entry it is, what is done to it and what never, and how all of it is taken back."""
import difflib
import tomllib

from codex_desk import Desk
from harness import *

HOST_PROGRAM = os.path.join(paths.BUILDDIR, "stage", "bin", "kcap-host")
KCAP = '# mine\n[mcp_servers.kcap-flows]\ncommand = "/opt/kcap"   # theirs\nargs = ["mcp", "flows"]\n\n[other]\nx = 1\n'
TIMEOUT = "tool_timeout_sec = 600\n"


def entry(text):
    return tomllib.loads(text.decode())["mcp_servers"]["kcap-flows"]


def files(top):
    return {os.path.relpath(os.path.join(dir, name), top) for dir, _, names in os.walk(top) for name in names}


def test_an_entry_of_kcap_gets_one_line_and_its_ledger_stays():
    for extra in ("", 'default_tools_approval_mode = "approve"\n'):
        text = KCAP.replace("\n\n[other]", "\n" + extra + "\n[other]")
        with Desk(text) as desk:
            ledger = os.path.join(desk.home, ".codex", "mcp-ownership-v1.json")
            with open(ledger, "w") as file:
                file.write('{"version":1,"entries":{"kcap-flows":{"fingerprint":"0"}}}')
            assert desk.run("install")[0] == 0
            assert desk.get().decode() == text.replace("\n\n[other]", "\n" + TIMEOUT + "\n[other]"), desk.get()
            assert open(ledger).read() == '{"version":1,"entries":{"kcap-flows":{"fingerprint":"0"}}}'
            assert desk.run("remove")[0] == 0 and desk.get().decode() == text


def test_switch():
    shapes = (KCAP, KCAP.replace("\n", "\r\n"),
              '[mcp_servers]\nkcap-flows = { args = ["mcp", "flows"], command = "kcap" }\n',
              'mcp_servers.kcap-flows.command = "kcap"\nmcp_servers.kcap-flows.args = ["mcp", "flows"]\n',
              '[mcp_servers."kcap-flows"]\nargs = [\n  "mcp", # a\n  "flows",\n]\n# between\ncommand = \'kcap\'\n'
              'tool_timeout_sec = 30\n')
    for text in shapes:
        for variables in ({}, {"KCAP_URL": "http://x"}):
            with Desk(text) as desk:
                status, out, _ = desk.run("install", "--dry-run", "--switch", **variables)
                assert status == 0 and "+" in out and desk.get().decode("utf-8") == text
                status, out, err = desk.run("install", "--switch", **variables)
                assert status == 0 and "Pointed the registration" in out, (status, out, err)
                now = entry(desk.get())
                assert os.path.basename(now["command"]) == "kcap-host" and now["args"] == ["--plugin", "flows"], now
                assert now["tool_timeout_sec"] == (30 if "= 30" in text else 600), now
                assert now.get("env_vars") == (["KCAP_URL"] if variables else None), now
                switched = desk.get()
                for words in (("install",), ("install", "--switch")):
                    assert desk.run(*words)[0] == 0 and desk.get() == switched
                assert desk.run("remove")[0] == 0 and desk.get().decode("utf-8") == text, desk.get()


def test_switch_leaves_what_is_not_of_kcap():
    for text in ('[mcp_servers.kcap-flows]\ncommand = "x"\nargs = ["mcp", "flows"]\n',
                 '[mcp_servers.kcap-flows]\ncommand = "kcap"\nargs = ["mcp", "flows", "--more"]\n',
                 '[mcp_servers.kcap-flows]\ncommand = "kcap"\nargs = ["mcp", "flows"]\nenv = { A = "1" }\n'):
        with Desk(text) as desk:
            status, _, err = desk.run("install", "--switch")
            assert status == 4 and "another server named" in err and desk.get().decode() == text, (status, err)


def test_a_second_install_adds_to_what_is_known():
    with Desk(KCAP) as desk:
        assert desk.run("install")[0] == 0 and desk.run("install", "--switch")[0] == 0
        assert desk.run("remove")[0] == 0 and desk.get().decode() == KCAP
    with Desk(KCAP) as desk:  # taken out by hand
        assert desk.run("install")[0] == 0
        desk.put(KCAP)
        status, out, _ = desk.run("remove")
        assert status == 0 and "any more" in out and desk.get().decode() == KCAP, out
    with Desk(KCAP) as desk:  # taken out by hand and put in again
        assert desk.run("install")[0] == 0
        desk.put(KCAP)
        assert desk.run("install")[0] == 0 and desk.run("remove")[0] == 0 and desk.get().decode() == KCAP
    with Desk('a = 1\n') as desk:  # the entry was put in by us, and its time-out taken out and put in again
        assert desk.run("install")[0] == 0
        text = desk.get()
        desk.put(text.replace(TIMEOUT.encode(), b""))
        assert desk.run("install")[0] == 0 and entry(desk.get())["tool_timeout_sec"] == 600
        changed = desk.get()
        status, _, err = desk.run("remove")
        assert (status == 0 and desk.get() == b'a = 1\n') or \
            (status == 4 and "changed since" in err and desk.get() == changed), (status, err)
    with Desk('a = 1\n') as desk:  # taken out by hand: what was known is void
        assert desk.run("install")[0] == 0
        desk.put('b = 2\n')
        assert desk.run("install")[0] == 0 and desk.run("remove")[0] == 0 and desk.get() == b'b = 2\n'


def test_what_codex_has_written_anew_is_taken_out_all_the_same():
    """It writes the tables of all servers anew when it changes one: other order, 600.0, no comments."""
    anew = '# mine\n[mcp_servers.a]\ncommand = "x"\n\n%s[mcp_servers.other]\ncommand = "/bin/true"\n\n[z]\nk = 1\n'
    ours = '[mcp_servers.kcap-flows]\nargs = ["--plugin", "flows"]\ncommand = "%s"\ntool_timeout_sec = 600.0\n' % HOST_PROGRAM
    for change, want in ((lambda t: t, 0), (lambda t: t.replace("600.0", "900"), 4), (lambda t: t + "enabled = false\n", 4),
                         (lambda t: t.replace("600.0", "600.0 # mine"), 4), (lambda t: t + "# mine\n", 0),
                         (lambda t: t + '[mcp_servers.kcap-flows.env]\nA = "1"\n', 4)):
        with Desk(anew % "") as desk:
            assert desk.run("install")[0] == 0
            text = anew % (change(ours) + "\n")
            desk.put(text)
            status, out, err = desk.run("remove")
            assert status == want, (status, text, out, err)
            left = text if want == 4 else anew % (change(ours)[len(ours):] + ("\n" if change(ours) != ours else ""))
            assert desk.get().decode() == left, (desk.get().decode(), left)
    with Desk(KCAP) as desk:
        assert desk.run("install")[0] == 0
        desk.put(KCAP.replace("\n\n", "\ntool_timeout_sec = 600.0\n\n"))
        assert desk.run("remove")[0] == 0 and desk.get().decode() == KCAP


def test_the_right_bytes_are_taken_out():
    """The same line stands in a thousand other places."""
    others = "".join('[mcp_servers.s%d]\ncommand = "x"\n%s' % (i, TIMEOUT) for i in range(20000))
    text = others + KCAP + others.replace("servers.s", "servers.t")
    with Desk(text) as desk:
        assert desk.run("install")[0] == 0
        begin = time.monotonic()
        assert desk.run("remove")[0] == 0 and desk.get().decode() == text
        assert time.monotonic() - begin < 10 * SLOWER


def test_a_large_file_takes_a_moment():
    with Desk("[a]\n" + "".join("k%06d = 1\n" % i for i in range(340000))) as desk:
        begin = time.monotonic()
        assert desk.run("install", "--dry-run")[0] == 0
        assert time.monotonic() - begin < 15 * SLOWER, "not linear"


def test_a_diff_of_a_large_config_shows_our_lines_only():
    lines = ["# what I have collected over the years", "", 'model = "gpt-5"   # not the small one', "approval_policy = 'on-request'", ""]
    for number in range(40):
        lines += ["[projects.\"/home/me/src/%d\"]" % number, 'trust_level = "trusted"', "",
                  "[mcp_servers.tool%d]  # see the wiki" % number, "command = 'npx'", 'args = ["-y", "tool-%d",' % number,
                  "        # the port is fixed", '        "--port=%d"]' % (9000 + number), "startup_timeout_sec = 0x1E",
                  "  [mcp_servers.tool%d.env]" % number, "  TOKEN_FILE = '''/home/me/[x].token'''", ""]
    plain = "\n".join(lines)
    again = plain.replace("tool", "other").replace("me/src", "me/lib").split("on-request'")[1]
    for text, want in ((plain + KCAP + again, ["+tool_timeout_sec = 600"]),
                       (plain, ["+", "+[mcp_servers.kcap-flows]", '+command = "%s"' % HOST_PROGRAM,
                                '+args = ["--plugin", "flows"]', "+tool_timeout_sec = 600"])):
        with Desk(text) as desk:
            dry = desk.run("install", "--dry-run")[1]
            assert desk.run("install")[0] == 0
            diff = list(difflib.unified_diff(text.splitlines(), desk.get().decode().splitlines(), lineterm=""))
            assert [line for line in diff[2:] if line[0] in "+-"] == want, diff
            assert [line for line in dry.splitlines()[2:] if line[0] in "+-"] == want, dry


def test_a_choice_of_the_user_stands():
    for line in ("tool_timeout_sec = 30\n", "tool_timeout_sec = 0\n", "tool_timeout_sec = 6e2\n"):
        text = KCAP.replace("\n\n", "\n" + line + "\n")
        with Desk(text) as desk:
            assert desk.run("install")[0] == 0 and desk.get().decode() == text
    off = KCAP.replace("/opt/kcap", "/x/kcap-host").replace('"mcp", "flows"', '"--plugin", "flows"') \
        .replace("\n\n", "\nenabled = false\n\n")
    with Desk(off) as desk:
        assert desk.run("install")[0] == 0 and entry(desk.get())["enabled"] is False
        status, out, _ = desk.run("install")
        assert "stays so" in out and "switched off" in desk.run("status")[1], out


def test_a_dry_run_leaves_nothing():
    with Desk() as desk:
        before = files(desk.home)
        for words in (("install", "--dry-run"), ("remove", "--dry-run"), ("install", "--dry-run", "--skills"), ("status",)):
            assert desk.run(*words)[0] == 0, words
        assert files(desk.home) == before and not os.path.exists(os.path.join(desk.home, ".local")), files(desk.home)


def test_another_way_to_the_same_file():
    with Desk('a = 1\n') as desk:
        os.symlink(os.path.join(desk.home, ".codex"), os.path.join(desk.home, "way"))
        assert desk.run("install", CODEX_HOME=os.path.join(desk.home, "way"))[0] == 0
        assert desk.run("remove")[0] == 0 and desk.get() == b'a = 1\n'
    with Desk() as desk:  # made by us, by a link
        os.symlink(os.path.join(desk.home, ".codex"), os.path.join(desk.home, "way"))
        assert desk.run("install", CODEX_HOME=os.path.join(desk.home, "way"))[0] == 0
        assert desk.run("remove", CODEX_HOME=os.path.join(desk.home, ".codex"))[0] == 0
        assert not os.path.exists(desk.config)


def test_a_project_does_not_lead_out():
    for link in (".codex", ".codex/config.toml", ".agents", ".agents/skills"):
        with Desk('a = 1\n') as desk:
            repo = os.path.join(desk.home, "repo")
            os.makedirs(os.path.join(repo, ".git"))
            place = os.path.join(repo, link)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.symlink(desk.config if link.endswith("toml") else os.path.dirname(desk.config), place)
            status, out, err = run([HOST, "--plugin", "codex-setup", "--", "install", "--project", "--skills"],
                                   env=desk.env, cwd=repo)
            assert status == 4 and "leads out of the repository" in out + err, (link, status, out, err)
            assert desk.get() == b'a = 1\n' and not os.path.exists(os.path.join(desk.home, ".codex", "skills")), link
    with Desk() as desk:  # a link inside is the repository's own affair
        repo = os.path.join(desk.home, "repo")
        os.makedirs(os.path.join(repo, ".git"))
        os.makedirs(os.path.join(repo, "conf"))
        os.symlink("conf", os.path.join(repo, ".codex"))
        assert run([HOST, "--plugin", "codex-setup", "--", "install", "--project"], env=desk.env, cwd=repo)[0] == 0
        assert os.path.exists(os.path.join(repo, "conf", "config.toml"))


def test_attributes_come_along():
    with Desk('a = 1\n') as desk:
        try:
            os.setxattr(desk.config, "user.note", b"mine")
        except OSError as error:
            print("     nothing to carry over: no extended attributes here: %s" % error)
            return
        assert desk.run("install")[0] == 0 and os.getxattr(desk.config, "user.note") == b"mine"


def skill_files(desk):
    return [os.path.join(desk.home, ".agents", "skills", name, "SKILL.md") for name in ("review-flows", "agent-flows")]


def test_skills():
    with Desk('a = 1\n') as desk:
        status, out, err = desk.run("install", "--skills", "--dry-run")
        assert status == 0 and out.count("would be written") == 2, (out, err)
        assert desk.run("install", "--skills")[0] == 0
        for path in skill_files(desk):
            shipped = os.path.join(paths.SRCDIR, "skills", os.path.basename(os.path.dirname(path)), "SKILL.md")
            assert open(path).read() == open(shipped).read()
        assert desk.run("install", "--skills")[1].count("is there already") == 2
        assert desk.run("remove", "--skills")[0] == 0 and desk.get() == b'a = 1\n'
        assert os.listdir(os.path.join(desk.home, ".agents", "skills")) == []


def test_skills_that_somebody_changed():
    with Desk('a = 1\n') as desk:
        one, two = skill_files(desk)
        os.makedirs(os.path.dirname(one))
        with open(one, "w") as file:
            file.write("my own\n")
        elsewhere = os.path.join(desk.home, "elsewhere")
        os.mkdir(elsewhere)
        os.symlink(elsewhere, os.path.dirname(two))
        status, out, _ = desk.run("install", "--skills")
        assert status == 0 and "is not as we wrote it" in out and "is a link" in out, out
        assert open(one).read() == "my own\n" and os.listdir(elsewhere) == []
        os.remove(one)
        assert desk.run("install", "--skills")[0] == 0  # now it is ours
        with open(one, "a") as file:
            file.write("more\n")
        status, out, err = desk.run("remove", "--skills")
        assert status == 4 and "was changed since" in err and open(one).read().endswith("more\n"), (status, out, err)
    with Desk() as desk:  # an older one of ours is brought up to date
        one, _ = skill_files(desk)
        assert desk.run("install", "--skills")[0] == 0
        copies = [os.path.join(dir, name) for dir, _, names in os.walk(desk.home) for name in names
                  if name.startswith("skill-")]
        for path in (one, *copies):
            with open(path, "w") as file:
                file.write("an older version\n")
        assert "Wrote" in desk.run("install", "--skills")[1] and "older" not in open(one).read()


def test_skills_of_a_project():
    with Desk() as desk:
        repo = os.path.join(desk.home, "repo")
        os.makedirs(os.path.join(repo, ".git"))
        assert run([HOST, "--plugin", "codex-setup", "--", "install", "--project", "--skills"], env=desk.env, cwd=repo)[0] == 0
        assert os.path.exists(os.path.join(repo, ".agents", "skills", "review-flows", "SKILL.md"))
        assert not os.path.exists(os.path.join(desk.home, ".agents"))


def test_status_names_more_mistakes():
    for text, want in (("[mcp_servers.kcap-flows]\nargs = []\n", "it has no command"),
                       ("[mcp_servers]\ntool_timeout_sec = 600\n", "stands in [mcp_servers] itself"),
                       ("[mcp_servers.kcap-flows]\ncommand = 'no-such-program'\nargs = ['--plugin', 'flows']\n",
                        "no-such-program cannot be run")):
        with Desk(text) as desk:
            status, out, err = desk.run("status")
            assert status == 0 and want in out, (text, out, err)


def test_kcap_keeps_the_key():
    """kcap itself, where it is installed (KCAP_CLI names it, or it is in PATH): its entry gets the key, its ledger stays as
    it is, a later install of it changes nothing, and ours is undone to the byte."""
    kcap = os.environ.get("KCAP_CLI") or shutil.which("kcap")
    if not kcap:
        print("     kcap is not installed here; set KCAP_CLI to try it")
        return
    with Desk("# mine\n") as desk:
        nowhere = "http://127.0.0.1:1"
        env = dict(desk.env, DO_NOT_TRACK="1", http_proxy=nowhere, https_proxy=nowhere)
        ledger = os.path.join(os.path.dirname(desk.config), "mcp-ownership-v1.json")

        def install():
            status, out, err = run([kcap, "plugin", "install", "--codex"], env=env, cwd=desk.home, seconds=60)
            assert status == 0, (out, err)

        def read(path):
            with open(path) as file:
                return file.read()
        install()
        before, owned = read(desk.config), read(ledger)
        assert desk.run("install")[0] == 0
        after = read(desk.config)
        assert after.replace("tool_timeout_sec = 600\n", "") == before and after != before, after
        assert read(ledger) == owned
        install()
        assert read(desk.config) == after, read(desk.config)
        assert desk.run("remove")[0] == 0 and read(desk.config) == before, read(desk.config)


main(globals())
