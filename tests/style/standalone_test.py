#!/usr/bin/env python3
"""The check of single files finds what it is for, in a small tree of its own."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import standalone

FILES = {
    "a/good.h": "#include <string>\nstd::string Good();\n",
    "a/good.cc": '#include "a/good.h"\nstd::string Good() { return {}; }\n',
    # Compiles where another header stands before it.
    "a/leans.h": "std::string Leans();\n",
    "a/user.cc": '#include <string>\n\n#include "a/leans.h"\nstd::string User() { return Leans(); }\n',
}


class StandaloneTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        for name, text in FILES.items():
            self.write(name, text)
        (self.root / "build").mkdir()
        command = "launcher.sh /usr/bin/c++ -std=c++20 -I.. -MD -MF x.d -o x.o -c"
        self.write("build/compile_commands.json", json.dumps([
            {"directory": str(self.root / "build"), "file": str(self.root / name), "command": f"{command} {self.root / name}"}
            for name in FILES if name.endswith(".cc")]))
        for name, value in (("ROOT", self.root), ("LIST", self.root / "list.txt")):
            patch = mock.patch.object(standalone, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def write(self, name, text):
        (self.root / name).parent.mkdir(exist_ok=True)
        (self.root / name).write_text(text)

    def run_with(self, *arguments):
        """Exit code, and what was printed."""
        standalone.content.cache_clear()
        standalone.included.cache_clear()
        out = io.StringIO()
        with mock.patch.object(sys, "argv", ["standalone.py", "--build", str(self.root / "build"), *arguments]), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            return standalone.main(), out.getvalue()

    def test_a_header_that_leans_on_another_is_found(self):
        code, said = self.run_with()
        self.assertEqual(code, 1, said)
        self.assertIn("standalone: a/leans.h does not compile alone:", said)
        self.assertIn("2 of 3 checks passed", said)

    def test_what_passed_is_not_checked_again(self):
        self.run_with("--record")
        self.assertEqual([line.split()[1] for line in (self.root / "list.txt").read_text().splitlines()],
                         ["a/good.cc", "a/good.h", "a/user.cc"])
        self.write("a/leans.h", "#include <string>\n" + FILES["a/leans.h"])
        code, said = self.run_with("--record")
        self.assertEqual(code, 0, said)
        self.assertIn("1 of 1 checks passed", said)
        self.assertIn("3 of 4 files were not checked", said)
        self.assertIn("0 of 0 checks passed", self.run_with()[1])
        self.assertIn("3 of 3 checks passed", self.run_with("--all")[1])

    def test_a_changed_file_is_checked_again(self):
        self.run_with("--record")
        self.write("a/good.h", "std::string Good();\n")
        code, said = self.run_with("a/good.h")
        self.assertEqual(code, 1, said)
        self.assertIn("a/good.h does not compile alone", said)

    def test_an_unknown_file_is_an_error(self):
        code, said = self.run_with("a/absent.h")
        self.assertEqual(code, 2)
        self.assertIn("does not compile a/absent.h", said)


if __name__ == "__main__":
    unittest.main()
