#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kcap-checklist on real repositories: planted faults are found, one finding each, and two
hundred ordinary changes give none."""

import json
import os
import random
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import flowd  # noqa: E402

CONFLICT = "int a;\n<<<<<<< HEAD\nint b;\n=======\nint c;\n>>>>>>> topic\nint d;\n"


class Checklist(unittest.TestCase):
    def setUp(self):
        self.place = flowd.Place()
        self.addCleanup(self.place.remove)
        self.repo = flowd.Repo(self.place)

    def run_checklist(self, *arguments, **env):
        done = subprocess.run(
            [flowd.CHECKLIST, *arguments, self.repo.dir], env=dict(self.repo.env, **env),
            capture_output=True, text=True, timeout=flowd.DEADLINE_SEC, check=False)
        return done.returncode, done.stdout, done.stderr

    def findings(self, *arguments, **env):
        """The report's lines after the first."""
        status, out, err = self.run_checklist(*arguments, **env)
        self.assertEqual(err, "")
        lines = out.splitlines()
        self.assertRegex(lines[0], "^Looked at ")
        self.assertEqual(status, 1 if lines[1:] else 0, out)
        return lines[1:]

    def fault_lines(self, *arguments):
        return [line.split(": ")[0] for line in self.findings(*arguments)]


class Planted(Checklist):
    def plant(self):
        self.repo.write("ok.c", "int ok;\n")
        self.repo.write("code.c", CONFLICT)
        self.repo.write("blank.py", "a = 1\nb = 2 \nc = 3\n")
        self.repo.write("bad.json", '{"a": 1,\n "b": }\n')

    expected = ["bad.json:2", "blank.py:2", "code.c:2"]

    def test_exactly_three_in_every_place(self):
        self.plant()
        self.assertEqual(self.fault_lines(), self.expected)  # untracked, before any commit
        self.repo.git("add", "-A")
        self.assertEqual(self.fault_lines(), self.expected)  # staged
        root = self.repo.commit()
        self.assertEqual(self.fault_lines("--commit", "HEAD"), self.expected)  # a root commit
        self.assertEqual(self.findings(), [])
        for name in ("code.c", "blank.py", "bad.json"):
            self.repo.git("rm", "-q", name)
        base = self.repo.commit()
        self.plant()
        self.repo.commit()
        self.repo.write("more.c", "int more;\n")
        self.repo.commit()
        self.assertEqual(self.fault_lines("--base", base), self.expected)
        self.assertEqual(self.fault_lines("--base", base, "--commit", "HEAD~1"), self.expected)
        self.assertEqual(self.findings("--base", root), [])
        self.assertEqual(self.findings("--commit", "HEAD"), [])

    def test_a_tidy_one_is_clean(self):
        self.repo.write("ok.c", "int ok;\n")
        self.repo.commit()
        self.repo.write("ok.c", "int ok, fine;\n")
        self.repo.write("new.json", '{"a": [1, 2]}\n')
        status, out, err = self.run_checklist()
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"^Looked at the working tree against HEAD .*: 2 files, 0 findings")

    def test_a_bare_repository_has_commits(self):
        self.plant()
        self.repo.commit()
        bare = os.path.join(self.place.dir, "bare.git")
        self.repo.git("clone", "-q", "--bare", self.repo.dir, bare)
        self.repo.dir = bare
        self.assertEqual(self.fault_lines("--commit", "HEAD"), self.expected)
        status, out, err = self.run_checklist()
        self.assertEqual((status, out), (2, ""))
        self.assertIn("bare repository", err)

    @unittest.skipUnless(os.geteuid() == 0, "only root can make a directory another's")
    def test_another_owner_is_named_as_the_cause(self):
        self.repo.commit()
        for path in (self.repo.dir, os.path.join(self.repo.dir, ".git")):
            os.chown(path, 12345, 12345)
        status, out, err = self.run_checklist()
        self.assertEqual((status, out), (2, ""))
        self.assertIn("fatal: detected dubious ownership", err)

    def test_old_faults_are_not_reported(self):
        self.plant()
        self.repo.commit()
        self.repo.write("blank.py", "a = 1\nb = 2 \nc = 4\n")
        self.assertEqual(self.findings(), [])

    def test_a_real_conflict(self):
        self.repo.write("a.c", "int a;\n")
        self.repo.commit()
        self.repo.git("checkout", "-q", "-b", "topic")
        self.repo.write("a.c", "int b;\n")
        self.repo.commit()
        self.repo.git("checkout", "-q", "main")
        self.repo.write("a.c", "int c;\n")
        self.repo.commit()
        self.repo.git("merge", "-q", "topic", check=False)
        self.assertEqual(self.fault_lines(), ["a.c:1"])

    def test_modes_sizes_binaries(self):
        self.repo.write("tool", "#!/bin/sh\n")
        self.repo.write("text", "text\n", 0o755)
        self.repo.write("empty", "", 0o755)
        self.repo.write("large.txt", "x\n" * (600 << 10))
        self.repo.write("prog", b"\177ELF" + bytes(100), 0o755)
        self.repo.write("cache.pyc", bytes(100))
        self.repo.write("picture.png", b"\x89PNG\r\n\x1a\n" + bytes(100))
        expected = ["cache.pyc", "large.txt", "prog", "text"]
        self.assertEqual(self.fault_lines(), expected)
        self.repo.commit()
        self.assertEqual(self.fault_lines("--commit", "HEAD"), expected)
        os.chmod(os.path.join(self.repo.dir, "tool"), 0o755)
        self.assertEqual(self.fault_lines(), ["tool"])
        self.repo.commit()
        self.assertEqual(self.fault_lines("--commit", "HEAD"), ["tool"])

    def test_secrets_are_not_printed(self):
        secret = "ghp_" + "".join(random.Random(1).choices("abcdeABCDE0123456789", k=36))
        self.repo.write("conf.py", 'TOKEN = "%s"\n' % secret)
        status, out, _ = self.run_checklist()
        self.assertEqual(status, 1)
        self.assertIn("conf.py:1: ", out)
        self.assertIn("ghp_", out)
        self.assertNotIn(secret[:8], out)

    def test_attributes_are_honoured(self):
        self.repo.write("a.txt", "blank \n")
        self.repo.write("b.txt", "blank \n \tx\n")
        self.repo.write(".gitattributes", "a.txt -whitespace\nb.txt whitespace=-blank-at-eol\n")
        self.assertEqual(self.fault_lines(), ["b.txt:2"])
        self.repo.git("config", "core.whitespace", "-space-before-tab")
        self.repo.write(".gitattributes", "")
        self.assertEqual(self.fault_lines(), ["a.txt:1", "b.txt:1"])

    def test_many_are_counted(self):
        self.repo.write("a.c", "x \n" * 250)
        findings = self.findings()
        self.assertEqual(len(findings), 201)
        self.assertEqual(findings[-1], "... and 50 more.")


class Hostile(Checklist):
    def test_bad_revisions_are_no_clean(self):
        self.repo.write("a", "a\n")
        self.repo.commit()
        for arguments in (["--commit", "nosuch"], ["--base", "nosuch"], ["--commit", "--all"],
                          ["--base", "--output=/tmp/x"], ["--commit", "HEAD:a"],
                          ["--commit", "HEAD\nHEAD"], ["--base", "a..b"], ["--commit", "@{99}"]):
            status, out, err = self.run_checklist(*arguments)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertRegex(err, "^kcap-checklist: .*\n$")

    def test_not_a_repository(self):
        done = subprocess.run([flowd.CHECKLIST, self.place.dir], env=self.repo.env,
                              capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("not a git repository", done.stderr)

    def test_names(self):
        names = ["a b", "tab\there", "line\nend", 'quote"s', "back\\slash", "\x1b[31mred",
                 "-rf", "b/b", "ünï", "a\x7f", ":(top)x", "*", "+++ b/a b"]
        for name in names:
            self.repo.write(name, "x \n")
        self.repo.write(os.fsdecode(b"\xff\xfe"), "x \n")
        for arguments in ([], ["--commit", "HEAD"]):
            if arguments:
                self.repo.commit()
            findings = self.findings(*arguments)
            self.assertEqual(len(findings), len(names) + 1, findings)
            self.assertIn("ünï:1: blank at the end of the line", findings)
            self.assertIn("line\\nend:1: blank at the end of the line", findings)
            self.assertNotIn("\x1b", "".join(findings))

    def test_contents_that_look_like_a_patch(self):
        text = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n+++ b/a.c\n-- x\n"
        self.repo.write("a.c", text)
        self.repo.write("x", "x\n")
        self.repo.commit()
        self.repo.write("a.c", "++ b/x\n@@ -1 +1,100 @@\nfault \n" + text)
        self.repo.write("x", "y\n")
        self.assertEqual(self.fault_lines(), ["a.c:3"])

    def test_configuration_runs_nothing(self):
        mark = os.path.join(self.place.dir, "mark")
        self.repo.write("a.c", "a\n")
        self.repo.write(".gitattributes", "*.c diff=evil\n")
        self.repo.commit()
        evil = "touch %s; cat" % mark
        for name in ("diff.external", "diff.evil.textconv", "diff.evil.command", "core.pager",
                     "core.fsmonitor"):
            self.repo.git("config", name, evil)
        self.repo.write("a.c", "b \n")
        self.assertEqual(self.fault_lines(), ["a.c:1"])
        self.assertFalse(os.path.exists(mark))

    def test_environment_of_git_is_dropped(self):
        self.repo.write("a.c", "b \n")
        self.assertEqual(len(self.findings(GIT_DIR="/nowhere", GIT_INDEX_FILE="/nowhere",
                                           GIT_EXTERNAL_DIFF="false")), 1)

    def test_odd_things_in_the_tree(self):
        os.symlink("/etc/passwd", os.path.join(self.repo.dir, "link.json"))
        os.mkfifo(os.path.join(self.repo.dir, "fifo"))
        subprocess.run(["git", "init", "-q", os.path.join(self.repo.dir, "inner")],
                       env=self.repo.env, check=True, timeout=30)
        self.repo.write("inner/a.c", "x \n")
        self.repo.write("a.c", "x\n")
        self.assertEqual(self.findings(), [])
        self.repo.git("add", "a.c", "link.json")
        self.repo.git("commit", "-q", "-m", "x")
        os.remove(os.path.join(self.repo.dir, "a.c"))
        os.mkdir(os.path.join(self.repo.dir, "a.c"))
        self.assertEqual(self.findings(), [])

    def test_a_job_without_a_server(self):
        for job in ("", "{}", "[]", '{"round_token":"t","dir":"/","target_kind":"x"}'):
            done = subprocess.run([flowd.CHECKLIST, "--job"], input=job, env=self.repo.env,
                                  capture_output=True, text=True, timeout=30, check=False)
            self.assertEqual(done.returncode, 2, job)
            self.assertIn("no job", done.stderr)


# ---- two hundred changes ----

TEXTS = {
    "src/main.c": "#include <stdio.h>\n\nint\nmain(void)\n{\n\tprintf(\"here we go %d\\n\", 1);\n"
                  "\treturn 0;\n}\n",
    "src/util.h": "#ifndef UTIL_H\n#define UTIL_H\nint util(int a, int b);\n#endif\n",
    "app/view.js": "export function view(a) {\n  console.log('started', a);\n"
                   "  // the debugger stops here\n  return a && debuggerOptions.on;\n}\n",
    "app/cli.ts": "const token: string = process.env.TOKEN ?? \"\";\n"
                  "console.error(\"debugging is off\");\nexport default token;\n",
    "tool/run.py": "#!/usr/bin/env python3\nimport pdb\n\n\ndef run(password=None):\n"
                   "    \"\"\"Sets no breakpoint() itself.\"\"\"\n"
                   "    token = \"<your token here>\"\n    return password or token\n",
    "lib/thing.rb": "class Thing\n  def binding_pry?\n    false\n  end\nend\n",
    "web/index.php": "<?php\n$password = getenv('PASSWORD');\nfunction add($a) { return $a; }\n",
    "go/main.go": "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(\"hello\")\n}\n",
    "rs/lib.rs": "pub fn add(a: i32, b: i32) -> i32 {\n    println!(\"{} {}\", a, b);\n"
                 "    a + b\n}\n",
    "Makefile": "all:\n\t$(CC) -o a a.c\n\n.PHONY: all\n",
    "README.md": "Title\n=======\n\nA line that breaks  \nhere.\n\n```\n<<<<<<< HEAD\na\n=======\n"
                 "b\n>>>>>>> topic\n```\n",
    "docs/guide.rst": "Guide\n=======\n\nText.\n\nSection\n-------\n\n>>>>>>> quoted deeply\n",
    "conf/a.yaml": "a: 1\nb:\n  - x\n  - y: {z: 1}\n---\nc: &anchor 2\nd: *anchor\n",
    "chart/templates/d.yaml": "kind: {{ .Values.kind }}\n{{- if .Values.on }}\na: {{ .x }}\n"
                              "{{- end }}\n",
    ".github/workflows/ci.yml": "on: [push]\njobs:\n  a:\n    runs-on: ${{ matrix.os }}\n",
    "data/a.json": "{\"a\": [1, 2.5e3, null], \"b\": \"\\u00e9\"}\n",
    "tsconfig.json": "{\n  // comments are fine here\n  \"a\": 1,\n}\n",
    ".vscode/settings.json": "{\n  // here too\n  \"a\": 1,\n}\n",
    "package.json": "{\"//\": \"one\", \"//\": \"two\", \"name\": \"x\"}\n",
    "web/style.css": "a {\n  color: #abcdef;\n}\n",
    "win/crlf.txt": "one\r\ntwo\r\nthree\r\n",
    "win/run.bat": "@echo off\r\necho hi\r\n",
    "sql/a.sql": "select '-----BEGIN CERTIFICATE-----';\n",
    "conf/example.env": "PASSWORD=\"changeme-changeme-1\"\nAPI_KEY='your-api-key-here-123'\n"
                        "AWS_KEY=AKIAIOSFODNN7EXAMPLE\n",
    "data/table.tsv": "a\tb\t\nc\t\t\n",
    "fix/a.patch": "--- a\n+++ b\n@@ -1,2 +1,2 @@\n \n-a\n+b \n",
    "go.sum": "example.org/x v1.0.0 h1:2mPm7zq9nQf8a0Yw3p4sVtK5u6r7s8t9=\n",
    "empty.txt": "",
    "pkg/__init__.py": "\n",
    "no-newline": "no line end",
    "unicode.txt": "Grüße, 世界\n",
}
BINARIES = {
    "img/a.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "font/a.woff2": b"wOF2\0\1\0\0\0\0",
    "data/a.zip": b"PK\3\4\0\0\0\0",
    "doc/a.pdf": b"%PDF-1.7\n\0\0\0",
    "data/utf16.txt": "text in two bytes \n".encode("utf-16"),
}
NEW_LINES = {
    ".c": "int f%d(void);\n", ".h": "int g%d(void);\n", ".js": "export const a%d = 1;\n",
    ".ts": "export const b%d = 2;\n", ".py": "c%d = 3\n", ".rb": "# note %d\n",
    ".php": "$d = %d;\n", ".go": "// note %d\n", ".rs": "// note %d\n", ".md": "Line %d.\n",
    ".rst": "\nLine %d.\n", ".css": "/* note %d */\n", ".txt": "line %d\n", ".sql": "-- n %d\n",
}


class Clean(Checklist):
    """A commit at a time, random by a fixed seed, checked as a commit or before it is one."""

    def setUp(self):
        super().setUp()
        self.random = random.Random(20)
        self.texts = {}
        self.number = 0

    def put(self, path, content):
        self.repo.write(path, content, 0o755 if str(content).startswith("#!") else None)
        self.texts[path] = content

    def add(self):
        path, text = self.random.choice(sorted(TEXTS.items()))
        where, name = os.path.split(path)
        fresh = os.path.join("p%d" % self.number, where, name)
        self.put(fresh, text)

    def add_binary(self):
        path, data = self.random.choice(sorted(BINARIES.items()))
        self.put("p%d/%s" % (self.number, path), data + bytes([self.number % 256]))

    def edit(self):
        path = self.random.choice(sorted(self.texts))
        content, ending = self.texts[path], os.path.splitext(path)[1]
        if isinstance(content, str) and ending in NEW_LINES and content.endswith("\n") and \
                "\r" not in content:
            self.put(path, content + NEW_LINES[ending] % self.number)
        elif isinstance(content, bytes):
            self.put(path, content + b"\0more")
        elif path.endswith(".json") and "tsconfig" not in path and ".vscode" not in path:
            self.put(path, json.dumps({"n": self.number}) + "\n")
        else:
            self.add()

    def rename(self):
        path = self.random.choice(sorted(self.texts))
        content = self.texts.pop(path)
        new = "moved%d/%s" % (self.number, re.sub(r"^moved\d+/", "", path))
        os.makedirs(os.path.dirname(os.path.join(self.repo.dir, new)), exist_ok=True)
        os.rename(os.path.join(self.repo.dir, path), os.path.join(self.repo.dir, new))
        self.texts[new] = content

    def remove(self):
        if len(self.texts) > 3:
            path = self.random.choice(sorted(self.texts))
            del self.texts[path]
            os.remove(os.path.join(self.repo.dir, path))

    def merge(self):
        self.repo.git("checkout", "-q", "-b", "side%d" % self.number, "HEAD")
        self.put("side%d/a.c" % self.number, TEXTS["src/main.c"])
        self.repo.commit()
        self.repo.git("checkout", "-q", "main")
        self.put("main%d/a.py" % self.number, TEXTS["tool/run.py"])
        self.repo.commit()
        self.repo.git("merge", "-q", "--no-ff", "-m", "merge", "side%d" % self.number)

    def test_two_hundred_changes(self):
        for path, content in {**TEXTS, **BINARIES}.items():
            self.put(path, content)
        self.assertEqual(self.findings(), [])
        self.repo.commit()
        self.assertEqual(self.findings("--commit", "HEAD"), [])
        steps = [self.add, self.add, self.edit, self.edit, self.add_binary, self.rename,
                 self.remove, self.merge]
        changes = 0
        while changes < 198:
            self.number += 1
            step = self.random.choice(steps)
            if step == self.merge:
                step()
            else:
                for _ in range(self.random.randint(1, 3)):
                    self.random.choice(steps[:-1])()
                if changes % 4 == 0:
                    self.assertEqual(self.findings(), [], "change %d" % changes)
                self.repo.commit()
            self.assertEqual(self.findings("--commit", "HEAD"), [], "change %d" % changes)
            changes += 1
        root = self.repo.git("rev-list", "--max-parents=0", "HEAD")
        self.assertEqual(self.findings("--base", root), [])


if __name__ == "__main__":
    unittest.main()
