#!/usr/bin/env python3
"""Checks that each file of the product compiles alone: without precompiled headers, and without the files of its batch.

Usage: standalone.py [--build DIR] [--all] [--record] [--jobs N] [FILE...]

Checks the files whose contents are not in tests/style/standalone.txt: a .cc file as it is, a header as a file that includes nothing
else. The compiler parses and generates no code. A header with a .cc file of its own is checked by that one, which includes it first.

  --build DIR  a build folder without precompiled headers and batches, with the generated headers (default: build/plain)
  --all        check every file
  --record     write the contents that passed into the list, and take out what no file holds any more
  --jobs N     check N files at a time (default: the number of processors)

After a change of a header this does not check what includes it; --all does. Exit codes: 0 every file compiles, 1 a file does not,
2 wrong usage.
"""
import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = ROOT / "tests/style/standalone.txt"
INCLUDE = re.compile(rb'^ *# *include "([^"]+)"', re.MULTILINE)
DROPPED = {"-c", "-MD", "-MMD"}
DROPPED_WITH_VALUE = {"-o", "-MT", "-MF", "-MQ"}
PROGRESS_S = 20


@functools.cache
def content(file):
    return (ROOT / file).read_bytes()


def fingerprint(file):
    return hashlib.sha256(content(file)).hexdigest()[:16]


@functools.cache
def included(file):
    return [name for name in (one.decode() for one in INCLUDE.findall(content(file))) if name.endswith(".h") and (ROOT / name).is_file()]


class Commands:
    """How this build compiles each .cc file of ours."""

    def __init__(self, build):
        self.of = {}
        for entry in json.loads((build / "compile_commands.json").read_text()):
            path = pathlib.Path(entry["directory"], entry["file"]).resolve()
            if path.is_relative_to(ROOT) and not path.is_relative_to(build.resolve()):
                self.of[str(path.relative_to(ROOT))] = (entry["directory"], self.options(shlex.split(entry["command"]), entry["file"]))

    @staticmethod
    def options(words, file):
        while pathlib.PurePath(words[0]).suffix == ".sh":  # a launcher
            words = words[1:]
        kept, skip = [], False
        for word in words:
            if skip:
                skip = False
            elif word in DROPPED_WITH_VALUE:
                skip = True
            elif word not in DROPPED and word != file:
                kept.append(word)
        return kept

    def includers(self):
        """For each header the .cc file that includes it over the fewest others."""
        found, level = {}, [(source, source) for source in sorted(self.of)]
        while level:
            following = []
            for file, source in level:
                for header in included(file):
                    if header not in found:
                        found[header] = source
                        following.append((header, source))
            level = following
        return found


def checks(commands):
    """Name of the file: the .cc file whose options fit."""
    todo = {source: source for source in commands.of}
    for header, source in commands.includers().items():
        own = header.removesuffix(".h") + ".cc"
        first = included(own)[:1] if own in commands.of else []
        todo[header] = own if first == [header] else source
    return todo


def check(name, source, commands):
    """What the compiler says against `name`, or None."""
    directory, options = commands.of[source]
    language, text = ["-x", "c++", "-"], f'#include "{name}"\n'
    if name.endswith(".cc") or source == name.removesuffix(".h") + ".cc":
        language, text = [str(ROOT / source)], None
    done = subprocess.run([*options, "-fsyntax-only", *language], cwd=directory, input=text, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr.strip()


def recorded():
    if not LIST.exists():
        return {}
    return {file: mark for mark, file in (line.split(" ", 1) for line in LIST.read_text().splitlines())}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("Usage: "), description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", default=ROOT / "build/plain", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    if not (options.build / "compile_commands.json").is_file():
        sys.exit(f"standalone: {options.build} has no compile_commands.json: cmake --preset plain makes one")
    commands = Commands(options.build)
    todo, known = checks(commands), recorded()
    unknown = [file for file in options.files if file not in todo]
    if unknown:
        print(f"standalone: {options.build} does not compile {unknown[0]}, and nothing that it compiles includes it", file=sys.stderr)
        return 2
    wanted = options.files or [name for name in todo if options.all or known.get(name) != fingerprint(name)]
    # A header and its own .cc file are one check.
    runs = {}
    for name in sorted(wanted):
        source = todo[name]
        key = source if source == name.removesuffix(".h") + ".cc" else name
        runs.setdefault(key, (name, source, []))[2].append(name)
    begin = said = time.monotonic()
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(check, name, source, commands): names for name, source, names in runs.values()}
        for count, future in enumerate(concurrent.futures.as_completed(futures), 1):
            complaint, names = future.result(), futures[future]
            if complaint is None:
                known.update({name: fingerprint(name) for name in names})
            else:
                failed += 1
                print(f"standalone: {names[-1]} does not compile alone:\n{complaint}", file=sys.stderr, flush=True)
            if time.monotonic() - said >= PROGRESS_S:
                said = time.monotonic()
                print(f"standalone: {count} of {len(futures)} checks done, {said - begin:.0f} s", flush=True)
    if options.record:
        kept = {file: mark for file, mark in known.items() if file in todo and mark == fingerprint(file)}
        LIST.write_text("".join(f"{mark} {file}\n" for file, mark in sorted(kept.items())))
    print(f"standalone: {len(runs) - failed} of {len(runs)} checks passed in {time.monotonic() - begin:.0f} s; "
          f"{len(todo) - len(wanted)} of {len(todo)} files were not checked")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
