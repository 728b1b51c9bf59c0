# SPDX-License-Identifier: Apache-2.0
"""Which server a host finds, and what it shows that server of its login. The server is a scripted one."""
import base64
import fcntl
import stat
import threading

import mock_flow_server
from harness import *

RESULT = "/api/flows/reviewer/result"
CALL = ("--call", "submit_review_result", '{"round_token":"r1","kind":"clean"}')
SECRETS = ("tok-old", "tok-new", "tok-other", "refresh-1", "refresh-2", "s3cret")
HOUR = 3600


def when(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S.1234567+00:00", time.gmtime(time.time() + seconds))


def jwt(exp):
    return "e30." + base64.urlsafe_b64encode(json.dumps({"exp": exp}).encode()).decode().rstrip("=") + ".s"


class Server:
    """A scripted server on a thread of its own."""

    def __init__(self, **routes):
        self.mock = mock_flow_server.MockServer(("127.0.0.1", 0), mock_flow_server.Scenario({}), None)
        threading.Thread(target=self.mock.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.url = "http://127.0.0.1:%d" % self.mock.server_address[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.mock.stop()
        self.mock.server_close()

    def script(self, *routes, provider="GitHubApp"):
        """Each route is (path, response...); the auth route comes first when a provider is given."""
        all = [("/auth/config", {"json": {"provider": provider}})] if provider else []
        self.mock.forget()
        self.mock.scenario.load({"routes": [{"path": r[0], "responses": list(r[1:])} for r in
                                            all + list(routes)]})

    def seen(self):
        """What was asked for, as "METHOD path bearer" with what is not there left out."""
        seen = []
        for r in self.mock.records(1):
            bearer = r["headers"].get("authorization", "")
            seen.append(" ".join([r["method"], r["path"]] + ([bearer] if bearer else [])))
        return seen


class Desk:
    """A user's home with a configuration, and a reviewer's host run in it."""

    def __enter__(self):
        self.dir = TempDir()
        self.home = self.dir.__enter__()
        self.config = os.path.join(self.home, ".config", "kcap")
        self.cwd = os.path.join(self.home, "work")
        os.makedirs(self.cwd)
        self.env = clean_env(self.home, KCAP_FLOW_AGENT_ID="agent-1")
        return self

    def __exit__(self, *args):
        self.dir.__exit__(*args)

    def write(self, name, content):
        path = os.path.join(self.config, name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path, "w") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return path

    def read(self, name):
        with open(os.path.join(self.config, name)) as file:
            return json.load(file)

    def login(self, access="tok-old", seconds=HOUR, name="tokens/default.json", **more):
        member = {"access_token": access, "expires_at": when(seconds), "github_username": "ada",
                  "provider": "GitHubApp", "client_id": None, "refresh_token": None, "server_url": None}
        return self.write(name, dict(member, **more))

    def submit(self, **env):
        with TempDir() as state:  # what could not be delivered is of no interest to the next one
            status, out, err = run([HOST, "--plugin", "flow-result", *CALL],
                                   env=dict(self.env, KCAP_STATE_DIR=state, **env), cwd=self.cwd)
        for secret in SECRETS:
            assert secret not in out + err, (secret, out, err)
        return status, out, err


NO = {"status": 401, "text": "no"}
OK = {"json": {"ok": True}}
REFRESHED = {"json": {"access_token": "tok-new", "expires_in": 3600, "username": "ada2"}}
OLD, NEW = "POST %s Bearer tok-old" % RESULT, "POST %s Bearer tok-new" % RESULT
BARE, ASK, RENEW = "POST " + RESULT, "GET /auth/config", "POST /auth/refresh"


def test_each_row_of_the_login():
    rows = [  # what is stored, what the server answers, what it sees, what the reviewer is told
        ("accepted", {}, [OK], None, [ASK, OLD], 0, "Recorded"),
        ("renewed after a 401", {}, [NO, OK], REFRESHED, [ASK, OLD, RENEW, NEW], 0, "Recorded"),
        ("renewal fails, the next works", {}, [NO, OK], {"status": 500}, [ASK, OLD, RENEW, OLD], 0, "Recorded"),
        ("401 twice", {}, [NO], REFRESHED, [ASK, OLD, RENEW, NEW], 1, "of ada2 looks valid here"),
        ("expired", {"seconds": -5}, [OK], REFRESHED, [ASK, RENEW, NEW], 0, "Recorded"),
        ("expires within 30 s", {"seconds": 25}, [OK], REFRESHED, [ASK, RENEW, NEW], 0, "Recorded"),
        ("expired, renewal refused", {"seconds": -5}, [NO], NO, [ASK, RENEW, BARE, RENEW], 1, "has expired"),
        ("bound elsewhere", {"server_url": "https://other.example"}, [NO], REFRESHED, [ASK, BARE], 1,
         "was issued by https://other.example"),
        ("another kind", {"seconds": -5, "provider": "other"}, [NO], REFRESHED, [ASK, BARE], 1,
         "cannot be renewed"),
        ("not logged in", None, [NO], REFRESHED, [ASK, BARE], 1, "nobody is logged in"),
        ("damaged", "{", [NO], REFRESHED, [ASK, BARE], 1, "cannot be read"),
        ("no token member", {"access_token": None}, [NO], REFRESHED, [ASK, BARE], 1, "cannot be read"),
        ("a line break in it", {"access_token": "tok-old\r\nX: y"}, [NO], REFRESHED, [ASK, BARE], 1,
         "cannot be read"),
        ("no time in it", {"expires_at": "soon"}, [NO], REFRESHED, [ASK, BARE], 1, "cannot be read"),
    ]
    with Server() as server:
        for name, stored, results, refreshed, seen, status, says in rows:
            with Desk() as desk:
                if isinstance(stored, str):
                    desk.write("tokens/default.json", stored)
                elif stored is not None:
                    desk.login(**stored)
                server.script((RESULT, *results), ("/auth/refresh", refreshed or {"status": 500}))
                got = desk.submit(KCAP_URL=server.url)
                assert server.seen() == seen, (name, server.seen(), got)
                assert got[0] == status and says in got[1], (name, got)
                if status and name != "another kind":
                    assert "kcap login" in got[1] or "log in there" in got[1], (name, got)


def test_provider_none_and_its_memory():
    with Server() as server, Desk() as desk:
        desk.login()
        server.script((RESULT, OK), provider="None")
        assert desk.submit(KCAP_URL=server.url + "/")[0] == 0
        assert server.seen() == [ASK, BARE]
        entry = desk.read("cache/auth-providers.json")[server.url]
        assert entry["provider"] == "None" and abs(entry["fetched_at"] - time.time()) < 60, entry
        assert stat.S_IMODE(os.stat(os.path.join(desk.config, "cache")).st_mode) == 0o700
        server.script((RESULT, OK), provider="None")
        assert desk.submit(KCAP_URL=server.url)[0] == 0 and server.seen() == [BARE]  # remembered
        for age in (86401, -5):  # a day old, or written under a clock that was set back since
            desk.write("cache/auth-providers.json",
                       {server.url: {"provider": "None", "fetched_at": int(time.time()) - age}})
            server.script((RESULT, OK), provider="None")
            assert desk.submit(KCAP_URL=server.url)[0] == 0 and server.seen() == [ASK, BARE], age
        # the server has begun to want a login: what was remembered is forgotten, the stored one is used
        server.script((RESULT, NO, OK))
        assert desk.submit(KCAP_URL=server.url)[0] == 0 and server.seen() == [BARE, OLD]
        assert server.url not in desk.read("cache/auth-providers.json")


def test_discovery_that_does_not_work():
    answers = ({"status": 500}, {"text": "<html>"}, {"json": {"provider": 7}}, {"json": []}, {"fault": "close"})
    with Server() as server:
        for answer in answers:
            with Desk() as desk:
                desk.login()
                server.script(("/auth/config", answer), (RESULT, OK), provider=None)
                assert desk.submit(KCAP_URL=server.url)[0] == 0
                assert server.seen() == [ASK, OLD], (answer, server.seen())
                assert not os.path.exists(os.path.join(desk.config, "cache/auth-providers.json")), answer
        with Desk() as desk:  # one that never answers costs three seconds, and no more
            server.script(("/auth/config", {"fault": "hang"}), (RESULT, OK), provider=None)
            begin = time.monotonic()
            assert desk.submit(KCAP_URL=server.url)[0] == 0
            assert 2.9 < time.monotonic() - begin < 3 + 2 * SLOWER
            # and counts inside the call's time
            server.script(("/auth/config", {"fault": "hang"}), (RESULT, OK), provider=None)
            begin = time.monotonic()
            status, out, _ = desk.submit(KCAP_URL=server.url, KCAP_CALL_WINDOW_SEC="1")
            assert status == 1 and "Not delivered" in out, out
            assert time.monotonic() - begin < 1 + 1.5 * SLOWER


def test_the_token_file_is_the_users():
    with Server() as server, Desk() as desk:
        path = desk.login(seconds=-5, theirs={"keep": [1, "x"]})
        os.chmod(path, 0o644)
        real = os.path.join(desk.home, "elsewhere.json")
        os.rename(path, real)
        os.symlink(real, path)
        server.script((RESULT, OK), ("/auth/refresh", REFRESHED))
        assert desk.submit(KCAP_URL=server.url + "//")[0] == 0
        token = desk.read("tokens/default.json")
        assert os.path.islink(path) and os.path.realpath(path) == real
        assert stat.S_IMODE(os.stat(real).st_mode) == 0o600
        assert token["theirs"] == {"keep": [1, "x"]} and token["access_token"] == "tok-new", token
        assert token["github_username"] == "ada2" and token["provider"] == "GitHubApp", token
        assert token["server_url"] == server.url and token["refresh_token"] is None, token
        assert token["expires_at"][:13] == when(HOUR)[:13], token
        assert sorted(os.listdir(os.path.join(desk.config, "tokens"))) == ["default.json", "default.lock"]
        # the refresh carried the old token in its body, and no Authorization
        body = [r["json"] for r in server.mock.records(1) if r["path"] == "/auth/refresh"]
        assert body == [{"access_token": "tok-old"}], body


def test_the_login_from_before_profiles():
    with Server() as server, Desk() as desk:
        desk.login(name="tokens.json")
        server.script((RESULT, OK))
        assert desk.submit(KCAP_URL=server.url)[0] == 0 and server.seen() == [ASK, OLD]
        desk.write("config.json", {"version": 2, "active_profile": "default", "profiles": {
            "default": {}, "work": {"server_url": server.url}}})
        server.script((RESULT, OK))
        assert desk.submit(KCAP_PROFILE="work")[0] == 0 and server.seen() == [BARE]  # not the active one's
        desk.login(name="tokens.json", seconds=-5)
        server.script((RESULT, OK), ("/auth/refresh", REFRESHED))
        assert desk.submit(KCAP_URL=server.url)[0] == 0 and server.seen() == [RENEW, NEW]
        assert desk.read("tokens/default.json")["access_token"] == "tok-new"
        assert not os.path.exists(os.path.join(desk.config, "tokens.json"))
        desk.write("tokens/default.json", "broken")  # then the old file does not count
        desk.login(name="tokens.json")
        server.script((RESULT, OK))
        assert desk.submit(KCAP_URL=server.url)[0] == 0 and server.seen() == [BARE]


def test_workos():
    with Server() as server, Desk() as desk:
        env = {"KCAP_URL": server.url, "KCAP_WORKOS_TOKEN_URL": server.url + "/token"}
        fresh = jwt(int(time.time()) + 7200)
        stored = {"seconds": -5, "provider": "workos", "refresh_token": "refresh-1", "client_id": "c 1"}
        desk.login(**stored)
        server.script((RESULT, OK), ("/token", {"json": {"access_token": fresh, "refresh_token": "refresh-2"}}),
                      provider="workos")
        assert desk.submit(**env)[0] == 0
        assert server.seen() == [ASK, "POST /token", "POST %s Bearer %s" % (RESULT, fresh)], server.seen()
        asked = [r for r in server.mock.records(1) if r["path"] == "/token"][0]
        assert asked["headers"]["content-type"] == "application/x-www-form-urlencoded", asked
        assert asked["body"] == "grant_type=refresh_token&client_id=c%201&refresh_token=refresh-1", asked["body"]
        token = desk.read("tokens/default.json")
        assert token["refresh_token"] == "refresh-2" and token["expires_at"][:13] == when(7200)[:13], token
        # a refresh token that may have been used is not used again
        desk.login(**stored)
        server.script((RESULT, NO), ("/token", {"fault": "close"}), provider="workos")
        assert desk.submit(**env)[0] == 1
        assert server.seen() == ["POST /token", BARE], server.seen()
        # plain http to another machine gets nothing
        desk.login(**stored)
        server.script((RESULT, NO), provider="workos")
        status, out, _ = desk.submit(**dict(env, KCAP_WORKOS_TOKEN_URL="http://192.0.2.1/token"))
        assert status == 1 and "has expired" in out and server.seen() == [BARE], (out, server.seen())


def test_machines():
    with Server() as server, Desk() as desk:
        desk.login()
        env = {"KCAP_URL": server.url, "KCAP_WORKOS_TOKEN_URL": server.url + "/token"}
        both = dict(env, KCAP_CLIENT_ID="id", KCAP_CLIENT_SECRET="s3cret")
        server.script((RESULT, OK), ("/token", {"json": {"access_token": "tok-new", "expires_in": 60}}))
        assert desk.submit(**both)[0] == 0
        assert server.seen() == [ASK, "POST /token", NEW], server.seen()
        asked = server.mock.records(1)[1]["body"]
        assert asked == "grant_type=client_credentials&client_id=id&client_secret=s3cret", asked
        server.script((RESULT, NO), ("/token", {"status": 401, "json": {"error": "invalid_client"}}))
        status, out, _ = desk.submit(**both)
        assert status == 1 and "refused KCAP_CLIENT_ID and KCAP_CLIENT_SECRET (HTTP 401)" in out, out
        server.script(("/base" + RESULT, OK), ("/base/auth/config", {"json": {"provider": "None"}}))
        assert desk.submit(**dict(both, KCAP_URL=server.url + "/base"))[0] == 0  # a server that wants none gets none
        assert server.seen() == ["GET /base/auth/config", "POST /base" + RESULT], server.seen()
        for given, missing in (("KCAP_CLIENT_ID", "KCAP_CLIENT_SECRET"), ("KCAP_CLIENT_SECRET", "KCAP_CLIENT_ID")):
            server.script((RESULT, NO))
            status, out, _ = desk.submit(**dict(env, **{given: "s3cret"}))
            assert status == 1 and "%s is set but %s is not" % (given, missing) in out, out
            assert server.seen() == [BARE], server.seen()


def test_one_renews_and_the_others_wait():
    with Server() as server, Desk() as desk:
        desk.login(seconds=-5)
        server.script((RESULT, OK), ("/auth/refresh", dict(REFRESHED, delay_ms=300)))
        got = []
        threads = [threading.Thread(target=lambda: got.append(desk.submit(KCAP_URL=server.url))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [status for status, _, _ in got] == [0] * 4, got
        assert server.seen().count(RENEW) == 1 and server.seen().count(NEW) == 4, server.seen()


def test_a_lock_that_is_never_let_go():
    with Server() as server, Desk() as desk:
        path = desk.login(seconds=-5)
        with open(path.replace(".json", ".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            server.script((RESULT, NO), ("/auth/refresh", REFRESHED))
            begin = time.monotonic()
            status, out, _ = desk.submit(KCAP_URL=server.url, KCAP_CALL_WINDOW_SEC="2")
            assert status == 1 and time.monotonic() - begin < 2 + 2 * SLOWER, out
            assert RENEW not in server.seen()


def test_nothing_of_it_for_a_capability():
    with Server() as server, Desk() as desk:
        desk.login()
        server.script(("/cap/flow-result", NO), ("/auth/refresh", REFRESHED))
        status, out, _ = desk.submit(KCAP_URL=server.url, KCAP_FLOW_CAPABILITY_URL=server.url + "/cap/")
        assert status == 1 and "the daemon that started this reviewer" in out, out
        assert "/cap" not in out, out
        assert server.seen() == ["POST /cap/flow-result"], server.seen()
        assert "x-kcap-cli-version" not in server.mock.records(1)[0]["headers"]


# ---- the look-up ----

def git_config(desk, *urls):
    os.makedirs(os.path.join(desk.cwd, ".git"), exist_ok=True)
    with open(os.path.join(desk.cwd, ".git", "config"), "w") as file:
        for i, url in enumerate(urls):
            file.write('[remote "r%d"]\n\turl = %s\n' % (i, url))


def test_each_row_of_the_look_up():
    with Server() as a, Server() as b, Desk() as desk:
        profiles = {"default": {"server_url": a.url}, "work": {"server_url": b.url, "update_check": False,
                                                              "remotes": ["github.com/Acme/*"]},
                    "bare": {}}
        config = {"version": 2, "active_profile": "default", "profiles": profiles}
        kcap_json = os.path.join(desk.cwd, ".kcap.json")
        sub = os.path.join(desk.cwd, "sub")
        os.mkdir(sub)

        def goes_to(server, **env):
            for each in (a, b):
                each.script((RESULT, OK), provider="None")
            status, out, err = desk.submit(**env)
            seen = [bool(a.seen()), bool(b.seen())]
            if server is None:
                assert status == 1 and seen == [False, False], (out, err, seen)
            else:
                assert status == 0 and seen == [server is a, server is b], (out, err, seen)
            return out + err

        desk.write("config.json", config)
        assert "(from active_profile)" in goes_to(a)
        config["profile_bindings"] = {os.path.realpath(desk.cwd): "work"}
        git_config(desk)
        desk.write("config.json", config)
        assert "(from profile_bindings)" in goes_to(b)
        desk.cwd, top = sub, desk.cwd
        assert "(from profile_bindings)" in goes_to(b)  # the root counts, not where one stands
        desk.cwd = top
        config["profile_bindings"] = {os.path.realpath(desk.cwd): "default"}
        desk.write("config.json", config)
        git_config(desk, "git@elsewhere:x/y", "https://u:p@github.com:443/acme/tool.git")
        assert "(from remotes)" in goes_to(b)
        assert b.mock.records(1)[0]["headers"].get("x-kcap-update-check") == "off"
        git_config(desk, "git@github.com:acme/deep/er.git")  # a star does not cross a slash
        assert "(from profile_bindings)" in goes_to(a)
        git_config(desk, "git@github.com:acme/tool.git")
        with open(kcap_json, "w") as file:
            json.dump({"profile": "default", "server_url": "http://contradiction"}, file)
        text = goes_to(a)
        assert "(from .kcap.json)" in text and "names another server_url" in text, text
        assert "(from KCAP_PROFILE)" in goes_to(b, KCAP_PROFILE="work")
        assert "(from KCAP_URL)" in goes_to(a, KCAP_PROFILE="work", KCAP_URL=a.url)
        assert "'nobody'" in goes_to(None, KCAP_PROFILE="nobody")  # and no falling through
        assert "has no server_url" in goes_to(None, KCAP_PROFILE="bare")
        with open(kcap_json, "w") as file:
            json.dump({"profile": "nobody"}, file)
        assert ".kcap.json names the profile 'nobody'" in goes_to(None)
        with open(kcap_json, "w") as file:
            file.write("{")  # passed over
        assert "(from remotes)" in goes_to(b)
        os.unlink(kcap_json)
        profiles["twin"] = {"server_url": a.url, "remotes": ["GITHUB.com/acme/tool"]}
        desk.write("config.json", config)
        assert "'work' and 'twin'" in goes_to(None)
        git_config(desk)
        config.update(active_profile="nobody", profile_bindings={})
        desk.write("config.json", config)
        assert "active_profile names the profile 'nobody'" in goes_to(None)
        before = desk.write("config.json", {"server_url": b.url})  # version 1: read, and left as it is
        assert "(from active_profile)" in goes_to(b)
        with open(before) as file:
            assert json.load(file) == {"server_url": b.url}
        desk.write("config.json", "{,}")
        text = goes_to(None)
        assert text.count("cannot be read as a JSON object") == 1 and "KCAP_FLOW_CAPABILITY_URL" in text, text


def test_a_driver_has_its_own_server_in_the_end():
    with Desk() as desk:
        env = {k: v for k, v in desk.env.items() if k != "KCAP_FLOW_AGENT_ID"}
        desk.write("config.json", {"active_profile": "x", "profiles": {"x": {"server_url": "ftp://x"}}})
        status, out, err = run([HOST, "--plugin", "flows", "--call", "get_review_flow_status",
                                '{"flow_run_id":"f1"}'], env=env, cwd=desk.cwd)
        assert status == 1 and "active_profile" in out and "https://" in out, (out, err)


main(globals())
