#!/usr/bin/env python3
"""quickstart_output.py shows the output of its command, and fails where a promise of the quickstart is not kept."""
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(__file__).with_name("quickstart_output.py")
RESULT = """==> Training: one coordinator, 4 workers
training: version 1, moved 1.6 MiB up, 14.4 MiB down: 79x fewer bytes than data-parallel (1.2 GiB)

\x1b[1m==> Result\x1b[0m
 run quickstart: finished at version 20
   moved            33.0 MiB up, 45.8 MiB down: 323x fewer bytes than data-parallel (24.9 GiB)
   first training loss 4.342, 1 min 49 s after the start (packages 1 s, build 1 min 35 s, text 2 s, training 11 s)
"""


def check(output, code=0):
    return subprocess.run([sys.executable, "-B", PROGRAM, sys.executable, "-c",
                           f"import sys; print({output!r}, end=''); sys.exit({code})"],
                          capture_output=True, text=True, timeout=60)


class QuickstartOutput(unittest.TestCase):
    def test_a_good_output_is_shown_and_passes(self):
        result = check(RESULT)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, RESULT, ""))

    def test_a_promise_that_is_not_kept_is_told(self):
        for output, told in (
                ("built\n", "no section 'Result'"),
                (RESULT.replace("first training loss 4.342", "first training loss"), "no line 'first training loss"),
                (RESULT.replace("packages 1 s, ", ""), "no line 'first training loss"),
                (RESULT.replace("packages 1 s", "packages "), "no line 'first training loss"),
                (RESULT.replace(": 323x fewer", ": 49x fewer"), "49x fewer bytes"),
                (RESULT.replace(": 323x fewer", ": fewer"), "does not compare")):
            result = check(output)
            self.assertEqual(result.returncode, 1, output)
            self.assertIn(told, result.stderr)

    def test_a_failing_command_keeps_its_exit_code(self):
        result = check(RESULT, code=3)
        self.assertEqual((result.returncode, result.stdout), (3, RESULT))

    def test_told_to_end_it_tells_its_command(self):
        with tempfile.TemporaryDirectory() as folder:
            ready = pathlib.Path(folder) / "ready"
            program = subprocess.Popen([sys.executable, "-B", PROGRAM, "bash", "-c",
                                        f"trap 'exit 7' TERM; touch {ready}; while :; do sleep 0.1; done"])
            until = time.monotonic() + 30
            while not ready.exists() and time.monotonic() < until:
                time.sleep(0.05)
            program.send_signal(signal.SIGTERM)
            self.assertEqual(program.wait(60), 7)


if __name__ == "__main__":
    unittest.main()
