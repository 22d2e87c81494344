#!/usr/bin/env python3
"""Runs the tests repeatedly and counts how often each one fails.

Every ctest entry of a build folder runs several times: entries with threads, processes or clocks 50 times under a load, the
others 5 times without a load. The counts are in a JSON file. The next call continues them, so a long suite can run in parts:

  scripts/repeat_tests.py --minutes 55                 repeat this command until it exits with 0 or 1
  scripts/repeat_tests.py --report                     print the table so far
  scripts/repeat_tests.py --tests byzantine --times 20 run some tests 20 times

The entry with the most missing runs is next, so the first part already includes every test. The output of a failed run is
stored next to the counts. Another revision of the sources starts new counts.

Loads: build (compiles the sources of the build folder and discards the output, one compiler per processor; the default), spin
(one busy process per processor), none, or any other shell command, which is restarted when it ends.

Exit codes: 0 all runs done and none failed, 1 a run failed, 2 wrong usage, 3 the time is up and runs are missing.
"""
import argparse
import itertools
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Labels of tests that compute and do nothing else: no thread, no process of ours, no clock. Every other test is timed.
PURE = {"core", "protos", "style", "packaging", "data", "torch"}
TIMED_TIMES, PURE_TIMES = 50, 5
FIRST_GUESS_S = 60  # for a run whose duration is not known yet
RESULTS = ("passed", "failed", "skipped")


def entries_of(build):
    """By name: kind, serial."""
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=False)
    if shown.returncode != 0:
        raise SystemExit(f"repeat_tests: {build} has no tests: {shown.stderr.strip()} (build it first)")
    entries = {}
    for test in json.loads(shown.stdout)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        labels = set(properties.get("LABELS", []))
        entries[test["name"]] = {"kind": "pure" if labels & PURE and "integration" not in labels else "timed",
                                 "serial": bool(properties.get("RUN_SERIAL")), "labels": labels}
    return entries


def revision():
    head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    changed = subprocess.run(["git", "-C", ROOT, "status", "--porcelain", "-uno"], capture_output=True, text=True,
                             check=False).stdout.strip()
    return head + ("+changes" if changed else "")


class Record:
    """The counts, on disk after every run."""

    def __init__(self, path, fresh):
        self.path, self.lock = pathlib.Path(path), threading.Lock()
        self.data = {"revision": revision(), "tests": {}}
        if self.path.exists() and not fresh:
            kept = json.loads(self.path.read_text())
            if kept["revision"] == self.data["revision"]:
                self.data = kept
            else:
                print(f"repeat_tests: {self.path} is of revision {kept['revision'][:12]}; starting new counts")
                self.path.rename(self.path.with_suffix(f".{kept['revision'][:12]}.json"))

    def of(self, name):
        return self.data["tests"].setdefault(name, {"passed": 0, "failed": 0, "skipped": 0, "seconds": 0.0, "failures": []})

    def runs(self, name):
        return sum(self.of(name)[result] for result in RESULTS)

    def expected_s(self, name):
        runs = self.runs(name)
        return self.of(name)["seconds"] / runs if runs else FIRST_GUESS_S

    def add(self, name, kind, result, seconds, output):
        with self.lock:
            test = self.of(name)
            test["kind"] = kind
            test[result] += 1
            test["seconds"] = round(test["seconds"] + seconds, 3)
            if result == "failed":
                folder = self.path.with_suffix(".failures")
                folder.mkdir(parents=True, exist_ok=True)
                log = folder / f"{name}.{self.runs(name)}.log"
                log.write_text(output)
                test["failures"].append(str(log))
            self.save()

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(self.data, indent=1, sort_keys=True) + "\n")
        partial.replace(self.path)


class Load:
    """What runs beside the tests while it is on."""

    def __init__(self, what, build):
        self.what, self.ended, self.threads, self.processes = what, threading.Event(), [], set()
        self.lock, self.commands = threading.Lock(), None
        if what == "build":
            self.commands = itertools.cycle(self.compilers(build))

    @staticmethod
    def compilers(build):
        file = pathlib.Path(build) / "compile_commands.json"
        if not file.exists():
            raise SystemExit(f"repeat_tests: {file} is missing; choose another --load")
        for entry in json.loads(file.read_text()):
            words = shlex.split(entry["command"])
            words = words[1:] if words and pathlib.Path(words[0]).name == "ccache" else words
            if "-o" in words:
                words[words.index("-o") + 1] = "/dev/null"
            yield words, entry["directory"]

    def next_command(self):
        if self.what == "spin":
            return [sys.executable, "-c", "while True: pass"], None
        if self.what == "build":
            with self.lock:
                return next(self.commands)
        return ["bash", "-c", self.what], None

    def keep_busy(self):
        while not self.ended.is_set():
            command, folder = self.next_command()
            with self.lock:
                if self.ended.is_set():
                    return
                process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL, start_new_session=True)
                self.processes.add(process)
            process.wait()
            with self.lock:
                self.processes.discard(process)

    def __enter__(self):
        if self.what != "none":
            count = os.cpu_count() if self.what in ("spin", "build") else 1
            self.threads = [threading.Thread(target=self.keep_busy, daemon=True) for _ in range(count)]
            for thread in self.threads:
                thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        with self.lock:
            for process in self.processes:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        for thread in self.threads:
            thread.join()


def run_once(build, name):
    """Result, seconds, output."""
    begin = time.monotonic()
    done = subprocess.run(["ctest", "--test-dir", build, "-R", f"^{re.escape(name)}$", "--output-on-failure", "--no-tests=error"],
                          capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False)
    output = done.stdout + done.stderr
    result = "failed" if done.returncode != 0 else "skipped" if "***Skipped" in output else "passed"
    return result, time.monotonic() - begin, output


def table(record, entries, wanted):
    width = max((len(name) for name in entries), default=4)
    print(f"{'test':<{width}}  kind   runs  of  failed  skipped  mean s")
    totals = dict.fromkeys(RESULTS, 0)
    for name in sorted(entries, key=lambda n: (-record.of(n)["failed"], n)):
        test, runs = record.of(name), record.runs(name)
        for result in RESULTS:
            totals[result] += test[result]
        print(f"{name:<{width}}  {entries[name]['kind']}  {runs:>4} {wanted[name]:>3} {test['failed']:>7} {test['skipped']:>8} "
              f"{test['seconds'] / runs if runs else 0:>7.1f}")
    print(f"{len(entries)} tests: {sum(totals.values())} of {sum(wanted.values())} runs, {totals['failed']} failed, "
          f"{totals['skipped']} skipped")
    return totals


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="the build folder (default: build/release)")
    parser.add_argument("--record", help="the counts (default: BUILD/repeat.json)")
    parser.add_argument("--minutes", type=float, default=60, help="start no run that would end later (default: 60)")
    parser.add_argument("--tests", default="", metavar="REGEX", help="only tests whose names match")
    parser.add_argument("--exclude", default="", metavar="REGEX", help="skip tests whose names or labels match")
    parser.add_argument("--times", type=int, help="runs of every test, instead of 50 and 5")
    parser.add_argument("--load", default="build", help="load for the timed tests: build, spin, none or a shell command")
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel tests; tests that must run alone do so (default: 1)")
    parser.add_argument("--fresh", action="store_true", help="start new counts")
    parser.add_argument("--report", action="store_true", help="print the table and run nothing")
    return parser.parse_args()


def choose(arguments):
    entries = {name: entry for name, entry in entries_of(arguments.build).items() if re.search(arguments.tests, name)}
    if arguments.exclude:
        entries = {name: entry for name, entry in entries.items()
                   if not any(re.search(arguments.exclude, text) for text in (name, *entry["labels"]))}
    times = {"timed": arguments.times or TIMED_TIMES, "pure": arguments.times or PURE_TIMES}
    return entries, {name: times[entry["kind"]] for name, entry in entries.items()}


def next_batch(record, entries, wanted, kind, jobs, remaining):
    """Names to run now, the furthest behind first; those that are too long for the time that is left are passed over."""
    due = [name for name in entries if entries[name]["kind"] == kind and record.runs(name) < wanted[name]
           and record.expected_s(name) <= remaining]
    due.sort(key=lambda name: (record.runs(name) / wanted[name], name))
    if not due or entries[due[0]]["serial"]:
        return due[:1]
    return [name for name in due if not entries[name]["serial"]][:jobs]


def run_kind(arguments, record, entries, wanted, kind, deadline):
    def one(name):
        result, seconds, output = run_once(arguments.build, name)
        record.add(name, kind, result, seconds, output)
        print(f"{time.strftime('%H:%M:%S')} {name} {record.runs(name)}/{wanted[name]}: {result} in {seconds:.1f} s", flush=True)

    while batch := next_batch(record, entries, wanted, kind, arguments.jobs, deadline - time.monotonic()):
        threads = [threading.Thread(target=one, args=(name,)) for name in batch]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def main():
    arguments = parse()
    os.chdir(ROOT)
    deadline = time.monotonic() + 60 * arguments.minutes
    entries, wanted = choose(arguments)
    if not entries:
        print("repeat_tests: no test matches", file=sys.stderr)
        return 2
    record = Record(arguments.record or pathlib.Path(arguments.build) / "repeat.json", arguments.fresh)
    if not arguments.report:
        run_kind(arguments, record, entries, wanted, "pure", deadline)
        with Load(arguments.load, arguments.build):
            run_kind(arguments, record, entries, wanted, "timed", deadline)
    totals = table(record, entries, wanted)
    if totals["failed"]:
        return 1
    return 0 if all(record.runs(name) >= wanted[name] for name in entries) else 3


if __name__ == "__main__":
    # Tests that are killed leave files behind.
    with tempfile.TemporaryDirectory(prefix="atoll-repeat-") as scratch:
        os.environ.setdefault("TMPDIR", scratch)
        sys.exit(main())
