# SPDX-License-Identifier: Apache-2.0
"""Real agents on a scripted model. make check-harness installs them; without them the tests are skipped."""
import json
import os
import subprocess

from harness import SLOWER, Skip, clean_env, paths

DIR = os.environ.get("KCAP_HARNESS_DIR", os.path.join(paths.BUILDDIR, "harness-clients"))
BIN = os.path.join(DIR, "node_modules", ".bin")


def program(name, place=""):
    path = os.path.join(DIR, place, "node_modules", ".bin", name)
    if not os.path.exists(path):
        raise Skip("no %s in %s (make check-harness installs it)" % (name, os.path.dirname(path)))
    return path


def _run(argv, env, cwd, seconds):
    return subprocess.run(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=seconds * SLOWER)


def codex(api, home, cwd, server, env, args=(), seconds=90):
    """codex exec, which nobody can answer a question of: approval policy never, read-only sandbox."""
    codex_home = os.path.join(home, ".codex")
    os.makedirs(codex_home, exist_ok=True)
    with open(os.path.join(codex_home, "config.toml"), "w") as file:
        file.write('model = "gpt-5"\nmodel_provider = "mock"\napproval_policy = "never"\n'
                   '[model_providers.mock]\nname = "mock"\nbase_url = "%s/v1"\nwire_api = "responses"\n'
                   'env_key = "MOCK_KEY"\n[mcp_servers.kcap-flow-result]\nrequired = true\ncommand = %s\nargs = %s\n'
                   'env = { %s }\n' % (api.url, json.dumps(server[0]), json.dumps(server[1:]),
                                       ", ".join("%s = %s" % (k, json.dumps(v)) for k, v in env.items())))
    return _run([program("codex"), "exec", "--json", "--skip-git-repo-check", "-s", "read-only", *args, "go"],
                clean_env(home, CODEX_HOME=codex_home, MOCK_KEY="x"), cwd, seconds)


def claude(api, home, cwd, server, env, args=(), seconds=90):
    """claude -p with the two tools allowed beforehand, and nobody to ask."""
    config = os.path.join(home, "mcp.json")
    with open(config, "w") as file:
        json.dump({"mcpServers": {"kcap-flow-result": {"type": "stdio", "command": server[0], "args": server[1:],
                                                       "env": env}}}, file)
    return _run([program("claude"), "-p", "go", "--mcp-config", config, "--strict-mcp-config", "--allowedTools",
                 "mcp__kcap-flow-result__submit_review_result,mcp__kcap-flow-result__send_flow_message",
                 "--output-format", "stream-json", "--verbose", *args],
                clean_env(home, ANTHROPIC_BASE_URL=api.url, ANTHROPIC_API_KEY="x", DISABLE_AUTOUPDATER="1",
                          ENABLE_TOOL_SEARCH="false", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1"), cwd, seconds)
