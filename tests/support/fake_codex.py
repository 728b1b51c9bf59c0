#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays the codex program: "mcp list" and "mcp get" from the servers that FAKE_CODEX describes and the -c flags it is
given, merged as the real one does; any other subcommand prints what it was started with. FAKE_CODEX is JSON:
{"servers": {name: {...}}, "managed": {name: {...}}, "fault": WORD, "fault_at": N}, the fault in the Nth question."""
import json
import os
import signal
import subprocess
import sys
import tomllib


def merge(under, over):
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(under.get(key), dict):
            merge(under[key], value)
        else:
            under[key] = value


def overrides(words):
    """All -c values as one layer: a later whole value replaces, a dotted one adds."""
    layer = {}
    for flag, word in zip(words, words[1:]):
        if flag != "-c":
            continue
        path, _, value = word.partition("=")
        keys = path.split(".")
        table = layer
        for key in keys[:-1]:
            table = table.setdefault(key, {})
        table[keys[-1]] = tomllib.loads("x = " + value)["x"]
    return layer


def shown(name, server):
    return {"name": name, "enabled": server.get("enabled", True), "disabled_reason": None,
            "transport": {"type": "stdio", "command": server.get("command"), "args": server.get("args", []),
                          "env": server.get("env"), "env_vars": server.get("env_vars", []), "cwd": server.get("cwd")},
            "startup_timeout_sec": None, "tool_timeout_sec": None, "auth_status": "unsupported",
            "enabled_tools": server.get("enabled_tools"), "disabled_tools": None}


def fail(fault, answer):
    if fault == "hang":
        signal.pause()
    if fault == "flood":
        while True:
            os.write(1, b"x" * 65536)
    if fault == "status":
        sys.exit("WARNING: something\nError: no\n\nCaused by:\n    0: config.toml:3:9: a bad \"secret\"\n"
                 "    1: TOML parse error at line 3, column 9\n     |\n   3 | x = secret\n\nStack backtrace:\n")
    if fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "text":
        return "hello\n" + json.dumps(answer)
    if fault == "nameless":
        return json.dumps([{"enabled": False}])
    if fault == "child":  # it ends, and leaves a child that holds its output
        subprocess.Popen(["tail", "-f", "/dev/null"])
    return json.dumps(answer)


def main():
    play = json.loads(os.environ.get("FAKE_CODEX", "{}"))
    words = sys.argv[1:]
    layer = overrides(words)
    if "mcp" not in words:
        print(json.dumps({"argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd(), "pid": os.getpid(),
                          "status": open("/proc/self/status").read(), "input": sys.stdin.read()}))
        return
    servers = json.loads(json.dumps(play.get("servers", {})))
    merge(servers, layer.get("mcp_servers", {}))
    merge(servers, play.get("managed", {}))
    command = words[words.index("mcp") + 1:]
    if command[0] == "list":
        question = 2 if any(name.startswith("kcap-flow-result-") for name in servers) else 1
        answer = [shown(name, server) for name, server in sorted(servers.items())]
    else:
        question, answer = 3, shown(command[1], servers[command[1]])
    fault = play.get("fault") if play.get("fault_at", 1) == question else None
    print(fail(fault, answer))


main()
