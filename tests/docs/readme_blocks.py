#!/usr/bin/env python3
"""Runs the commands of the README, as they stand there.

Usage: readme_blocks.py --check | --print SECTION | --run SECTION [--run SECTION ...] [--timeout SECONDS] [--bin DIR]

A block is what stands between ```sh and ```; its section is the heading above it.

  --check          every block is in a section that this program can run, and is valid bash
  --print SECTION  print the section's blocks
  --run SECTION    run the blocks of the section, in order:
                     Try it            as they are
                     By hand           as they are; what they leave running is ended afterwards
                     Running for real  in a scratch folder with the files that they name: run.yaml, tokens. The worker's
                                       block is run for w0 to w3. coordinator.example.org is this machine.
  --timeout N      seconds for each section (default 900)
  --bin DIR        our programs, for "Running for real" (default: build/release/bin)

A block fails when one of its commands fails. Exit codes: 0 all of them passed, 1 one failed, 2 wrong usage.
"""
import argparse
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from page_blocks import ROOT, Failed, Shell, blocks_of, syntax_problem

WORKERS = ("w0", "w1", "w2", "w3")


def run_plainly(blocks, arguments):
    shell = Shell(ROOT, time.monotonic() + arguments.timeout)
    try:
        for block in blocks:
            shell.run(block)
    finally:
        shell.end()


def run_by_hand(blocks, arguments):
    shutil.rmtree("/tmp/atoll", ignore_errors=True)
    try:
        run_plainly(blocks, arguments)
    finally:
        shutil.rmtree("/tmp/atoll", ignore_errors=True)


def run_for_real(blocks, arguments):
    if len(blocks) != 3:
        raise Failed("three blocks are expected: the coordinator's, a worker's, the operator's")
    work = pathlib.Path(tempfile.mkdtemp(prefix="atoll-readme-"))
    programs = (arguments.bin or ROOT / "build/release/bin").resolve()
    shell = Shell(work, time.monotonic() + arguments.timeout, programs)
    try:
        (work / "scripts").symlink_to(ROOT / "scripts")
        (work / "srv").mkdir()
        # Long enough that the operator's commands find it training.
        config = (ROOT / "configs/small.yaml").read_text()
        (work / "run.yaml").write_text(re.sub(r"^  rounds: .*", "  rounds: 1000", config, flags=re.M))
        subprocess.run([programs / "atoll-data", "tokenize", "--tokenizer", "bytes", "--out", work / "tokens",
                        *sorted((ROOT / "docs").rglob("*.md"))], check=True, stdout=subprocess.DEVNULL)
        fitted = [block.replace("/srv/atoll", f"{work}/srv").replace("coordinator.example.org:", "localhost:")
                  for block in blocks]
        shell.run(fitted[0])
        for name in WORKERS:
            shell.run(re.sub(r"\bw0\b", name, fitted[1]))
        operator = "export " + re.search(r"^export (ATOLL_TLS_.*)$", fitted[2], flags=re.M).group(1) + "\n"
        trained = operator + 'test "$(atollctl status --json | atollctl field fragments.0.version)" -ge 2'
        shell.wait_until(trained, "version 2")
        shell.run(fitted[2])
    finally:
        shell.end()
        shutil.rmtree(work, ignore_errors=True)


SECTIONS = {"Try it": run_plainly, "By hand": run_by_hand, "Running for real": run_for_real}


def check(found):
    """What is wrong with the page."""
    for section, blocks in found.items():
        if section not in SECTIONS:
            yield f"nobody runs the block under '{section}': teach tests/docs/readme_blocks.py to"
        for block in blocks:
            if problem := syntax_problem(block):
                yield f"a block under '{section}' is not valid bash: {problem}"
    for section in SECTIONS:
        if section not in found:
            yield f"there is no block under '{section}'"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--print", dest="shown", choices=SECTIONS)
    parser.add_argument("--run", action="append", default=[], choices=SECTIONS)
    parser.add_argument("--timeout", type=float, default=900)
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "README.md", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    # What a block started lives in sessions of its own: told to end, this program ends it first.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if not (arguments.check or arguments.shown or arguments.run):
        parser.error("say --check, --print SECTION or --run SECTION")
    try:
        found = {}
        for section, block in blocks_of(arguments.page.read_text()):
            found.setdefault(section, []).append(block)
        complaints = list(check(found))
        for complaint in complaints:
            print(f"readme: {complaint}", file=sys.stderr)
        if complaints:
            return 1
        if arguments.shown:
            print("".join(found[arguments.shown]), end="")
        for section in arguments.run:
            start = time.monotonic()
            try:
                SECTIONS[section](found[section], arguments)
            except Failed as failure:
                raise Failed(f"'{section}': {failure}") from None
            print(f"readme: '{section}' passed in {time.monotonic() - start:.0f} s", flush=True)
    except Failed as failure:
        print(f"readme: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
