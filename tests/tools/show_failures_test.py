#!/usr/bin/env python3
"""show_failures.py prints what a failed test said, and nothing of those that passed."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).with_name("show_failures.py")
REPORT = """<?xml version="1.0"?>
<testsuite name="x" tests="2">
<testcase name="good" status="run"><system-out>all is well</system-out></testcase>
<testcase name="many_test" status="fail"><failure message=""/><system-out>{}</system-out></testcase>
</testsuite>
"""


def run(output):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "junit-release.xml"
        report.write_text(output)
        return subprocess.run([sys.executable, "-B", PROGRAM, report], capture_output=True, text=True, timeout=60)


class ShowFailures(unittest.TestCase):
    def test_what_failed_and_what_it_said(self):
        result = run(REPORT.format("[ RUN      ] A.Good\n[       OK ] A.Good (0 ms)\n[ RUN      ] A.Bad\nx.cc:3: Failure\n"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("failed: many_test (", result.stdout)
        self.assertIn("x.cc:3: Failure", result.stdout)
        self.assertNotIn("A.Good", result.stdout)
        self.assertNotIn("all is well", result.stdout)

    def test_a_long_output_loses_its_middle(self):
        result = run(REPORT.format("\n".join(f"line {number}" for number in range(1000))))
        self.assertIn("line 0\n", result.stdout)
        self.assertIn("line 999\n", result.stdout)
        self.assertIn("920 lines left out", result.stdout)

    def test_a_report_that_is_none(self):
        self.assertEqual(run("<testsuite>").returncode, 2)


if __name__ == "__main__":
    unittest.main()
