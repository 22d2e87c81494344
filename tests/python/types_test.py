#!/usr/bin/env python3
"""Checks the package's types with mypy, and a typed program of a user of the package."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"
LOOP = """
import array
import atoll

weights = {"w": array.array("f", [0.0, 0.0])}
with atoll.join("127.0.0.1:7600", weights, state_dir="s", name="w0", learning_rate="mine") as run:
    while run.step(loss=0.5, tokens=3):
        version: int = run.version
if run.end_reason is atoll.EndReason.DRAINED:
    print(run.end_text.upper())
"""


class TypesTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def mypy(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(["mypy", "--no-site-packages", "--ignore-missing-imports", "--no-error-summary", "--cache-dir", str(self.folder / "cache"), *arguments],
                              env={"PATH": "/usr/local/bin:/usr/bin:/bin", "MYPYPATH": str(PYTHON), "HOME": str(self.folder)},
                              capture_output=True, text=True, check=False)

    def check_loop(self, text: str) -> "subprocess.CompletedProcess[str]":
        program = self.folder / "loop.py"
        program.write_text(text)
        return self.mypy("--strict", "--follow-imports=silent", str(program))

    def test_the_package(self) -> None:
        done = self.mypy(str(PYTHON / "atoll"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_loop_of_a_user(self) -> None:
        done = self.check_loop(LOOP)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_wrong_use_is_found(self) -> None:
        done = self.check_loop(LOOP.replace('state_dir="s"', "state_dir=3").replace("end_text.upper", "end_txt.upper"))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn('"state_dir" to "join" has incompatible type "int"', done.stdout)
        self.assertIn('"Run" has no attribute "end_txt"', done.stdout)


if __name__ == "__main__":
    sys.exit(unittest.main())
