# SPDX-License-Identifier: Apache-2.0
"""table.py DIR: what the logs of tests/harness in a build directory say of each client and each scenario, as Markdown.
Exits 1 when a cell that can be run did not pass; a client that is not installed is one where that is no failure, but for
Codex and Claude Code. What a machine does not allow, an /etc of one's own, is told and no failure."""
import datetime
import os
import re
import sys

CODEX, CLAUDE, NEWER = "Codex 0.171.0", "Claude Code 2.1.197", "Claude Code 2.1.332"
GEMINI, OPENCODE, COPILOT = "Gemini CLI 0.61.0", "opencode 1.18.33", "Copilot CLI 1.0.102"
CLIENTS = (CODEX, CLAUDE, NEWER, GEMINI, OPENCODE, COPILOT)

SCENARIOS = (
    "a round longer than a call may last",
    "the call is lost: cut off, killed, interrupted, another session",
    "a call that is moved to the background",
    "registered by codex-setup",
    "reviewer: exactly our tools, submits unattended",
    "a whole loop, three rounds, Codex or Claude Code reviewing",
    "the client quits while a call blocks",
    "a third party's plugin",
)

ONLY_CLAUDE = "only Claude Code does that, from 2.1.212"
ONLY_CODEX = "codex-setup is for Codex"
NO_REVIEWER = "kcap-flowd starts Codex 0.171.0 and Claude Code 2.1.197 in these tests"


def of(prefix, *names):
    return ["test_drivers:test_%s_%s" % (prefix, name) for name in names]


CELLS = {
    (CODEX, 0): of("codex", "window_under_the_limit") + ["test_slow_codex:test_a_round_longer_than_the_limit"],
    (CLAUDE, 0): of("claude", "window_under_the_limit"),
    (NEWER, 0): of("new_claude", "window_under_the_limit"),
    (GEMINI, 0): of("gemini", "window_under_the_limit"),
    (OPENCODE, 0): of("opencode", "window_under_the_limit"),
    (COPILOT, 0): of("copilot", "window_under_the_limit"),
    (CODEX, 1): of("codex", "call_cut_off", "killed", "interrupted", "compacted"),
    (CLAUDE, 1): of("claude", "call_cut_off", "killed", "interrupted", "compacted"),
    (NEWER, 1): of("new_claude", "call_cut_off", "killed", "compacted"),
    (GEMINI, 1): of("gemini", "call_cut_off"),
    (OPENCODE, 1): of("opencode", "call_cut_off"),
    (COPILOT, 1): of("copilot", "call_cut_off"),
    (NEWER, 2): of("new_claude", "knows_the_id_before_a_call_is_moved_to_the_background",
                   "finds_a_run_whose_call_was_moved_to_the_background"),
    (CODEX, 3): of("codex", "as_codex_setup_registers_it"),
    (CODEX, 4): ["test_launch_codex:*", "test_flowd_reviewers:test_codex*", "test_flow_result_clients:test_codex_calls_both_tools"],
    (CLAUDE, 4): ["test_launch_claude:*", "test_flowd_reviewers:test_claude*",
                  "test_flow_result_clients:test_claude_calls_both_tools"],
    (CODEX, 5): ["test_loop:test_codex_drives_and_claude_reviews"],
    (CLAUDE, 5): ["test_loop:test_claude_drives_and_codex_reviews"],
    (NEWER, 5): ["test_loop:test_new_claude_drives_and_codex_reviews"],
    (GEMINI, 5): ["test_loop:test_gemini_drives_and_codex_reviews"],
    (OPENCODE, 5): ["test_loop:test_opencode_drives_and_claude_reviews"],
    (COPILOT, 5): ["test_loop:test_copilot_drives_and_codex_reviews"],
    (CODEX, 6): of("codex", "quits"),
    (CLAUDE, 6): of("claude", "quits"),
    (NEWER, 6): of("new_claude", "quits"),
    (GEMINI, 6): of("gemini", "quits"),
    (OPENCODE, 6): of("opencode", "quits"),
    (COPILOT, 6): of("copilot", "quits"),
    (CODEX, 7): of("codex", "third_partys_plugin"),
    (CLAUDE, 7): of("claude", "third_partys_plugin"),
    (NEWER, 7): of("new_claude", "third_partys_plugin"),
    (GEMINI, 7): of("gemini", "third_partys_plugin"),
    (OPENCODE, 7): of("opencode", "third_partys_plugin"),
    (COPILOT, 7): of("copilot", "third_partys_plugin"),
}
REASONS = {2: ONLY_CLAUDE, 3: ONLY_CODEX, 4: NO_REVIEWER}


def read(directory):
    """{"file:test": "ok" | "skip" | "FAIL"}, and lines on what this machine did not allow."""
    found, not_here = {}, []
    for name in sorted(os.listdir(directory)):
        if name.endswith(".log"):
            with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as file:
                for line in file:
                    match = re.match(r"(ok|skip|FAIL) +(test_\w+)(: no (/etc of one's own|unshare) .*)?", line)
                    if match and match.group(3):
                        not_here.append("%s: %s%s" % (name[:-4], match.group(2), match.group(3)))
                    elif match:
                        found[name[:-4] + ":" + match.group(2)] = match.group(1)
    return found, not_here


def loops(directory):
    """What the whole loops said of themselves."""
    path = os.path.join(directory, "test_loop.log")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", errors="replace") as file:
        return [line.strip() for line in file if " drives, " in line]


def state(tests, found):
    """ok, skip, FAIL or missing, whichever is worst."""
    states = []
    for test in tests:
        if test.endswith("*"):
            states += [s for name, s in found.items() if name.startswith(test[:-1])] or ["missing"]
        else:
            states.append(found.get(test, "missing"))
    return max(states, key=("ok", "skip", "missing", "FAIL").index)


def main(directory):
    (found, not_here), bad = read(directory), 0
    print("# Clients\n\nReal clients on a scripted model, with an installed kcap-host and kcap-flowd, on %s. `make check-harness` prints this page;\n"
          "a number in a cell is a reason below.\n" % datetime.date.today())
    print("| client | " + " | ".join(SCENARIOS) + " |\n" + "| --- " * (len(SCENARIOS) + 1) + "|")
    reasons = []
    for client in CLIENTS:
        row = []
        for n in range(len(SCENARIOS)):
            tests = CELLS.get((client, n))
            result = state(tests, found) if tests else REASONS[n]
            if not tests and result not in reasons:
                reasons.append(result)
            row.append("**%s**" % result if tests and result != "ok" else str(reasons.index(result) + 1) if not tests else "ok")
            if tests and result != "ok" and (result != "skip" or client in (CODEX, CLAUDE, NEWER)):
                bad = 1
                print("%s: %s: %s" % (client, SCENARIOS[n], result), file=sys.stderr)
        print("| %s | %s |" % (client, " | ".join(row)))
    print("\n" + "\n".join("%d. Cannot be run: %s." % (n, reason) for n, reason in enumerate(reasons, 1)))
    if not_here:
        print("\nNot allowed on this machine, and left out of the cells:\n\n" + "\n".join("- " + line for line in not_here))
    print("\nThe whole loops (two rounds with findings, a message, a clean one, the close; the models answer at once):\n")
    print("\n".join("- " + line for line in loops(directory)))
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
