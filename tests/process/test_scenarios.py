# SPDX-License-Identifier: Apache-2.0
"""Whole conversations with a flow server, from tests/data/flow-scenarios.jsonl: what is sent, and what the agent is told.

Where kcap itself is installed (KCAP_CLI names it, or it is in PATH) it plays the same ones, and the requests of both are
the same; those with "differs" are what docs/kcap-differences.md lists."""
import tempfile
import urllib.request

from harness import *

MOCK = os.path.join(paths.SRCDIR, "tests", "support", "mock_flow_server.py")
OTHER = os.environ.get("KCAP_CLI") or shutil.which("kcap")
# where they run, and what only tells machines apart
PLACE = {"requesting_cwd", "requesting_repo_root", "repo_path", "requester_machine_id"}


class Mock:
    def __init__(self, home, routes):
        script = os.path.join(home, "scenario.json")
        with open(script, "w") as file:
            json.dump({"routes": routes}, file)
        self.process = subprocess.Popen([sys.executable, MOCK, "--scenario", script, "--max-seconds", "300"],
                                        stdout=subprocess.PIPE, text=True)
        self.url = "http://127.0.0.1:" + self.process.stdout.readline().split()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def requests(self):
        with urllib.request.urlopen(self.url + "/__mock/requests") as answer:
            seen = json.load(answer)
        return seen["requests"] if isinstance(seen, dict) else seen


def place(home, scenario):
    """A repository with a remote, and the user's configuration."""
    repo = os.path.join(home, "work")
    os.makedirs(os.path.join(repo, ".git"))
    for name, text in (("config", '[remote "origin"]\n\turl = https://example.com/acme/tool.git\n'), ("HEAD", "ref: refs/heads/main\n")):
        with open(os.path.join(repo, ".git", name), "w") as file:
            file.write(text)
    os.makedirs(os.path.join(repo, ".git", "objects"))
    os.makedirs(os.path.join(repo, ".git", "refs"))
    if "config" in scenario:
        os.makedirs(os.path.join(home, ".config", "kcap"))
        with open(os.path.join(home, ".config", "kcap", "config.json"), "w") as file:
            json.dump(scenario["config"], file)
    return repo


def told(request):
    """The part of a request that counts: what is asked, and of its body what does not depend on the place."""
    body = request.get("body") or request.get("json")
    if isinstance(body, str):
        body = json.loads(body) if body.strip() else None
    if isinstance(body, dict):
        body = {name: value for name, value in body.items() if name not in PLACE}
    return "%s %s" % (request["method"], request["path"].split("?")[0]), body


def play(scenario, program, arguments):
    """Returns the results of the calls and the requests."""
    with TempDir() as home:
        repo = place(home, scenario)
        routes = json.loads(json.dumps(scenario["routes"]).replace("@REPO", repo))
        with Mock(home, routes) as mock, \
                Host(*arguments, program=program, cwd=repo,
                     env=clean_env(home, KCAP_URL=mock.url, KCAP_STATE_DIR=os.path.join(home, "state"), DO_NOT_TRACK="1")) as host:
            host.initialize()
            results = [host.result(call["tool"], call["arguments"], seconds=60) for call in scenario["calls"]]
            try:  # messages are acknowledged a moment later
                wait_for(lambda: len(mock.requests()) >= len(scenario["requests"]), 8, "the requests", tick=0.1)
            except AssertionError:
                pass  # the caller compares them
            return results, [told(request) for request in mock.requests()]


def scenarios():
    with open(os.path.join(paths.SRCDIR, "tests", "data", "flow-scenarios.jsonl")) as file:
        return [json.loads(line) for line in file]


def in_parallel(function, items, width=4):
    import concurrent.futures
    with concurrent.futures.ThreadPoolExecutor(width) as pool:
        return list(pool.map(function, items))


def ours(scenario):
    return play(scenario, HOST, ["--plugin", "flows"])


def test_each_scenario():
    all = scenarios()
    for scenario, (results, requests) in zip(all, in_parallel(ours, all)):
        name = scenario["name"]
        assert [what for what, _ in requests] == scenario["requests"], (name, requests)
        errors = scenario.get("error", [False] * len(results))
        assert [bool(result.get("isError")) for result in results] == errors, (name, results)
        for result, parts in zip(results, scenario["says"]):
            for part in parts:
                assert part in text_of(result), (name, part, text_of(result))
        for result, parts in zip(results, scenario.get("lacks", [])):
            for part in parts:
                assert part not in text_of(result), (name, part, text_of(result))


def test_kcap_sends_the_same():
    """Asked by one who has no session, as kcap cannot see those of most clients."""
    if not OTHER:
        print("     kcap is not installed here; set KCAP_CLI to compare with it")
        return
    all = [scenario for scenario in scenarios() if "differs" not in scenario]
    both = zip(all, in_parallel(ours, all), in_parallel(lambda s: play(s, OTHER, ["mcp", "flows"]), all))
    for scenario, (_, mine), (results, others) in both:
        assert mine == others, (scenario["name"], mine, others)
        errors = scenario.get("error", [False] * len(results))
        assert [bool(result.get("isError")) for result in results] == errors, (scenario["name"], results)


def test_the_differences_are_there():
    """A row of the table that kcap no longer shows is to be struck out."""
    if not OTHER:
        return
    for scenario in scenarios():
        if "differs" not in scenario or scenario["differs"] == "W13":  # which would wait for eight minutes
            continue
        (mine, sent), (others, seen) = ours(scenario), play(scenario, OTHER, ["mcp", "flows"])
        errors = scenario.get("error", [False] * len(mine))
        parts_are_there = all(part in text_of(result) for result, parts in zip(others, scenario["says"]) for part in parts)
        assert sent != seen or [bool(r.get("isError")) for r in others] != errors or not parts_are_there, scenario["name"]


if __name__ == "__main__":
    main(globals())
