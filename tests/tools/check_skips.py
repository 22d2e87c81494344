#!/usr/bin/env python3
"""Fails when a test was skipped that tests/allowed_skips.txt does not name: a test that does not run shows nothing.

Usage: check_skips.py --junit FILE --log FILE [--strict] [--allowed FILE]

  --junit FILE    ctest's report (--output-junit): entries that were skipped or could not be run
  --log FILE      ctest's LastTest.log of the same run, with the whole output: tests that a program of GoogleTest or unittest
                  skipped, or that are disabled in it, and programs of GoogleTest that ran no test
  --strict        what is allowed outside-ci is not allowed
  --allowed FILE  default: tests/allowed_skips.txt

Exit codes: 0 nothing was skipped that may not be, 1 something was, 2 a file cannot be read or used.
"""
import argparse
import fnmatch
import pathlib
import re
import sys
import xml.etree.ElementTree

PLACES = ("anywhere", "outside-ci")


def read_allowed(text):
    """[(pattern, where, reason)]; ValueError names the line that is none."""
    allowed = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split(None, 2)
        if len(words) != 3 or words[1] not in PLACES:
            raise ValueError(f"line {number}: not 'TEST WHERE REASON' with WHERE one of {', '.join(PLACES)}: {line}")
        allowed.append(tuple(words))
    return allowed


def skipped_entries(junit):
    """(name, why) of each ctest entry that did not run."""
    for case in xml.etree.ElementTree.fromstring(junit).iter("testcase"):
        skipped = case.find("skipped")
        if skipped is None and case.get("status") not in ("notrun", "disabled"):
            continue
        output = (case.findtext("system-out") or "").strip().splitlines()
        told = [line for line in output if "skipped" in line]
        message = skipped.get("message") if skipped is not None else None
        yield case.get("name"), (told or output[-1:] or [message or "no reason given"])[-1].strip()


def outputs(log):
    """(entry, lines of its output) of each ctest entry."""
    entry, lines = None, []
    for line in re.sub(r"\x1b\[[0-9;]*m", "", log).splitlines():
        if match := re.match(r"\d+/\d+ Testing: (.*)$", line):
            if entry is not None:
                yield entry, lines
            entry, lines = match.group(1), []
        else:
            lines.append(line)
    if entry is not None:
        yield entry, lines


def skipped_in_googletest(lines):
    """(Suite.Test, why)."""
    why, seen = "", set()
    for line in lines:
        if re.match(r"\S+:\d+: Skipped$", line):
            why = "next"
        elif why == "next":
            why = line.strip()
        # The summary at the end of a program repeats the names, without times.
        elif match := re.match(r"\[  SKIPPED \] ([^\s,]+\.[^\s,]+)", line):
            if match.group(1) not in seen:
                seen.add(match.group(1))
                yield match.group(1), why or "no reason given"
            why = ""
        elif match := re.match(r"  YOU HAVE (\d+) DISABLED TESTS?$", line):
            yield "disabled", f"{match.group(1)} with DISABLED_ in their names"
        elif re.match(r"\[==========\] 0 tests from 0 test suites ran\.", line):
            yield "nothing", "the program ran no test at all"


def skipped_in_unittest(lines):
    """(Class.test, why). Only a verbose run has the names; a summary with more skipped tests than names gives `unnamed`."""
    test, named = None, 0
    for line in lines:
        # Before Python 3.11 the parentheses end with the class, later with the method.
        if match := re.match(r"(\w+) \(([\w.]+)\)(?: \.\.\.|$)", line):
            owners = match.group(2).removesuffix("." + match.group(1)).split(".")
            test = f"{owners[-1]}.{match.group(1)}"
        if test and (match := re.search(r"skipped (['\"])(.*)\1$", line)):
            yield test, match.group(2)
            test, named = None, named + 1
        elif match := re.match(r"(?:OK|FAILED) \((?:.*, )?skipped=(\d+)\b", line):
            if int(match.group(1)) > named:
                yield "unnamed", f"{int(match.group(1)) - named} tests; run unittest with verbosity=2, which names them"
            named = 0


def skipped_inside(log, whole):
    """(ENTRY/Suite.Test, why) of each skipped test inside an entry that is not in `whole`, the entries skipped as a whole."""
    for entry, lines in outputs(log):
        if entry not in whole:
            for name, why in (*skipped_in_googletest(lines), *skipped_in_unittest(lines)):
                yield f"{entry}/{name}", why


def missing_outputs(junit, log):
    """Entries that ran and whose output is not in the log."""
    logged = {entry for entry, _ in outputs(log)}
    ran = [case.get("name") for case in xml.etree.ElementTree.fromstring(junit).iter("testcase") if case.get("status") in ("run", "fail")]
    return [name for name in ran if name not in logged]


def complaints(skipped, allowed, strict):
    for name, why in skipped:
        entries = [entry for entry in allowed if fnmatch.fnmatchcase(name, entry[0])]
        fitting = [entry for entry in entries if entry[1] == "anywhere" or not strict]
        if fitting:
            print(f"skips: {name}: allowed ({fitting[0][2]})")
        else:
            yield f"skips: {name} was skipped: {why}" + (" (allowed outside CI only)" if entries else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--junit", required=True, type=pathlib.Path)
    parser.add_argument("--log", required=True, type=pathlib.Path)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--allowed", type=pathlib.Path, default=pathlib.Path(__file__).parents[1] / "allowed_skips.txt")
    arguments = parser.parse_args()
    try:
        allowed = read_allowed(arguments.allowed.read_text())
        junit, log = arguments.junit.read_text(errors="replace"), arguments.log.read_text(errors="replace")
        skipped = list(skipped_entries(junit))
        whole = {name for name, _ in skipped}
        skipped += skipped_inside(log, whole)
        if missing := missing_outputs(junit, log):
            raise ValueError(f"{arguments.log} is not the log of the same run: it has no {missing[0]}")
    except (OSError, ValueError, xml.etree.ElementTree.ParseError) as error:
        print(f"skips: {error}", file=sys.stderr)
        return 2
    found = list(complaints(skipped, allowed, arguments.strict))
    for line in found:
        print(line, file=sys.stderr)
    if found:
        print("skips: a skipped test counts as failed; install what it needs (scripts/setup.sh --help), or name it in "
              "tests/allowed_skips.txt with a reason", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
