# SPDX-License-Identifier: Apache-2.0
"""The reviewer's wall, on the files as they are installed: what is in them, what they let through."""
import mock_flow_server
import threading

from installed import Installed, is_sanitized
from harness import *

STARTERS = ("start_review_flow", "start_dynamic_review_flow", "start_agent_flow", "submit_review_round",
            "get_review_flow_status", "close_review_flow", "send_to_participant", "list_reviewer_vendors",
            "Submit_review_result", "submit_review_result ", "SEND_FLOW_MESSAGE", "")
STARTING = (b"start_review", b"review/start", b"start_flow", b"start_agent", b"start_dynamic", b"submit_review_round",
            b"/rounds", b"/close", b"/api/daemons", b"/messages/ack")
AGENT = {"KCAP_FLOW_AGENT_ID": "agent-1"}


class Place:
    """An installation, a home, and a server that would answer anything."""

    def __enter__(self):
        self.installed = Installed()
        self.installed.__enter__()
        self.home = TempDir()
        self.mock = mock_flow_server.MockServer(
            ("127.0.0.1", 0), mock_flow_server.Scenario({"fallback": {"json": {"provider": "None"}}}), None)
        threading.Thread(target=self.mock.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.env = clean_env(self.home.__enter__(), KCAP_URL="http://127.0.0.1:%d" % self.mock.server_address[1])
        return self

    def __exit__(self, *args):
        self.mock.stop()
        self.mock.server_close()
        self.home.__exit__(*args)
        self.installed.__exit__(*args)

    def file(self, name):
        return [f for f in self.installed.files(name)][0]

    def host(self, *args, **env):
        return run([self.installed.host, *args], env=dict(self.env, **env))


def test_no_installed_file_of_the_reviewers_side_can_start_a_flow():
    with Place() as place:
        for name in ("flow-result.so", "http.so", "kcap-host"):
            path = place.installed.host if name == "kcap-host" else place.file(name)
            with open(path, "rb") as file:
                content = file.read()
            assert not [word for word in STARTING if word in content], (name, [w for w in STARTING if w in content])
        with open(place.file("flows.so"), "rb") as file:
            assert b"review/start" in file.read()  # the words are the right ones
        for name, symbol in (("flow-result.so", "kcap_plugin_v1"), ("http.so", "kcap_service_v1")):
            lines = subprocess.run(["nm", "-D", "--defined-only", place.file(name)], capture_output=True, text=True,
                                   check=True).stdout.splitlines()
            assert [line.split()[-1] for line in lines] == [symbol], lines


def test_a_running_reviewers_host():
    with Place() as place:
        with Host("--plugin", "flow-result", env=dict(place.env, **AGENT), program=place.installed.host) as host:
            host.initialize()
            tools = host.answer(host.send("tools/list", id=True))["result"]["tools"]
            assert [t["name"] for t in tools] == ["submit_review_result", "send_flow_message"], tools

            def mapped():
                with open("/proc/%d/maps" % host.process.pid) as maps:
                    return {os.path.basename(line.split()[-1]) for line in maps if "/kcap-host/" in line}
            assert mapped() == {"flow-result.so"}, mapped()  # and no libcurl before the first request
            for name in STARTERS:
                answer = host.answer(host.call(name, {"kind": "code-review"}))
                assert "error" in answer or answer["result"].get("isError"), (name, answer)
            assert place.mock.records() == []
            result = host.result("submit_review_result", {"round_token": "r1", "kind": "clean"})
            assert text_of(result).startswith("Recorded."), result
            assert mapped() == {"flow-result.so", "http.so"}, mapped()
            seen = [(r["method"], r["path"]) for r in place.mock.records()]
            assert seen == [("GET", "/auth/config"), ("POST", "/api/flows/reviewer/result")], seen


def test_nothing_but_the_result_inside_a_reviewer():
    with Place() as place:
        call = ("--plugin", "flows", "--call", "list_reviewer_vendors")
        for plugin in (call, ("--plugin", "flows"), ("--plugin-file", place.file("flows.so"))):
            for mark in ("KCAP_FLOW_AGENT_ID", "KCAP_REVIEWER"):
                status, out, err = place.host(*plugin, **{mark: "x"})
                assert status == 2 and out == "" and "inside a reviewer" in err, (plugin, mark, status, out, err)
                # only an ancestor is marked: the shell between drops the variable, as harnesses do
                shell = 'unset %s; "$@"; exit $?' % mark
                done = run(["sh", "-c", shell, "sh", place.installed.host, *plugin],
                           env=dict(place.env, **{mark: "x"}))
                assert done[0] == 2 and done[1] == "" and "inside a reviewer" in done[2], (plugin, mark, done)
        assert place.mock.records() == []


ASKER = r"""
#include <kcap/http.h>
#include <stdlib.h>
#include <string.h>
static const struct kcap_host *host;
static int32_t start(const struct kcap_host *h, void **ctx) { host = h; *ctx = NULL; return 0; }
static int32_t call(void *ctx, struct kcap_call *c, const struct kcap_tool *t, const char *args, size_t len)
{
    const struct kcap_http *http = host->extension(host, KCAP_HTTP_EXTENSION);
    char path[256] = {0}, method[8] = {0}, text[64];
    struct kcap_http_request request = {.struct_size = sizeof request, .method = method, .path = path,
                                        .until_ns = KCAP_TIME_NEVER};
    struct kcap_http_response *response = NULL;
    const char *m = strchr(strstr(args, "\"m\"") + 3, '"') + 1, *p = strchr(strstr(args, "\"p\"") + 3, '"') + 1;
    (void)ctx; (void)t; (void)len;
    strncpy(method, m, strcspn(m, "\""));
    strncpy(path, p, strcspn(p, "\""));
    snprintf(text, sizeof text, "%d", (int)http->request(http, c, &request, &response));
    http->response_free(http, response);
    return host->result(c, 0, text, strlen(text), NULL, 0);
}
static const struct kcap_tool ask = {.struct_size = sizeof ask, .name = "ask", .description = "asks",
                                     .input_schema = "{\"type\":\"object\"}"};
static const struct kcap_tool *const tools[] = {&ask, NULL};
KCAP_REGISTER(KCAP_CLASS_REVIEWER, .threads = KCAP_THREADS_SERIAL, .name = "asker", .version = "1",
              .summary = "asks", .tools = tools, .init = start, .call = call);
"""
REFUSED, ALLOWED = "-4", "0"


def test_the_service_refuses_every_other_route_whoever_asks():
    """A plugin of the reviewer's class that is not ours, with the installed host and http.so under it."""
    if not shutil.which("cc"):
        raise Skip("no C compiler here")
    if is_sanitized():
        raise Skip("a sanitized host wants sanitized plugins")
    with Place() as place:
        plugin = os.path.join(place.home.path, "asker.so")
        done = subprocess.run(["cc", "-w", "-fPIC", "-shared", "-fvisibility=hidden", "-I",
                               os.path.dirname(os.path.dirname(place.file("plugin.h"))), "-x", "c", "-o", plugin, "-"],
                              input=ASKER, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
        rows = [("POST", "/api/flows/reviewer/result", ALLOWED), ("POST", "/api/flows/participant/message", ALLOWED)]
        for method in ("GET", "POST", "PUT", "DELETE"):
            for path in ("/auth/config", "/auth/refresh", "/api/flows/review/start/v4", "/api/flows/review/start",
                         "/api/flows/f1/rounds", "/api/flows/f1", "/api/flows/f1/close", "/api/daemons",
                         "/api/flows/session/s1", "/flow-result", "/api/flows/reviewer/result/../../x",
                         "/api/flows/reviewer/result?x=1", "//api/flows/reviewer/result", "/"):
                rows.append((method, path, REFUSED))
        rows += [(m, "/api/flows/reviewer/result", REFUSED) for m in ("GET", "PUT", "DELETE")]
        with Host("--plugin-file", plugin, env=place.env, program=place.installed.host) as host:
            host.initialize()
            for method, path, wanted in rows:
                got = text_of(host.result("ask", {"m": method, "p": path}))
                assert got == wanted, (method, path, got)
        seen = {(r["method"], r["path"]) for r in place.mock.records(1)}
        assert seen == {("GET", "/auth/config"), ("POST", "/api/flows/reviewer/result"),
                        ("POST", "/api/flows/participant/message")}, seen


main(globals())
