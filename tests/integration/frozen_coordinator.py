#!/usr/bin/env python3
"""A worker leaves a coordinator that does not answer, with real programs.

The coordinator is stopped (SIGSTOP) in the middle of a round, so that it takes calls and answers none. The worker then gets SIGTERM
with --drain-seconds 3, in blocking and in overlapped mode, and with a push that is larger than the buffers of the socket. It must
end soon after these 3 s, with exit code 8, and its last message must say that its push was not acknowledged and whether the state
directory keeps it. The coordinator goes on, and the worker starts again with the same state directory: what was kept must arrive, and
the run must go on.

Usage: frozen_coordinator.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import os
import signal
import subprocess
import sys
import time

from real_run import RealRun, run_as_test, tokenize_foxes

PATIENCE_S = 90
DRAIN_S = 3
# The calls in flight end by themselves after 15 s and more, and one after the other.
LONGEST_S = 18
# A push that has filled the socket ends with the connection, at the latest when the keepalive gives up after 40 s (worker.md).
LONGEST_LARGE_S = 50
CONFIG = """run: {name: frozen, workers: 1, rounds: 100000, seed: 3}
model: {gpt: {layers: %(layers)d, heads: 2, width: %(width)d, context: 16, vocabulary: 256}}
data: {tokenizer: bytes}
inner: {steps: %(steps)d, learning_rate: 0.005, batch: 1}
round: {deadline_s: 600, lease_s: 3}
evaluation: {every: 0}
checkpoint: {shards: 1}
"""
SMALL = {"layers": 1, "width": 32, "steps": 4000}
LARGE = {"layers": 6, "width": 320, "steps": 300}  # 30 MB in fp32
MODES = {
    "blocking": CONFIG % SMALL,
    "overlapped": CONFIG % SMALL + "sync: {mode: overlapped, fragments: 2}\n",
    "large": CONFIG % LARGE + "codec: {push: fp32, pull_delta: none}\n",
}
KEPT = "The state directory keeps it"


def start_worker(run, tokens):
    with open(run.folder / "w.log", "ab") as log:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", run.programs / "atoll-worker", f"--coordinator={run.data}", "--name=w",
             f"--data={tokens}", f"--state-dir={run.folder / 'w'}", f"--drain-seconds={DRAIN_S}", "--threads=1", "--device=cpu"],
            stdout=log, stderr=log, env=dict(os.environ, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="1"))


def accepted(run):
    return int((run.workers() or {}).get("w", {}).get("contributions_accepted", 0))


def early_in_a_round(run):
    """Whether the worker is in the first half of its second round or a later one, so that there is something to push."""
    progress = (run.workers() or {}).get("w", {}).get("progress", {})
    return int(progress.get("base_version", 0)) >= 1 and 0 < int(progress.get("step", 0)) <= int(progress.get("steps", 0)) // 2


def leave(run, worker):
    """Freezes the coordinator, then tells the worker to leave: its exit code, or None, and how long it took."""
    run.coordinator.send_signal(signal.SIGSTOP)
    try:
        time.sleep(2)  # a heartbeat is in flight
        began = time.monotonic()
        worker.send_signal(signal.SIGTERM)
        try:
            code = worker.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            code = None
        return code, time.monotonic() - began
    finally:
        run.coordinator.send_signal(signal.SIGCONT)


def check(folder, programs, tokens, mode, complaints):
    run = RealRun(folder / mode, programs, MODES[mode])
    say = lambda what: complaints.append(f"{mode}: {what}")
    worker = None
    try:
        run.launch(programs / "atoll-worker", [], workers=0)
        worker = start_worker(run, tokens)
        run.wait_for(lambda: accepted(run) >= 1, PATIENCE_S, "a contribution")
        run.wait_for(lambda: early_in_a_round(run), PATIENCE_S, "steps of a round")
        code, seconds = leave(run, worker)
        log = (run.folder / "w.log").read_text()
        last = log.strip().splitlines()[-1]
        print(f"{mode}: exit code {code} after {seconds:.1f} s: {last}")
        if code != 8 or seconds > (LONGEST_LARGE_S if mode == "large" else LONGEST_S):
            say(f"exit code {code} after {seconds:.1f} s, with {DRAIN_S} s to drain: {log[-1500:]}")
        if not any(words in last for words in ("was not acknowledged", "was not sent")) or "state directory" not in last:
            say(f"the last message does not say what happened to the steps: {last}")
        counted = accepted(run)
        worker = start_worker(run, tokens)
        run.wait_for(lambda: accepted(run) > counted, PATIENCE_S, "a contribution of the next life")
        if mode != "overlapped" and KEPT not in last:
            say(f"the state directory does not keep the push: {last}")
        if KEPT in last and "before the coordinator answered its push" not in (run.folder / "w.log").read_text()[len(log):]:
            say("the next life does not ask about the kept push")
    finally:
        if worker is not None and worker.poll() is None:
            worker.kill()
            worker.wait()
        run.end()


def measure(folder, programs):
    tokens = tokenize_foxes(programs, folder)
    complaints = []
    for mode in MODES:
        check(folder, programs, tokens, mode, complaints)
    return complaints


if __name__ == "__main__":
    sys.exit(run_as_test("atoll-frozen-", __doc__, measure))
