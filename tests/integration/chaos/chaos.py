#!/usr/bin/env python3
"""Eight real workers on one machine, and every few seconds one is killed, frozen, cut off, stalled or slowed down.

The same run is done twice, undisturbed and disturbed. It must show: training goes on and ends with the same tokens;
every round closes within its deadline; a worker that was killed is started again by the launcher and is in the next
round; the status always says what is awaited; the final loss is within 1 % of the undisturbed run's; nothing is left
running. docs/internals/crash_tests.md has the commands and the measured figures.

Usage: chaos.py --bin DIR [--short | --long] [--seed N] [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import argparse
import collections
import pathlib
import shutil
import signal
import sys
import tempfile
import time

import checks
from faults import Faults
from run import Run, write_text
from real_run import tokenize

# From the end of a worker to its start: the launcher's pause, and what a process takes to come up.
RESTART_TAKES_S = 3
SHORT = {"rounds": 14, "quorum": 0.5, "steps": 30, "deadline": 15, "lease": 2, "evaluate": 7, "every": (0.7, 1.5), "longest": 3}
LONG = {"rounds": 240, "quorum": 0.5, "steps": 100, "deadline": 20, "lease": 3, "evaluate": 20, "every": (2, 4), "longest": 8}


def watch(run, faults, limit):
    """Until the run is finished: what was seen, in order."""
    polls, begin = [], time.monotonic()
    while True:
        if faults:
            faults.tick()
        status, workers = run.status(), run.workers()
        if status is None or workers is None:
            raise RuntimeError(f"atollctl failed: {run.complaint}; {run.log_end()}")
        polls.append({"time": time.time(), "status": status, "workers": workers})
        if status["state"] == "RUN_STATE_FINISHED":
            return polls, time.monotonic() - begin
        if time.monotonic() - begin > limit:
            raise RuntimeError(f"not finished after {limit} s: {status} {run.log_end()}")
        if run.coordinator.poll() is not None:
            raise RuntimeError(f"the coordinator ended: {run.log_end()}")
        time.sleep(0.1)


def final_loss(run):
    """Of the last version; it is evaluated a moment after it was published."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        status = run.status(history=1000)
        head = checks.head_of(status)
        losses = {int(e["version"]): e["loss"] for e in status.get("evaluations", [])}
        if head in losses:
            return losses[head], status
        time.sleep(0.1)
    raise RuntimeError("the last version was not evaluated")


def do_run(folder, arguments, tokens, options, faulty):
    run = Run(folder, arguments.bin, arguments.worker, options)
    try:
        run.start(tokens)
        faults = None
        if faulty:
            run.wait_for(lambda: checks.head_of(run.status() or {}) >= 1, 120, "the first version")
            faults = Faults(run, arguments.seed, options["every"], options["longest"], at_once=3)
        polls, seconds = watch(run, faults, 1200)
        if faults:
            faults.finish_all()
        loss, status = final_loss(run)
        events, contributed = run.events(), run.contributed()
        code, left = run.stop()
    finally:
        run.kill()
    return {"polls": polls, "seconds": seconds, "loss": loss, "status": status, "events": events, "contributed": contributed,
            "code": code, "left": left, "faults": faults.done if faults else []}


def exits_at_the_end(events):
    """How many workers ended so shortly before the run did that none was started in their place."""
    ends = [int(event["unix_nanos"]) for event in events if event["kind"] == "RUN_FINISHED"]
    exits = [int(event["unix_nanos"]) for event in events if event["kind"] == "WORKER_EXITED"]
    return sum(ends[-1] - exit < RESTART_TAKES_S * 1e9 for exit in exits) if ends else 0


def judge(calm, wild, options):
    """The complaints; prints the figures."""
    kinds = collections.Counter(event["kind"] for event in wild["events"])
    complaints, longest = checks.check_rounds(wild["events"], options["deadline"], slack=2)
    complaints += checks.check_head(wild["polls"]) + checks.check_waiting(wild["polls"])
    waits = checks.rounds_until_back(wild["events"], wild["contributed"], wild["faults"])
    complaints += checks.check_back(waits)
    difference = abs(wild["loss"] - calm["loss"]) / calm["loss"]
    if difference > 0.01:
        complaints.append(f"final loss {wild['loss']:.4f}, undisturbed {calm['loss']:.4f}: {difference:.2%} apart")
    for name, run in (("undisturbed", calm), ("disturbed", wild)):
        if int(run["status"]["committed_tokens"]) < int(run["status"]["total_tokens"]):
            complaints.append(f"the {name} run did not train on all its tokens")
        if run["code"] != 0 or run["left"]:
            complaints.append(f"the {name} run ended with {run['code']}, and left running: {run['left']}")
    if not wild["faults"] or not kinds["ROUND_CLOSED"]:
        complaints.append(f"{len(wild['faults'])} faults and {kinds['ROUND_CLOSED']} rounds: nothing was shown")
    kills = sum(fault["kind"] == "kill" for fault in wild["faults"]) - exits_at_the_end(wild["events"])
    if kinds["WORKER_LAUNCHED"] - options["workers"] < kills:
        complaints.append(f"{kills} kills, but only {kinds['WORKER_LAUNCHED'] - options['workers']} restarts")
    made = collections.Counter(fault["kind"] for fault in wild["faults"])
    print(f"faults       {len(wild['faults'])}: " + ", ".join(f"{n} {kind}" for kind, n in sorted(made.items())))
    print(f"events       {dict(sorted(kinds.items()))}")
    print(f"rounds       {kinds['ROUND_CLOSED']} disturbed, longest open {longest:.1f} s of {options['deadline']:.0f} s")
    print(f"back         {len(waits)} returns judged, rounds after the one that was open then: "
          f"{sorted(rounds for _, _, rounds in waits if rounds is not None)}")
    print(f"time         undisturbed {calm['seconds']:.0f} s, disturbed {wild['seconds']:.0f} s")
    print(f"final loss   undisturbed {calm['loss']:.4f}, disturbed {wild['loss']:.4f} ({difference:+.2%})")
    print(f"looks        {len(wild['polls'])}, each with a status that says what is awaited")
    return complaints


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the programs")
    parser.add_argument("--worker", help="another atoll-worker than the one there")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--short", dest="options", action="store_const", const=SHORT, help="less than a minute (the default)")
    size.add_argument("--long", dest="options", action="store_const", const=LONG, help="several minutes")
    parser.add_argument("--seed", type=int, default=1, help="of the faults")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--rounds", type=int, help="instead of the form's own")
    parser.add_argument("--keep", action="store_true", help="leave the folder behind")
    arguments = parser.parse_args()
    arguments.bin = pathlib.Path(arguments.bin).resolve()
    arguments.worker = pathlib.Path(arguments.worker or arguments.bin / "atoll-worker").resolve()
    options = dict(arguments.options or SHORT, workers=arguments.workers)
    if arguments.rounds:
        options["rounds"] = arguments.rounds
    return arguments, options


def main():
    arguments, options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # with all that is to be cleaned up
    for program in (arguments.bin / "atoll-coordinator", arguments.bin / "atollctl", arguments.worker):
        if not program.exists():
            print(f"skipped: {program} is not there")
            return 77
    folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-chaos-"))
    try:
        write_text(folder / "text.txt", 400_000, seed=1)
        tokens = tokenize(arguments.bin, folder / "text.txt", folder / "tokens")
        calm = do_run(folder / "calm", arguments, tokens, options, faulty=False)
        # On a slow machine rounds take longer: what is a long round is known now.
        _, longest = checks.check_rounds(calm["events"], options["deadline"], slack=0)
        options["deadline"] = max(options["deadline"], 4 * longest)
        wild = do_run(folder / "wild", arguments, tokens, options, faulty=True)
        complaints = judge(calm, wild, options)
    finally:
        if not arguments.keep:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            print(f"left in {folder}")
    for complaint in complaints:
        print("FAILED:", complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
