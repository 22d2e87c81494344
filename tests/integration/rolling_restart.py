#!/usr/bin/env python3
"""A coordinator that is ended by SIGTERM and started again, several times, while real workers train short rounds.

As a rolling upgrade does it: the same ports, the same directory. Nobody starts a worker again. It must show: no worker
ends before the run is finished, each ends with 0 then; every version is made of the contribution of every worker, and
nothing was refused; `atollctl verify` recomputes every version.

Usage: rolling_restart.py --bin DIR [--worker PROGRAM] [--restarts N] [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import argparse
import collections
import pathlib
import random
import sys
import time

from hand_run import HandRun
from real_run import judge, tokenize_foxes

WORKERS = 3
PATIENCE_S = 60
CONFIG = f"""run: {{name: rolling, workers: {WORKERS}, rounds: 2000, seed: 3}}
model: {{gpt: {{layers: 1, heads: 2, width: 32, context: 16, vocabulary: 256}}}}
data: {{tokenizer: bytes}}
inner: {{steps: 2, learning_rate: 0.005, warmup_steps: 10, batch: 2}}
outer: {{optimizer: nesterov, learning_rate: 0.7, momentum: 0.5}}
round: {{deadline_s: 60, start_workers: {WORKERS}}}
evaluation: {{every: 0}}
checkpoint: {{shards: 1, keep_versions: 1000}}
"""


def ended(run, complaints):
    """Whether a worker is gone, which nobody has asked for."""
    for name, process in run.workers_by_name.items():
        if process.poll() is not None:
            complaints.append(f"worker {name} ended with {process.returncode}: {run.worker_log_end(name)}")
    return bool(complaints)


def check_hardware(run, complaints):
    """What a worker says of itself, to programs and to people."""
    until = time.monotonic() + PATIENCE_S
    while not run.workers()["w0"]["capabilities"].get("device_name") and time.monotonic() < until:
        time.sleep(0.1)  # its next heartbeat brings it
    capabilities = run.workers()["w0"]["capabilities"]
    text = run.ctl("workers", "describe", "w0") or ""
    name = capabilities.get("device_name", "")
    if not name or "LibTorch" in name or name not in text or capabilities.get("threads") != 1 or int(capabilities.get("memory_bytes", 0)) < 1 << 28:
        complaints.append(f"w0 says of its hardware: {capabilities}; {text}")


def roll(run, restarts, complaints):
    rng = random.Random(5)
    for restart in range(restarts):
        # Rounds take some ten milliseconds, so each stop hits calls of all kinds.
        head, until = run.head(), time.monotonic() + PATIENCE_S
        while run.head() <= head + 1:
            if ended(run, complaints) or time.monotonic() > until:
                complaints.append(f"after restart {restart} no two versions came of {head}: {run.log_end()[-800:]}")
                return
            time.sleep(0.05)
        time.sleep(rng.uniform(0, 0.3))
        code = run.stop_coordinator()
        if code != 0:
            complaints.append(f"the coordinator ended with {code}: {run.log_end()}")
        time.sleep(rng.uniform(0, 0.5))
        run.start_coordinator()
        if ended(run, complaints):
            return


def finish(run, complaints):
    """Ends the run; every worker hears it and leaves. Returns the head and the refusals before the stop.
    A push in flight at the stop is rightly refused."""
    head = run.head()
    refused = [event for event in run.events() if "REFUSED" in event.get("kind", "")]
    if run.ctl("run", "stop", "--yes") is None:
        complaints.append(f"run stop failed: {run.complaint}")
    for name, process in run.workers_by_name.items():
        try:
            if process.wait(PATIENCE_S) != 0:
                complaints.append(f"worker {name} ended with {process.returncode}: {run.worker_log_end(name)}")
        except Exception as error:  # noqa: BLE001
            complaints.append(f"worker {name} did not end: {error}")
    return head, refused


def measure(folder, programs, arguments):
    tokens = tokenize_foxes(programs, folder)
    run, complaints = HandRun(folder, programs, CONFIG, arguments.worker), []
    try:
        run.start_coordinator()
        for i in range(WORKERS):
            run.start_worker(f"w{i}", tokens)
        run.wait_for(lambda: run.head() >= 1, PATIENCE_S, "the first version")
        check_hardware(run, complaints)
        roll(run, arguments.restarts, complaints)
        if complaints:
            return complaints
        # The coordinator that runs now has heard it in heartbeats only: nobody joined it.
        check_hardware(run, complaints)
        head, refused = finish(run, complaints)
        for version, workers in sorted(run.contributed().items()):
            if len(workers) != WORKERS and version <= head:
                complaints.append(f"version {version} is made of the contributions of {sorted(workers)} only")
        if refused:
            complaints.append(f"contributions were refused: {refused}")
        verdicts = collections.Counter(line["verdict"] for line in run.lines("verify", "--json"))
        if verdicts["EQUAL"] < head or set(verdicts) - {"EQUAL", "NOT_KEPT"}:
            complaints.append(f"verify says {dict(verdicts)} of {head} versions")
        print(f"{arguments.restarts} restarts, {head} versions of {WORKERS} contributions each, {verdicts['EQUAL']} recomputed")
    finally:
        run.kill_all()
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--worker", type=pathlib.Path, help="another worker's program")
    parser.add_argument("--restarts", type=int, default=8)
    parser.add_argument("--keep", action="store_true", help="leave the folder of the run")
    arguments = parser.parse_args()
    return judge("atoll-rolling-", arguments, lambda folder, programs: measure(folder, programs, arguments))


if __name__ == "__main__":
    sys.exit(main())
