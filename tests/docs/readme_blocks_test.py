#!/usr/bin/env python3
"""readme_blocks.py finds every block of the README, and fails where a command of a block fails."""
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(__file__).with_name("readme_blocks.py")
PAGE = """# A
## Try it
```sh
{try_it}
```
## By hand
```sh
true
```
### Running for real
```sh
one
```
"""


def run(*arguments, page=None):
    with tempfile.TemporaryDirectory() as folder:
        more = []
        if page is not None:
            path = pathlib.Path(folder) / "page.md"
            path.write_text(page)
            more = ["--page", path]
        return subprocess.run([sys.executable, "-B", PROGRAM, *arguments, *more], capture_output=True, text=True, timeout=60)


class ReadmeBlocks(unittest.TestCase):
    def test_the_readme_has_no_block_that_nobody_runs(self):
        result = run("--check")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_the_first_block_runs_both_scripts_without_options(self):
        lines = [line.split("#")[0].strip() for line in run("--print", "Try it").stdout.splitlines()]
        self.assertEqual(lines, ["./scripts/quickstart.sh", "./scripts/test.sh"])

    def test_a_failing_command_fails_the_block(self):
        self.assertEqual(run("--run", "Try it", page=PAGE.format(try_it="true")).returncode, 0)
        for block in ("false\ntrue", "false | true", "exit 3"):
            result = run("--run", "Try it", page=PAGE.format(try_it=block))
            self.assertEqual(result.returncode, 1, block)
            self.assertIn("'Try it': the block ended with exit code", result.stderr)

    def test_a_block_that_takes_too_long_is_ended(self):
        result = run("--run", "Try it", "--timeout", "1", page=PAGE.format(try_it="sleep 50"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("took too long", result.stderr)

    def test_told_to_end_it_leaves_nothing_running(self):
        with tempfile.TemporaryDirectory() as folder:
            page, pid = pathlib.Path(folder) / "page.md", pathlib.Path(folder) / "pid"
            page.write_text(PAGE.format(try_it=f"sleep 50 & echo $! >{pid}.new; mv {pid}.new {pid}; wait"))
            program = subprocess.Popen([sys.executable, "-B", PROGRAM, "--run", "Try it", "--page", page],
                                       stdout=subprocess.DEVNULL)
            until = time.monotonic() + 30
            while not pid.exists() and time.monotonic() < until:
                time.sleep(0.05)
            sleeper = int(pid.read_text())
            program.terminate()
            self.assertEqual(program.wait(60), 128 + signal.SIGTERM)
            status = pathlib.Path(f"/proc/{sleeper}/status")
            self.assertTrue(not status.exists() or "\nState:\tZ" in status.read_text(), "it still runs")

    def test_an_unknown_section_and_bad_bash_are_told(self):
        result = run("--check", page=PAGE.format(try_it="if") + "## Else\n```sh\ntrue\n```\n")
        self.assertEqual(result.returncode, 1)
        self.assertIn("nobody runs the block under 'Else'", result.stderr)
        self.assertIn("under 'Try it' is not valid bash", result.stderr)


if __name__ == "__main__":
    unittest.main()
