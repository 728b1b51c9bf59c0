# SPDX-License-Identifier: Apache-2.0
"""codex-setup: whatever the config looks like, install changes our entry and nothing else, and remove undoes it."""
import base64
import concurrent.futures
import math
import random
import stat
import tomllib

from codex_desk import INPUTS, Desk, made_inputs
from harness import *

KILL_AT = os.path.join(paths.BUILDDIR, "tests", "support", "kill-at")
TOML_JSON = os.path.join(paths.BUILDDIR, "tests", "support", "toml-json")
UNREADABLE = ("16-", "17-", "18-", "31-")  # Codex refuses them too
BLOCKED = ("19-", "20-", "21-")            # TOML leaves no place for our entry
FOREIGN = ("06-", "14-", "12-", "22-")     # another server of our name


def values(text):
    return tomllib.loads(text.decode("utf-8-sig").replace("\r\n", "\n"))


def without_ours(tree):
    tree = dict(tree)
    servers = dict(tree.get("mcp_servers", {}))
    servers.pop("kcap-flows", None)
    tree.pop("mcp_servers", None)
    return tree, servers


def tomllib_reads(text):
    try:
        return values(text)
    except (ValueError, UnicodeDecodeError):
        return None  # TOML 1.1 is ahead of it


def round_trip(name, text):
    """install, install again, remove: the original bytes, or a refusal that leaves them."""
    with Desk(text) as desk:
        status, out, err = desk.run("install", "--dry-run")
        assert desk.get() == text, "a dry run wrote"
        dry = out
        status, out, err = desk.run("install")
        installed = desk.get()
        if status == 4:
            assert installed == text and err, (name, err)
            return "refused"
        assert status == 0, (name, status, out, err)
        if installed == text:
            return "left"
        assert dry.startswith("--- ") and "+tool_timeout_sec = 600" in dry.replace("mcp_servers.kcap-flows.", "") or \
            "tool_timeout_sec = 600" in dry, (name, dry)
        before, after = tomllib_reads(text), tomllib_reads(installed)
        if before is not None:
            assert without_ours(before) == without_ours(after), name
            assert after["mcp_servers"]["kcap-flows"]["tool_timeout_sec"] == 600
        status, out, err = desk.run("install")
        assert status == 0 and desk.get() == installed, (name, "the second install changed something")
        status, out, err = desk.run("remove")
        assert status == 0 and desk.get() == text, (name, out, err, desk.get()[-200:])
        return "changed"


def test_every_input():
    for path in INPUTS:
        name = os.path.basename(path)
        with open(path, "rb") as file:
            kind = round_trip(name, file.read())
        want = "refused" if name.startswith(UNREADABLE + BLOCKED + FOREIGN) else \
            "left" if name.startswith(("10-", "11-")) else "changed"
        assert kind == want, (name, kind, want)


def test_many_more_inputs():
    kinds = [round_trip("made %d" % number, data) for number, data in enumerate(made_inputs(90))]
    assert kinds.count("changed") > 70, kinds


def test_links_modes_and_hard_links():
    with Desk('model = "x"\n') as desk:
        real = os.path.join(desk.home, "dotfiles.toml")
        os.rename(desk.config, real)
        middle = os.path.join(desk.home, "middle")
        os.symlink(real, middle)
        os.symlink(middle, desk.config)
        os.chmod(real, 0o640)
        assert desk.run("install")[0] == 0
        assert os.path.islink(desk.config) and os.path.islink(middle) and b"kcap-flows" in desk.get()
        assert stat.S_IMODE(os.stat(real).st_mode) == 0o640
        assert open(desk.config + ".before-kcap").read() == 'model = "x"\n'
        os.link(real, os.path.join(desk.home, "other-name"))
        text = desk.get()
        status, _, err = desk.run("remove")
        assert status == 4 and "hard links" in err and desk.get() == text
    with Desk() as desk:
        os.symlink(os.path.join(desk.home, "nowhere"), desk.config)
        status, _, err = desk.run("install")
        assert status == 4 and "nowhere" in err
    with Desk() as desk:  # no file, no directory
        os.rmdir(os.path.dirname(desk.config))
        assert desk.run("install")[0] == 0
        assert stat.S_IMODE(os.stat(desk.config).st_mode) == 0o600
        assert desk.run("remove")[0] == 0 and os.listdir(os.path.dirname(desk.config)) == []


def test_no_part_of_an_entry_stays():
    with Desk('model = "x"\n') as desk:
        assert desk.run("install")[0] == 0
        text = desk.get() + b'\n[mcp_servers.kcap-flows.env]\nMINE = "1"\n'
        desk.put(text)
        status, _, err = desk.run("remove")
        assert status == 4 and "changed since it was made" in err and desk.get() == text, err


def test_without_a_state_directory():
    with Desk('model = "x"\n') as desk:
        nowhere = os.path.join(desk.home, "file")
        open(nowhere, "w").close()
        status, out, _ = desk.run("install", KCAP_STATE_DIR=nowhere)
        assert status == 0 and "remove will not know it" in out, out
        text = desk.get()
        status, _, err = desk.run("remove", KCAP_STATE_DIR=nowhere)
        assert status == 4 and "codex mcp remove" in err and desk.get() == text, err


def test_cancelled_while_codex_is_asked():
    with Desk('model = "x"\n') as desk:
        shim = os.path.join(desk.home, "bin")
        asked = os.path.join(desk.home, "asked")
        os.mkdir(shim)
        with open(os.path.join(shim, "codex"), "w") as file:
            file.write("#!/bin/sh\necho > %s\nexec tail -f /dev/null\n" % asked)
        os.chmod(os.path.join(shim, "codex"), 0o755)
        env = dict(desk.env, PATH=shim + ":/usr/bin:/bin")
        process = subprocess.Popen([HOST, "--plugin", "codex-setup", "--", "install"], env=env, cwd=desk.home,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for(lambda: os.path.exists(asked), 20, "codex to be asked")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20 * SLOWER)
        assert process.returncode != 0 and b"cancelled" in err and desk.get() == b'model = "x"\n', err


def test_nothing_is_lost_when_many_write_at_once():
    with Desk('model = "x"\n') as desk:
        def edit(number):  # somebody else's editor, which minds no lock but looks again
            while True:
                old = desk.get()
                new = old + b"# line %d\n" % number
                temporary = desk.config + ".%d" % number
                with open(temporary, "wb") as file:
                    file.write(new)
                if desk.get() == old:
                    os.rename(temporary, desk.config)
                if b"# line %d\n" % number in desk.get():
                    return

        with concurrent.futures.ThreadPoolExecutor(30) as pool:
            ours = [pool.submit(desk.run, "install") for _ in range(20)]
            others = [pool.submit(edit, n) for n in range(10)]
            for job in others:
                job.result()
            results = [job.result() for job in ours]
        text = desk.get().decode()
        assert text.count("[mcp_servers.kcap-flows]") == 1, text
        assert all(status == 0 or "keeps changing" in err for status, _, err in results), results


def test_killed_at_each_system_call_the_file_is_old_or_new():
    original = b'# mine\nmodel = "x"\n' + b"# filler\n" * 2000
    program = [os.path.join(paths.BUILDDIR, "stage", "bin", "kcap-host"), "--plugin", "codex-setup", "--"]
    with Desk(original) as desk:
        assert desk.run("install")[0] == 0
        installed = desk.get()
        env = dict(desk.env, ASAN_OPTIONS="detect_leaks=0")  # it cannot look for them under a tracer

        def killed_at(number, command):
            done = subprocess.run([KILL_AT, str(number), *program, command], env=env, cwd=desk.home, capture_output=True)
            assert done.returncode in (0, 1), done
            return done.returncode == 0

        for command, before, after in (("remove", installed, original), ("install", original, installed)):
            number, seen = 1, set()
            # what is before the first look at the file is the host's start, the same each time
            while True:
                desk.put(before)
                killed = killed_at(number, command)
                now = desk.get()
                assert now in (before, after), (command, number, now[-200:])
                seen.add(now == after)
                if not killed:
                    break
                if command == "install":  # whatever it came to, it can be taken back
                    status, out, err = desk.run("remove")
                    assert status == 0 and desk.get() == original, (number, out, err, now == after)
                else:  # so that there is something to remove
                    desk.put(original)
                    assert desk.run("install")[0] == 0 and desk.get() == installed
                number += 1 if number > 150 or now == after else 4
            assert seen == {False, True} and now == after, (command, number)
        assert desk.run("remove")[0] == 0 and desk.get() == original


def test_status_names_the_mistakes():
    cases = (("tool_timeout_sec = 600\n", "at the top of the file"),
             ("[mcpServers.a]\ncommand = 'x'\n", "must be mcp_servers"),
             ("[mcp_servers.kcap-flows]\ncommand = 'kcap-host'\nargs = ['--plugin', 'flows']\ntool_timeout_ms = 5\n",
              "must be tool_timeout_sec"),
             ("[mcp_servers.kcap-flows]\ncommand = 'kcap-host'\nargs = ['--plugin', 'flows']\ntool_timeout_sec = '600'\n",
              "is no number"),
             ("[mcp_servers.kcap-flows]\ncommand = 'kcap-host'\nargs = ['--plugin', 'flows']\n"
              "[mcp_servers.kcap-flows.env]\ntool_timeout_sec = 1\n", "stands below .env"),
             ("[mcp_servers.kcap-flows]\ncommand = '/no/such/kcap-host'\nargs = ['--plugin', 'flows']\n", "cannot be run"),
             ("[mcp_servers.kcap-flows]\ncommand = 'kcap-host'\nargs = ['--plugin', 'flows']\ntool_timeout_sec = 30\n",
              "our calls block up to 270 s"),
             ("[mcp_servers.kcap-flows]\ncommand = 'kcap-host'\nargs = ['--plugin', 'flows']\n", "Codex cuts calls after 300 s"),
             ("[mcp_servers.again]\ncommand = '/x/kcap-host'\nargs = ['--plugin', 'flows']\n", "a second time"))
    for text, want in cases:
        with Desk(text) as desk:
            status, out, err = desk.run("status")
            assert status == 0 and want in out and desk.get() == text.encode(), (text, out, err)
    with Desk("[a]\n[a]\n") as desk:
        status, out, err = desk.run("status")
        assert status == 4 and "config.toml:2:2: this table is defined twice" in err, err


def test_places_and_words():
    with Desk('model = "x"\n') as desk:
        other = os.path.join(desk.home, "elsewhere")
        assert desk.run("install", CODEX_HOME=other)[0] == 0
        assert desk.get() == b'model = "x"\n' and os.path.exists(os.path.join(other, "config.toml"))
        status, _, err = desk.run("install", "--project")
        assert status == 1 and "no repository" in err
        os.mkdir(os.path.join(desk.home, ".git"))
        os.remove(desk.config)
        os.rmdir(os.path.dirname(desk.config))
        assert desk.run("install", "--project", CODEX_HOME=other)[0] == 0 and b"kcap-flows" in desk.get()
        status, _, err = desk.run("install", "--nonsense")
        assert status == 2 and "--nonsense" in err
        status, out, err = desk.run("install", KCAP_STATE_DIR=os.path.join(desk.home, "state"), KCAP_URL="http://x",
                                    CODEX_HOME=os.path.join(desk.home, "third"))
        text = open(os.path.join(desk.home, "third", "config.toml")).read()
        assert 'env_vars = ["KCAP_URL", "KCAP_STATE_DIR"]' in text and "http://x" not in text, text


def test_a_codex_that_does_not_accept_the_result():
    with Desk('model = "x"\n') as desk:
        shim = os.path.join(desk.home, "bin")
        os.mkdir(shim)
        with open(os.path.join(shim, "codex"), "w") as file:
            file.write('#!/bin/sh\n[ "$*" = "mcp list --json" ] || exit 9\n'
                       '! grep -q kcap-flows "$CODEX_HOME/config.toml" || [ ! -e "$(dirname "$0")/refuse" ]\n')
        os.chmod(os.path.join(shim, "codex"), 0o755)
        path = shim + ":/usr/bin:/bin"
        refuse = os.path.join(shim, "refuse")
        open(refuse, "w").close()
        status, _, err = desk.run("install", PATH=path)
        os.remove(refuse)
        assert status == 4 and "does not accept" in err and desk.get() == b'model = "x"\n', (status, err)
        assert desk.run("install", PATH=path)[0] == 0 and b"kcap-flows" in desk.get()
        assert "Codex accepts the file." in desk.run("status", PATH=path)[1]
        assert desk.run("remove", PATH=path)[0] == 0 and desk.get() == b'model = "x"\n'


def test_a_codex_that_refuses_the_file_already():
    with Desk('model = "x"\n') as desk:
        assert desk.run("install")[0] == 0
        shim = os.path.join(desk.home, "bin")
        os.mkdir(shim)
        with open(os.path.join(shim, "codex"), "w") as file:
            file.write("#!/bin/sh\necho 'WARNING: x' >&2\necho 'Error: bad \"secret\" in `a`' >&2\nexit 1\n")
        os.chmod(os.path.join(shim, "codex"), 0o755)
        path = shim + ":/usr/bin:/bin"
        assert 'Codex does not accept the file: Error: bad "..." in `a`.' in desk.run("status", PATH=path)[1]
        assert desk.run("remove", PATH=path)[0] == 0 and desk.get() == b'model = "x"\n'
        status, _, err = desk.run("install", PATH=path)
        assert status == 4 and "as it is now" in err and desk.get() == b'model = "x"\n', err


def test_the_tools_do_the_same():
    with Desk() as desk, Host("--plugin", "codex-setup", env=desk.env, cwd=desk.home) as host:
        host.initialize()
        tools = host.answer(host.send("tools/list", id=True))["result"]["tools"]
        assert [t["name"] for t in tools] == ["codex_registration_status", "codex_registration_install"]
        assert tools[0]["annotations"]["readOnlyHint"] and not tools[1]["annotations"]["readOnlyHint"]
        assert "is not registered" in text_of(host.result("codex_registration_status"))
        assert "Registered" in text_of(host.result("codex_registration_install"))
        assert "is registered in" in text_of(host.result("codex_registration_status"))
        desk.put("[a]\n[a]\n")
        result = host.result("codex_registration_install")
        assert result["isError"] and "defined twice" in text_of(result)


# ---- the reader itself, against the public test data ----

AHEAD = {"invalid/datetime/no-secs", "invalid/inline-table/trailing-comma", "invalid/string/basic-byte-escapes",
         "invalid/inline-table/linebreak-1", "invalid/inline-table/linebreak-2", "invalid/inline-table/linebreak-3",
         "invalid/inline-table/linebreak-4"}  # valid since TOML 1.1, and Codex reads them


def normal(value):
    if isinstance(value, list):
        return [normal(each) for each in value]
    if isinstance(value, dict) and set(value) == {"type", "value"} and isinstance(value["value"], str):
        kind, text = value["type"], value["value"]
        if kind == "float":
            number = float(text)
            return kind, "nan" if math.isnan(number) else number
        if kind == "integer":
            return kind, int(text)
        if "time" in kind:
            text = text.upper().replace(" ", "T").replace("+00:00", "Z")
            head, dot, rest = text.partition(".")
            if dot:
                digits = rest.rstrip("Z").split("+")[0].split("-")[0]
                short = digits.rstrip("0")
                text = head + ("." + short if short else "") + rest[len(digits):]
        return kind, text
    return {key: normal(each) for key, each in value.items()} if isinstance(value, dict) else value


def test_public_toml_data():
    bad = []
    with open(os.path.join(paths.SRCDIR, "tests", "data", "toml-test.jsonl")) as file:
        cases = [json.loads(line) for line in file]
    assert len(cases) > 300
    for case in cases:
        done = subprocess.run([TOML_JSON], input=base64.b64decode(case["toml"]), capture_output=True)
        if "value" in case or case["name"] in AHEAD:
            if done.returncode != 0 or "value" in case and normal(json.loads(done.stdout)) != normal(case["value"]):
                bad.append((case["name"], done.stderr))
        elif done.returncode != 1 or b":" not in done.stderr:
            bad.append((case["name"], "accepted"))
    assert not bad, bad[:10]


main(globals())
