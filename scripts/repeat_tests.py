#!/usr/bin/env python3
"""Runs the tests repeatedly and counts how often each one fails.

Every ctest entry of a build folder runs several times: entries with threads, processes or clocks 50 times under a load, those
labelled `idle`, which compare times with computed ones, 50 times without a load, and the others 5 times without a load. The counts are in a JSON file. The next call continues them, so a long suite can run in parts,
on several machines if the file is taken along:

  scripts/repeat_tests.py --minutes 55                 repeat this command until it exits with 0 or 1
  scripts/repeat_tests.py --report                     print the table so far
  scripts/repeat_tests.py --tests byzantine --times 20 run some tests 20 times
  scripts/repeat_tests.py --forget '^drain$'           start new counts for tests that a change concerns

Every entry runs once first (--first). Then the entry whose missing runs take the least time is next, so that early parts complete
most entries. The output of a failed run is stored in the build folder. Counts of several revisions are added up; the file lists the
revisions.

Loads: build (compiles the sources of the build folder and discards the output; the default), spin (busy processes), none, or any
other shell command, which is restarted when it ends. Tests that must run alone run alone, but not without the load.

Exit codes: 0 all runs done and none failed, 1 a run failed, 2 wrong usage, or the counts cannot be read or written, 3 the time is
up and runs are missing, 130 interrupted (runs that had not ended are not counted).
"""
import argparse
import fcntl
import itertools
import json
import math
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
TIMES = {"pure": 5, "idle": 50, "timed": 50}
# For a run whose duration is not known yet: tests/test_costs.txt has the seconds, without a load, of those that take longer than this.
SHORT_S, LOAD_FACTOR = 3, 2
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
        entries[test["name"]] = {"kind": "idle" if "idle" in labels else "pure" if labels & PURE and "integration" not in labels else "timed",
                                 "serial": bool(properties.get("RUN_SERIAL")) or "timed" in labels, "labels": labels}
    return entries


class Unusable(Exception):
    """The counts cannot be read or written."""


def known_seconds():
    lines = (ROOT / "tests/test_costs.txt").read_text().splitlines()
    return {name: LOAD_FACTOR * float(seconds) for name, seconds, _ in (line.split() for line in lines if not line.startswith("#"))}


def revision():
    head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    # The committed counts change with every run.
    command = ["git", "-C", ROOT, "status", "--porcelain", "-uno", "--", ".", ":!tests/repeat_counts.json"]
    changed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return head + ("+changes" if changed else "")


def checked(kept):
    """What a file of counts holds; ValueError says why it holds none."""
    if not isinstance(kept, dict) or set(kept) != {"revisions", "tests"} or not isinstance(kept["tests"], dict):
        raise ValueError("it must have `revisions` and `tests`")
    if not isinstance(kept["revisions"], list) or not all(isinstance(name, str) for name in kept["revisions"]):
        raise ValueError("`revisions` must be a list of names")
    for name, test in kept["tests"].items():
        counts = [test.get(result) for result in RESULTS] if isinstance(test, dict) else [None]
        if not all(type(count) is int and count >= 0 for count in counts) or not isinstance(test.get("failures"), list):
            raise ValueError(f"{name}: passed, failed and skipped must be counts, and failures a list")
        if type(test.get("seconds")) not in (int, float) or not 0 <= test["seconds"] < math.inf:
            raise ValueError(f"{name}: seconds must be a number of seconds")
    return kept


class Record:
    """The counts, on disk after every run, and the folder for the outputs of failed runs."""

    NO_RUN = {"passed": 0, "failed": 0, "skipped": 0, "seconds": 0.0, "failures": []}

    def __init__(self, path, failures, fresh, report):
        self.path, self.failures, self.lock = pathlib.Path(path), pathlib.Path(failures), threading.Lock()
        if not report:
            self.keep_others_out()
        self.data, self.known = {"revisions": [], "tests": {}}, known_seconds()
        if self.path.exists() and not fresh:
            try:
                self.data = checked(json.loads(self.path.read_text()))
            except (OSError, ValueError) as error:
                raise Unusable(f"{self.path} has no counts: {error}; --fresh starts new ones") from error

    def keep_others_out(self):
        """A second call would overwrite the counts of this one."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.locked = open(self.path.with_suffix(".lock"), "w")
            fcntl.flock(self.locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Unusable(f"another call counts in {self.path}; wait for it, or give this one another --record") from error
        except OSError as error:
            raise Unusable(f"the counts cannot be written: {error}") from error

    def begin(self):
        """Names the revision whose runs follow."""
        if revision() not in self.data["revisions"]:
            self.data["revisions"].append(revision())

    def forget(self, pattern):
        forgotten = [name for name in self.data["tests"] if re.search(pattern, name)]
        for name in forgotten:
            del self.data["tests"][name]
        self.save()
        return forgotten

    def of(self, name):
        return self.data["tests"].get(name, self.NO_RUN)

    def runs(self, name):
        return sum(self.of(name)[result] for result in RESULTS)

    def expected_s(self, name):
        runs = self.runs(name)
        return self.of(name)["seconds"] / runs if runs else self.known.get(name, LOAD_FACTOR * SHORT_S)

    def add(self, name, kind, result, seconds, output):
        with self.lock:
            test = self.data["tests"].setdefault(name, {**self.NO_RUN, "failures": []})
            test["kind"] = kind
            test[result] += 1
            test["seconds"] = round(test["seconds"] + seconds, 3)
            log = f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}.{self.runs(name)}.log"
            if result == "failed":
                test["failures"].append(log)
            # The count first: where there is no space for the output, the failure is counted all the same.
            self.save()
            if result == "failed":
                try:
                    self.failures.mkdir(parents=True, exist_ok=True)
                    (self.failures / log).write_text(output)
                except OSError as error:
                    print(f"repeat_tests: the output of the failed {name} cannot be kept: {error}\n{output}", file=sys.stderr)

    def save(self):
        partial = self.path.with_suffix(".partial")
        tests = ",\n".join(f"  {json.dumps(name)}: {json.dumps(test)}" for name, test in sorted(self.data["tests"].items()))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(f'{{"revisions": {json.dumps(self.data["revisions"])},\n "tests": {{\n{tests}\n}}}}\n')
            partial.replace(self.path)
        except OSError as error:
            raise Unusable(f"the counts cannot be written: {error}") from error


def kill_groups(processes):
    for process in processes:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Load:
    """What runs beside the tests while it is on."""

    def __init__(self, what, build, count):
        self.what, self.count, self.ended, self.threads, self.processes = what, count, threading.Event(), [], set()
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
            count = self.count if self.what in ("spin", "build") else 1
            self.threads = [threading.Thread(target=self.keep_busy, daemon=True) for _ in range(count)]
            for thread in self.threads:
                thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        with self.lock:
            kill_groups(self.processes)
        for thread in self.threads:
            thread.join()


class Runs:
    """The runs in progress. Each is a process group of its own, so that Ctrl-C in a terminal does not make it a failed run."""

    def __init__(self):
        self.lock, self.processes, self.stopped = threading.Lock(), set(), False

    def once(self, build, name):
        """Result, seconds, output; None when it was stopped."""
        begin = time.monotonic()
        command = ["ctest", "--test-dir", build, "-R", f"^{re.escape(name)}$", "--output-on-failure", "--no-tests=error"]
        with self.lock:
            if self.stopped:
                return None
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                       stdin=subprocess.DEVNULL, start_new_session=True)
            self.processes.add(process)
        output, _ = process.communicate()
        with self.lock:
            self.processes.discard(process)
            if self.stopped:
                return None
        result = "failed" if process.returncode != 0 else "skipped" if "***Skipped" in output else "passed"
        return result, time.monotonic() - begin, output

    def stop(self):
        with self.lock:
            self.stopped = True
            kill_groups(self.processes)


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
    parser.add_argument("--first", type=int, default=1, metavar="N", help="runs of every test before any test gets more (default: 1)")
    parser.add_argument("--times", type=int, help="runs of every test, instead of 50 and 5")
    parser.add_argument("--load", default="build", help="load for the timed tests: build, spin, none or a shell command")
    parser.add_argument("--load-jobs", type=int, default=os.cpu_count(), metavar="N",
                        help="number of compilers or busy processes of the load (default: one per processor)")
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel tests; tests that must run alone do so (default: 1)")
    parser.add_argument("--forget", metavar="REGEX", help="remove the counts of the tests whose names match, and run nothing")
    parser.add_argument("--fresh", action="store_true", help="start new counts")
    parser.add_argument("--report", action="store_true", help="print the table and run nothing")
    arguments = parser.parse_args()
    for name in ("tests", "exclude", "forget"):
        try:
            re.compile(getattr(arguments, name) or "")
        except re.error as error:
            parser.error(f"--{name}: not a regular expression: {error}")
    for name, least in (("times", 1), ("jobs", 1), ("load_jobs", 1), ("first", 0)):
        value = getattr(arguments, name)
        if value is not None and value < least:
            parser.error(f"--{name.replace('_', '-')} must be at least {least}")
    if not 0 < arguments.minutes < math.inf:
        parser.error("--minutes must be more than 0")
    return arguments


def choose(arguments):
    entries = {name: entry for name, entry in entries_of(arguments.build).items() if re.search(arguments.tests, name)}
    if arguments.exclude:
        entries = {name: entry for name, entry in entries.items()
                   if not any(re.search(arguments.exclude, text) for text in (name, *entry["labels"]))}
    return entries, {name: arguments.times or TIMES[entry["kind"]] for name, entry in entries.items()}


class Queue:
    """Which test of a kind is next. Threads ask; one that runs alone waits until the others have ended."""

    def __init__(self, record, entries, wanted, kind, first, deadline):
        self.record, self.wanted, self.first, self.deadline = record, wanted, first, deadline
        self.entries = {name: entry for name, entry in entries.items() if entry["kind"] == kind}
        self.serial = {name for name in self.entries if self.entries[name]["serial"]}
        self.running, self.changed = [], threading.Condition()

    def due(self):
        """Names, the next one first; those that are too long for the time that is left are passed over."""
        remaining, missing = self.deadline - time.monotonic(), {}
        for name in self.entries:
            runs = self.record.runs(name) + self.running.count(name)
            if runs < self.wanted[name] and self.record.expected_s(name) <= remaining:
                first = min(runs, self.first)
                missing[name] = (first, (self.wanted[name] - runs) * self.record.expected_s(name) if first == self.first else 0, name)
        return sorted(missing, key=missing.get)

    def take(self):
        """A name, or None when there is nothing left to start."""
        with self.changed:
            while True:
                # Two runs of one test at a time would share what its name makes unique, such as a folder of the build.
                due = [name for name in self.due() if name not in self.running]
                alone = any(name in self.serial for name in (*self.running, *due[:1]))
                if due and not (alone and self.running):
                    self.running.append(due[0])
                    return due[0]
                if not self.running:
                    return None
                self.changed.wait()

    def ended(self, name):
        with self.changed:
            self.running.remove(name)
            self.changed.notify_all()

    def stop(self):
        """Nothing more is started."""
        with self.changed:
            self.entries = {}
            self.changed.notify_all()


def run_kind(arguments, record, entries, wanted, kind, deadline):
    queue, runs, errors = Queue(record, entries, wanted, kind, arguments.first, deadline), Runs(), []

    def work():
        try:
            while name := queue.take():
                try:
                    if ended := runs.once(arguments.build, name):
                        record.add(name, kind, *ended)
                        print(f"{time.strftime('%H:%M:%S')} {name} {record.runs(name)}/{wanted[name]}: {ended[0]} in {ended[1]:.1f} s", flush=True)
                finally:
                    queue.ended(name)
        except Exception as error:  # the other threads must not go on without their counts
            errors.append(error)
            queue.stop()

    threads = [threading.Thread(target=work) for _ in range(arguments.jobs)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        queue.stop()
        runs.stop()
        for thread in threads:
            thread.join()
        raise
    if errors:
        raise errors[0]


def main():
    arguments = parse()
    os.chdir(ROOT)
    deadline = time.monotonic() + 60 * arguments.minutes
    entries, wanted = choose(arguments)
    if not entries:
        print("repeat_tests: no test matches", file=sys.stderr)
        return 2
    build = pathlib.Path(arguments.build)
    record = Record(arguments.record or build / "repeat.json", build / "repeat.failures", arguments.fresh, arguments.report)
    if arguments.forget:
        print(f"repeat_tests: no counts any more: {', '.join(record.forget(arguments.forget)) or 'no test matches'}")
        return 0
    if not arguments.report:
        record.begin()
        # The runs that every test gets first, of each kind; then the others.
        for limit in (arguments.first, math.inf):
            due = {name: min(times, limit) for name, times in wanted.items()}
            for kind, load in (("pure", "none"), ("idle", "none"), ("timed", arguments.load)):
                with Load(load, build, arguments.load_jobs):
                    run_kind(arguments, record, entries, due, kind, deadline)
    totals = table(record, entries, wanted)
    if totals["failed"]:
        return 1
    return 0 if all(record.runs(name) >= wanted[name] for name in entries) else 3


def interrupted(*_):
    raise KeyboardInterrupt


if __name__ == "__main__":
    for end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(end, interrupted)  # also ends the load
    # Tests that are killed leave files behind.
    with tempfile.TemporaryDirectory(prefix="atoll-repeat-", ignore_cleanup_errors=True) as scratch:
        os.chmod(scratch, 0o755)  # like /tmp: tests run programs as other users (k8s_runbooks)
        os.environ.setdefault("TMPDIR", scratch)
        try:
            code = main()
        except Unusable as error:
            print(f"repeat_tests: {error}", file=sys.stderr)
            code = 2
        except KeyboardInterrupt:
            print("repeat_tests: interrupted; the same command continues", file=sys.stderr)
            code = 130
    sys.exit(code)
