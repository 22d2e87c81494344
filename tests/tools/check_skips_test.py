#!/usr/bin/env python3
"""check_skips.py finds what ctest, GoogleTest and unittest skipped, and allows what the list allows."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).with_name("check_skips.py")
JUNIT = """<?xml version="1.0"?>
<testsuite name="x" tests="3">
<testcase name="ran" status="run"/>
<testcase name="no_tool" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>skipped: tool is not installed
</system-out></testcase>
<testcase name="many_test" status="run"/>
</testsuite>
"""
LOG = """1/3 Testing: ran
2/3 Testing: many_test
2/3 Test: many_test
[ RUN      ] Disk.Full
disk_full_test.cc:47: Skipped
mounting is not permitted

[  SKIPPED ] Disk.Full (0 ms)
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Disk.Full
"""

# As Python 3.11 prints it; a docstring or the output of a program can stand between the name and the result.
UNITTEST = """1/2 Testing: python_payloads
test_int4 (test_payloads.PayloadTest.test_int4) ... skipped 'fixed_values is not built'
test_int8 (test_payloads.PayloadTest.test_int8)
Pushes 8 bits. ... skipped "it's newer"
test_own (test_payloads.PayloadTest.test_own) ... a program says this
ok
OK (skipped=2)
2/2 Testing: other
a worker skipped 'nothing'
FAILED (failures=1, skipped=2)
"""
UNITTEST_JUNIT = '<testsuite><testcase name="python_payloads" status="run"/><testcase name="other" status="run"/></testsuite>'


def run(allowed, *options, junit=JUNIT, log=LOG):
    with tempfile.TemporaryDirectory() as folder:
        files = {name: pathlib.Path(folder) / name for name in ("junit", "log", "allowed")}
        for name, text in zip(files, (junit, log, allowed)):
            files[name].write_text(text)
        arguments = [item for name, path in files.items() for item in (f"--{name}", path)]
        return subprocess.run([sys.executable, "-B", PROGRAM, *arguments, *options], capture_output=True, text=True, timeout=60)


class CheckSkips(unittest.TestCase):
    def test_a_skipped_test_fails_and_its_reason_is_told(self):
        result = run("# nothing\n")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no_tool was skipped: skipped: tool is not installed", result.stderr)
        self.assertIn("many_test/Disk.Full was skipped: mounting is not permitted", result.stderr)
        self.assertEqual(result.stderr.count("Disk.Full"), 1)

    def test_the_list_allows(self):
        result = run("no_tool anywhere needs a tool\nmany_test/Disk.* anywhere needs root\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("allowed (needs a tool)", result.stdout)

    def test_strictly_only_what_is_allowed_anywhere(self):
        allowed = "no_tool outside-ci needs a tool\nmany_test/Disk.Full anywhere needs root\n"
        self.assertEqual(run(allowed).returncode, 0)
        result = run(allowed, "--strict")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no_tool was skipped", result.stderr)
        self.assertNotIn("Disk.Full was", result.stderr)

    def test_a_list_without_a_reason_is_none(self):
        self.assertEqual(run("no_tool anywhere\n").returncode, 2)
        self.assertEqual(run("no_tool sometimes for a reason\n").returncode, 2)

    def test_names_the_tests_that_unittest_skipped(self):
        result = run("", junit=UNITTEST_JUNIT, log=UNITTEST)
        self.assertEqual(result.returncode, 1)
        self.assertIn("python_payloads/PayloadTest.test_int4 was skipped: fixed_values is not built", result.stderr)
        self.assertIn("python_payloads/PayloadTest.test_int8 was skipped: it's newer", result.stderr)
        self.assertIn("other/unnamed was skipped: 2 tests; run unittest with verbosity=2", result.stderr)
        self.assertNotIn("test_own", result.stderr)
        allowed = "python_payloads/PayloadTest.test_int* anywhere newer\nother/unnamed anywhere a reason\n"
        self.assertEqual(run(allowed, junit=UNITTEST_JUNIT, log=UNITTEST).returncode, 0)

    def test_tests_of_python_before_3_11_have_the_same_names(self):
        log = UNITTEST.replace(".test_int4)", ")").replace(".test_int8)", ")")
        result = run("", junit=UNITTEST_JUNIT, log=log)
        self.assertIn("python_payloads/PayloadTest.test_int4 was skipped", result.stderr)
        self.assertIn("python_payloads/PayloadTest.test_int8 was skipped", result.stderr)

    def test_a_program_with_disabled_tests_or_without_any_is_named(self):
        log = ("1/1 Testing: ran\n[==========] 0 tests from 0 test suites ran. (0 ms total)\n[  PASSED  ] 0 tests.\n\n"
               "\x1b[0;33m  YOU HAVE 2 DISABLED TESTS\n\n\x1b[m")
        result = run("", junit='<testsuite><testcase name="ran" status="run"/></testsuite>', log=log)
        self.assertEqual(result.returncode, 1)
        self.assertIn("ran/nothing was skipped: the program ran no test at all", result.stderr)
        self.assertIn("ran/disabled was skipped: 2 with DISABLED_ in their names", result.stderr)

    def test_colours_hide_nothing(self):
        result = run("no_tool anywhere needs a tool\n", log=LOG.replace("[  SKIPPED ] ", "\x1b[0;32m[  SKIPPED ] \x1b[m"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("many_test/Disk.Full was skipped: mounting is not permitted", result.stderr)

    def test_the_log_of_another_run_is_none(self):
        for log in ("", LOG.replace("Testing: many_test", "Testing: other")):
            result = run("no_tool anywhere needs a tool\n", log=log)
            self.assertEqual(result.returncode, 2)
            self.assertRegex(result.stderr, "is not the log of the same run: it has no (ran|many_test)")

    def test_an_entry_that_is_skipped_as_a_whole_is_named_once(self):
        junit = '<testsuite><testcase name="other" status="notrun"><skipped/><system-out>skipped: no unshare</system-out></testcase></testsuite>'
        result = run("other anywhere no namespaces\n", junit=junit, log=UNITTEST.replace("python_payloads", "other"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_where_nothing_was_skipped_nothing_is_said(self):
        clean = '<testsuite><testcase name="ran" status="run"/></testsuite>'
        result = run("", "--strict", junit=clean, log="1/1 Testing: ran\n[  PASSED  ] 3 tests.\n")
        self.assertEqual((result.returncode, result.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
