# SPDX-License-Identifier: Apache-2.0
"""What kcap-host loads, and above all what it does not: the hostile zoo and the reviewer's wall."""
import glob
import stat
import struct

from harness import *

STAGE = os.path.join(paths.BUILDDIR, "stage", "lib", "kcap-host")
CANARY = os.path.join(paths.BUILDDIR, "tests", "support", ".libs", "canary.so")
AGENT = {"KCAP_FLOW_AGENT_ID": "agent-1", "KCAP_URL": "http://127.0.0.1:9"}
INIT = (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
        b'"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n'
        b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n')


class Root:
    """A plugin directory of our own, and a canary file that must stay absent."""

    def __enter__(self):
        self.dir = TempDir()
        self.path = self.dir.__enter__()
        self.root = os.path.join(self.path, "root")
        for name in ("driver", "reviewer", "service"):
            os.makedirs(os.path.join(self.root, name), 0o755)
        self.canary = os.path.join(self.path, "canary-ran")
        return self

    def __exit__(self, *args):
        self.dir.__exit__(*args)

    def put(self, where, data):
        path = os.path.join(self.root, where)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, 0o644)
        return path

    def host(self, *args, **env):
        with TempDir() as home:
            return run([HOST, "--plugin-root", self.root, *args], input=INIT,
                       env=clean_env(home, CANARY_FILE=self.canary, **env))

    def refused(self, want, *args, **env):
        status, out, err = self.host(*args, **env)
        assert status == 2 and out == "" and want in err, (status, out, err)
        assert not os.path.exists(self.canary), "its code ran: %s" % err


def read(path):
    with open(path, "rb") as file:
        return file.read()


def with_note_class(data, trust_class):
    """The same file with another class in its note."""
    at = data.index(b"kcap\0\0\0\0") + 8
    return data[:at + 4] + struct.pack("<I", trust_class) + data[at + 8:]


def test_driver_in_the_reviewers_place_never_runs():
    with Root() as root:
        root.put("reviewer/flow-result.so", read(CANARY))
        root.refused("class is driver, here only reviewer", "--plugin", "flow-result", **AGENT)
        root.put("reviewer/flow-result.so", read(os.path.join(STAGE, "driver", "flows.so")))
        root.refused("class is driver, here only reviewer", "--plugin", "flow-result", **AGENT)


def test_disguises_of_a_driver():
    with Root() as root:
        path = os.path.join(root.root, "reviewer", "flow-result.so")
        os.symlink(CANARY, path)
        root.refused("symbolic link", "--plugin", "flow-result", **AGENT)
        os.unlink(path)
        copy = root.put("driver/canary.so", read(CANARY))
        os.link(copy, path)
        root.refused("class is driver", "--plugin", "flow-result", **AGENT)
        root.refused("inside a reviewer", "--plugin-file", CANARY, **AGENT)
        root.refused("inside a reviewer", "--plugin", "canary", **AGENT)


def test_an_edited_note_is_caught_by_the_descriptor():
    """Its constructors may have run by then; its functions have not."""
    with Root() as root:
        root.put("reviewer/flow-result.so", with_note_class(read(CANARY), 2))
        status, out, err = root.host("--plugin", "flow-result", **AGENT)
        assert status == 2 and out == "" and "descriptor says class driver" in err, err
        assert "canary was started" not in err


def test_the_canary_sings_when_it_may():
    """The tests above would pass for nothing if it never did."""
    with Root() as root:
        root.put("driver/canary.so", read(CANARY))
        status, out, err = root.host("--plugin", "canary")
        assert status == 0 and os.path.exists(root.canary) and "canary was started" in err, err


def test_zoo():
    good = read(CANARY)
    plain = glob.glob("/usr/lib/*/libcjson.so.1") + glob.glob("/lib/*/libcjson.so.1")
    with Root() as root:
        for name, data, want in (
                ("empty", b"", "not an ELF file"),
                ("text", b"#!/bin/sh\n" * 20, "not an ELF file"),
                ("cut", good[:100], "truncated"),
                ("machine", good[:18] + b"\x34\x12" + good[20:], "another machine"),
                ("class", good[:4] + bytes([good[4] ^ 3]) + good[5:], "another machine"),
                ("major", good.replace(b"kcap\0\0\0\0\1\0\0\0", b"kcap\0\0\0\0\2\0\0\0"), "its ABI is 2"),
                ("nonote", read(plain[0]), "no kcap note"),
                ("program", read("/bin/true"), "no kcap note"),
                ("service", read(os.path.join(STAGE, "service", "http.so")), "class is service")):
            root.put("driver/%s.so" % name, data)
            root.refused(want, "--plugin", name)
        os.mkdir(os.path.join(root.root, "driver", "dir.so"))
        root.refused("not a regular file", "--plugin", "dir")
        os.mkfifo(os.path.join(root.root, "driver", "fifo.so"))
        root.refused("not a regular file", "--plugin", "fifo")
        root.refused("no plugin 'absent'", "--plugin", "absent")


# Descriptors that are wrong in one way each; compiled here, so that the header's own macro makes the rest.
PLUGIN = """
#include <kcap/plugin.h>
#include <fcntl.h>
#include <stdlib.h>
static int32_t init(const struct kcap_host *h, void **c) {
    h->log(h, KCAP_LOG_INFO, "canary was started"); *c = NULL; return %(init)s; }
static int32_t call(void *x, struct kcap_call *c, const struct kcap_tool *t, const char *a, size_t n) {
    (void)x; (void)c; (void)t; (void)a; (void)n; return 0; }
static const struct kcap_tool tool = {.struct_size = %(tool_size)s, .name = %(tool)s, .description = %(description)s,
    .input_schema = %(schema)s};
static const struct kcap_tool second = {.struct_size = sizeof second, .name = "second", .description = "d",
    .input_schema = "{}"};
static const struct kcap_tool *const tools[] = {&tool, %(more)s NULL};
KCAP_REGISTER(KCAP_CLASS_DRIVER, .threads = %(threads)s, .name = %(name)s, .version = "1", .summary = "s",
    .tools = tools, .init = %(init_fn)s, .call = %(call_fn)s %(extra)s);
"""
GOOD = {"init": "0", "tool_size": "sizeof tool", "tool": '"first"', "description": '"d"', "schema": '"{}"', "more": "&second,",
        "threads": "KCAP_THREADS_SERIAL", "name": '"zoo"', "init_fn": "init", "call_fn": "call", "extra": ""}
# a descriptor that is not the header's struct at all
RAW = """
#define kcap_plugin_v1 as_declared
#include <kcap/plugin.h>
KCAP_NOTE(KCAP_CLASS_DRIVER);
"""


def compile_plugin(source, path):
    done = subprocess.run([os.environ.get("CC", "cc").split()[0], "-fPIC", "-shared", "-fvisibility=hidden", "-w", "-x", "c",
                           "-I", os.path.join(paths.SRCDIR, "include"), "-o", path, "-"], input=source.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr
    os.chmod(path, 0o644)


def test_zoo_of_descriptors():
    if not shutil.which("cc"):
        raise Skip("no C compiler here")
    with Root() as root:
        path = os.path.join(root.root, "driver", "zoo.so")
        compile_plugin(PLUGIN % GOOD, path)
        status, _, err = root.host("--plugin", "zoo")
        assert status == 0 and "canary was started" in err, err
        for change, want in (
                ({"tool_size": "8"}, "older, unknown shape"),
                ({"tool": "NULL"}, "tool 1 has no valid name"),
                ({"tool": '""'}, "tool 1 has no valid name"),
                ({"tool": '"with space"'}, "tool 1 has no valid name"),
                ({"tool": '"second"'}, "two tools named second"),
                ({"description": "NULL"}, "lacks a description"),
                ({"schema": "NULL"}, "lacks a description or an input schema"),
                ({"schema": '"[]"'}, "not a JSON object"),
                ({"schema": '"{"'}, "not a JSON object"),
                ({"schema": '"{\\"a\\":1,\\"a\\":2}"'}, "not a JSON object"),
                ({"threads": "7"}, "thread model 7"),
                ({"name": "NULL"}, "its name, version or summary is missing"),
                ({"init_fn": "NULL"}, "no init or no call"),
                ({"call_fn": "NULL"}, "no init or no call"),
                ({"extra": ", .magic = 1"}, "magic number"),
                ({"extra": ", .struct_size = 4096"}, "its descriptor says 4096 bytes"),
                ({"extra": ", .struct_size = 8"}, "its descriptor says 8 bytes"),
                ({"extra": ", .abi_major = 2"}, "its ABI is 2.0"),
                ({"extra": ", .trust_class = KCAP_CLASS_SETUP"}, "descriptor says class setup")):
            compile_plugin(PLUGIN % dict(GOOD, **change), path)
            status, out, err = root.host("--plugin", "zoo")
            assert status == 2 and out == "" and want in err, (change, status, out, err)
            assert "canary was started" not in err, change
        compile_plugin(PLUGIN % dict(GOOD, init="KCAP_E_IO"), path)
        root.refused("plugin zoo did not start (-3)", "--plugin", "zoo")
        compile_plugin(RAW + "#undef kcap_plugin_v1\nKCAP_EXPORT const unsigned kcap_plugin_v1[16] = {KCAP_MAGIC, 64};", path)
        root.refused("its descriptor has 64 bytes", "--plugin", "zoo")
        compile_plugin(RAW + "#undef kcap_plugin_v1\nKCAP_EXPORT int kcap_plugin_v1(void) { return 0; }", path)
        root.refused("is not a data object", "--plugin", "zoo")
        compile_plugin("#include <kcap/plugin.h>\nKCAP_NOTE(KCAP_CLASS_DRIVER);", path)
        root.refused("exports no kcap_plugin_v1", "--plugin", "zoo")
        compile_plugin("#include <kcap/plugin.h>\nKCAP_NOTE(KCAP_CLASS_DRIVER);\nextern int nowhere(void);\n"
                       "KCAP_EXPORT int f(void) { return nowhere(); }", path)
        root.refused("undefined symbol: nowhere", "--plugin", "zoo")


def test_files_others_can_write_are_refused():
    with Root() as root:
        path = root.put("driver/canary.so", read(CANARY))
        os.chmod(path, 0o664)
        root.refused("the file can be written by other users", "--plugin", "canary")
        os.chmod(path, 0o644)
        os.chmod(os.path.dirname(path), 0o777)
        root.refused("its directory can be written by other users", "--plugin", "canary")
        os.chmod(os.path.dirname(path), 0o755)
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
            root.refused("the file belongs to another user", "--plugin", "canary")


def test_the_users_own_directory_serves_drivers_only():
    with Root() as root, TempDir() as home:
        own = os.path.join(home, ".local", "lib", "kcap", "driver")
        os.makedirs(own)
        for name in ("canary", "flow-result"):
            shutil.copy(CANARY, os.path.join(own, name + ".so"))
            os.chmod(os.path.join(own, name + ".so"), 0o644)
        env = clean_env(home, CANARY_FILE=root.canary)
        status, out, err = run([HOST, "--plugin-root", root.root, "--plugin", "flow-result"],
                               env=dict(env, **AGENT), input=INIT)
        assert status == 2 and out == "" and "no plugin 'flow-result'" in err and own not in err, err
        assert not os.path.exists(root.canary)
        status, out, err = run([HOST, "--plugin-root", root.root, "--plugin", "canary"], env=env, input=INIT)
        assert status == 0 and os.path.exists(root.canary), err


def test_inside_a_reviewer_nothing_but_its_plugin():
    for env in ({"KCAP_FLOW_AGENT_ID": "a"}, {"KCAP_REVIEWER": "1"}, {"KCAP_REVIEWER": ""}):
        with TempDir() as home:
            status, out, err = run([HOST, "--plugin", "flows"], env=clean_env(home, **env), input=INIT)
        assert status == 2 and out == "" and "inside a reviewer" in err, (status, out, err)


def test_inside_a_reviewer_by_an_ancestor_alone():
    """Harnesses strip the environment of their MCP children; the process tree remains."""
    script = 'env -u KCAP_REVIEWER "$0" --plugin flows; exit $?'
    with TempDir() as home:
        status, out, err = run(["sh", "-c", script, HOST], env=clean_env(home, KCAP_REVIEWER="1"), input=INIT)
    assert status == 2 and out == "" and "ancestor" in err, (status, out, err)


def maps(pid):
    with open("/proc/%d/maps" % pid) as file:
        return {line.split()[-1] for line in file if "/" in line}


def test_what_each_process_maps():
    with TempDir() as home, Host("--plugin", "flow-result", env=clean_env(home, **AGENT)) as host:
        host.initialize()
        tools = host.answer(host.send("tools/list", id=True))["result"]["tools"]
        assert [t["name"] for t in tools] == ["submit_review_result", "send_flow_message"], tools
        found = maps(host.process.pid)
        assert any("flow-result.so" in m for m in found)
        assert not any("flows.so" in m or "driver" in m for m in found), found
    with TempDir() as home, Host("--plugin", "flows", env=clean_env(home)) as host:
        host.initialize()
        assert not any("curl" in m or "ssl" in m for m in maps(host.process.pid))


def test_nothing_of_the_starting_side_in_the_reviewers_files():
    files = [os.path.join(STAGE, "reviewer", "flow-result.so"), os.path.join(STAGE, "service", "http.so"),
             os.path.join(paths.BUILDDIR, "stage", "bin", "kcap-host")]
    for path in files:
        data = read(path)
        for word in (b"start_review_flow", b"start_flow", b"/review/start", b"submit_review_round"):
            assert word not in data, (path, word)
    assert b"start_review_flow" in read(os.path.join(STAGE, "driver", "flows.so"))


def test_the_host_links_little():
    out = subprocess.run(["ldd", os.path.join(paths.BUILDDIR, "stage", "bin", "kcap-host")],
                         capture_output=True, text=True, check=True).stdout
    names = {line.split()[0].split("/")[-1].split(".so")[0] for line in out.splitlines()}
    allowed = {"linux-vdso", "libcjson", "libc", "ld-linux-x86-64", "ld-linux-aarch64", "libdl", "libpthread",
               "libasan", "libubsan", "libtsan", "libm", "libgcc_s", "libstdc++", "libresolv"}
    if "san" not in out:
        allowed -= {"libasan", "libubsan", "libtsan", "libm", "libgcc_s", "libstdc++", "libresolv"}
    assert names <= allowed, names


def test_list_plugins_maps_nothing():
    with Root() as root:
        root.put("driver/canary.so", read(CANARY))
        root.put("reviewer/flow-result.so", read(CANARY))
        status, out, err = root.host("--list-plugins")
        assert status == 0 and not os.path.exists(root.canary)
        lines = out.splitlines()
        assert any(l.startswith("canary ") and "refused" not in l for l in lines), out
        assert any(l.startswith("flow-result ") and "refused" in l for l in lines), out


def test_staged_modules_export_one_symbol():
    for path in glob.glob(os.path.join(STAGE, "*", "*.so")):
        out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        names = [line.split()[-1] for line in out.splitlines() if "san" not in line]
        assert len(names) == 1 and names[0].startswith("kcap_"), (path, names)
        assert not os.stat(path).st_mode & (stat.S_IWGRP | stat.S_IWOTH)


main(globals())
