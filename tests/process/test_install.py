# SPDX-License-Identifier: Apache-2.0
"""make install, and a third party's plugin built and run against nothing but what that put in place."""
import glob

from installed import Installed, build_hello, is_sanitized
from harness import *


def test_what_is_installed():
    with Installed() as installed:
        assert not installed.files("*.la"), installed.files("*.la")
        names = {os.path.relpath(f, installed.prefix) for f in installed.files("*.so")}
        ends = {"kcap-host/driver/flows.so", "kcap-host/reviewer/flow-result.so", "kcap-host/service/http.so",
                "kcap-host/setup/codex-setup.so"}
        assert len(names) == len(ends) and all(any(n.endswith(e) for n in names) for e in ends), names
        assert installed.files("plugin.h") and installed.files("http.h")
        assert installed.files("kcap-host.1") and installed.files("kcap-host-plugin.3")
        skills = {os.path.basename(os.path.dirname(f)) for f in installed.files("SKILL.md")}
        assert skills == {"review-flows", "agent-flows"}, skills
        status, out, err = run([installed.host, "--list-plugins"])
        assert status == 0 and "flows" in out and "flow-result" in out and "refused" not in out, out + err
        status, out, err = run([installed.host, "--plugin", "flows", "--help"])
        assert status == 0 and "start_review_flow" in out, out + err


def test_a_third_partys_plugin():
    if is_sanitized():
        raise Skip("a sanitized host wants sanitized plugins")
    with Installed() as installed, TempDir() as home:
        hello = build_hello(installed, home)
        env = clean_env(home)
        status, out, err = run([installed.host, "--plugin-file", hello, "--call", "hello", '{"name":"Ada"}'],
                               env=env)
        assert (status, out) == (0, "Hello, Ada!\n"), (status, out, err)
        with Host("--plugin", "hello", env=env, program=installed.host) as host:  # from the user's own directory
            host.initialize()
            id = host.call("hello", {"name": "Bob", "seconds": 2}, meta={"progressToken": "p"})
            assert text_of(host.answer(id)["result"]) == "Hello, Bob!"
            notes = host.notes("notifications/progress")
            assert [n["params"]["progress"] for n in notes] == [1, 2], notes
            begin = time.monotonic()
            id = host.call("hello", {"name": "Eve", "seconds": 3000})
            host.send("notifications/cancelled", {"requestId": id})
            host.close()
            assert host.wait_exit() == 0 and not host.has_answer(id)
            assert time.monotonic() - begin < 2 * SLOWER
        with Host("--plugin", "hello", "--call-window", "1.5", env=env, program=installed.host) as host:
            host.initialize()
            text = text_of(host.result("hello", {"name": "Joe", "seconds": 3000}))
            assert text.startswith("Still greeting Joe, 1 of 3000 seconds done"), text
            result = host.result("hello", {"name": ""})
            assert result["isError"] and "'name' must not be empty. Whom to greet." in text_of(result)


def test_a_plugin_built_against_each_released_header():
    if is_sanitized():
        raise Skip("a sanitized host wants sanitized plugins")
    snapshots = sorted(glob.glob(os.path.join(paths.SRCDIR, "tests", "abi", "include-*")))
    assert snapshots
    for include in snapshots:
        with TempDir() as where:
            plugin = os.path.join(where, "hello.so")
            done = subprocess.run(["cc", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-I", include, "-o", plugin,
                                   os.path.join(paths.SRCDIR, "examples", "hello", "hello.c"), "-lcjson"],
                                  capture_output=True, text=True)
            assert done.returncode == 0 and not done.stderr, done.stderr
            status, out, err = run([HOST, "--plugin-file", plugin, "--call", "hello", '{"name":"Old"}'])
            assert (status, out) == (0, "Hello, Old!\n"), (include, status, out, err)


def test_the_header_in_other_languages():
    source = '#include <kcap/http.h>\nint main(void) { return (int)sizeof(struct kcap_http) == 0; }\n'
    include = os.path.join(paths.SRCDIR, "include")
    with TempDir() as where:
        for compiler, standard, suffix in (("cc", "c99", "c"), ("cc", "c11", "c"), ("c++", "c++11", "cc"),
                                           ("c++", "c++17", "cc")):
            if not shutil.which(compiler):
                raise Skip("no %s here" % compiler)
            path = os.path.join(where, "x." + suffix)
            with open(path, "w") as file:
                file.write(source)
            done = subprocess.run([compiler, "-std=" + standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                                   "-I" + include, "-c", path, "-o", os.path.join(where, "x.o")],
                                  capture_output=True, text=True)
            assert done.returncode == 0, (standard, done.stderr)


main(globals())
