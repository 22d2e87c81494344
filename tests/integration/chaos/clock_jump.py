#!/usr/bin/env python3
"""The wall clock of every program jumps by an hour, forwards and backwards, in the middle of a run.

Real programs under libfaketime, which lies to them about the time of day and leaves the steady clock alone. No lease may
end, no round may close early or late, nobody may wait for an hour: the run goes on as if nothing had happened, and ends
with all its tokens.

Usage: clock_jump.py --bin DIR
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs or libfaketime are not there.
"""
import argparse
import collections
import glob
import os
import pathlib
import shutil
import sys
import tempfile
import time

import checks
from run import Run, write_text
from real_run import tokenize

# Rounds take a tenth of a second: with less than everybody as quorum, one may close without whom a breath delayed.
OPTIONS = {"workers": 2, "rounds": 12, "steps": 30, "deadline": 60, "lease": 3, "evaluate": 6, "quorum": 1}
# After each of these versions the clock is set so far from the true one, in seconds.
JUMPS = {3: 3600, 6: -3600, 9: 0}
LIBRARY = "/usr/lib/*/faketime/libfaketimeMT.so.1"


class Clock:
    """The time of day as all programs of the run see it."""

    def __init__(self, folder, library):
        self.file = folder / "clock"
        self.set(0)
        os.environ.update(LD_PRELOAD=library, FAKETIME_TIMESTAMP_FILE=str(self.file), FAKETIME_NO_CACHE="1",
                          FAKETIME_DONT_FAKE_MONOTONIC="1", NO_FAKE_STAT="1")

    def set(self, seconds):
        new = self.file.with_suffix(".new")
        new.write_text(f"{seconds:+d}")
        new.rename(self.file)


def train(run, clock):
    """Until the run is finished, with the jumps; how far the events' times of day went apart."""
    todo, begin = dict(JUMPS), time.monotonic()
    while True:
        status = run.status()
        if status is None:
            raise RuntimeError(f"atollctl failed: {run.complaint}; {run.log_end()}")
        head = checks.head_of(status)
        for version in [v for v in todo if head >= v]:
            clock.set(todo.pop(version))
        if status["state"] == "RUN_STATE_FINISHED":
            return status, todo
        if time.monotonic() - begin > 180:
            raise RuntimeError(f"not finished after 180 s, at version {head}: {run.log_end()}")
        time.sleep(0.05)


def judge(status, todo, events, code, left):
    kinds = collections.Counter(event["kind"] for event in events)
    complaints = [f"{kinds[kind]} events {kind}" for kind in ("WORKER_LOST", "WORKER_RETURNED", "RUN_HELD") if kinds[kind]]
    closed = [e for e in events if e["kind"] == "ROUND_CLOSED"]
    complaints += [f"a round closed because of {e['round']['close_reason']}" for e in closed
                   if "all" not in e["round"]["close_reason"]]
    if todo:
        complaints.append(f"the clock never jumped at versions {sorted(todo)}")
    times = [int(e["unix_nanos"]) / 1e9 for e in events]
    apart = max(times) - min(times)
    if apart < 7000:
        complaints.append(f"the events are only {apart:.0f} s apart: the clock did not jump")
    if int(status["committed_tokens"]) < int(status["total_tokens"]):
        complaints.append("the run did not train on all its tokens")
    if code != 0 or left:
        complaints.append(f"the run ended with {code}, and left running: {left}")
    print(f"events {dict(sorted(kinds.items()))}, {apart:.0f} s of wall clock apart")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="folder of the programs")
    programs = parser.parse_args().bin.resolve()
    library = glob.glob(LIBRARY)
    if not library or not (programs / "atoll-worker").exists():
        print(f"skipped: {LIBRARY} or {programs / 'atoll-worker'} is not there")
        return 77
    folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-clock-"))
    try:
        write_text(folder / "text.txt", 200_000, seed=1)
        tokens = tokenize(programs, folder / "text.txt", folder / "tokens")
        clock = Clock(folder, library[0])
        run = Run(folder / "run", programs, programs / "atoll-worker", OPTIONS)
        try:
            run.start(tokens)
            status, todo = train(run, clock)
            events = run.events()
            code, left = run.stop()
        finally:
            run.kill()
        complaints = judge(status, todo, events, code, left)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for complaint in complaints:
        print("FAILED:", complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
