#!/usr/bin/env python3
"""Prints what failed, of ctest's reports: at the end of a long log nobody has to look for it.

Usage: show_failures.py JUNIT-FILE...

Of each failed test its report's name, its own name and at most 80 lines of its output, without the lines of GoogleTest tests
that passed. Exit codes: 0 printed, 2 a report cannot be read.
"""
import argparse
import pathlib
import re
import sys
import xml.etree.ElementTree

HEAD, TAIL = 50, 30
NOISE = re.compile(r"\[( RUN      |       OK |-{10}|={10})\]")


def shortened(output):
    lines = [line for line in output.splitlines() if line.strip() and not NOISE.match(line)]
    if len(lines) <= HEAD + TAIL:
        return lines
    return lines[:HEAD] + [f"... {len(lines) - HEAD - TAIL} lines left out ..."] + lines[-TAIL:]


def failures(report):
    """(name, output) of each test that failed."""
    for case in xml.etree.ElementTree.fromstring(report).iter("testcase"):
        if case.find("failure") is not None or case.get("status") == "fail":
            yield case.get("name"), case.findtext("system-out") or ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", type=pathlib.Path, metavar="JUNIT-FILE")
    for report in parser.parse_args().reports:
        try:
            for name, output in failures(report.read_text(errors="replace")):
                print(f"failed: {name} ({report})")
                for line in shortened(output):
                    print(f"failed:   {line}")
        except (OSError, xml.etree.ElementTree.ParseError) as error:
            print(f"failed: {report}: {error}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
