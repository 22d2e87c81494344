#!/usr/bin/env python3
"""scripts/lint.sh against its two lists, with a clang-tidy that finds what it is told to."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
FOLDERS = ("common", "core", "storage", "protos", "monitoring", "server", "client", "worker", "cli", "bench", "tests")
# FINDINGS has a line "CHECKED PATH [MESSAGE]" for each finding: PATH is where clang-tidy sees it when it checks CHECKED.
CLANG_TIDY = """#!/bin/sh
for file; do :; done
if [ "$file" = --version ]; then echo "version 14"; exit 0; fi
echo "$file" >>calls
grep "^$file " findings | while read -r checked found message; do
  case "$found" in /*) ;; *) found=$PWD/$found ;; esac
  echo "$found:1:1: error: ${message:-bad [some-check]}"
done
! grep -q "^$file " findings
"""


class Lint(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name).resolve()
        for name in (*FOLDERS, "tests/style", "scripts", "bin", "build"):
            (self.top / name).mkdir(parents=True, exist_ok=True)
        for name in ("lint.sh", "lib.sh"):
            shutil.copy(SCRIPTS / name, self.top / "scripts" / name)
        self.write("bin/clang-tidy", CLANG_TIDY)
        (self.top / "bin/clang-tidy").chmod(0o755)
        self.write(".clang-tidy", "Checks: a\n")
        self.files = {"core/a.cc": "a", "core/a.h": "ah", "core/b.cc": "b", "core/c.cc": "c"}
        for name, text in self.files.items():
            self.write(name, text)
        self.write("build/compile_commands.json",
                   "".join(f'"file": "{self.top}/{name}"\n' for name in (*self.files, "core/new.cc") if name.endswith(".cc")))
        self.git("init", "-q")
        self.git("add", ".")
        self.git("-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "all")
        self.clean, self.unchecked = self.top / "tests/style/lint_clean.txt", self.top / "tests/style/lint_unchecked.txt"
        self.clean.write_text(self.hashes(".clang-tidy", "core/a.h", "core/b.cc"))
        self.unchecked.write_text(self.hashes(".clang-tidy", "core/a.cc"))
        self.findings()

    def write(self, name, text):
        (self.top / name).write_text(text)

    def git(self, *arguments):
        return subprocess.run(["git", *arguments], cwd=self.top, check=True, capture_output=True, text=True).stdout

    def hashes(self, *names):
        return "".join(f"{self.git('hash-object', name)[:16]} {name}\n" for name in names)

    def findings(self, *lines):
        self.write("findings", "".join(f"{line}\n" for line in lines))

    def lint(self, *arguments):
        """(exit code, output, the files that clang-tidy was given)"""
        self.write("calls", "")
        result = subprocess.run(["bash", "scripts/lint.sh", *arguments, "--build", "build"], cwd=self.top, capture_output=True,
                                text=True, timeout=60, check=False,
                                env={**os.environ, "PATH": f"{self.top}/bin:{os.environ['PATH']}"})
        return result.returncode, result.stdout + result.stderr, sorted((self.top / "calls").read_text().split())

    def names(self, path):
        return [line.split()[1] for line in path.read_text().splitlines()]

    def test_only_contents_that_are_on_neither_list_are_checked(self):
        code, output, calls = self.lint("--changed", "clean")
        self.assertEqual((code, calls), (0, ["core/c.cc"]), output)
        self.assertIn("1 files have not changed and were never checked", output)

    def test_a_changed_file_is_checked_though_it_never_was(self):
        self.write("core/a.cc", "a2")
        self.findings("core/a.cc core/a.cc")
        code, output, calls = self.lint("--changed", "clean")
        self.assertEqual((code, calls), (1, ["core/a.cc", "core/c.cc"]), output)
        self.assertIn("core/a.cc:1:1", output)

    def test_a_changed_header_answers_for_itself_only(self):
        self.write("core/a.h", "ah2")
        self.findings("core/a.cc core/a.cc")
        code, output, calls = self.lint("--changed", "clean")
        self.assertEqual((code, calls), (0, ["core/a.cc", "core/c.cc"]), output)
        self.findings("core/a.cc core/a.h")
        self.assertEqual(self.lint("--changed", "clean")[0], 1)

    def test_errors_of_the_compiler_count_in_our_files_and_where_they_end_the_reading(self):
        self.findings("core/c.cc /usr/include/ATen/ivalue_inl.h incomplete type [clang-diagnostic-error]")
        for arguments in (("--changed", "clean"), ("core/c.cc",)):
            code, output, _ = self.lint(*arguments)
            self.assertEqual(code, 0, output)
        for found in ("core/c.cc no match [clang-diagnostic-error]", "core/b.cc no match [clang-diagnostic-error]",
                      "/usr/include/x.h 'y.h' file not found [clang-diagnostic-error]",
                      "/usr/include/x.h too many errors emitted, stopping now [clang-diagnostic-error]"):
            self.findings(f"core/c.cc {found}")
            for arguments in (("--changed", "clean"), ("core/c.cc",)):
                self.assertEqual(self.lint(*arguments)[0], 1, found)

    def test_a_header_without_a_source_is_checked_through_one_that_includes_it(self):
        # By headers only; and by a .cc file that this build does not compile.
        self.write("core/deep.h", "d")
        self.write("core/a.h", '#include "core/deep.h"\n')
        self.write("core/b.cc", '#include <vector>\n#include "core/a.h"\n')
        self.write("core/other.cc", '#include "core/deep.h"\n')
        code, output, calls = self.lint("core/deep.h")
        self.assertEqual((code, calls), (0, ["core/b.cc"]), output)
        self.write("core/nobodys.h", "n")
        code, output, calls = self.lint("core/b.cc", "core/nobodys.h")
        self.assertEqual((code, calls), (0, ["core/b.cc"]), output)
        self.assertIn("no .cc file includes core/nobodys.h", output)

    def test_files_that_are_not_reached_are_named(self):
        code, output, calls = self.lint("--changed", "clean", "--minutes", "-1")
        self.assertEqual((code, calls), (4, []), output)
        self.assertIn("0 files are clean", output)
        self.assertIn("core/c.cc", output)

    def test_record_moves_what_was_clean(self):
        self.findings("core/c.cc core/c.cc")
        code, output, calls = self.lint("--unchecked", "--record")
        self.assertEqual((code, calls), (0, ["core/a.cc"]), output)
        self.assertEqual(self.names(self.clean), [".clang-tidy", "core/a.cc", "core/a.h", "core/b.cc"])
        self.assertEqual(self.names(self.unchecked), [".clang-tidy"])
        code, output, calls = self.lint("--changed", "clean", "--record")
        self.assertEqual((code, calls), (1, ["core/c.cc"]), output)
        self.assertNotIn("core/c.cc", self.names(self.clean) + self.names(self.unchecked))

    def test_with_other_checks_nothing_has_been_checked(self):
        self.write(".clang-tidy", "Checks: b\n")
        code, output, calls = self.lint("--changed", "clean")
        self.assertEqual((code, calls), (0, ["core/a.cc", "core/b.cc", "core/c.cc"]), output)
        self.assertIn("lint_clean.txt does not have the hash of this .clang-tidy", output)
        self.assertIn("lint_unchecked.txt does not have the hash of this .clang-tidy", output)
        code, output, _ = self.lint("core/c.cc", "--record")
        self.assertEqual(code, 0, output)
        self.assertEqual(self.names(self.clean), [".clang-tidy", "core/c.cc"])
        self.assertEqual(self.names(self.unchecked), [".clang-tidy", "core/a.cc", "core/a.h", "core/b.cc"])
        self.assertEqual(self.lint("--changed", "clean")[2], [])


if __name__ == "__main__":
    unittest.main()
