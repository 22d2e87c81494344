#!/usr/bin/env python3
"""--help of every program and every command: layout, English, examples, and one table of exit codes.

For each --help: no line over 100 columns; the description begins with an imperative verb; there is an example that begins
with the command; every option has a description; the exit codes are rows of the program's table. The table is the same in
all programs, in README.md and in docs/reference/cli.md. Examples of atollctl and atoll-data must be accepted by their own program.
A mistyped command or option gets the one that was meant, on standard error, with exit code 2.

Usage: help_test.py BIN_DIR SOURCE_DIR. Exit codes: 0 all of it, 1 not (the complaints are printed).
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

COLUMNS = 100
PROGRAMS = ("atoll-coordinator", "atoll-worker", "atoll-model", "atollctl", "atoll-data")
# What a description may begin with. An imperative; no noun, no third person.
VERBS = {"Add", "Allow", "Check", "Close", "Compare", "Continue", "Convert", "Create", "Delete", "Describe", "Discard", "Drain", "Estimate",
         "Evict", "Export", "Extend", "Follow", "Forget", "Hold", "Inspect", "Let", "List", "Make", "Measure", "Pause", "Prepare", "Print",
         "Recompute", "Remove", "Reset", "Restore", "Resume", "Revoke", "Serve", "Set", "Show", "Start", "Stop", "Train", "Verify",
         "Write", "Change"}
# Words of earlier texts that readers stumble over.
AVOID = re.compile(r"\b(anew|whoever|whose there are|thereof|beside|so many|one that is|may be given again)\b", re.I)
EXIT_ROW = re.compile(r"^ {2,4}(\d{1,3})  (\S.*)$")


def run(program, arguments, folder=None):
    nowhere = {"ATOLL_ADMIN": "127.0.0.1:1", "ATOLL_COORDINATOR": "127.0.0.1:1"}
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False, cwd=folder,
                          stdin=subprocess.DEVNULL, env={**os.environ, **nowhere})


def section(lines, *titles):
    """The indented lines below a heading; None when there is no such heading."""
    for number, line in enumerate(lines):
        if line in titles:
            body = []
            for below in lines[number + 1:]:
                if not below.startswith(" "):
                    break
                body.append(below)
            return body
    return None


def exit_rows(lines):
    return [match.groups() for line in section(lines, "Exit codes:") or [] if (match := EXIT_ROW.match(line))]


def commands_of(lines):
    return [line.split()[0] for line in section(lines, "Subcommands:") or [] if re.match(r" {2}\S", line)]


class Checks:
    def __init__(self, programs):
        self.programs = programs
        self.complaints = []
        self.pages = {}  # path, a tuple: the lines of its --help

    def complain(self, path, what):
        self.complaints.append(f"{' '.join(path)} --help: {what}")

    def read(self, path):
        done = run(self.programs / path[0], [*path[1:], "--help"])
        if done.returncode != 0 or done.stderr:
            self.complain(path, f"exit code {done.returncode}, standard error {done.stderr!r}")
            return
        lines = self.pages[path] = done.stdout.splitlines()
        self.check_page(path, lines)
        for command in commands_of(lines):
            self.read((*path, command))

    def check_page(self, path, lines):
        for line in lines:
            if len(line) > COLUMNS:
                self.complain(path, f"{len(line)} columns: {line}")
            if line != line.rstrip():
                self.complain(path, f"spaces at the end of a line: {line!r}")
            if found := AVOID.search(line):
                self.complain(path, f"'{found.group()}' in: {line}")
        if lines[0].split()[0].rstrip(",") not in VERBS:
            self.complain(path, f"does not begin with an imperative verb: {lines[0]}")
        examples = section(lines, "Example:", "Examples:") or []
        name = " ".join(path)
        if not any(re.search(rf"(^|[|(] ?){re.escape(name)}( |$|\))", line.strip()) for line in examples):
            self.complain(path, f"no example of '{name}'")
        self.check_options(path, lines)
        table = exit_rows(self.pages[(path[0],)])
        for row in exit_rows(lines):
            if row not in table:
                self.complain(path, f"exit code {row} is not in the table of {path[0]}")
        if not {"0", "2"} <= {code for code, _ in exit_rows(lines)}:
            self.complain(path, "no exit codes")

    def check_options(self, path, lines):
        """An option's description stands behind it, or below it when it is long."""
        for number, line in enumerate(lines):
            if re.match(r" {2}-", line) and "  " not in line.strip():
                below = lines[number + 1] if number + 1 < len(lines) else ""
                if not below.startswith(" " * 20):
                    self.complain(path, f"no description: {line.strip()}")

    def check_tables(self, sources):
        tables = {name: exit_rows(self.pages[(name,)]) for name in PROGRAMS if (name,) in self.pages}
        for page in ("README.md", "docs/reference/cli.md"):
            text = (sources / page).read_text()
            tables[page] = re.findall(r"^\| (\d{1,3}) \| (.*?) \|$", text, re.M)
        want = tables["atollctl"]
        if len(want) < 9:
            self.complaints.append(f"the table of exit codes has {len(want)} rows")
        for name, table in tables.items():
            if table != want:
                self.complaints.append(f"exit codes of {name} are {table}, of atollctl {want}")

    def check_examples(self):
        """Each is tried where there is no coordinator and no file: whatever fails, it is not the command line."""
        with tempfile.TemporaryDirectory() as folder:
            for path, lines in self.pages.items():
                if path[0] not in ("atollctl", "atoll-data"):
                    continue
                for line in section(lines, "Example:", "Examples:") or []:
                    if line.strip().startswith(path[0] + " "):
                        self.try_example(line.strip(), folder)

    def try_example(self, line, folder):
        words = shlex.split(re.split(r" [|>] ", line)[0])
        away = ["--timeout", "0.1"] if words[0] == "atollctl" else []
        done = run(self.programs / words[0], [*words[1:], *away], folder)
        if "--help' for" in done.stderr or done.returncode not in (0, 1, 3, 6):
            self.complaints.append(f"example '{line}': exit code {done.returncode}, {done.stderr.strip()}")

    def check_suggestions(self):
        for arguments, meant in [(["stauts"], "'status'"), (["workers", "drian", "w3"], "'drain'"),
                                 (["--jsn", "status"], "'--json'"), (["checkpoint", "list", "--chek"], "'--check'"),
                                 (["--admin", "127.0.0.1:1", "confg", "show"], "'config'"),
                                 (["--admin=127.0.0.1:1", "config", "sohw"], "'show'")]:
            done = run(self.programs / "atollctl", arguments)
            if done.returncode != 2 or f"did you mean {meant}?" not in done.stderr or done.stdout:
                self.complaints.append(f"atollctl {' '.join(arguments)}: exit code {done.returncode}, "
                                       f"no suggestion of {meant}: {done.stderr.strip()}")
        done = run(self.programs / "atollctl", ["zebra"])
        if done.returncode != 2 or "unknown command 'zebra'" not in done.stderr or "did you mean" in done.stderr:
            self.complaints.append(f"atollctl zebra: {done.returncode}, {done.stderr.strip()}")
        for arguments in ([], ["workers", "drain"], ["config", "set"], ["--timeout", "soon", "status"], ["workers", "add", "0"]):
            done = run(self.programs / "atollctl", arguments)
            if done.returncode != 2 or "--help' for" not in done.stderr or done.stdout:
                self.complaints.append(f"atollctl {' '.join(arguments)}: {done.returncode}, {done.stderr.strip()}")

    def check_full_disk(self):
        """Output that could not be written is no success: a script would keep an empty file."""
        for name in (*PROGRAMS, "atoll-engine", "atoll-simulate"):
            program = self.programs / name
            if not program.exists():
                continue
            for option in ("--help", "--version"):
                if (name, option) == ("atoll-simulate", "--version"):
                    continue  # it has none
                with open("/dev/full", "wb") as full:
                    done = subprocess.run([program, option], stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                                          timeout=60, check=False)
                if done.returncode != 4 or f"{name}: standard output was not written" not in done.stderr:
                    self.complaints.append(f"{name} {option} >/dev/full: exit code {done.returncode}, {done.stderr!r}")


def main():
    checks = Checks(pathlib.Path(sys.argv[1]).resolve())
    for program in PROGRAMS:
        # Built without LibTorch, there is no worker.
        if (checks.programs / program).exists():
            checks.read((program,))
    checks.check_tables(pathlib.Path(sys.argv[2]))
    checks.check_examples()
    checks.check_suggestions()
    checks.check_full_disk()
    for complaint in checks.complaints:
        print(complaint, file=sys.stderr)
    print(f"{len(checks.pages)} help texts, {len(checks.complaints)} complaints")
    return 1 if checks.complaints or len(checks.pages) < 30 else 0


if __name__ == "__main__":
    sys.exit(main())
