#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A disk that is full: a clear refusal, nothing half done, and all is well once there is room again."""

import os
import shutil
import sqlite3
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import flowd  # noqa: E402


class FullDisk(unittest.TestCase):
    def setUp(self):
        """A daemon whose state directory is a small file system, which it alone has mounted."""
        place = flowd.Place()
        os.mkdir(place.state, 0o700)
        wrap = os.path.join(place.dir, "wrap")
        with open(wrap, "w", encoding="utf-8") as out:
            out.write('#!/bin/sh\nexec unshare -m sh -c \'mount -t tmpfs -o size=2m,mode=700 tmpfs "$0" &&'
                      ' exec "$@"\' %s "$@"\n' % place.state)
        os.chmod(wrap, 0o755)
        if subprocess.run([wrap, "true"], capture_output=True, check=False).returncode != 0:
            place.remove()
            self.skipTest("no file system can be mounted here")
        self.flowd = flowd.Flowd(place=place, env={"KCAP_WRAP": wrap})
        self.addCleanup(self.flowd.end)
        self.seen = "/proc/%d/root%s" % (self.flowd.pid(), place.state)  # as the daemon sees it
        self.flowd.socket = os.path.join(self.seen, "flowd.sock")

    def fill(self):
        with open(os.path.join(self.seen, "filler"), "wb", buffering=0) as out:
            try:
                while True:
                    out.write(b"x" * 4096)
            except OSError:
                return

    def test_full_disk(self):
        self.flowd.configure({"default_vendor": "command",
                              "vendors": {"command": {"argv": ["tail", "-f", "/dev/null"]}}})
        run = self.flowd.start(self.flowd.dir)["flow_run_id"]
        self.fill()
        body = self.flowd.start_body(self.flowd.dir, requesting_session_id="s", context="x" * 100000)
        for _ in range(3):
            status, answer = self.flowd.request("POST", "/api/flows/review/start/v2", body)
            self.assertEqual((status, answer["error"]), (503, "store_unavailable"), answer)
            self.assertIn("Free disk space", answer["message"])
        # what only reads is answered, or refused as clearly; nothing was begun
        status, answer = self.flowd.request("GET", "/api/flows/" + run)
        self.assertIn(status, (200, 503))
        os.remove(os.path.join(self.seen, "filler"))
        self.assertEqual(self.flowd.request("GET", "/api/flows/session/s?state=open")[1]["flows"], [])
        status, started = self.flowd.request("POST", "/api/flows/review/start/v2", body)
        self.assertEqual(status, 200)
        for each in (run, started["flow_run_id"]):
            self.assertEqual(self.flowd.close_run(each)["status"], "closed")
        # SQLite would look for the file where we see none: so a copy
        for name in ("flowd.db", "flowd.db-wal"):
            shutil.copy(os.path.join(self.seen, name), self.flowd.dir)
        store = sqlite3.connect(os.path.join(self.flowd.dir, "flowd.db"))
        self.assertEqual(store.execute("PRAGMA integrity_check").fetchone(), ("ok",))
        self.assertEqual(store.execute("SELECT count(*) FROM flows").fetchone(), (2,))
        store.close()


if __name__ == "__main__":
    unittest.main()
